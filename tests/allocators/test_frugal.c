/* What frugal promises: where it grows, when pages move, and whose memory is left alone. */
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

static bool alloc_in(small_world *world, uint32_t pool, uint64_t bytes, frag_grant *grant)
{
    frag_request request = {.bytes = bytes, .pool = pool};
    return world->spec.ops->alloc(world->policy, &request, grant);
}

static void change_pool(small_world *world, frag_pool_change change)
{
    world->spec.ops->pool_change(world->policy, change, 1, FRAG_STREAM_EVERY);
}

static void growth_is_in_steps_that_small_requests_do_not_share(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    frag_grant small = small_world_alloc(&world, 1);
    assert_int_equal(world.device->reserved_bytes, MIB(8));
    frag_grant large = small_world_alloc(&world, MIB(1) + 1);
    assert_int_equal(world.device->reserved_bytes, MIB(40));
    assert_int_equal(small.block_bytes, 512);
    assert_true(large.address > small.address + MIB(8));
    (void)small_world_alloc(&world, MIB(31) - 512);
    assert_int_equal(world.device->reserved_bytes, MIB(40)); /* exactly full */
    (void)small_world_alloc(&world, MIB(700));
    assert_int_equal(world.device->reserved_bytes, MIB(740)); /* exactly what is missing */
    (void)small_world_alloc(&world, MIB(2));
    assert_int_equal(world.device->reserved_bytes, MIB(786)); /* 732 MiB / 16, in whole pages */
    (void)small_world_alloc(&world, MIB(1000));
    (void)small_world_alloc(&world, MIB(1000));
    uint64_t before = world.device->reserved_bytes;
    (void)small_world_alloc(&world, MIB(100));
    assert_int_equal(world.device->reserved_bytes, before + MIB(100));
    (void)small_world_alloc(&world, MIB(2));
    assert_int_equal(world.device->reserved_bytes, before + MIB(164)); /* and never more than 64 */
    small_world_close(&world);
}

/* Two holes of 300 MiB between blocks, none of which can hold 600 MiB. */
static void make_two_holes(small_world *world)
{
    frag_grant first = small_world_alloc(world, MIB(300));
    (void)small_world_alloc(world, MIB(100));
    frag_grant second = small_world_alloc(world, MIB(300));
    (void)small_world_alloc(world, MIB(100));
    small_world_free(world, first);
    small_world_free(world, second);
    assert_int_equal(world->device->reserved_bytes, MIB(800));
}

static void pages_move_where_a_new_peak_would_be(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    make_two_holes(&world);
    (void)small_world_alloc(&world, MIB(600));
    assert_int_equal(world.device->reserved_peak_bytes, MIB(800));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 2);
    assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), 1);
    assert_int_equal(small_world_hole_count(&world), 0);
    /* Where pages were, some are mapped again once there is no more to move. */
    frag_grant again = small_world_alloc(&world, MIB(290));
    assert_int_equal(world.device->reserved_bytes, MIB(800 + 290));
    small_world_free(&world, again);
    small_world_close(&world);
}

static void only_as_many_pages_move_as_are_missing(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    make_two_holes(&world);
    (void)small_world_alloc(&world, MIB(310));
    assert_int_equal(world.device->reserved_bytes, MIB(800));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 2);
    assert_int_equal(small_world_hole_count(&world), 1); /* 290 MiB of the second hole */
    (void)small_world_alloc(&world, MIB(290));
    assert_int_equal(world.device->reserved_bytes, MIB(800));
    small_world_close(&world);
}

static void the_smallest_hole_that_has_enough_gives_pages_up(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    frag_grant large = small_world_alloc(&world, MIB(400));
    (void)small_world_alloc(&world, MIB(50));
    frag_grant middle = small_world_alloc(&world, MIB(320));
    (void)small_world_alloc(&world, MIB(50));
    frag_grant last = small_world_alloc(&world, MIB(310));
    small_world_free(&world, large);
    small_world_free(&world, middle);
    small_world_free(&world, last);
    /* 300 MiB are missing behind the last hole, which gives none up itself. */
    assert_int_equal(small_world_alloc(&world, MIB(610)).address, last.address);
    assert_int_equal(small_world_alloc(&world, MIB(400)).address, large.address);
    assert_int_equal(small_world_alloc(&world, MIB(20)).address, middle.address);
    assert_int_equal(world.device->reserved_peak_bytes, MIB(1130));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 1);
    small_world_close(&world);
}

static void a_place_grows_downwards_where_that_takes_fewer_pages(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    frag_grant low = small_world_alloc(&world, MIB(100));
    frag_grant high = small_world_alloc(&world, MIB(100));
    (void)small_world_alloc(&world, MIB(100));
    small_world_free(&world, low);
    small_world_empty_cache(&world);
    small_world_free(&world, high);
    frag_grant both = small_world_alloc(&world, MIB(150));
    assert_int_equal(both.address, low.address + MIB(50));
    assert_int_equal(world.device->reserved_bytes, MIB(250));
    small_world_close(&world);
}

/* The hole below the void loses the pages that are then mapped at the void's end: the two voids
 * become one, and the place that was found goes on with it. */
static void pages_may_come_from_just_below_the_place_they_are_mapped_at(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal:call_worth=1MiB", FRAG_UNLIMITED);
    frag_grant low = small_world_alloc(&world, MIB(300));
    frag_grant middle = small_world_alloc(&world, MIB(200));
    frag_grant high = small_world_alloc(&world, MIB(400));
    (void)small_world_alloc(&world, MIB(32));
    small_world_free(&world, middle);
    small_world_empty_cache(&world);
    (void)small_world_alloc(&world, MIB(250));
    uint64_t before = world.device->reserved_bytes;
    small_world_free(&world, low);
    small_world_free(&world, high);
    assert_int_equal(small_world_alloc(&world, MIB(500)).address, low.address + MIB(400));
    assert_int_equal(world.device->reserved_bytes, before);
    assert_int_equal(small_world_alloc(&world, MIB(200)).address, low.address);
    assert_int_equal(small_world_alloc(&world, MIB(200)).address, low.address + MIB(200));
    assert_int_equal(world.device->reserved_bytes, before + MIB(200));
    small_world_close(&world);
}

static void no_page_moves_when_calls_are_dear(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal:call_worth=unlimited", FRAG_UNLIMITED);
    make_two_holes(&world);
    (void)small_world_alloc(&world, MIB(600));
    assert_int_equal(world.device->reserved_bytes, MIB(1400));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 0);
    small_world_close(&world);
    /* 800 MiB allow 5 calls: 4 were growth, and moving may take two. */
    small_world_open(&world, "frugal:call_worth=140MiB", FRAG_UNLIMITED);
    make_two_holes(&world);
    (void)small_world_alloc(&world, MIB(600));
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 0);
    small_world_close(&world);
}

static void a_full_device_makes_do_with_all_that_is_free(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal:call_worth=unlimited", MIB(802));
    make_two_holes(&world);
    assert_true(small_world_has_room(&world, MIB(600)));
    assert_int_equal(world.device->reserved_peak_bytes, MIB(800));
    assert_false(small_world_has_room(&world, MIB(603)));
    small_world_close(&world);
}

static void everything_free_goes_back_on_empty_cache(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    make_two_holes(&world);
    frag_grant odd = small_world_alloc(&world, MIB(3) + 1);
    small_world_empty_cache(&world);
    /* The block touches three pages of two MiB: no page is taken from below a block. */
    assert_int_equal(world.device->reserved_bytes, MIB(204));
    small_world_free(&world, odd);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(200));
    small_world_close(&world);
}

static void streams_wait_for_memory_that_another_used(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    frag_grant other = small_world_alloc_on(&world, 1, MIB(32));
    small_world_free_on(&world, 1, other);
    frag_grant mine = small_world_alloc_on(&world, 1, MIB(32));
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 0);
    small_world_free_on(&world, 1, mine);
    frag_grant taken = small_world_alloc_on(&world, 2, MIB(32));
    assert_int_equal(taken.address, other.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_RECORD), 1);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 1);
    /* Freed on a stream that is not the block's own: both have used it, and the third waits for
     * all. */
    small_world_free_on(&world, 1, taken);
    (void)small_world_alloc_on(&world, 0, MIB(32));
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 1 + (SMALL_WORLD_STREAMS - 1));
    small_world_close(&world);
}

static void a_stream_prefers_its_own_memory_to_a_better_fit(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    frag_grant own = small_world_alloc_on(&world, 0, MIB(40));
    (void)small_world_alloc_on(&world, 0, MIB(32));
    frag_grant other = small_world_alloc_on(&world, 1, MIB(32));
    (void)small_world_alloc_on(&world, 0, MIB(32));
    small_world_free_on(&world, 0, own);
    small_world_free_on(&world, 1, other);
    assert_int_equal(small_world_alloc_on(&world, 0, MIB(32)).address, own.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 0);
    small_world_close(&world);
}

static void what_a_graph_may_write_to_is_nobody_elses(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal:call_worth=1", MIB(402));
    frag_grant block;
    frag_grant other;
    change_pool(&world, FRAG_POOL_CREATED);
    assert_true(alloc_in(&world, 1, MIB(300), &block));
    world.spec.ops->free(world.policy, block.handle, 0);
    assert_false(alloc_in(&world, 0, MIB(300), &other));
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(300));
    assert_true(alloc_in(&world, 1, MIB(300), &other));
    assert_int_equal(other.address, block.address);
    world.spec.ops->free(world.policy, other.handle, 0);
    change_pool(&world, FRAG_POOL_RELEASED);
    assert_true(alloc_in(&world, 0, MIB(300), &other));
    small_world_close(&world);
}

static void nothing_moves_while_a_graph_is_captured(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "frugal", FRAG_UNLIMITED);
    make_two_holes(&world);
    world.spec.ops->capture(world.policy, true);
    (void)small_world_alloc(&world, MIB(600));
    small_world_empty_cache(&world);
    assert_int_equal(calls(&world, FRAG_DEVICE_UNMAP), 0);
    assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), 0);
    world.spec.ops->capture(world.policy, false);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(800));
    small_world_close(&world);
}

static void alignment_must_divide_the_pages(void **state)
{
    (void)state;
    assert_true(small_world_refuses("frugal:align=3", "power of two"));
    assert_true(small_world_refuses("frugal:align=4MiB", "does not divide"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_is_in_steps_that_small_requests_do_not_share),
        cmocka_unit_test(pages_move_where_a_new_peak_would_be),
        cmocka_unit_test(only_as_many_pages_move_as_are_missing),
        cmocka_unit_test(the_smallest_hole_that_has_enough_gives_pages_up),
        cmocka_unit_test(a_place_grows_downwards_where_that_takes_fewer_pages),
        cmocka_unit_test(pages_may_come_from_just_below_the_place_they_are_mapped_at),
        cmocka_unit_test(no_page_moves_when_calls_are_dear),
        cmocka_unit_test(a_full_device_makes_do_with_all_that_is_free),
        cmocka_unit_test(everything_free_goes_back_on_empty_cache),
        cmocka_unit_test(streams_wait_for_memory_that_another_used),
        cmocka_unit_test(a_stream_prefers_its_own_memory_to_a_better_fit),
        cmocka_unit_test(what_a_graph_may_write_to_is_nobody_elses),
        cmocka_unit_test(nothing_moves_while_a_graph_is_captured),
        cmocka_unit_test(alignment_must_divide_the_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
