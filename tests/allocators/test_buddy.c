/* Tests of the buddy policies: rounding, splitting, merging with the buddy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "allocators/classic/buddy_sizes.h"
#include "base/bytes.h"
#include "tests/support/small_world.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

static void rounds_up_to_powers_of_two(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy", FRAG_UNLIMITED);
    assert_int_equal(small_world_alloc(&world, 1).block_bytes, 512);
    assert_int_equal(small_world_alloc(&world, 513).block_bytes, 1024);
    assert_int_equal(small_world_alloc(&world, MIB(33)).block_bytes, MIB(64));
    small_world_close(&world);
}

static void places_blocks_at_multiples_of_their_size(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy", FRAG_UNLIMITED);
    uint64_t base = small_world_alloc(&world, 512).address;
    assert_int_equal(small_world_alloc(&world, KIB(4)).address - base, KIB(4));
    assert_int_equal(small_world_alloc(&world, 512).address - base, 512);
    assert_int_equal(small_world_alloc(&world, MIB(1)).address - base, MIB(1));
    /* The smallest buddy that fits, not the first. */
    assert_int_equal(small_world_alloc(&world, KIB(1)).address - base, KIB(1));
    small_world_close(&world);
}

static void merges_with_the_buddy_only(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy", FRAG_UNLIMITED);
    frag_grant quarters[4];
    for (int i = 0; i < 4; i++)
        quarters[i] = small_world_alloc(&world, KIB(512));
    assert_int_equal(small_world_hole_count(&world), 0);
    /* The second and the third lie side by side but are no buddies. */
    small_world_free(&world, quarters[1]);
    small_world_free(&world, quarters[2]);
    assert_int_equal(small_world_hole_count(&world), 2);
    assert_int_not_equal(small_world_alloc(&world, MIB(1)).address, quarters[1].address);
    small_world_free(&world, quarters[0]);
    frag_grant half = small_world_alloc(&world, MIB(1));
    assert_int_equal(half.address, quarters[0].address);
    small_world_close(&world);
}

static void sizes_of_the_other_systems_lie_closer(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        uint64_t units[9]; /* of 512 bytes, for 1, 2, ... */
    } cases[] = {{"buddy", {1, 2, 4, 4, 8, 8, 8, 8, 16}},
                 {"buddy:sizes=weighted", {1, 2, 3, 4, 6, 6, 8, 8, 12}},
                 {"buddy:sizes=fibonacci", {1, 2, 3, 5, 5, 8, 8, 8, 13}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        small_world world;
        small_world_open(&world, cases[i].policy, FRAG_UNLIMITED);
        for (uint64_t units = 1; units <= 9; units++)
            assert_int_equal(small_world_alloc(&world, units * 512).block_bytes,
                             cases[i].units[units - 1] * 512);
        small_world_close(&world);
    }
}

/* 13 is cut into 8 and 5, 8 into 5 and 3, the upper 5 into 3 and 2. */
static void fibonacci_blocks_merge_with_the_other_part_of_what_they_were_cut_from(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy:sizes=fibonacci,min_block=1MiB", FRAG_UNLIMITED);
    frag_grant whole = small_world_alloc(&world, MIB(13));
    small_world_free(&world, whole);
    frag_grant five = small_world_alloc(&world, MIB(5));
    frag_grant three = small_world_alloc(&world, MIB(3));
    frag_grant two = small_world_alloc(&world, MIB(2));
    uint64_t base = whole.address;
    assert_int_equal(five.address - base, MIB(8));
    assert_int_equal(three.address - base, MIB(5));
    assert_int_equal(two.address - base, MIB(3));
    assert_int_equal(world.device->reserved_bytes, MIB(14));
    small_world_free(&world, five);
    small_world_free(&world, two);
    small_world_free(&world, three);
    assert_int_equal(small_world_alloc(&world, MIB(13)).address, base);
    small_world_close(&world);
}

/* 4 is cut into 3 and 1, 3 into 2 and 1. */
static void weighted_blocks_of_three_quarters_are_cut_again(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy:sizes=weighted,min_block=1MiB", MIB(4));
    frag_grant whole = small_world_alloc(&world, MIB(4));
    small_world_free(&world, whole);
    frag_grant first = small_world_alloc(&world, MIB(1));
    frag_grant second = small_world_alloc(&world, MIB(1));
    frag_grant third = small_world_alloc(&world, MIB(2));
    assert_int_equal(first.address - whole.address, MIB(3));
    assert_int_equal(second.address - whole.address, MIB(2));
    assert_int_equal(third.address - whole.address, 0);
    small_world_free(&world, first);
    small_world_free(&world, third);
    assert_false(small_world_has_room(&world, MIB(3)));
    small_world_free(&world, second);
    assert_int_equal(small_world_alloc(&world, MIB(4)).address, whole.address);
    small_world_close(&world);
}

static void maps_only_as_far_as_blocks_reach(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy", MIB(64));
    frag_grant low = small_world_alloc(&world, KIB(1));
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    frag_grant high = small_world_alloc(&world, MIB(9));
    assert_int_equal(high.address - low.address, MIB(16));
    assert_int_equal(world.device->reserved_bytes, MIB(32));
    small_world_free(&world, high);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    small_world_free(&world, low);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    assert_int_equal(small_world_alloc(&world, MIB(33)).block_bytes, MIB(64));
    small_world_close(&world);
}

static void a_full_device_still_serves_from_what_is_mapped(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "buddy", MIB(12));
    frag_grant low = small_world_alloc(&world, MIB(8));
    frag_grant four = small_world_alloc(&world, MIB(4));
    small_world_free(&world, low);
    small_world_free(&world, four);
    four = small_world_alloc(&world, MIB(4));
    frag_grant next = small_world_alloc(&world, MIB(4));
    assert_int_equal(next.address - four.address, MIB(4));
    assert_int_equal(small_world_alloc(&world, MIB(4)).address - four.address, MIB(8));
    /* The lowest free buddy would be the last of the range, beyond the capacity. */
    assert_false(small_world_has_room(&world, MIB(4)));
    small_world_free(&world, four);
    small_world_free(&world, next);
    assert_int_equal(small_world_alloc(&world, MIB(2)).address - four.address, 0);
    small_world_close(&world);
}

static void refuses_odd_blocks(void **state)
{
    (void)state;
    assert_true(small_world_refuses("buddy:min_block=600", "not a power of two"));
    assert_true(small_world_refuses("buddy:min_block=0", "out of range"));
}

/* Each size is the smallest of its system that holds the units; what is cut off leaves two more. */
static void every_size_is_cut_into_two_of_its_system(void **state)
{
    (void)state;
    static const struct {
        frag_buddy_sizes sizes;
        uint64_t units, up, low;
    } cases[] = {
        {FRAG_BUDDY_BINARY, 2, 2, 1},    {FRAG_BUDDY_BINARY, 5, 8, 4},
        {FRAG_BUDDY_BINARY, 8, 8, 4},    {FRAG_BUDDY_WEIGHTED, 2, 2, 1},
        {FRAG_BUDDY_WEIGHTED, 3, 3, 2},  {FRAG_BUDDY_WEIGHTED, 4, 4, 3},
        {FRAG_BUDDY_WEIGHTED, 5, 6, 4},  {FRAG_BUDDY_WEIGHTED, 7, 8, 6},
        {FRAG_BUDDY_FIBONACCI, 2, 2, 1}, {FRAG_BUDDY_FIBONACCI, 3, 3, 2},
        {FRAG_BUDDY_FIBONACCI, 6, 8, 5}, {FRAG_BUDDY_FIBONACCI, 9, 13, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t up = frag_buddy_size_up(cases[i].sizes, cases[i].units);
        uint64_t low = frag_buddy_low_part(cases[i].sizes, up);
        assert_int_equal(up, cases[i].up);
        assert_int_equal(low, cases[i].low);
        assert_int_equal(frag_buddy_size_up(cases[i].sizes, low), low);
        assert_int_equal(frag_buddy_size_up(cases[i].sizes, up - low), up - low);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_up_to_powers_of_two),
        cmocka_unit_test(places_blocks_at_multiples_of_their_size),
        cmocka_unit_test(merges_with_the_buddy_only),
        cmocka_unit_test(sizes_of_the_other_systems_lie_closer),
        cmocka_unit_test(fibonacci_blocks_merge_with_the_other_part_of_what_they_were_cut_from),
        cmocka_unit_test(weighted_blocks_of_three_quarters_are_cut_again),
        cmocka_unit_test(maps_only_as_far_as_blocks_reach),
        cmocka_unit_test(a_full_device_still_serves_from_what_is_mapped),
        cmocka_unit_test(refuses_odd_blocks),
        cmocka_unit_test(every_size_is_cut_into_two_of_its_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
