/* Tests of plan.c: the whole planner, against brute force and known packings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "planner/placement.h"
#include "planner/plan.h"
#include "planner/portfolio.h"
#include "planner/stacked.h"
#include "tests/support/instances.h"

static instance problem;

static frag_plan make(uint64_t capacity, uint64_t steps)
{
    frag_plan plan;
    frag_error error = {0};
    uint64_t height = 0;
    frag_plan_options options = {.capacity_bytes = capacity, .steps = steps};
    assert_true(frag_plan_make(problem.buffers, problem.count, &options, &plan, &error));
    assert_true(frag_placement_check(problem.buffers, plan.offsets, problem.count, FRAG_UNLIMITED,
                                     &height, &error));
    assert_int_equal(height, plan.height_bytes);
    assert_true(plan.load_bytes <= plan.bound_bytes);
    if (plan.answer == FRAG_PLAN_OPTIMAL)
        assert_int_equal(plan.height_bytes, plan.bound_bytes);
    return plan;
}

static void nothing_is_packed_into_nothing(void **state)
{
    (void)state;
    problem.count = 0;
    frag_plan plan = make(FRAG_UNLIMITED, 1000);
    assert_int_equal(plan.answer, FRAG_PLAN_OPTIMAL);
    assert_int_equal(plan.height_bytes, 0);
    frag_plan_destroy(&plan);
}

/* How many packings a portfolio makes with so many steps: each takes its cost. */
static uint64_t packings(const frag_sections *sections, uint64_t steps)
{
    frag_portfolio *portfolio = frag_portfolio_create(sections);
    uint64_t cost = frag_portfolio_steps(portfolio, FRAG_PLACING_SKYLINE);
    uint64_t left = steps * cost;
    frag_portfolio_run(portfolio, 0, &left);
    frag_portfolio_destroy(portfolio);
    return left / cost;
}

static void sizes_add_up_to_less_than_2_to_the_62(void **state)
{
    (void)state;
    frag_buffer buffers[] = {{0, 1, ((uint64_t)1 << 62) - 9, 1}, {0, 1, 4, 4}};
    for (uint64_t more = 0; more < 4; more++) {
        frag_sections sections;
        frag_error error = {0};
        bool fits = frag_sections_create(&sections, buffers, 2, &error);
        assert_int_equal(fits, more < 2); /* 3 bytes more for the alignment */
        if (fits)
            frag_sections_destroy(&sections);
        buffers[1].size++;
    }
}

static void steps_that_are_just_enough_make_one_more_packing(void **state)
{
    (void)state;
    frag_sections sections;
    frag_error error = {0};
    instance_random(&problem, 1, 40, 20, 9, 1);
    assert_true(frag_sections_create(&sections, problem.buffers, problem.count, &error));
    assert_int_equal(packings(&sections, 1), 0);
    assert_int_equal(packings(&sections, 2), 0);
    frag_sections_destroy(&sections);
}

static void small_problems_are_solved_as_brute_force_does(void **state)
{
    (void)state;
    uint32_t above_load = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        instance_random(&problem, seed, 2 + (uint32_t)(seed % 6), 6, 4, seed % 3 == 0 ? 3 : 1);
        uint64_t best = instance_brute_force(&problem);
        frag_plan plan = make(FRAG_UNLIMITED, 100000);
        assert_int_equal(plan.answer, FRAG_PLAN_OPTIMAL);
        assert_int_equal(plan.height_bytes, best);
        above_load += best > plan.load_bytes ? 1 : 0;
        frag_plan_destroy(&plan);
        plan = make(best - 1, 100000);
        assert_int_equal(plan.answer, FRAG_PLAN_INFEASIBLE);
        frag_plan_destroy(&plan);
        plan = make(best + 1, 100000);
        assert_true(plan.answer == FRAG_PLAN_OPTIMAL || plan.answer == FRAG_PLAN_FOUND);
        assert_true(plan.height_bytes <= best + 1);
        frag_plan_destroy(&plan);
    }
    /* Else the test would say nothing about searches. */
    assert_true(above_load > 50);
}

static void tilings_without_a_hole_are_found(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        instance_tile(&problem, seed, 10 + (uint32_t)seed, 1000, 1000);
        frag_plan plan = make(FRAG_UNLIMITED, 1000000);
        assert_int_equal(plan.bound_bytes, 1000);
        assert_int_equal(plan.height_bytes, 1000);
        assert_int_equal(plan.answer, FRAG_PLAN_OPTIMAL);
        frag_plan_destroy(&plan);
        plan = make(999, 1000);
        assert_int_equal(plan.answer, FRAG_PLAN_INFEASIBLE);
        frag_plan_destroy(&plan);
    }
}

static void pinwheels_are_found(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 6; depth++) {
        instance_pinwheel(&problem, depth, depth, 2187, 2187);
        frag_plan plan = make(FRAG_UNLIMITED, 1000000);
        assert_int_equal(plan.height_bytes, 2187);
        assert_int_equal(plan.answer, FRAG_PLAN_OPTIMAL);
        frag_plan_destroy(&plan);
    }
}

static void what_shares_no_time_shares_all_bytes(void **state)
{
    (void)state;
    problem.count = 1000;
    for (uint32_t i = 0; i < problem.count; i++)
        problem.buffers[i] = (frag_buffer){(uint64_t)i * 2, (uint64_t)i * 2 + 2, 100 + i % 7, 1};
    frag_plan plan = make(FRAG_UNLIMITED, 0);
    assert_int_equal(plan.component_count, 1000);
    assert_int_equal(plan.height_bytes, 106);
    assert_int_equal(plan.answer, FRAG_PLAN_OPTIMAL);
    frag_plan_destroy(&plan);
}

/* What lies within [lower, upper), each part split in three again; no two begin or end together. */
static void nest(uint64_t lower, uint64_t upper)
{
    if (upper - lower < 3)
        return;
    problem.buffers[problem.count++] = (frag_buffer){lower, upper, 1 + lower * 7 % 1000, 1};
    for (uint64_t part = (upper - lower) / 3, i = 0; i < 3; i++)
        nest(lower + 1 + i * part, lower + (i + 1) * part);
}

/* Stacks under a limit; the height, or UINT64_MAX: above it. */
static uint64_t stack(uint64_t limit, uint64_t *load_bytes)
{
    frag_sections sections;
    frag_error error = {0};
    static uint64_t offsets[INSTANCE_MAX];
    static uint32_t order[INSTANCE_MAX];
    uint64_t height = 0;
    uint64_t checked = 0;
    assert_true(frag_sections_create(&sections, problem.buffers, problem.count, &error));
    *load_bytes = sections.load_bytes;
    bool is_low = frag_stacked_place(&sections, limit, order, offsets, &height);
    frag_sections_destroy(&sections);
    if (!is_low)
        return UINT64_MAX;
    assert_true(
        frag_placement_check(problem.buffers, offsets, problem.count, limit, &checked, &error));
    assert_int_equal(checked, height);
    return height;
}

static void nested_lifetimes_are_stacked_as_low_as_can_be(void **state)
{
    (void)state;
    problem.count = 0;
    nest(0, 2200);
    assert_true(problem.count > 200);
    uint64_t load = 0;
    uint64_t height = stack(FRAG_UNLIMITED, &load);
    assert_int_equal(height, load);
    assert_int_equal(stack(load, &load), load);
    assert_int_equal(stack(load - 1, &load), UINT64_MAX);
}

static void stacks_are_packings(void **state)
{
    (void)state;
    uint32_t above_load = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        instance_random(&problem, seed, 2 + (uint32_t)seed % 99, 40, 5000, 1);
        for (uint32_t i = 0; i < problem.count; i++)
            problem.buffers[i].alignment = (uint64_t)1 << (seed + i) % 12;
        uint64_t load = 0;
        uint64_t height = stack(FRAG_UNLIMITED, &load);
        assert_true(height >= load);
        above_load += height > load ? 1 : 0;
        assert_int_equal(stack(height - 1, &load), UINT64_MAX);
    }
    assert_true(above_load > 200);
}

/* The height is the load, with many buffers as with few. */
static void many_nested_lifetimes_need_no_steps(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    frag_buffer *buffers = frag_alloc(COUNT, sizeof *buffers);
    for (uint64_t i = 0; i < COUNT; i++)
        buffers[i] = (frag_buffer){i, i % 2 == 0 ? 2 * COUNT - i : i + 1, 1 + i % 5, 1};
    frag_plan plan;
    frag_error error = {0};
    frag_plan_options options = {.capacity_bytes = FRAG_UNLIMITED, .steps = 1000};
    assert_true(frag_plan_make(buffers, COUNT, &options, &plan, &error));
    assert_int_equal(plan.answer, FRAG_PLAN_OPTIMAL);
    assert_int_equal(plan.height_bytes, plan.load_bytes);
    assert_int_equal(plan.steps, 1000);
    frag_plan_destroy(&plan);
    frag_free(buffers);
}

static void every_offset_keeps_its_alignment(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        instance_random(&problem, seed, 60, 40, 5000, 1);
        for (uint32_t i = 0; i < problem.count; i++)
            problem.buffers[i].alignment = (uint64_t)1 << (seed + i) % 12;
        frag_plan plan = make(FRAG_UNLIMITED, 20000);
        for (uint32_t i = 0; i < problem.count; i++)
            assert_int_equal(plan.offsets[i] % problem.buffers[i].alignment, 0);
        frag_plan_destroy(&plan);
    }
}

static void a_plan_depends_on_nothing_but_its_input(void **state)
{
    (void)state;
    instance_random(&problem, 7, 120, 60, 1000, 1);
    frag_plan one = make(FRAG_UNLIMITED, 50000);
    frag_plan other = make(FRAG_UNLIMITED, 50000);
    assert_int_equal(one.steps, other.steps);
    assert_memory_equal(one.offsets, other.offsets, problem.count * sizeof *one.offsets);
    frag_plan_destroy(&one);
    frag_plan_destroy(&other);
}

static void more_steps_never_make_it_worse(void **state)
{
    (void)state;
    instance_tile(&problem, 3, 150, 100000, 100000);
    uint64_t height = UINT64_MAX;
    for (uint64_t steps = 0; steps <= 500000; steps = steps * 4 + 500) {
        frag_plan plan = make(FRAG_UNLIMITED, steps);
        assert_true(plan.height_bytes <= height);
        assert_true(plan.steps <= steps + problem.count);
        height = plan.height_bytes;
        frag_plan_destroy(&plan);
    }
}

static void a_budget_that_does_not_suffice_is_said_so(void **state)
{
    (void)state;
    instance_tile(&problem, 5, 400, 100000, 100000);
    frag_plan plan = make(100000, 1000);
    assert_int_equal(plan.answer, FRAG_PLAN_EXHAUSTED);
    assert_true(plan.height_bytes > 100000);
    frag_plan_destroy(&plan);
}

static bool stop_at_once(void *context)
{
    ++*(uint32_t *)context;
    return true;
}

static void a_stop_leaves_the_first_packing(void **state)
{
    (void)state;
    instance_tile(&problem, 5, 400, 100000, 100000);
    uint32_t asked = 0;
    frag_plan_options options = {
        .capacity_bytes = FRAG_UNLIMITED,
        .steps = 1000000000,
        .is_stopped = stop_at_once,
        .context = &asked,
    };
    frag_plan plan;
    frag_error error = {0};
    assert_true(frag_plan_make(problem.buffers, problem.count, &options, &plan, &error));
    assert_true(asked > 0);
    assert_int_equal(plan.answer, FRAG_PLAN_FOUND);
    frag_plan_destroy(&plan);
}

static void impossible_buffers_are_refused(void **state)
{
    (void)state;
    static const struct {
        frag_buffer buffer;
        const char *said;
    } bad[] = {
        {{5, 5, 1, 1}, "live from 5 to 5"},
        {{6, 5, 1, 1}, "live from 6 to 5"},
        {{0, 1, 0, 1}, "has size 0"},
        {{0, 1, 1, 0}, "has alignment 0"},
        {{0, 1, (uint64_t)1 << 62, 1}, "more than 2^62 bytes at buffer 0"},
    };
    frag_plan_options options = {.capacity_bytes = FRAG_UNLIMITED, .steps = 10};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        frag_plan plan;
        frag_error error = {0};
        assert_false(frag_plan_make(&bad[i].buffer, 1, &options, &plan, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_non_null(strstr(error.sentence, bad[i].said));
    }
}

static void a_large_problem_takes_moments(void **state)
{
    (void)state;
    /* The forward and backward pass of a network, over and over. */
    enum { LAYERS = 60, STEPS = 20 };
    problem.count = 0;
    problem.chance = 99;
    uint64_t time = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t first = problem.count;
        for (uint32_t i = 0; i < LAYERS; i++) {
            uint64_t size = 512 * (1 + instance_draw(&problem, 2000));
            problem.buffers[problem.count++] = (frag_buffer){time++, 0, size, 512};
            size = 512 * (1 + instance_draw(&problem, 2000));
            problem.buffers[problem.count++] = (frag_buffer){time, time + 1, size, 512};
            time += 2;
        }
        for (uint32_t i = LAYERS; i > 0; i--)
            problem.buffers[first + (i - 1) * 2].upper = time++;
    }
    frag_plan plan = make(FRAG_UNLIMITED, 100000);
    assert_true((double)plan.height_bytes <= 1.04 * (double)plan.load_bytes);
    frag_plan_destroy(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_packed_into_nothing),
        cmocka_unit_test(sizes_add_up_to_less_than_2_to_the_62),
        cmocka_unit_test(steps_that_are_just_enough_make_one_more_packing),
        cmocka_unit_test(small_problems_are_solved_as_brute_force_does),
        cmocka_unit_test(tilings_without_a_hole_are_found),
        cmocka_unit_test(pinwheels_are_found),
        cmocka_unit_test(what_shares_no_time_shares_all_bytes),
        cmocka_unit_test(nested_lifetimes_are_stacked_as_low_as_can_be),
        cmocka_unit_test(stacks_are_packings),
        cmocka_unit_test(many_nested_lifetimes_need_no_steps),
        cmocka_unit_test(every_offset_keeps_its_alignment),
        cmocka_unit_test(a_plan_depends_on_nothing_but_its_input),
        cmocka_unit_test(more_steps_never_make_it_worse),
        cmocka_unit_test(a_budget_that_does_not_suffice_is_said_so),
        cmocka_unit_test(a_stop_leaves_the_first_packing),
        cmocka_unit_test(impossible_buffers_are_refused),
        cmocka_unit_test(a_large_problem_takes_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
