/* Tests of leaks.c: what is named a leak, and in which order. */
#include "studies/leaks/leaks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "tests/support/text_recording.h"

#define SMALL_NAME "blocks of 512 B (512 bytes); "
#define LARGE_NAME "blocks of 1.00 KiB (1,024 bytes); "

enum { STEPS = 16 };

/* What a step keeps: blocks of 512 and of 1024 bytes, and of a size that is another in each step
 * by so much more. */
typedef struct kept {
    unsigned small, large, more_bytes;
} kept;

/* The leaks in order, each as its bytes for a step and, of one size, that size. */
static void expect_leaks(kept each, const char *expected)
{
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    const frag_leaks_options options = {.device = &device};
    frag_text text = {0};
    frag_text told = {0};
    frag_recording recording;
    frag_leaks leaks;
    frag_error error = {0};
    unsigned slot = 2;
    for (unsigned step = 0; step < STEPS; step++) {
        frag_text_add(&text, "mark \"step\"\n");
        for (unsigned i = 0; i < each.large; i++)
            frag_text_add(&text, "alloc %u 1024\n", slot++);
        for (unsigned i = 0; i < each.small; i++)
            frag_text_add(&text, "alloc %u 512\n", slot++);
        if (each.more_bytes == 0)
            continue;
        frag_text_add(&text, "alloc %u %u\n", step % 2, 4096 + step * each.more_bytes);
        if (step > 0)
            frag_text_add(&text, "free %u\n", (step + 1) % 2);
    }
    frag_test_recording(text.bytes, &recording);
    assert_true(frag_leaks_find(&options, &recording, &recording.traces[0], &leaks, &error));
    for (size_t i = 0; i < leaks.count; i++)
        frag_text_add(&told, "%.0f %s; ", leaks.leaks[i].bytes_per_step,
                      leaks.leaks[i].name != NULL ? leaks.leaks[i].name->caller : "all");
    assert_string_equal(told.bytes, expected);
    frag_leaks_destroy(&leaks);
    frag_recording_destroy(&recording);
    frag_text_destroy(&told);
    frag_text_destroy(&text);
}

static void the_fastest_leak_comes_first(void **state)
{
    (void)state;
    expect_leaks((kept){.small = 1, .large = 1}, "1024 " LARGE_NAME "512 " SMALL_NAME);
    expect_leaks((kept){.small = 3, .large = 1}, "1536 " SMALL_NAME "1024 " LARGE_NAME);
    /* Of equals the first by name. */
    expect_leaks((kept){.small = 2, .large = 1}, "1024 " LARGE_NAME "1024 " SMALL_NAME);
}

/* They are named beside leaks that are up to half of them. */
static void blocks_of_changing_sizes_leak_together(void **state)
{
    (void)state;
    expect_leaks((kept){.small = 1, .more_bytes = 512}, "1024 all; 512 " SMALL_NAME);
    expect_leaks((kept){.small = 1, .more_bytes = 511}, "512 " SMALL_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_leak_comes_first),
        cmocka_unit_test(blocks_of_changing_sizes_leak_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
