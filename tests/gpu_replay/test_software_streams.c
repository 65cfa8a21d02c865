/* Tests of the software CUDA: streams, events and stream-ordered pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

static void an_event_lags_behind_work(void **state)
{
    void *event = NULL;
    void *address = NULL;
    (void)state;
    software_start("lag=2");
    software_take(PAGE);
    cuda.event_create(&event, 2);
    cuda.malloc(&address, PAGE);
    cuda.event_record(event, NULL);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    cuda.memset(address, 0, 1);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    cuda.memset(address, 0, 1);
    assert_int_equal(cuda.event_query(event), 0);
    cuda.event_record(event, NULL);
    assert_int_equal(cuda.stream_query(NULL), NOT_READY);
    cuda.event_synchronize(event);
    assert_int_equal(cuda.event_query(event), 0);
    assert_int_equal(cuda.stream_query(NULL), 0);
}

static void a_lag_may_count_calls(void **state)
{
    void *event = NULL;
    (void)state;
    software_start("lag=3,lag-unit=calls");
    cuda.event_create(&event, 2);
    cuda.event_record(event, NULL);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    software_take(1);
    assert_int_equal(cuda.event_query(event), 0);
}

static void an_event_waits_until_told(void **state)
{
    void *event = NULL;
    (void)state;
    software_start("lag=told");
    void *stream = software_stream();
    void *other = software_stream();
    cuda.event_create(&event, 2);
    cuda.event_record(event, stream);
    cuda.stream_synchronize(other);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    software.complete((uint64_t)(uintptr_t)stream);
    assert_int_equal(cuda.event_query(event), 0);
    cuda.event_record(event, stream);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    cuda.device_synchronize();
    assert_int_equal(cuda.event_query(event), 0);
}

static void waiting_for_a_stream_waits_for_what_it_waits_for(void **state)
{
    void *first = NULL;
    void *second = NULL;
    (void)state;
    software_start("lag=told");
    void *stream = software_stream();
    void *other = software_stream();
    cuda.event_create(&first, 2);
    cuda.event_create(&second, 2);
    cuda.event_record(first, stream);
    cuda.stream_wait(other, first, 0);
    cuda.event_record(second, other);
    cuda.event_synchronize(second);
    assert_int_equal(cuda.event_query(first), 0);
}

static void destroyed_handles_are_known(void **state)
{
    void *event = NULL;
    void *next = NULL;
    (void)state;
    software_start("");
    cuda.event_create(&event, 2);
    assert_int_equal(cuda.event_destroy(event), 0);
    assert_int_equal(cuda.event_destroy(event), 400);
    cuda.event_create(&next, 2);
    assert_int_equal(cuda.event_query(event), 400);
    void *stream = software_stream();
    assert_int_equal(cuda.stream_destroy(stream), 0);
    assert_int_equal(cuda.stream_destroy(stream), 400);
    assert_int_equal(cuda.event_record(next, stream), 400);
}

static void a_pool_reuses_at_once_on_the_same_stream(void **state)
{
    (void)state;
    software_start("lag=told");
    void *stream = software_stream();
    void *other = software_stream();
    uint64_t first = software_take_async(MIB, stream);
    software_give_async(first, stream);
    assert_int_equal(software_take_async(MIB, stream), first);
    software_give_async(first, stream);
    assert_int_not_equal(software_take_async(MIB, other), first);
}

static void a_pool_reuses_behind_an_event(void **state)
{
    void *event = NULL;
    (void)state;
    software_start("lag=told");
    void *stream = software_stream();
    void *other = software_stream();
    uint64_t first = software_take_async(32 * MIB, stream);
    software_give_async(first, stream);
    cuda.event_create(&event, 2);
    cuda.event_record(event, stream);
    uint64_t unordered = software_take_async(32 * MIB, other);
    assert_int_not_equal(unordered, first);
    cuda.stream_wait(other, event, 0);
    assert_int_equal(software_take_async(32 * MIB, other), first);
}

static void a_pool_waits_rather_than_fail(void **state)
{
    void *pool = NULL;
    void *address = NULL;
    int off = 0;
    (void)state;
    software_start("lag=told,capacity=32MiB");
    void *stream = software_stream();
    void *other = software_stream();
    uint64_t first = software_take_async(20 * MIB, stream);
    software_give_async(first, stream);
    assert_int_equal(software_take_async(20 * MIB, other), first);
    software_give_async(first, other);
    assert_int_equal(cuda.default_pool(&pool, 0), 0);
    assert_int_equal(cuda.pool_set(pool, 3, &off), 0);
    assert_int_equal(cuda.malloc_async(&address, 20 * MIB, stream), OUT_OF_MEMORY);
    software.complete(UINT64_MAX);
    assert_int_equal(software_take_async(20 * MIB, stream), first);
}

static void a_pool_grows_in_steps_and_gives_back_whole_ones(void **state)
{
    (void)state;
    software_start("capacity=128MiB,pool-growth=32MiB");
    void *stream = software_stream();
    uint64_t first = software_take_async(20 * MIB, stream);
    assert_int_equal(software_free_bytes(), 96 * MIB);
    uint64_t second = software_take_async(20 * MIB, stream);
    assert_int_equal(software_free_bytes(), 64 * MIB);
    software_give_async(first, stream);
    assert_int_equal(software_free_bytes(), 64 * MIB);
    cuda.stream_synchronize(stream);
    assert_int_equal(software_free_bytes(), 96 * MIB);
    software_give_async(second, stream);
    cuda.stream_synchronize(stream);
    assert_int_equal(software_free_bytes(), 128 * MIB);
}

static void a_current_pool_serves_requests(void **state)
{
    const int properties[22] = {1, 0, 1, 0};
    void *pool = NULL;
    void *found = NULL;
    (void)state;
    software_start("");
    assert_int_equal(cuda.pool_create(&pool, properties), 0);
    assert_int_equal(cuda.set_pool(0, pool), 0);
    assert_int_equal(cuda.get_pool(&found, 0), 0);
    assert_ptr_equal(found, pool);
    uint64_t address = software_take_async(MIB, NULL);
    uint64_t used = 0;
    assert_int_equal(cuda.pool_get(pool, 7, &used), 0);
    assert_int_equal(used, MIB);
    assert_int_equal(cuda.pool_destroy(pool), 0);
    assert_int_equal(cuda.pool_get(pool, 7, &used), 1);
    software_give_async(address, NULL);
    cuda.device_synchronize();
    assert_int_equal(software_free_bytes(), 80 * 1024 * MIB);
}

static void any_number_is_a_stream_when_asked_to(void **state)
{
    void *event = NULL;
    void *numbered = NULL;
    uint64_t number = 4096;
    memcpy(&numbered, &number, sizeof number);
    (void)state;
    software_start("");
    assert_int_equal(cuda.stream_query(numbered), 400);
    software_start("streams=any,lag=told");
    cuda.event_create(&event, 2);
    assert_int_equal(cuda.event_record(event, numbered), 0);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    software.complete(number);
    assert_int_equal(cuda.event_query(event), 0);
}

/* The table of streams moves as it grows. */
static void many_streams_are_all_different(void **state)
{
    enum { COUNT = 200 };
    void *streams[COUNT];
    (void)state;
    software_start("");
    for (size_t i = 0; i < COUNT; i++) {
        streams[i] = software_stream();
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(streams[i], streams[k]);
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(cuda.stream_query(streams[i]), 0);
}

static int load_all(void **state)
{
    (void)state;
    software_load_all();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_lags_behind_work),
        cmocka_unit_test(a_lag_may_count_calls),
        cmocka_unit_test(an_event_waits_until_told),
        cmocka_unit_test(waiting_for_a_stream_waits_for_what_it_waits_for),
        cmocka_unit_test(destroyed_handles_are_known),
        cmocka_unit_test(a_pool_reuses_at_once_on_the_same_stream),
        cmocka_unit_test(a_pool_reuses_behind_an_event),
        cmocka_unit_test(a_pool_waits_rather_than_fail),
        cmocka_unit_test(a_pool_grows_in_steps_and_gives_back_whole_ones),
        cmocka_unit_test(a_current_pool_serves_requests),
        cmocka_unit_test(any_number_is_a_stream_when_asked_to),
        cmocka_unit_test(many_streams_are_all_different),
    };
    return cmocka_run_group_tests_name("streams and pools", tests, load_all, NULL);
}
