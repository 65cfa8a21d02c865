/* Tests of exact.c: packing under a capacity, against known answers. */
#include "planner/exact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "planner/placement.h"
#include "planner/sections.h"
#include "tests/support/instances.h"

static instance problem;

/* The answer under a capacity; a packing that was found holds. */
static frag_exact_answer search(uint64_t capacity, const char *letters, uint64_t steps)
{
    frag_sections sections;
    uint64_t *offsets = frag_alloc(problem.count, sizeof *offsets);
    uint64_t height = 0;
    uint64_t left = steps;
    frag_error error = {0};
    assert_true(frag_sections_create(&sections, problem.buffers, problem.count, &error));
    frag_exact *exact = frag_exact_create(&sections);
    assert_non_null(exact);
    frag_exact_answer answer = frag_exact_search(exact, capacity, letters, &left, offsets);
    assert_true(left <= steps);
    if (answer == FRAG_EXACT_FOUND)
        assert_true(frag_placement_check(problem.buffers, offsets, problem.count, capacity, &height,
                                         &error));
    frag_exact_destroy(exact);
    frag_sections_destroy(&sections);
    free(offsets);
    return answer;
}

/* At the least height there is a packing, below it none; in whatever order buffers are tried. */
static void answers_on_both_sides_of_the_least_height(void **state)
{
    (void)state;
    static const char *const letters[] = {"WAT", "TAW", "TWA"};
    for (uint64_t seed = 0; seed < 1200; seed++) {
        instance_random(&problem, seed, 2 + (uint32_t)(seed % 6), 6, 4, seed % 3 == 0 ? 3 : 1);
        uint64_t best = instance_brute_force(&problem);
        assert_int_equal(search(best, letters[seed % 3], 100000), FRAG_EXACT_FOUND);
        assert_int_equal(search(best - 1, letters[seed % 3], 100000), FRAG_EXACT_NONE);
    }
}

static void a_buffer_may_be_as_large_as_the_capacity(void **state)
{
    (void)state;
    problem.count = 2;
    problem.buffers[0] = (frag_buffer){0, 2, 7, 1};
    problem.buffers[1] = (frag_buffer){2, 4, 7, 1};
    assert_int_equal(search(7, "TAW", 100), FRAG_EXACT_FOUND);
    assert_int_equal(search(6, "TAW", 100), FRAG_EXACT_NONE);
}

static void without_steps_nothing_is_known(void **state)
{
    (void)state;
    instance_tile(&problem, 3, 20, 1000, 1000);
    assert_int_equal(search(1000, "TAW", 1), FRAG_EXACT_EXHAUSTED);
    assert_int_equal(search(1000, "TAW", 1000000), FRAG_EXACT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_on_both_sides_of_the_least_height),
        cmocka_unit_test(a_buffer_may_be_as_large_as_the_capacity),
        cmocka_unit_test(without_steps_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
