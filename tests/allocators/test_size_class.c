/* Tests of the size-class policy: classes, slabs, reuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/small_world.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

static void rounds_up_to_four_classes_per_doubling(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "size-class", FRAG_UNLIMITED);
    static const uint64_t pairs[][2] = {
        {1, 512},        {513, 1024},          {KIB(2) + 1, 2560},
        {2561, KIB(3)},  {KIB(4) + 1, KIB(5)}, {KIB(512) + 1, KIB(640)},
        {MIB(1), MIB(1)}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_int_equal(small_world_alloc(&world, pairs[i][0]).block_bytes, pairs[i][1]);
    small_world_close(&world);
}

static void takes_the_classes_it_is_given(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "size-class:classes=[1KiB,10KiB,200KiB]", FRAG_UNLIMITED);
    assert_int_equal(small_world_alloc(&world, 1).block_bytes, KIB(1));
    assert_int_equal(small_world_alloc(&world, 1025).block_bytes, KIB(10));
    assert_int_equal(small_world_alloc(&world, KIB(11)).block_bytes, KIB(200));
    assert_int_equal(small_world_alloc(&world, KIB(201)).block_bytes, MIB(2));
    small_world_close(&world);
}

static void keeps_classes_in_slabs_of_their_own(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "size-class", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, KIB(512));
    assert_int_equal(small_world_alloc(&world, KIB(512)).address, first.address + KIB(512));
    small_world_alloc(&world, KIB(640));
    assert_int_equal(small_world_segment_count(&world), 2);
    small_world_alloc(&world, KIB(512));
    small_world_alloc(&world, KIB(512));
    assert_int_equal(small_world_segment_count(&world), 2);
    small_world_alloc(&world, KIB(512));
    assert_int_equal(small_world_segment_count(&world), 3);
    small_world_free(&world, first);
    assert_int_equal(small_world_alloc(&world, KIB(500)).address, first.address);
    small_world_close(&world);
}

static void an_empty_slab_serves_any_class(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "size-class", FRAG_UNLIMITED);
    frag_grant small = small_world_alloc(&world, 512);
    small_world_free(&world, small);
    assert_int_equal(small_world_alloc(&world, MIB(1)).address, small.address);
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    small_world_close(&world);
}

static void large_requests_reuse_segments_they_nearly_fill(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "size-class:surplus=0.5", FRAG_UNLIMITED);
    frag_grant kept = small_world_alloc(&world, MIB(30));
    small_world_free(&world, kept);
    assert_int_not_equal(small_world_alloc(&world, MIB(18)).address, kept.address);
    frag_grant reused = small_world_alloc(&world, MIB(20));
    assert_int_equal(reused.address, kept.address);
    assert_int_equal(reused.block_bytes, MIB(30));
    assert_int_equal(world.device->reserved_bytes, MIB(48));
    small_world_close(&world);
}

static void gives_everything_free_back_before_it_gives_up(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "size-class", MIB(10));
    frag_grant slot = small_world_alloc(&world, 512);
    frag_grant large = small_world_alloc(&world, MIB(8));
    assert_false(small_world_has_room(&world, MIB(2)));
    small_world_free(&world, slot);
    assert_true(small_world_has_room(&world, MIB(2)));
    small_world_free(&world, large);
    assert_true(small_world_has_room(&world, MIB(10)));
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

static void refuses_classes_that_make_no_sense(void **state)
{
    (void)state;
    assert_true(small_world_refuses("size-class:classes=0", "0"));
    assert_true(small_world_refuses("size-class:classes=33", "33"));
    assert_true(small_world_refuses("size-class:classes=[1KiB,512]", "out of place"));
    assert_true(small_world_refuses("size-class:classes=[512,1KiB,1KiB]", "out of place"));
    assert_true(small_world_refuses("size-class:classes=[700]", "out of place"));
    assert_true(small_world_refuses("size-class:classes=[]", ""));
    assert_true(small_world_refuses("size-class:classes=[512,1K]", "1K"));
    assert_true(small_world_refuses("size-class:classes=[512", "not a list"));
    assert_true(small_world_refuses("size-class:classes=[512]x", "after its list"));
    assert_true(small_world_refuses("size-class:classes=[4MiB]", "out of place"));
    assert_true(small_world_refuses("size-class:large=4MiB", "above slab"));
    assert_true(small_world_refuses("size-class:slab=1000", "multiples of 512"));
}

static void free_segments_beyond_what_is_kept_go_back_at_once(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "slab:keep=4MiB", FRAG_UNLIMITED);
    frag_grant halves[6];
    for (int i = 0; i < 6; i++)
        halves[i] = small_world_alloc(&world, FRAG_MIB);
    frag_grant large = small_world_alloc(&world, 4 * FRAG_MIB);
    assert_int_equal(world.device->reserved_bytes, 10 * FRAG_MIB);
    for (int i = 0; i < 6; i++)
        small_world_free(&world, halves[i]);
    assert_int_equal(world.device->reserved_bytes, 8 * FRAG_MIB);
    small_world_free(&world, large);
    assert_int_equal(world.device->reserved_bytes, 4 * FRAG_MIB);
    /* What is used again may be kept again. */
    frag_grant small = small_world_alloc(&world, 600);
    assert_int_equal(small.block_bytes, 1024);
    assert_int_equal(world.device->reserved_bytes, 4 * FRAG_MIB);
    small_world_free(&world, small);
    assert_int_equal(world.device->reserved_bytes, 4 * FRAG_MIB);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_up_to_four_classes_per_doubling),
        cmocka_unit_test(takes_the_classes_it_is_given),
        cmocka_unit_test(keeps_classes_in_slabs_of_their_own),
        cmocka_unit_test(an_empty_slab_serves_any_class),
        cmocka_unit_test(large_requests_reuse_segments_they_nearly_fill),
        cmocka_unit_test(gives_everything_free_back_before_it_gives_up),
        cmocka_unit_test(refuses_classes_that_make_no_sense),
        cmocka_unit_test(free_segments_beyond_what_is_kept_go_back_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
