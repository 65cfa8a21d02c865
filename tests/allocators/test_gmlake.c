/* GMLake: which blocks are stitched, what becomes of the pieces, and when ranges are taken apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/small_world.h"

#define MIB(n) ((uint64_t)(n)*FRAG_MIB)

static uint64_t calls(const small_world *world, frag_device_call call)
{
    return world->device->counts.calls[call];
}

/* Two free blocks of these sizes in segments of their own. */
static void make_two_free(small_world *world, uint64_t first_bytes, uint64_t second_bytes,
                          uint64_t addresses[2])
{
    frag_grant first = small_world_alloc(world, first_bytes);
    frag_grant second = small_world_alloc(world, second_bytes);
    small_world_free(world, first);
    small_world_free(world, second);
    addresses[0] = first.address;
    addresses[1] = second.address;
}

static void small_requests_share_mallocs_and_large_ones_are_made_of_chunks(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "gmlake", FRAG_UNLIMITED);
    assert_int_equal(small_world_alloc(&world, 1).block_bytes, 512);
    assert_int_equal(small_world_alloc(&world, MIB(1)).block_bytes, MIB(1));
    assert_int_equal(world.device->reserved_bytes, MIB(2));
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 1);
    assert_int_equal(small_world_alloc(&world, MIB(1) + 1).block_bytes, MIB(2));
    assert_int_equal(world.device->reserved_bytes, MIB(22));
    assert_int_equal(small_world_alloc(&world, MIB(9) + 1).block_bytes, MIB(10));
    assert_int_equal(world.device->reserved_bytes, MIB(22));
    assert_int_equal(small_world_alloc(&world, MIB(13)).block_bytes, MIB(14));
    assert_int_equal(world.device->reserved_bytes, MIB(36));
    assert_int_equal(calls(&world, FRAG_DEVICE_MAP), 2);
    small_world_close(&world);
}

static void a_request_above_the_limit_is_stitched_of_free_blocks(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake", FRAG_UNLIMITED);
    make_two_free(&world, MIB(400), MIB(300), addresses);
    frag_grant whole = small_world_alloc(&world, MIB(600));
    assert_int_equal(whole.block_bytes, MIB(600));
    assert_int_equal(world.device->reserved_bytes, MIB(700));
    /* The largest is used whole, the last one in part: the rest of it is free. */
    assert_int_equal(small_world_alloc(&world, MIB(100)).address, addresses[1] + MIB(200));
    assert_int_equal(world.device->reserved_bytes, MIB(700));
    small_world_close(&world);
}

static void a_request_below_the_limit_gets_new_memory(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake", FRAG_UNLIMITED);
    make_two_free(&world, MIB(300), MIB(300), addresses);
    small_world_alloc(&world, MIB(510));
    assert_int_equal(world.device->reserved_bytes, MIB(1110));
    small_world_close(&world);

    small_world_open(&world, "gmlake:fragLimit=510MiB", FRAG_UNLIMITED);
    make_two_free(&world, MIB(300), MIB(300), addresses);
    small_world_alloc(&world, MIB(510));
    assert_int_equal(world.device->reserved_bytes, MIB(600));
    small_world_close(&world);
}

/* What GMLake calls convergence. */
static void a_stitched_range_is_kept_and_serves_its_size_again_without_a_call(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB", FRAG_UNLIMITED);
    make_two_free(&world, MIB(20), MIB(20), addresses);
    frag_grant whole = small_world_alloc(&world, MIB(40));
    /* Each home was mapped once, and each piece of the range. */
    assert_int_equal(calls(&world, FRAG_DEVICE_MAP), 4);
    assert_int_equal(world.device->reserved_bytes, MIB(40));
    small_world_free(&world, whole);
    assert_int_equal(small_world_alloc(&world, MIB(40)).address, whole.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_MAP), 4);
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 0);
    assert_int_equal(calls(&world, FRAG_DEVICE_RESERVE), 3);
    small_world_close(&world);
}

static void a_stitched_range_serves_smaller_requests_down_to_the_reuse_limit(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    for (int may = 0; may < 2; may++) {
        small_world_open(&world,
                         may != 0 ? "gmlake:fragLimit=40MiB,reuseLimit=2"
                                  : "gmlake:fragLimit=40MiB,reuseLimit=1.5",
                         FRAG_UNLIMITED);
        make_two_free(&world, MIB(20), MIB(20), addresses);
        frag_grant whole = small_world_alloc(&world, MIB(40));
        small_world_free(&world, whole);
        frag_grant less = small_world_alloc(&world, MIB(22));
        assert_int_equal(less.address == whole.address, may);
        assert_int_equal(less.block_bytes, MIB(22));
        small_world_close(&world);
    }
}

static void what_a_smaller_request_leaves_of_a_range_serves_others(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=40MiB", FRAG_UNLIMITED);
    make_two_free(&world, MIB(20), MIB(20), addresses);
    frag_grant whole = small_world_alloc(&world, MIB(40));
    small_world_free(&world, whole);
    frag_grant less = small_world_alloc(&world, MIB(22));
    assert_int_equal(less.address, whole.address);
    /* The range begins with the higher of the two, and has 2 MiB of the other. */
    frag_grant rest = small_world_alloc(&world, MIB(18));
    assert_int_equal(rest.address, addresses[0] + MIB(2));
    assert_int_equal(world.device->reserved_bytes, MIB(40));
    small_world_free(&world, less);
    frag_grant more = small_world_alloc(&world, MIB(40));
    assert_int_not_equal(more.address, whole.address);
    assert_int_equal(world.device->reserved_bytes, MIB(80));
    small_world_free(&world, rest);
    assert_int_equal(small_world_alloc(&world, MIB(40)).address, whole.address);
    small_world_close(&world);
}

static void one_free_block_is_not_stitched(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "gmlake:fragLimit=2MiB,reuseLimit=1", MIB(60));
    frag_grant block = small_world_alloc(&world, MIB(40));
    small_world_free(&world, block);
    assert_int_equal(small_world_alloc(&world, MIB(42)).block_bytes, MIB(42));
    /* New memory was refused while the old block was kept. */
    assert_int_equal(world.device->reserved_bytes, MIB(42));
    assert_int_equal(calls(&world, FRAG_DEVICE_MAP), 3);
    small_world_close(&world);
}

static void a_piece_that_is_taken_makes_the_range_wait_until_it_is_back(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB", FRAG_UNLIMITED);
    make_two_free(&world, MIB(20), MIB(30), addresses);
    frag_grant whole = small_world_alloc(&world, MIB(50));
    small_world_free(&world, whole);
    frag_grant piece = small_world_alloc(&world, MIB(4));
    assert_int_equal(piece.address, addresses[0]);
    frag_grant other = small_world_alloc(&world, MIB(50));
    assert_int_not_equal(other.address, whole.address);
    assert_int_equal(world.device->reserved_bytes, MIB(100));
    small_world_free(&world, other);
    small_world_free(&world, piece);
    small_world_alloc(&world, MIB(50));
    assert_int_equal(small_world_alloc(&world, MIB(50)).address, whole.address);
    assert_int_equal(world.device->reserved_bytes, MIB(100));
    small_world_close(&world);
}

static void two_ranges_may_share_a_piece_and_take_turns(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "gmlake:fragLimit=2MiB", MIB(70));
    frag_grant grants[3];
    for (int i = 0; i < 3; i++)
        grants[i] = small_world_alloc(&world, MIB(20));
    small_world_free(&world, grants[0]);
    small_world_free(&world, grants[1]);
    frag_grant low = small_world_alloc(&world, MIB(40));
    small_world_free(&world, low);
    frag_grant again = small_world_alloc(&world, MIB(20));
    assert_int_equal(again.address, grants[0].address);
    small_world_free(&world, grants[2]);
    frag_grant high = small_world_alloc(&world, MIB(40));
    assert_int_not_equal(high.address, low.address);
    assert_int_equal(world.device->reserved_bytes, MIB(60));
    small_world_free(&world, again);
    small_world_free(&world, high);
    assert_int_equal(small_world_alloc(&world, MIB(40)).address, low.address);
    small_world_close(&world);
}

static void streams_are_not_stitched_together(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "gmlake:fragLimit=2MiB", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 0, MIB(20));
    frag_grant second = small_world_alloc_on(&world, 1, MIB(20));
    small_world_free_on(&world, 0, first);
    small_world_free_on(&world, 1, second);
    small_world_alloc_on(&world, 0, MIB(40));
    assert_int_equal(world.device->reserved_bytes, MIB(80));
    small_world_close(&world);
}

static void level_1_stitches_only_when_there_is_no_new_memory(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB,defragLevel=1", MIB(100));
    make_two_free(&world, MIB(20), MIB(20), addresses);
    frag_grant first = small_world_alloc(&world, MIB(40));
    assert_int_equal(world.device->reserved_bytes, MIB(80));
    frag_grant second = small_world_alloc(&world, MIB(40));
    assert_int_equal(world.device->reserved_bytes, MIB(80));
    assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), 0);
    small_world_free(&world, first);
    small_world_free(&world, second);
    small_world_close(&world);
}

static void cached_memory_is_given_back_before_a_request_fails(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake", MIB(100));
    make_two_free(&world, MIB(40), MIB(40), addresses);
    /* Below the limit: not stitched. */
    small_world_alloc(&world, MIB(90));
    assert_int_equal(world.device->reserved_bytes, MIB(90));
    assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), 1);
    assert_false(small_world_has_room(&world, MIB(12)));
    small_world_close(&world);
}

static void ranges_are_taken_apart_when_too_much_was_stitched(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB,autoGC=1,reuseLimit=1", FRAG_UNLIMITED);
    make_two_free(&world, MIB(400), MIB(400), addresses);
    small_world_free(&world, small_world_alloc(&world, MIB(600)));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNRESERVE), 0);
    frag_grant last = small_world_alloc(&world, MIB(620));
    /* The one that is granted stays. */
    assert_int_equal(calls(&world, FRAG_DEVICE_UNRESERVE), 1);
    small_world_free(&world, last);
    assert_int_equal(small_world_alloc(&world, MIB(620)).address, last.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_RESERVE), 4);
    small_world_close(&world);
}

static void as_much_as_the_option_says_may_be_stitched(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB,autoGC=1,reuseLimit=1", FRAG_UNLIMITED);
    make_two_free(&world, MIB(400), MIB(400), addresses);
    small_world_free(&world, small_world_alloc(&world, MIB(600)));
    small_world_free(&world, small_world_alloc(&world, MIB(424)));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNRESERVE), 0);
    small_world_free(&world, small_world_alloc(&world, MIB(402)));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNRESERVE), 2);
    small_world_close(&world);
}

/* The records of pieces have room for 64 to a request: where they are used up, ranges that nobody
 * has are taken apart for the next one. */
static void more_pieces_than_there_is_room_for_take_ranges_apart(void **state)
{
    (void)state;
    enum { BLOCKS = 200, RANGES = 120 };
    small_world world;
    frag_grant blocks[BLOCKS];
    uint64_t apart = 0;
    small_world_open_for(&world, "gmlake:fragLimit=2MiB,autoGC=1000000,reuseLimit=1",
                         BLOCKS + RANGES);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = small_world_alloc(&world, MIB(24));
    for (int i = 0; i < BLOCKS; i++)
        small_world_free(&world, blocks[i]);
    for (unsigned i = 0; i < RANGES && apart == 0; i++) {
        small_world_free(&world, small_world_alloc(&world, MIB(24 * BLOCKS - 2 * i)));
        apart = calls(&world, FRAG_DEVICE_UNRESERVE);
    }
    assert_int_equal(apart, 104);
    assert_int_equal(world.device->reserved_bytes, MIB(24 * BLOCKS));
    small_world_close(&world);
}

static void memory_that_goes_back_takes_the_ranges_made_of_it_along(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB", MIB(100));
    make_two_free(&world, MIB(20), MIB(20), addresses);
    small_world_free(&world, small_world_alloc(&world, MIB(40)));
    small_world_alloc(&world, MIB(90));
    assert_int_equal(world.device->reserved_bytes, MIB(90));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNRESERVE), 4); /* one of a map that was refused */
    small_world_close(&world);
}

/* GMLake gives it back and is left with half a range, which it does not survive. */
static void memory_in_the_range_of_someone_is_kept(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "gmlake:fragLimit=2MiB", MIB(100));
    frag_grant blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = small_world_alloc(&world, MIB(20));
    for (int i = 0; i < 3; i++)
        small_world_free(&world, blocks[i]);
    small_world_free(&world, small_world_alloc(&world, MIB(60)));
    frag_grant less = small_world_alloc(&world, MIB(40));
    assert_false(small_world_has_room(&world, MIB(70)));
    assert_int_equal(world.device->reserved_bytes, MIB(60));
    small_world_free(&world, less);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    small_world_close(&world);
}

static void nothing_is_held_after_empty_cache(void **state)
{
    (void)state;
    small_world world;
    uint64_t addresses[2];
    small_world_open(&world, "gmlake:fragLimit=2MiB", FRAG_UNLIMITED);
    make_two_free(&world, MIB(40), MIB(40), addresses);
    frag_grant whole = small_world_alloc(&world, MIB(60));
    small_world_free(&world, small_world_alloc(&world, 1));
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(80));
    small_world_free(&world, whole);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, 0);
    assert_int_equal(calls(&world, FRAG_DEVICE_RESERVE), calls(&world, FRAG_DEVICE_UNRESERVE));
    small_world_close(&world);
}

static void a_limit_is_one_of_all_that_is_held(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "gmlake", FRAG_UNLIMITED);
    world.spec.ops->set_limit(world.policy, MIB(64));
    frag_grant block = small_world_alloc(&world, MIB(46));
    /* That would be 20 MiB more. */
    assert_false(small_world_has_room(&world, MIB(4)));
    assert_int_equal(small_world_alloc(&world, 1).block_bytes, 512);
    small_world_free(&world, block);
    /* What is cached goes back before the request fails. */
    assert_int_equal(small_world_alloc(&world, MIB(50)).block_bytes, MIB(50));
    assert_int_equal(world.device->reserved_bytes, MIB(52));
    assert_int_equal(world.device->counts.failed_calls[FRAG_DEVICE_MAP], 0);
    small_world_close(&world);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    assert_true(small_world_refuses("gmlake:reuseLimit=0.5", "reuseLimit"));
    assert_true(small_world_refuses("gmlake:defragLevel=3", "defragLevel"));
    assert_true(small_world_refuses("gmlake:frag_limit=1GiB", "fragLimit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_requests_share_mallocs_and_large_ones_are_made_of_chunks),
        cmocka_unit_test(a_request_above_the_limit_is_stitched_of_free_blocks),
        cmocka_unit_test(a_request_below_the_limit_gets_new_memory),
        cmocka_unit_test(a_stitched_range_is_kept_and_serves_its_size_again_without_a_call),
        cmocka_unit_test(a_stitched_range_serves_smaller_requests_down_to_the_reuse_limit),
        cmocka_unit_test(what_a_smaller_request_leaves_of_a_range_serves_others),
        cmocka_unit_test(one_free_block_is_not_stitched),
        cmocka_unit_test(a_piece_that_is_taken_makes_the_range_wait_until_it_is_back),
        cmocka_unit_test(two_ranges_may_share_a_piece_and_take_turns),
        cmocka_unit_test(streams_are_not_stitched_together),
        cmocka_unit_test(level_1_stitches_only_when_there_is_no_new_memory),
        cmocka_unit_test(cached_memory_is_given_back_before_a_request_fails),
        cmocka_unit_test(ranges_are_taken_apart_when_too_much_was_stitched),
        cmocka_unit_test(as_much_as_the_option_says_may_be_stitched),
        cmocka_unit_test(more_pieces_than_there_is_room_for_take_ranges_apart),
        cmocka_unit_test(memory_that_goes_back_takes_the_ranges_made_of_it_along),
        cmocka_unit_test(memory_in_the_range_of_someone_is_kept),
        cmocka_unit_test(nothing_is_held_after_empty_cache),
        cmocka_unit_test(a_limit_is_one_of_all_that_is_held),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
