/* RMM's resources that are not made of the composed allocator: blocks of fixed size, bins, arena.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "allocators/frameworks/rmm.h"
#include "base/bytes.h"
#include "tests/support/small_world.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

static uint64_t calls(const small_world *world, frag_device_call call)
{
    return world->device->counts.calls[call];
}

static void fixed_blocks_are_used_again_oldest_first(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-fixed-size:block_size=64KiB,blocks_to_preallocate=3",
                     FRAG_UNLIMITED);
    assert_int_equal(world.device->reserved_bytes, KIB(192));
    frag_grant grants[3];
    for (int i = 0; i < 3; i++) {
        grants[i] = small_world_alloc(&world, 1);
        assert_int_equal(grants[i].address, grants[0].address + (uint64_t)i * KIB(64));
        assert_int_equal(grants[i].block_bytes, KIB(64));
    }
    small_world_free(&world, grants[2]);
    small_world_free(&world, grants[0]);
    assert_int_equal(small_world_alloc(&world, KIB(64)).address, grants[2].address);
    assert_int_equal(small_world_alloc(&world, 1).address, grants[0].address);
    assert_false(small_world_has_room(&world, KIB(64) + 1));
    small_world_alloc(&world, 1);
    assert_int_equal(world.device->reserved_bytes, KIB(384));
    small_world_close(&world);
}

static void fixed_blocks_are_stolen_from_other_streams(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-fixed-size:block_size=64KiB,blocks_to_preallocate=2",
                     FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 1, 1);
    frag_grant second = small_world_alloc_on(&world, 1, 1);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 2);
    small_world_free_on(&world, 2, second);
    small_world_free_on(&world, 2, first);
    assert_int_equal(small_world_alloc_on(&world, 1, 1).address, second.address);
    assert_int_equal(small_world_alloc_on(&world, 2, 1).address, first.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 3);
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    small_world_close(&world);
}

static void slabs_of_one_block_have_room_for_every_request(void **state)
{
    (void)state;
    enum { BLOCKS = 1000 };
    small_world world;
    small_world_open(&world, "rmm-fixed-size:block_size=64KiB,blocks_to_preallocate=1",
                     FRAG_UNLIMITED);
    for (int i = 0; i < BLOCKS; i++)
        small_world_alloc(&world, 1);
    assert_int_equal(world.device->reserved_bytes, BLOCKS * KIB(64));
    small_world_close(&world);
}

static void a_request_goes_to_the_smallest_bin_that_holds_it(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t block_bytes;
    } cases[] = {{1, 1024},    {1024, 1024}, {1025, 2048}, {2048, 2048},
                 {2049, 4096}, {4096, 4096}, {4097, 4112}, {10000, 10000}};
    small_world world;
    small_world_open(&world, "rmm-binning:upstream=cuda,min_size_exponent=10,max_size_exponent=12",
                     FRAG_UNLIMITED);
    assert_int_equal(world.device->reserved_bytes, 128 * KIB(7));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_grant grant = small_world_alloc(&world, cases[i].bytes);
        assert_int_equal(grant.block_bytes, cases[i].block_bytes);
        small_world_free(&world, grant);
    }
    /* What went to the device went back to it. */
    assert_int_equal(calls(&world, FRAG_DEVICE_FREE), 2);
    assert_int_equal(world.device->reserved_bytes, 128 * KIB(7));
    small_world_close(&world);
}

static void bins_take_their_slabs_from_the_pool(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world,
                     "rmm-binning:min_size_exponent=12,max_size_exponent=12,"
                     "initial_pool_size=1MiB",
                     FRAG_UNLIMITED);
    frag_grant small = small_world_alloc(&world, 4096);
    frag_grant large = small_world_alloc(&world, 4097);
    assert_int_equal(large.block_bytes, 4352);
    assert_int_equal(large.address, small.address + KIB(512));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    small_world_close(&world);
}

static void a_stream_of_the_arena_keeps_a_superblock_of_its_own(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-arena:arena_size=8MiB", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 0, 100);
    frag_grant second = small_world_alloc_on(&world, 1, 100);
    frag_grant third = small_world_alloc_on(&world, 0, 100);
    assert_int_equal(second.address, first.address + MIB(1));
    assert_int_equal(third.address, first.address + 256);
    /* Freed on another stream: that stream's superblocks do not have it. */
    small_world_free_on(&world, 0, third);
    assert_int_equal(calls(&world, FRAG_DEVICE_STREAM_WAIT), 0);
    small_world_free_on(&world, 1, first);
    assert_int_equal(calls(&world, FRAG_DEVICE_STREAM_WAIT), 1);
    assert_int_equal(small_world_alloc_on(&world, 0, 100).address, first.address);
    small_world_close(&world);
}

static void large_requests_of_the_arena_are_cut_off_the_global_part(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-arena:arena_size=8MiB", FRAG_UNLIMITED);
    frag_grant large = small_world_alloc(&world, MIB(2));
    frag_grant next = small_world_alloc(&world, MIB(2));
    assert_int_equal(next.address, large.address + MIB(2));
    small_world_free(&world, large);
    small_world_free(&world, next);
    assert_int_equal(calls(&world, FRAG_DEVICE_STREAM_WAIT), 2);
    assert_int_equal(small_world_hole_count(&world), 1); /* superblocks were joined */
    small_world_close(&world);
}

static void a_failure_brings_all_superblocks_back(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-arena:arena_size=4MiB", FRAG_UNLIMITED);
    for (uint32_t stream = 0; stream < 3; stream++)
        small_world_free_on(&world, stream, small_world_alloc_on(&world, stream, 100));
    assert_int_equal(small_world_hole_count(&world), 4);
    small_world_free(&world, small_world_alloc(&world, MIB(4)));
    assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), 1);
    assert_false(small_world_has_room(&world, MIB(4) + 1));
    assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), 2);
    small_world_close(&world);
}

static void an_arena_without_a_size_takes_half_of_what_is_free(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-arena", MIB(30) + 100);
    assert_int_equal(world.device->reserved_bytes, MIB(15));
    small_world_close(&world);
    small_world_open(&world, "rmm-arena:arena_size=1000", FRAG_UNLIMITED);
    assert_int_equal(world.device->reserved_bytes, 768);
    small_world_close(&world);
}

static void size_classes_are_four_to_a_power_of_two_but_for_one(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t rounded;
    } cases[] = {
        {1, 256},
        {2047, 2048},
        {2049, 2560},
        {2561, 3072},
        {4096, 4096},
        {4097, 5120},
        {KIB(40), KIB(40)},
        {KIB(40) + 1, KIB(48)},
        {KIB(48), KIB(48)},
        {KIB(48) + 1, KIB(54)},
        {KIB(54), KIB(54)},
        {KIB(54) + 1, KIB(64)},
        {KIB(64), KIB(64)},
        {KIB(64) + 1, KIB(80)},
        {MIB(1) + 1, KIB(1280)},
    };
    small_world world;
    small_world_open(&world, "rmm-arena:size_classes=true,arena_size=8MiB", FRAG_UNLIMITED);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(world.spec.ops->rounded(world.policy, cases[i].bytes), cases[i].rounded);
    small_world_close(&world);
}

/* The legacy default stream has no handle. */
static void the_default_stream_is_found_by_its_handle(void **state)
{
    (void)state;
    static const uint64_t handles[] = {4096, 8192, 0, 0};
    frag_policy_setup setup = {.limits = {.stream_count = 4}, .stream_handles = handles};
    assert_int_equal(frag_rmm_default_stream(&setup), 2);
    setup.limits.stream_count = 2;
    assert_int_equal(frag_rmm_default_stream(&setup), 2);
    setup.stream_handles = NULL;
    assert_int_equal(frag_rmm_default_stream(&setup), 0);
}

static void sum_span(void *context, const frag_span *span)
{
    uint64_t *sums = context;
    sums[span->kind] += span->bytes;
}

/* Of 25600128 bytes refused four times a sixteenth is usable; the device is asked for 16 a time. */
static void the_hole_behind_all_blocks_has_what_rounding_added(void **state)
{
    (void)state;
    small_world world;
    uint64_t sums[3] = {0};
    small_world_open(&world, "rmm-pool:initial_pool_size=0,maximum_pool_size=51200256",
                     2 * FRAG_MIB);
    small_world_alloc(&world, 1);
    small_world_alloc(&world, 1600000 - 256);
    assert_false(small_world_has_room(&world, 1));
    world.spec.ops->walk(world.policy, sum_span, sums);
    assert_int_equal(sums[FRAG_SPAN_SEGMENT], 1600016);
    assert_int_equal(sums[FRAG_SPAN_BLOCK], 1600000);
    assert_int_equal(sums[FRAG_SPAN_HOLE], 16);
    assert_int_equal(small_world_hole_count(&world), 1);
    small_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_stream_is_found_by_its_handle),
        cmocka_unit_test(fixed_blocks_are_used_again_oldest_first),
        cmocka_unit_test(fixed_blocks_are_stolen_from_other_streams),
        cmocka_unit_test(slabs_of_one_block_have_room_for_every_request),
        cmocka_unit_test(a_request_goes_to_the_smallest_bin_that_holds_it),
        cmocka_unit_test(bins_take_their_slabs_from_the_pool),
        cmocka_unit_test(a_stream_of_the_arena_keeps_a_superblock_of_its_own),
        cmocka_unit_test(large_requests_of_the_arena_are_cut_off_the_global_part),
        cmocka_unit_test(a_failure_brings_all_superblocks_back),
        cmocka_unit_test(an_arena_without_a_size_takes_half_of_what_is_free),
        cmocka_unit_test(size_classes_are_four_to_a_power_of_two_but_for_one),
        cmocka_unit_test(the_hole_behind_all_blocks_has_what_rounding_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
