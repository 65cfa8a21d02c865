/* Tests of the sequential fits: best, first, next and worst fit, coalescing and growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/small_world.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

/* Four holes of 8, 4, 16 and 4 KiB in this order of addresses, and nothing free behind them. */
typedef struct four_holes {
    small_world world;
    uint64_t addresses[4];
} four_holes;

static void open_four_holes(four_holes *made, const char *policy)
{
    static const uint64_t sizes[4] = {KIB(8), KIB(4), KIB(16), KIB(4)};
    small_world_open(&made->world, policy, FRAG_UNLIMITED);
    frag_grant grants[4];
    uint64_t used = 0;
    for (int i = 0; i < 4; i++) {
        grants[i] = small_world_alloc(&made->world, sizes[i]);
        made->addresses[i] = grants[i].address;
        small_world_alloc(&made->world, 512);
        used += sizes[i] + 512;
    }
    small_world_alloc(&made->world, MIB(2) - used);
    for (int i = 0; i < 4; i++)
        small_world_free(&made->world, grants[i]);
    assert_int_equal(small_world_hole_count(&made->world), 4);
}

static void best_fit_takes_the_smallest_then_lowest(void **state)
{
    (void)state;
    four_holes made;
    open_four_holes(&made, "best-fit");
    assert_int_equal(small_world_alloc(&made.world, KIB(3)).address, made.addresses[1]);
    assert_int_equal(small_world_alloc(&made.world, KIB(4)).address, made.addresses[3]);
    assert_int_equal(small_world_alloc(&made.world, KIB(4)).address, made.addresses[0]);
    assert_int_equal(small_world_alloc(&made.world, KIB(9)).address, made.addresses[2]);
    small_world_close(&made.world);
}

static void first_fit_takes_the_lowest(void **state)
{
    (void)state;
    four_holes made;
    open_four_holes(&made, "first-fit");
    assert_int_equal(small_world_alloc(&made.world, KIB(3)).address, made.addresses[0]);
    assert_int_equal(small_world_alloc(&made.world, KIB(5)).address, made.addresses[0] + KIB(3));
    assert_int_equal(small_world_alloc(&made.world, KIB(5)).address, made.addresses[2]);
    small_world_close(&made.world);
}

static void worst_fit_takes_the_largest(void **state)
{
    (void)state;
    four_holes made;
    open_four_holes(&made, "worst-fit");
    assert_int_equal(small_world_alloc(&made.world, KIB(10)).address, made.addresses[2]);
    assert_int_equal(small_world_alloc(&made.world, KIB(1)).address, made.addresses[0]);
    small_world_close(&made.world);
}

static void next_fit_goes_on_where_it_stopped_and_wraps(void **state)
{
    (void)state;
    four_holes made;
    open_four_holes(&made, "next-fit");
    assert_int_equal(small_world_alloc(&made.world, KIB(1)).address, made.addresses[0]);
    assert_int_equal(small_world_alloc(&made.world, KIB(9)).address, made.addresses[2]);
    assert_int_equal(small_world_alloc(&made.world, KIB(4)).address, made.addresses[2] + KIB(9));
    assert_int_equal(small_world_alloc(&made.world, KIB(4)).address, made.addresses[3]);
    assert_int_equal(small_world_alloc(&made.world, KIB(4)).address, made.addresses[0] + KIB(1));
    small_world_close(&made.world);
}

static void neighbours_merge_on_both_sides(void **state)
{
    (void)state;
    static const char *const names[] = {"best-fit", "first-fit", "next-fit", "worst-fit"};
    for (size_t i = 0; i < 4; i++) {
        small_world world;
        small_world_open(&world, names[i], FRAG_UNLIMITED);
        frag_grant a = small_world_alloc(&world, KIB(4));
        frag_grant b = small_world_alloc(&world, KIB(4));
        frag_grant c = small_world_alloc(&world, KIB(4));
        small_world_alloc(&world, MIB(2) - KIB(12));
        small_world_free(&world, a);
        small_world_free(&world, c);
        assert_int_equal(small_world_hole_count(&world), 2);
        small_world_free(&world, b);
        assert_int_equal(small_world_hole_count(&world), 1);
        assert_int_equal(small_world_alloc(&world, KIB(12)).address, a.address);
        small_world_close(&world);
    }
}

static void growing_extends_the_last_hole(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "best-fit", MIB(8));
    frag_grant a = small_world_alloc(&world, MIB(1));
    frag_grant b = small_world_alloc(&world, MIB(4));
    assert_int_equal(b.address, a.address + MIB(1));
    assert_int_equal(world.device->reserved_bytes, MIB(6));
    small_world_free(&world, b);
    assert_true(small_world_has_room(&world, MIB(7)));
    assert_int_equal(world.device->reserved_bytes, MIB(8));
    assert_false(small_world_has_room(&world, MIB(7) + 1));
    /* What is free at the end was given back before the policy gave up. */
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    small_world_free(&world, a);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    assert_int_equal(small_world_segment_count(&world), 0);
    assert_true(small_world_has_room(&world, MIB(8)));
    small_world_close(&world);
}

static void growth_falls_back_from_steps_to_pages(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "best-fit:grow=64MiB", MIB(70));
    small_world_alloc(&world, MIB(1));
    assert_int_equal(world.device->reserved_bytes, MIB(64));
    small_world_alloc(&world, MIB(66));
    assert_int_equal(world.device->reserved_bytes, MIB(68));
    small_world_close(&world);
}

static void segments_never_merge_and_are_given_back_whole(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "best-fit:space=segments,grow=4MiB", MIB(16));
    frag_grant a = small_world_alloc(&world, MIB(4));
    frag_grant b = small_world_alloc(&world, MIB(4));
    frag_grant c = small_world_alloc(&world, MIB(3));
    assert_int_equal(small_world_segment_count(&world), 3);
    assert_int_equal(world.device->reserved_bytes, MIB(12));
    small_world_free(&world, a);
    small_world_free(&world, b);
    assert_int_equal(small_world_hole_count(&world), 3);
    /* 8 MiB fit only after both free segments have gone back. */
    frag_grant d = small_world_alloc(&world, MIB(8));
    assert_int_equal(small_world_segment_count(&world), 2);
    assert_int_equal(world.device->reserved_bytes, MIB(12));
    small_world_free(&world, d);
    small_world_free(&world, c);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

static void small_rests_stay_with_the_block(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "best-fit:min_split=64KiB", FRAG_UNLIMITED);
    assert_int_equal(small_world_alloc(&world, MIB(2) - KIB(63)).block_bytes, MIB(2));
    assert_int_equal(small_world_alloc(&world, MIB(2) - KIB(64)).block_bytes, MIB(2) - KIB(64));
    small_world_close(&world);
}

static void holes_above_max_split_are_kept_whole(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "best-fit:space=segments,max_split=8MiB", FRAG_UNLIMITED);
    frag_grant large = small_world_alloc(&world, MIB(20));
    small_world_free(&world, large);
    frag_grant small = small_world_alloc(&world, MIB(8));
    assert_int_equal(world.device->reserved_bytes, MIB(28));
    assert_int_not_equal(small.address, large.address);
    frag_grant other = small_world_alloc(&world, MIB(9));
    assert_int_equal(other.address, large.address);
    assert_int_equal(other.block_bytes, MIB(20));
    small_world_close(&world);
}

static void refuses_options_that_do_not_fit_together(void **state)
{
    (void)state;
    assert_true(small_world_refuses("best-fit:align=500", "not a power of two"));
    assert_true(small_world_refuses("best-fit:align=4MiB", "does not divide"));
    assert_true(small_world_refuses("best-fit:max_split=8MiB", "space=segments"));
    assert_true(small_world_refuses("worst-fit:space=segments,max_split=5MiB", "not a multiple"));
    assert_true(small_world_refuses("first-fit:space=heap", "growing|segments"));
    assert_true(small_world_refuses("next-fit:grow=0", "out of range"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_fit_takes_the_smallest_then_lowest),
        cmocka_unit_test(first_fit_takes_the_lowest),
        cmocka_unit_test(worst_fit_takes_the_largest),
        cmocka_unit_test(next_fit_goes_on_where_it_stopped_and_wraps),
        cmocka_unit_test(neighbours_merge_on_both_sides),
        cmocka_unit_test(growing_extends_the_last_hole),
        cmocka_unit_test(growth_falls_back_from_steps_to_pages),
        cmocka_unit_test(segments_never_merge_and_are_given_back_whole),
        cmocka_unit_test(small_rests_stay_with_the_block),
        cmocka_unit_test(holes_above_max_split_are_kept_whole),
        cmocka_unit_test(refuses_options_that_do_not_fit_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
