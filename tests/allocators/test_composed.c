/* The choices of the composed allocator, one by one, as its presets make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/small_world.h"

#define KIB(n) ((uint64_t)(n)*FRAG_KIB)
#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

static uint64_t calls(const small_world *world, frag_device_call call)
{
    return world->device->counts.calls[call];
}

/* ---- rounding */

static void a_block_has_the_size_that_the_rounding_says(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        uint64_t bytes;
        uint64_t rounded;
    } cases[] = {
        {"cupy", 1, 512},
        {"cupy", 513, 1024},
        {"tf-bfc", 1, 256},
        {"paddle-auto-growth:alignment=4KiB", 4097, 8192},
        {"mxnet-naive", 1, 4096},
        {"mxnet-naive", 4097, 8192},
        {"mxnet-naive", MIB(2), MIB(2)},
        {"mxnet-naive", MIB(2) + 1, MIB(4)},
        {"mxnet-naive:page_size=1000,large_alloc_round_size=7777", 7001, 15554},
        {"mxnet-round", 4097, 8192},
        {"mxnet-round", MIB(16) - 1, MIB(16)},
        {"mxnet-round", MIB(16) + 1, MIB(32)},
        {"mxnet-round", MIB(33), MIB(48)},
        {"mxnet-round:round_linear_cutoff=20", MIB(2) + 1, MIB(3)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        small_world world;
        small_world_open(&world, cases[i].policy, FRAG_UNLIMITED);
        assert_int_equal(world.spec.ops->rounded(world.policy, cases[i].bytes), cases[i].rounded);
        small_world_close(&world);
    }
}

/* ---- splitting */

static void bfc_cuts_a_chunk_of_twice_the_request_or_with_much_to_spare(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tf-bfc:memory_limit=1GiB,allow_growth=false", FRAG_UNLIMITED);
    frag_grant all = small_world_alloc(&world, MIB(900));
    assert_int_equal(all.block_bytes, MIB(1024)); /* 124 MiB to spare are not worth a cut */
    small_world_free(&world, all);
    all = small_world_alloc(&world, MIB(896));
    assert_int_equal(all.block_bytes, MIB(896)); /* 128 MiB are */
    small_world_free(&world, all);
    assert_int_equal(small_world_alloc(&world, MIB(300)).block_bytes, MIB(300));
    small_world_close(&world);
}

static void paddle_hands_out_the_high_end(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "paddle-auto-growth:chunk_size=1MiB", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, KIB(4));
    frag_grant second = small_world_alloc(&world, KIB(4));
    assert_int_equal(second.address + KIB(4), first.address);
    assert_int_equal(small_world_segment_count(&world), 1);
    small_world_close(&world);
}

static void mxnet_uses_the_newest_block_of_exactly_the_size(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "mxnet-naive", FRAG_UNLIMITED);
    frag_grant old = small_world_alloc(&world, KIB(8));
    frag_grant new = small_world_alloc(&world, KIB(8));
    small_world_free(&world, old);
    small_world_free(&world, new);
    assert_int_equal(small_world_alloc(&world, KIB(8)).address, new.address);
    small_world_alloc(&world, KIB(4)); /* a block of 8 KiB will not do */
    assert_int_equal(small_world_segment_count(&world), 3);
    small_world_close(&world);
}

/* ---- lists */

static void cupy_keeps_blocks_with_the_stream_that_allocated_them(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cupy", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 1, KIB(4));
    small_world_free_on(&world, 2, first);
    assert_int_not_equal(small_world_alloc_on(&world, 2, KIB(4)).address, first.address);
    assert_int_equal(small_world_alloc_on(&world, 1, KIB(4)).address, first.address);
    small_world_close(&world);
}

static void rmm_gives_a_block_to_the_stream_that_freed_it(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-pool:initial_pool_size=8KiB", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, KIB(4));
    frag_grant second = small_world_alloc(&world, KIB(4));
    small_world_free_on(&world, 1, first);
    small_world_free_on(&world, 2, second);
    assert_int_equal(small_world_hole_count(&world), 2); /* neighbours of two streams */
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_RECORD), 2);
    assert_int_equal(small_world_alloc_on(&world, 2, KIB(4)).address, second.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 0);
    assert_int_equal(small_world_alloc_on(&world, 2, KIB(4)).address, first.address); /* stolen */
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 1);
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    small_world_close(&world);
}

static void rmm_makes_whole_lists_its_own_before_the_pool_grows(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-pool:initial_pool_size=8KiB", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, KIB(4));
    frag_grant second = small_world_alloc(&world, KIB(4));
    small_world_free_on(&world, 1, first);
    small_world_free_on(&world, 2, second);
    /* The default stream, whose list is empty, and stream 1. */
    assert_int_equal(small_world_alloc_on(&world, 2, KIB(8)).address, first.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 2);
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    small_world_close(&world);
}

static void events_that_count_down_turn_the_order_of_lists(void **state)
{
    (void)state;
    static const char *const policies[] = {"rmm-pool:initial_pool_size=8KiB",
                                           "rmm-pool:initial_pool_size=8KiB,event_order=down"};
    for (int i = 0; i < 2; i++) {
        small_world world;
        small_world_open(&world, policies[i], FRAG_UNLIMITED);
        frag_grant grants[2] = {small_world_alloc(&world, KIB(4)),
                                small_world_alloc(&world, KIB(4))};
        small_world_free_on(&world, 0, grants[0]);
        small_world_free_on(&world, 1, grants[1]);
        assert_int_equal(small_world_alloc_on(&world, 2, KIB(4)).address, grants[i].address);
        small_world_close(&world);
    }
}

static void paddle_keeps_small_and_large_requests_apart(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world,
                     "paddle-auto-growth:small_pool_size_in_mb=1,"
                     "small_pool_auto_growth_chunk_size_in_mb=2,"
                     "large_pool_auto_growth_chunk_size_in_mb=20",
                     FRAG_UNLIMITED);
    small_world_alloc(&world, MIB(1) + 1);
    assert_int_equal(world.device->reserved_bytes, MIB(20));
    small_world_alloc(&world, MIB(1));
    assert_int_equal(world.device->reserved_bytes, MIB(22));
    small_world_close(&world);
}

/* ---- growth */

static void a_pool_doubles_and_halves_what_the_device_refuses(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-pool", MIB(100));
    small_world_alloc(&world, MIB(20));
    small_world_alloc(&world, MIB(1));
    assert_int_equal(world.device->reserved_bytes, MIB(40));
    small_world_alloc(&world, MIB(20));
    assert_int_equal(world.device->reserved_bytes, MIB(80));
    small_world_alloc(&world, MIB(20));
    small_world_alloc(&world, MIB(19));
    small_world_alloc(&world, MIB(15)); /* 80 and 40 MiB are refused */
    assert_int_equal(world.device->reserved_bytes, MIB(100));
    assert_int_equal(world.device->counts.failed_calls[FRAG_DEVICE_MALLOC], 2);
    small_world_close(&world);
}

static void a_pool_with_a_maximum_takes_half_of_what_is_left(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "rmm-pool:maximum_pool_size=64MiB", FRAG_UNLIMITED);
    small_world_alloc(&world, 1);
    assert_int_equal(world.device->reserved_bytes, MIB(32));
    assert_false(small_world_has_room(&world, MIB(33)));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1); /* it did not even ask */
    small_world_alloc(&world, MIB(32));
    assert_int_equal(world.device->reserved_bytes, MIB(64));
    small_world_close(&world);
}

static void a_pool_whose_first_segment_is_refused_serves_nothing(void **state)
{
    (void)state;
    static const char *const policies[] = {
        "rmm-pool:initial_pool_size=64MiB", "rmm-arena:arena_size=64MiB", "rmm-fixed-size",
        "rmm-binning:upstream=cuda", "rmm-binning:initial_pool_size=64MiB"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        small_world world;
        small_world_open(&world, policies[i], MIB(32));
        assert_false(small_world_has_room(&world, 1));
        small_world_close(&world);
    }
}

static void regions_double_and_shrink_by_a_tenth_when_refused(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tf-bfc", MIB(10));
    small_world_alloc(&world, MIB(2));
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    small_world_alloc(&world, MIB(3));
    assert_int_equal(world.device->reserved_bytes, MIB(6));
    small_world_alloc(&world, MIB(2)); /* 8 MiB less a tenth until 4 MiB are left */
    assert_true(world.device->reserved_bytes > MIB(9) && world.device->reserved_bytes <= MIB(10));
    assert_int_equal(world.device->counts.failed_calls[FRAG_DEVICE_MALLOC], 7);
    small_world_close(&world);
}

static void a_region_that_the_device_never_grants_is_not_asked_for_forever(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "tf-bfc:memory_limit=1GiB", MIB(2));
    small_world_alloc(&world, MIB(2));
    assert_false(small_world_has_room(&world, 2304));
    assert_false(small_world_has_room(&world, 1));
    small_world_close(&world);
    small_world_open(&world, "ort-arena", MIB(2));
    small_world_alloc(&world, MIB(2));
    uint64_t asked = calls(&world, FRAG_DEVICE_MALLOC);
    assert_false(small_world_has_room(&world, 1));
    /* From 2 MiB down to 8 KiB. */
    assert_in_range(calls(&world, FRAG_DEVICE_MALLOC) - asked, 50, 55);
    small_world_close(&world);
}

static void garbage_collection_gives_idle_regions_back_for_a_larger_one(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        small_world world;
        small_world_open(&world,
                         i == 0 ? "tf-bfc:memory_limit=64MiB"
                                : "tf-bfc:memory_limit=64MiB,garbage_collection=true",
                         FRAG_UNLIMITED);
        frag_grant grant = small_world_alloc(&world, MIB(32));
        small_world_free(&world, grant);
        assert_int_equal(small_world_has_room(&world, MIB(40)), i == 1);
        small_world_close(&world);
    }
}

static void shrinking_keeps_the_first_region_where_they_double(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "ort-arena", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, KIB(900));
    frag_grant second = small_world_alloc(&world, KIB(900));
    small_world_free(&world, first);
    small_world_free(&world, second);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(1));
    small_world_close(&world);
    small_world_open(&world, "ort-arena:arena_extend_strategy=kSameAsRequested", FRAG_UNLIMITED);
    first = small_world_alloc(&world, KIB(900));
    assert_int_equal(world.device->reserved_bytes, KIB(900));
    small_world_free(&world, first);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

static void cupy_gives_idle_segments_back_at_its_limit(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cupy:limit=8MiB", FRAG_UNLIMITED);
    small_world_free(&world, small_world_alloc(&world, MIB(6)));
    small_world_alloc(&world, MIB(7));
    assert_int_equal(world.device->reserved_bytes, MIB(7));
    assert_false(small_world_has_room(&world, MIB(2)));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 2);
    small_world_close(&world);
    small_world_open(&world, "cupy", MIB(8));
    assert_false(small_world_has_room(&world, MIB(9)));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 3);
    small_world_close(&world);
}

static void mxnet_keeps_a_share_of_the_device_free(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "mxnet-naive:reserve=50", MIB(64));
    small_world_free(&world, small_world_alloc(&world, MIB(16)));
    small_world_alloc(&world, MIB(18)); /* 48 less 32 MiB would not do */
    assert_int_equal(world.device->reserved_bytes, MIB(18));
    small_world_close(&world);
}

static void mxnet_asks_twice_when_the_device_refuses(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "mxnet-naive", MIB(64));
    assert_false(small_world_has_room(&world, MIB(80)));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 2);
    small_world_close(&world);
}

static void mxnet_2_gives_back_before_a_request_takes_all_that_is_free(void **state)
{
    (void)state;
    for (int release = 0; release < 2; release++) {
        small_world world;
        small_world_open(
            &world, release == 0 ? "mxnet-naive:reserve=0" : "mxnet-naive:reserve=0,version=2.0",
            MIB(64));
        small_world_free(&world, small_world_alloc(&world, MIB(16)));
        small_world_alloc(&world, MIB(48));
        assert_int_equal(world.device->reserved_bytes, release == 0 ? MIB(64) : MIB(48));
        small_world_close(&world);
    }
}

static void mxnet_round_has_no_list_above_16_gib(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "mxnet-round", FRAG_UNLIMITED);
    small_world_alloc(&world, 16 * FRAG_GIB);
    assert_false(small_world_has_room(&world, 16 * FRAG_GIB + 1));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    small_world_close(&world);
}

static void a_chunk_goes_back_with_its_last_block(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "paddle-auto-growth:free_idle_chunk=true,chunk_size=4MiB",
                     FRAG_UNLIMITED);
    frag_grant first = small_world_alloc(&world, MIB(1));
    frag_grant second = small_world_alloc(&world, MIB(3));
    frag_grant third = small_world_alloc(&world, MIB(3));
    small_world_free(&world, first);
    assert_int_equal(world.device->reserved_bytes, MIB(8));
    small_world_free(&world, second);
    assert_int_equal(world.device->reserved_bytes, MIB(4));
    small_world_free(&world, third);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

static void option_values_that_do_not_fit_together_are_refused(void **state)
{
    (void)state;
    assert_true(small_world_refuses("tf-bfc:allow_growth=false", "need a memory_limit"));
    assert_true(small_world_refuses("rmm-pool:initial_pool_size=100", "multiples of 256"));
    assert_true(small_world_refuses("rmm-pool:initial_pool_size=2MiB,maximum_pool_size=1MiB",
                                    "is more than maximum_pool_size"));
    assert_true(small_world_refuses("rmm-binning:min_size_exponent=20,max_size_exponent=19",
                                    "is above max_size_exponent"));
    assert_true(small_world_refuses("paddle-auto-growth:alignment=3", "not a power of two"));
    assert_true(small_world_refuses("composed:pick=exact", "needs lists=one, split=never"));
    assert_true(small_world_refuses("composed:unit=3", "must be powers of two"));
    assert_true(small_world_refuses("composed:unit=32MiB", "is above linear"));
    assert_true(small_world_refuses("mxnet-round:round_linear_cutoff=20,page_size=2MiB",
                                    "is above two to the"));
    assert_true(small_world_refuses("mxnet-round:page_size=5000", "not a power of two"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_has_the_size_that_the_rounding_says),
        cmocka_unit_test(bfc_cuts_a_chunk_of_twice_the_request_or_with_much_to_spare),
        cmocka_unit_test(paddle_hands_out_the_high_end),
        cmocka_unit_test(mxnet_uses_the_newest_block_of_exactly_the_size),
        cmocka_unit_test(cupy_keeps_blocks_with_the_stream_that_allocated_them),
        cmocka_unit_test(rmm_gives_a_block_to_the_stream_that_freed_it),
        cmocka_unit_test(rmm_makes_whole_lists_its_own_before_the_pool_grows),
        cmocka_unit_test(events_that_count_down_turn_the_order_of_lists),
        cmocka_unit_test(paddle_keeps_small_and_large_requests_apart),
        cmocka_unit_test(a_pool_doubles_and_halves_what_the_device_refuses),
        cmocka_unit_test(a_pool_with_a_maximum_takes_half_of_what_is_left),
        cmocka_unit_test(a_pool_whose_first_segment_is_refused_serves_nothing),
        cmocka_unit_test(regions_double_and_shrink_by_a_tenth_when_refused),
        cmocka_unit_test(a_region_that_the_device_never_grants_is_not_asked_for_forever),
        cmocka_unit_test(garbage_collection_gives_idle_regions_back_for_a_larger_one),
        cmocka_unit_test(shrinking_keeps_the_first_region_where_they_double),
        cmocka_unit_test(cupy_gives_idle_segments_back_at_its_limit),
        cmocka_unit_test(mxnet_keeps_a_share_of_the_device_free),
        cmocka_unit_test(mxnet_asks_twice_when_the_device_refuses),
        cmocka_unit_test(mxnet_2_gives_back_before_a_request_takes_all_that_is_free),
        cmocka_unit_test(mxnet_round_has_no_list_above_16_gib),
        cmocka_unit_test(a_chunk_goes_back_with_its_last_block),
        cmocka_unit_test(option_values_that_do_not_fit_together_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
