/* Tests of builder.c: building a recording event by event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/sample_recording.h"

static void add_alloc(frag_builder *builder, uint64_t stream)
{
    frag_build_event event = {
        .op = FRAG_OP_ALLOC, .slot = frag_builder_slot_take(builder), .bytes = 8, .stream = stream};
    frag_builder_add(builder, &event);
}

static void keeps_only_columns_that_say_something(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    for (uint32_t i = 0; i < 5000; i++) {
        frag_build_event event = {
            .op = FRAG_OP_ALLOC, .slot = i, .bytes = 8, .time_ns = i == 3000 ? 7 : 0};
        frag_builder_add(builder, &event);
    }
    assert_true(frag_builder_finish(builder, "x", &error));
    const frag_trace *trace = &recording.traces[0];
    assert_null(trace->addresses);
    assert_null(trace->sites);
    assert_null(trace->pools);
    assert_null(trace->notes);
    assert_null(trace->block_bytes);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(trace->times_ns[i], i == 3000 ? 7 : 0);
    assert_int_equal(trace->stats.time_first_ns, 7);
    frag_recording_destroy(&recording);
}

static void sorts_streams_unless_their_order_is_fixed(void **state)
{
    (void)state;
    for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
        frag_recording recording = {0};
        frag_error error = {0};
        const uint64_t used[] = {90, 7, UINT64_MAX, 7, 8};
        const uint64_t sorted[] = {7, 8, 90, UINT64_MAX};
        const uint64_t fixed[] = {UINT64_MAX, 90, 8, 7};
        frag_builder *builder = frag_builder_create(&recording);
        if (is_fixed)
            frag_builder_streams(builder, fixed, 4);
        for (size_t i = 0; i < 5; i++)
            add_alloc(builder, used[i]);
        frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_SYNC, .is_stream_all = true});
        frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_MARK, .stream = 90});
        assert_true(frag_builder_finish(builder, "x", &error));
        const frag_trace *trace = &recording.traces[0];
        assert_int_equal(trace->stream_count, 4);
        assert_memory_equal(trace->stream_handles, is_fixed ? fixed : sorted, sizeof sorted);
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(trace->stream_handles[trace->events[i].stream], used[i]);
        assert_int_equal(trace->events[5].stream, FRAG_STREAM_ALL);
        assert_int_equal(trace->events[6].stream, 0);
        frag_recording_destroy(&recording);
    }
}

static void refuses_more_streams_than_an_event_can_name(void **state)
{
    (void)state;
    for (uint64_t count = 65535; count <= 65536; count++) {
        frag_recording recording = {0};
        frag_error error = {0};
        frag_builder *builder = frag_builder_create(&recording);
        for (uint64_t i = 0; i < count; i++)
            add_alloc(builder, i * 3);
        assert_int_equal(frag_builder_finish(builder, "x", &error), count == 65535);
        if (count == 65535)
            frag_recording_destroy(&recording);
        else
            assert_int_equal(error.code, FRAG_E_INPUT);
        assert_null(recording.traces);
    }
}

static void interns_tables(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    assert_int_equal(frag_builder_string(builder, "", 0), 0);
    uint32_t frames[1000];
    for (uint32_t i = 0; i < 1000; i++)
        frames[i] = frag_builder_frame(builder, (frag_frame){0, 0, i});
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(frag_builder_frame(builder, (frag_frame){0, 0, i}), frames[i]);
    assert_int_equal(frag_builder_site(builder, NULL, 0), 0);
    for (uint32_t i = 1; i <= 1000; i++)
        assert_int_equal(frag_builder_site(builder, frames, i), i);
    for (uint32_t i = 1; i <= 1000; i++)
        assert_int_equal(frag_builder_site(builder, frames, i), i);
    assert_int_equal(frag_builder_pool(builder, (frag_pool_id){0, 0}), 0);
    assert_int_equal(frag_builder_pool(builder, (frag_pool_id){1, 0}), 1);
    assert_int_equal(frag_builder_pool(builder, (frag_pool_id){0, 1}), 2);
    assert_int_equal(frag_builder_pool(builder, (frag_pool_id){1, 0}), 1);
    frag_builder_device(builder, 5);
    assert_int_equal(frag_builder_pool(builder, (frag_pool_id){0, 1}), 1);
    frag_builder_metadata(builder, "key", "value");
    assert_true(frag_builder_finish(builder, "x", &error));
    assert_int_equal(recording.trace_count, 2);
    assert_int_equal(recording.site_count, 1001);
    assert_string_equal(frag_recording_get(&recording, "key"), "value");
    assert_null(frag_recording_get(&recording, "value"));
    frag_recording_destroy(&recording);
}

static void hands_out_slots_again_and_never_twice(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_builder *builder = frag_builder_create(&recording);
    assert_int_equal(frag_builder_slot_take(builder), 0);
    assert_int_equal(frag_builder_slot_take(builder), 1);
    assert_int_equal(frag_builder_slot_take(builder), 2);
    frag_builder_slot_give(builder, 1);
    assert_int_equal(frag_builder_slot_take(builder), 1);
    assert_int_equal(frag_builder_slot_take(builder), 3);
    frag_builder_device(builder, 1);
    assert_int_equal(frag_builder_slot_take(builder), 0);
    frag_builder_abandon(builder);
    assert_null(recording.traces);
}

static void takes_more_or_fewer_events_than_expected(void **state)
{
    (void)state;
    for (uint64_t expected = 0; expected <= 8192; expected += 2048) {
        frag_recording recording = {0};
        frag_error error = {0};
        frag_builder *builder = frag_builder_create(&recording);
        if (expected <= 4096)
            frag_builder_expect(builder, expected);
        else
            frag_builder_reuse(builder, frag_alloc(expected - 4096, sizeof(frag_event)),
                               expected - 4096);
        for (uint32_t i = 0; i < 3000; i++)
            frag_builder_add(builder,
                             &(frag_build_event){
                                 .op = FRAG_OP_ALLOC, .slot = i, .bytes = i + 1, .address = i % 2});
        assert_true(frag_builder_finish(builder, "x", &error));
        assert_int_equal(recording.traces[0].event_count, 3000);
        for (uint32_t i = 0; i < 3000; i++) {
            assert_int_equal(recording.traces[0].events[i].bytes, i + 1);
            assert_int_equal(recording.traces[0].addresses[i], i % 2);
        }
        frag_recording_destroy(&recording);
    }
}

static void leaves_nothing_behind_on_failure(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&recording);
    frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_FREE, .slot = 3});
    assert_false(frag_builder_finish(builder, "x", &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_null(recording.name);
    assert_null(recording.strings.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_only_columns_that_say_something),
        cmocka_unit_test(sorts_streams_unless_their_order_is_fixed),
        cmocka_unit_test(refuses_more_streams_than_an_event_can_name),
        cmocka_unit_test(interns_tables),
        cmocka_unit_test(hands_out_slots_again_and_never_twice),
        cmocka_unit_test(takes_more_or_fewer_events_than_expected),
        cmocka_unit_test(leaves_nothing_behind_on_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
