/* Tests of placement.c, the checker of packings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "planner/placement.h"
#include "tests/support/instances.h"

static const frag_buffer buffers[] = {
    {0, 10, 8, 1},
    {5, 15, 8, 4},
    {10, 20, 16, 1},
};

static bool is_right(const uint64_t *offsets, uint64_t capacity, frag_error *error)
{
    uint64_t height = 0;
    memset(error, 0, sizeof *error);
    return frag_placement_check(buffers, offsets, 3, capacity, &height, error);
}

static void a_right_placement_has_its_height(void **state)
{
    (void)state;
    uint64_t height = 0;
    frag_error error = {0};
    assert_true(frag_placement_check(buffers, (uint64_t[]){0, 16, 0}, 3, 24, &height, &error));
    assert_int_equal(height, 24);
    /* A buffer exactly as large as the capacity fits, one that is larger by a byte does not. */
    assert_true(frag_placement_check(buffers, (uint64_t[]){0}, 1, 8, &height, &error));
    assert_false(frag_placement_check(buffers, (uint64_t[]){0}, 1, 7, &height, &error));
    assert_true(frag_placement_check(buffers, NULL, 0, 0, &height, &error));
    assert_int_equal(height, 0);
}

static void every_kind_of_fault_is_named(void **state)
{
    (void)state;
    frag_error error;
    assert_false(is_right((uint64_t[]){0, 4, 100}, FRAG_UNLIMITED, &error));
    assert_non_null(strstr(error.sentence, "buffers 0 and 1"));
    assert_false(is_right((uint64_t[]){8, 0, 7}, FRAG_UNLIMITED, &error));
    assert_non_null(strstr(error.sentence, "share bytes from 7"));
    assert_false(is_right((uint64_t[]){0, 10, 100}, FRAG_UNLIMITED, &error));
    assert_non_null(strstr(error.sentence, "multiple of its alignment, 4"));
    assert_false(is_right((uint64_t[]){0, 16, 0}, 23, &error));
    assert_non_null(strstr(error.sentence, "above the capacity, 23"));
    assert_false(is_right((uint64_t[]){0, UINT64_MAX - 3, 0}, FRAG_UNLIMITED, &error));
}

static void a_buffer_that_is_nowhere_is_refused(void **state)
{
    (void)state;
    static const frag_buffer wrong[] = {{5, 5, 8, 1}, {6, 5, 8, 1}, {5, 6, 0, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t height = 0;
        frag_error error = {0};
        assert_false(frag_placement_check(&wrong[i], (uint64_t[]){0}, 1, 99, &height, &error));
        assert_non_null(strstr(error.sentence, "live at no time or has no bytes"));
    }
}

static void its_verdict_is_that_of_every_pair(void **state)
{
    (void)state;
    static instance problem;
    static uint64_t offsets[INSTANCE_MAX];
    uint32_t right = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        instance_random(&problem, seed, 6, 12, 6, 1);
        bool is_free = true;
        for (uint32_t i = 0; i < problem.count; i++) {
            offsets[i] = instance_draw(&problem, 30);
            const frag_buffer *one = &problem.buffers[i];
            for (uint32_t j = 0; j < i; j++) {
                const frag_buffer *other = &problem.buffers[j];
                is_free = is_free && (one->upper <= other->lower || other->upper <= one->lower ||
                                      offsets[i] + one->size <= offsets[j] ||
                                      offsets[j] + other->size <= offsets[i]);
            }
        }
        uint64_t height = 0;
        frag_error error = {0};
        assert_int_equal(frag_placement_check(problem.buffers, offsets, problem.count,
                                              FRAG_UNLIMITED, &height, &error),
                         is_free);
        right += is_free ? 1 : 0;
    }
    assert_in_range(right, 300, 2700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_placement_has_its_height),
        cmocka_unit_test(every_kind_of_fault_is_named),
        cmocka_unit_test(a_buffer_that_is_nowhere_is_refused),
        cmocka_unit_test(its_verdict_is_that_of_every_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
