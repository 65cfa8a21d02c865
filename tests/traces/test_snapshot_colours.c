/* Tests of snapshot_colours.c: assigning segments to private pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "traces/torch/pools/snapshot_colours.h"

static uint32_t add(frag_colours *colours, uint64_t first, uint64_t last, uint64_t given)
{
    return frag_colours_add(
        colours, &(frag_colour_piece){
                     .first_alloc = first, .last_alloc = last, .given = given, .burst = given});
}

static void leaves_in_the_default_pool_what_nothing_speaks_against(void **state)
{
    (void)state;
    frag_colours colours = {0};
    add(&colours, 1, 9, 20);
    uint32_t b = add(&colours, 2, 9, 20);
    uint32_t c = add(&colours, 3, 9, 20);
    frag_colours_differ(&colours, c, b);
    frag_colours_differ(&colours, b, c);
    assert_int_equal(colours.edge_count, 1);
    assert_true(frag_colours_solve(&colours, 1));
    assert_int_equal(colours.pieces[0].colour, 0);
    assert_int_equal(colours.pieces[b].colour, 0);
    assert_int_equal(colours.pieces[c].colour, 1);
    assert_int_equal(colours.colour_count, 2);
    frag_colours_destroy(&colours);
}

static void prefers_pools_that_are_known(void **state)
{
    (void)state;
    frag_colours colours = {0};
    uint32_t a = add(&colours, 1, 9, 50);
    uint32_t b = add(&colours, 2, 30, UINT64_MAX);
    uint32_t c = add(&colours, 3, 30, 50);
    colours.pieces[b].is_known = true;
    colours.pieces[b].colour = 1;
    frag_colours_differ(&colours, a, b);
    frag_colours_differ(&colours, a, c);
    assert_true(frag_colours_solve(&colours, 2));
    assert_int_equal(colours.pieces[a].colour, 0);
    assert_int_equal(colours.pieces[c].colour, 1);
    assert_int_equal(colours.colour_count, 2);
    frag_colours_destroy(&colours);
}

/* b went before c was used, so that they were two private pools. */
static void uses_no_private_pool_after_it_gave_memory_back(void **state)
{
    (void)state;
    frag_colours colours = {0};
    uint32_t a = add(&colours, 1, 90, UINT64_MAX);
    uint32_t b = add(&colours, 2, 9, 20);
    uint32_t c = add(&colours, 30, 40, 50);
    colours.pieces[a].is_known = true;
    frag_colours_differ(&colours, a, b);
    frag_colours_differ(&colours, a, c);
    assert_true(frag_colours_solve(&colours, 1));
    assert_int_equal(colours.pieces[b].colour, 1);
    assert_int_equal(colours.pieces[c].colour, 2);
    colours.pieces[c].given = colours.pieces[b].given = 60;
    assert_true(frag_colours_solve(&colours, 1));
    assert_int_equal(colours.pieces[c].colour, 1);
    frag_colours_destroy(&colours);
}

static void refuses_more_pools_than_it_can_tell_apart(void **state)
{
    (void)state;
    frag_colours colours = {0};
    for (uint32_t i = 0; i <= FRAG_COLOUR_MAX; i++) {
        add(&colours, i, 10000, UINT64_MAX);
        for (uint32_t k = 0; k < i; k++)
            frag_colours_differ(&colours, k, i);
    }
    assert_false(frag_colours_solve(&colours, 1));
    frag_colours_destroy(&colours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_in_the_default_pool_what_nothing_speaks_against),
        cmocka_unit_test(prefers_pools_that_are_known),
        cmocka_unit_test(uses_no_private_pool_after_it_gave_memory_back),
        cmocka_unit_test(refuses_more_pools_than_it_can_tell_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
