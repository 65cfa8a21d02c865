/* The driver's stream-ordered pool: who may reuse what, and when memory goes back. */
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

/* As the engine tells a policy that the program waited. */
static void sync(small_world *world, uint32_t stream)
{
    for (uint32_t i = 0; i < SMALL_WORLD_STREAMS; i++)
        if (stream == FRAG_STREAM_EVERY || stream == i)
            frag_device_stream_done(world->device, i);
    world->spec.ops->sync(world->policy, stream);
}

static bool use(small_world *world, frag_grant grant, uint32_t stream)
{
    return world->spec.ops->use(world->policy, grant.handle, stream);
}

static void the_pool_grows_by_chunks_of_which_blocks_are_multiples_of_512(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async", MIB(50));
    frag_grant first = small_world_alloc(&world, 1);
    assert_int_equal(first.block_bytes, 512);
    assert_int_equal(world.device->reserved_bytes, MIB(32));
    assert_int_equal(small_world_alloc(&world, 513).address, first.address + 512);
    /* There is no room for a second chunk of 32 MiB. */
    small_world_alloc(&world, MIB(31) + 1);
    small_world_alloc(&world, MIB(17));
    assert_int_equal(world.device->reserved_bytes, MIB(50));
    assert_int_equal(world.device->counts.failed_calls[FRAG_DEVICE_MALLOC], 1);
    small_world_close(&world);
}

static void a_stream_reuses_its_own_frees_at_once_and_others_do_not(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 1, MIB(32));
    small_world_free_on(&world, 1, first);
    assert_int_not_equal(small_world_alloc_on(&world, 2, MIB(32)).address, first.address);
    assert_int_equal(small_world_alloc_on(&world, 1, MIB(32)).address, first.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 2);
    small_world_close(&world);
}

/* The freeing stream counts, not the one that asked. */
static void a_block_belongs_to_the_stream_that_freed_it(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 1, MIB(32));
    small_world_free_on(&world, 2, first);
    assert_int_not_equal(small_world_alloc_on(&world, 1, MIB(32)).address, first.address);
    assert_int_equal(small_world_alloc_on(&world, 2, MIB(32)).address, first.address);
    small_world_close(&world);
}

static void a_stream_that_is_seen_done_gives_its_frees_to_all_unless_that_is_forbidden(void **state)
{
    (void)state;
    for (int may = 0; may < 2; may++) {
        small_world world;
        small_world_open(&world, may != 0 ? "cuda-async" : "cuda-async:opportunistic=false",
                         FRAG_UNLIMITED);
        frag_grant first = small_world_alloc_on(&world, 1, MIB(32));
        small_world_free_on(&world, 1, first);
        frag_device_stream_done(world.device, 1);
        frag_grant second = small_world_alloc_on(&world, 0, MIB(32));
        assert_int_equal(second.address == first.address, may);
        assert_int_equal(calls(&world, FRAG_DEVICE_MALLOC), 2 - may);
        small_world_close(&world);
    }
}

static void after_a_wait_for_a_stream_everyone_may_have_its_frees(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async:release_threshold=unlimited", FRAG_UNLIMITED);
    frag_grant first = small_world_alloc_on(&world, 1, MIB(16));
    frag_grant second = small_world_alloc_on(&world, 2, MIB(16));
    small_world_free_on(&world, 1, first);
    small_world_free_on(&world, 2, second);
    /* Side by side, but of two streams. */
    assert_int_equal(small_world_hole_count(&world), 2);
    sync(&world, 1);
    sync(&world, 2);
    assert_int_equal(small_world_hole_count(&world), 1);
    assert_int_equal(small_world_alloc_on(&world, 0, MIB(32)).address, first.address);
    small_world_close(&world);
}

static void a_shared_block_is_its_own_streams_again_once_that_waits_for_the_others(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async", FRAG_UNLIMITED);
    frag_grant shared = small_world_alloc_on(&world, 1, MIB(32));
    assert_false(use(&world, shared, 1));
    assert_true(use(&world, shared, 2));
    assert_true(use(&world, shared, 2));
    small_world_free_on(&world, 1, shared);
    assert_int_equal(world.complete_count, 1);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 1);
    assert_int_equal(small_world_alloc_on(&world, 1, MIB(32)).address, shared.address);
    small_world_close(&world);
}

static void what_a_stream_waited_for_it_may_have_unless_that_is_forbidden(void **state)
{
    (void)state;
    for (int may = 0; may < 2; may++) {
        small_world world;
        small_world_open(&world, may != 0 ? "cuda-async" : "cuda-async:follow_events=false",
                         FRAG_UNLIMITED);
        frag_grant shared = small_world_alloc_on(&world, 1, MIB(32));
        frag_grant before = small_world_alloc_on(&world, 2, MIB(32));
        frag_grant after = small_world_alloc_on(&world, 2, MIB(32));
        use(&world, shared, 2);
        small_world_free_on(&world, 2, before);
        small_world_free_on(&world, 1, shared);
        small_world_free_on(&world, 2, after);
        assert_int_equal(small_world_alloc_on(&world, 1, MIB(32)).address, shared.address);
        frag_grant next = small_world_alloc_on(&world, 1, MIB(32));
        assert_int_equal(next.address == before.address, may);
        /* This was freed behind the point that was waited for. */
        assert_int_not_equal(small_world_alloc_on(&world, 1, MIB(32)).address, after.address);
        small_world_close(&world);
    }
}

static void on_a_full_device_a_stream_waits_for_anothers_free_unless_that_is_forbidden(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async", MIB(32));
    frag_grant first = small_world_alloc_on(&world, 1, MIB(32));
    small_world_free_on(&world, 1, first);
    assert_int_equal(small_world_alloc_on(&world, 2, MIB(20)).address, first.address);
    assert_int_equal(calls(&world, FRAG_DEVICE_EVENT_WAIT), 1);
    small_world_close(&world);

    small_world_open(&world, "cuda-async:internal_waits=false", MIB(32));
    first = small_world_alloc_on(&world, 1, MIB(32));
    small_world_free_on(&world, 1, first);
    assert_false(small_world_has_room(&world, MIB(20)));
    sync(&world, 1);
    assert_int_equal(small_world_alloc(&world, MIB(20)).address, first.address);
    small_world_close(&world);
}

/* What a program saw that failed with 54 of 80 GB in use, and went on after a synchronise. */
static void frees_that_wait_make_a_request_fail_that_a_synchronise_would_have_saved(void **state)
{
    (void)state;
    static const char *const policies[] = {"cuda-async", "cuda-async:retry_after_sync=true"};
    for (size_t i = 0; i < 2; i++) {
        small_world world;
        small_world_open(&world, policies[i], MIB(64));
        frag_grant first = small_world_alloc_on(&world, 1, MIB(32));
        frag_grant second = small_world_alloc_on(&world, 2, MIB(32));
        small_world_free_on(&world, 1, first);
        small_world_free_on(&world, 2, second);
        frag_request request = {.bytes = MIB(64)};
        frag_grant grant = {0};
        assert_int_equal(world.spec.ops->alloc(world.policy, &request, &grant), i);
        assert_int_equal(calls(&world, FRAG_DEVICE_SYNCHRONIZE), i);
        small_world_close(&world);
    }
}

static void a_synchronise_gives_back_whole_free_chunks_down_to_the_threshold(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async:release_threshold=64MiB", FRAG_UNLIMITED);
    frag_grant grants[4];
    for (int i = 0; i < 4; i++)
        grants[i] = small_world_alloc_on(&world, 1, MIB(32));
    for (int i = 0; i < 4; i++)
        small_world_free_on(&world, 1, grants[i]);
    assert_int_equal(world.device->reserved_bytes, MIB(128));
    sync(&world, 2);
    assert_int_equal(world.device->reserved_bytes, MIB(128));
    sync(&world, FRAG_STREAM_EVERY);
    assert_int_equal(world.device->reserved_bytes, MIB(64));
    assert_int_equal(small_world_alloc_on(&world, 0, MIB(32)).address, grants[2].address);
    small_world_empty_cache(&world);
    assert_int_equal(world.device->reserved_bytes, MIB(32));
    small_world_close(&world);
}

static void the_pool_holds_no_more_than_its_maximum(void **state)
{
    (void)state;
    small_world world;
    small_world_open(&world, "cuda-async:max_size=34MiB", FRAG_UNLIMITED);
    small_world_alloc(&world, MIB(32));
    frag_grant last = small_world_alloc(&world, MIB(2));
    assert_false(small_world_has_room(&world, 1));
    assert_int_equal(world.device->reserved_bytes, MIB(34));
    small_world_free(&world, last);
    assert_true(small_world_has_room(&world, 1));
    small_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pool_grows_by_chunks_of_which_blocks_are_multiples_of_512),
        cmocka_unit_test(a_stream_reuses_its_own_frees_at_once_and_others_do_not),
        cmocka_unit_test(a_block_belongs_to_the_stream_that_freed_it),
        cmocka_unit_test(
            a_stream_that_is_seen_done_gives_its_frees_to_all_unless_that_is_forbidden),
        cmocka_unit_test(after_a_wait_for_a_stream_everyone_may_have_its_frees),
        cmocka_unit_test(a_shared_block_is_its_own_streams_again_once_that_waits_for_the_others),
        cmocka_unit_test(what_a_stream_waited_for_it_may_have_unless_that_is_forbidden),
        cmocka_unit_test(
            on_a_full_device_a_stream_waits_for_anothers_free_unless_that_is_forbidden),
        cmocka_unit_test(frees_that_wait_make_a_request_fail_that_a_synchronise_would_have_saved),
        cmocka_unit_test(a_synchronise_gives_back_whole_free_chunks_down_to_the_threshold),
        cmocka_unit_test(the_pool_holds_no_more_than_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
