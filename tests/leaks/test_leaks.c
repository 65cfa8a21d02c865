/* Tests of leaks.c: what is named a leak, and in which order. */
#include "studies/leaks/leaks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* Blocks of 20 MiB on a device that has room for 25 of them. "a10" takes block 1 of this step,
 * "f11" gives back that of the step before, "d" does so for later, "c" completes that. */
static void add_step(frag_text *text, const char *step, unsigned number)
{
    static const char letters[] = "afdc";
    static const char *const forms[] = {"alloc %u 20971520\n", "free %u\n", "free %u deferred\n",
                                        "complete %u\n"};
    frag_text_add(text, "mark \"step\"\n");
    for (const char *at = step; *at != '\0'; at += 4) {
        unsigned ago = (unsigned)(at[2] - '0');
        if (ago <= number)
            frag_text_add(text, forms[strchr(letters, at[0]) - letters],
                          (unsigned)(at[1] - '0') * 100 + number - ago);
    }
}

static void the_device_is_full_in_the_step_that_takes_one_block_too_many(void **state)
{
    (void)state;
    static const struct {
        const char *step;
        unsigned steps;
        uint64_t oom_step;
        bool is_recorded;
    } cases[] = {
        {"a00 ", 16, 26, false},
        {"a00 ", 26, 26, false},
        {"a00 ", 27, 26, true},
        /* beside what a step gives back again; which cannot be used again before that */
        {"a00 a10 f10 ", 16, 25, false},
        {"a00 a10 f10 a20 f20 ", 16, 25, false},
        {"a00 a10 a20 f20 f10 ", 16, 24, false},
        {"a00 a10 d10 c10 ", 16, 25, false},
        {"a00 a10 d10 a20 c10 f20 ", 16, 24, false},
        /* given back in the step behind: at its start, at its end */
        {"f11 a00 a10 ", 16, 25, false},
        {"a00 a10 f11 ", 16, 24, false},
        {"d11 c11 a00 a10 ", 16, 25, false},
        {"d11 a00 c11 a10 ", 16, 25, false},
        {"a00 a10 d11 c11 ", 16, 24, false},
        /* later than in the step behind: such blocks stay */
        {"a00 a10 f13 ", 16, 19, false},
    };
    const frag_device_spec device = {.capacity_bytes = 25 * (20 << 20) + (2 << 20)};
    frag_policy_spec spec;
    frag_error error = {0};
    assert_true(frag_policy_spec_parse("best-fit", &spec, &error)); /* it waits for no stream */
    const frag_leaks_options options = {.device = &device, .mark = "step", .spec = &spec};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_text text = {0};
        frag_recording recording;
        frag_leaks leaks;
        frag_text_add(&text, "alloc 999 512\n"); /* stays */
        for (unsigned step = 0; step < cases[i].steps; step++)
            add_step(&text, cases[i].step, step);
        frag_test_recording(text.bytes, &recording);
        assert_true(frag_leaks_find(&options, &recording, &recording.traces[0], &leaks, &error));
        const frag_leak_forecast *forecast = &leaks.forecast;
        if (forecast->oom_step != cases[i].oom_step ||
            forecast->is_recorded != cases[i].is_recorded || forecast->is_rough)
            fail_msg("%s: step %llu%s", cases[i].step, (unsigned long long)forecast->oom_step,
                     forecast->is_recorded ? ", recorded" : "");
        frag_leaks_destroy(&leaks);
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
    }
    frag_policy_spec_destroy(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_leak_comes_first),
        cmocka_unit_test(the_device_is_full_in_the_step_that_takes_one_block_too_many),
        cmocka_unit_test(blocks_of_changing_sizes_leak_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
