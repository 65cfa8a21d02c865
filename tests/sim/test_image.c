/* Tests of image.c: an arena is again as it was, what was written since and never before included.
 */
#include "sim/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PART = 1 << 22, PARTS = 10, LOOK = 512 }; /* parts are larger than any page */

static void fill(frag_arena *arena, const char *parts)
{
    for (size_t i = 0; parts[i] != '\0'; i++)
        if (parts[i] != '.')
            memset(arena->base + i * PART, parts[i], PART);
}

static void expect_parts(const frag_arena *arena, const char *parts)
{
    for (size_t i = 0; parts[i] != '\0'; i++)
        for (size_t k = 0; k < PART; k += LOOK)
            assert_int_equal(arena->base[i * PART + k], parts[i] == '.' ? 0 : parts[i]);
}

static void an_arena_is_again_as_it_was(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *after;
    } cases[] = {
        {"a..b.c", "......"},  /* nothing since */
        {"a..b.c", "xxxxxx"},  /* everything */
        {"......", "x....x"},  /* nothing before */
        {"aa..bb", "..xx..x"}, /* between, and behind */
        {".a.b..", "x.x...x.x"}, {"abcdef", "......xyz"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_error error = {0};
        frag_arena arena;
        frag_image image = {0};
        assert_true(frag_arena_create(&arena, (size_t)PART * PARTS, &error));
        frag_arena_take(&arena, PARTS, PART);
        fill(&arena, cases[i].before);
        uint64_t beside = 17;
        if (!frag_image_add_arena(&image, &arena)) {
            frag_arena_destroy(&arena);
            skip(); /* no /proc */
        }
        frag_image_add(&image, &beside, sizeof beside);
        for (int again = 0; again < 2; again++) {
            fill(&arena, cases[i].after);
            uint64_t read = 0;
            frag_image_rewind(&image);
            frag_image_take_arena(&image, &arena);
            frag_image_take(&image, &read, sizeof read);
            assert_int_equal(read, beside);
            expect_parts(&arena, cases[i].before);
            for (size_t k = strlen(cases[i].before); k < PARTS; k++)
                assert_int_equal(arena.base[k * PART], 0);
        }
        frag_image_destroy(&image);
        frag_arena_destroy(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_arena_is_again_as_it_was)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
