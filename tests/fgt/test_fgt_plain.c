/* Tests of plain events in .fgt files, which are made and checked many at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/sample_recording.h"
#include "traces/fgt/fgt.h"

typedef struct mixture {
    uint32_t plain_max;    /* plain events between two others, at most */
    uint32_t stream_count; /* a power of two */
    uint32_t live_max;
    bool has_free_bytes;
} mixture;

static uint32_t next_random(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static void add_other_event(frag_builder *builder, uint32_t which, uint32_t live)
{
    static const frag_build_event others[] = {
        {.op = FRAG_OP_MARK},
        {.op = FRAG_OP_SYNC, .is_stream_all = true},
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = 2097152, .address = 0x7f0000000000},
        {.op = FRAG_OP_SEGMENT_FREE, .bytes = 2097152, .address = 0x7f0000000000},
        {.op = FRAG_OP_ALLOC, .slot = FRAG_SLOT_NONE, .bytes = 99, .flags = FRAG_EVENT_FAILED},
        {.op = FRAG_OP_LIMIT, .bytes = 1},
    };
    if (which < 6) {
        frag_builder_add(builder, &others[which]);
        return;
    }
    frag_build_event event = {.op = FRAG_OP_USE, .slot = live, .stream = 1};
    frag_builder_add(builder, &event);
    event = (frag_build_event){.op = FRAG_OP_FREE, .slot = live, .flags = FRAG_EVENT_DEFERRED};
    frag_builder_add(builder, &event);
    event = (frag_build_event){.op = FRAG_OP_COMPLETE, .slot = live};
    frag_builder_add(builder, &event);
    frag_builder_slot_give(builder, live);
}

/* Runs of plain events of all lengths, between others of all kinds. */
static void build_mixture(frag_recording *recording, const mixture *mix, uint32_t event_count)
{
    *recording = (frag_recording){0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(recording);
    uint32_t *live = frag_alloc(mix->live_max, sizeof *live);
    uint32_t live_count = 0;
    uint32_t plain_left = 0;
    uint64_t random = 7;
    for (uint32_t i = 0; i < event_count; i++) {
        bool is_other = plain_left == 0 && live_count > 0;
        bool is_free =
            live_count == mix->live_max || (live_count > 0 && next_random(&random, 5) < 2);
        frag_build_event event = {.stream = next_random(&random, mix->stream_count)};
        if (is_other) {
            plain_left = next_random(&random, mix->plain_max + 1);
            uint32_t which = next_random(&random, 7);
            add_other_event(builder, which, live[live_count - 1]);
            live_count -= which == 6 ? 1 : 0;
        } else if (is_free) {
            uint32_t at = next_random(&random, live_count);
            event.op = FRAG_OP_FREE;
            event.slot = live[at];
            event.bytes = mix->has_free_bytes && next_random(&random, 400) == 0 ? 12 : 0;
            frag_builder_add(builder, &event);
            frag_builder_slot_give(builder, live[at]);
            live[at] = live[--live_count];
        } else {
            event.op = FRAG_OP_ALLOC;
            event.slot = frag_builder_slot_take(builder);
            event.bytes = 1 + next_random(&random, 5000);
            frag_builder_add(builder, &event);
            live[live_count++] = event.slot;
        }
        plain_left -= plain_left > 0 ? 1 : 0;
    }
    free(live);
    if (!frag_builder_finish(builder, "sample", &error))
        fail_msg("%s", error.sentence);
}

static void keeps_plain_events_among_all_others(void **state)
{
    (void)state;
    static const mixture mixtures[] = {
        {0, 1, 10, false},        {3, 2, 500, false},       {15, 4, 500, true},
        {16, 1, 100, false},      {40, 16, 2000, true},     {700, 512, 3000, false},
        {100, 256, 90000, false}, {100000, 8, 3000, false}, {100000, 1, 90000, true},
    };
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++) {
        frag_recording recording;
        frag_recording again;
        frag_recording lean;
        frag_error error = {0};
        build_mixture(&recording, &mixtures[i], mixtures[i].live_max > 5000 ? 400000 : 70000);
        size_t bytes = 0;
        char *file = sample_written(&recording, frag_fgt_write, &bytes);
        assert_true(sample_load(file, bytes, true, &again, &error));
        if (!same_recording(&recording, &again))
            fail_msg("mixture %zu came back as another", i);
        assert_true(sample_load(file, bytes, false, &lean, &error));
        const frag_trace *trace = &lean.traces[0];
        assert_memory_equal(trace->events, recording.traces[0].events,
                            trace->event_count * sizeof *trace->events);
        assert_memory_equal(&trace->stats, &recording.traces[0].stats, sizeof trace->stats);
        free(file);
        frag_recording_destroy(&recording);
        frag_recording_destroy(&again);
        frag_recording_destroy(&lean);
    }
}

/* Events are made and looked at together; the one that is wrong is named all the same. */
static void assert_names_wrong_events(const mixture *mix)
{
    frag_recording recording;
    build_mixture(&recording, mix, 3000);
    uint16_t stream_count = (uint16_t)recording.traces[0].stream_count;
    frag_event *events = recording.traces[0].events;
    uint32_t seen = 0;
    uint64_t count = recording.traces[0].event_count;
    /* The last ones concern slots that nothing else asks for. */
    for (uint64_t at = 1000; at < count; at += (count - at > 150) ? 97 : 1) {
        const frag_event right = events[at];
        if (right.op > FRAG_OP_FREE || right.flags != 0)
            continue;
        bool is_alloc = right.op == FRAG_OP_ALLOC;
        const frag_event wrong[] = {
            {right.op, 0, stream_count, right.slot, right.bytes},
            {right.op, 0, 0, is_alloc ? 0 : 70000, right.bytes},
            {right.op, 0, 0, FRAG_SLOT_NONE, right.bytes},
            {right.op, 0, 0, is_alloc ? right.slot : 499, 0},
            {FRAG_OP_ALLOC, 0, 0, 2500, 0},
            {FRAG_OP_ALLOC, 0, 0, 2500, (uint64_t)1 << 56},
            {FRAG_OP_ALLOC, 0, 0, 2500, UINT64_MAX},
        };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            frag_recording again;
            frag_error error = {0};
            frag_error expected = {0};
            events[at] = wrong[i];
            if (frag_trace_check(&recording, &recording.traces[0], &expected))
                continue;
            size_t bytes = 0;
            char *file = sample_written(&recording, frag_fgt_write, &bytes);
            assert_false(sample_load(file, bytes, false, &again, &error));
            assert_string_equal(error.sentence, expected.sentence);
            free(file);
            seen++;
        }
        events[at] = right;
    }
    assert_true(seen > 60);
    frag_recording_destroy(&recording);
}

static void names_the_plain_event_that_is_wrong(void **state)
{
    (void)state;
    static const mixture mixtures[] = {
        {100, 4, 500, false}, {100, 512, 500, false}, {100000, 512, 500, false}};
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
        assert_names_wrong_events(&mixtures[i]);
}
/* The last of one run behind an event that makes room for slots. */
static void huge_requests_are_taken_and_refused_as_anywhere(void **state)
{
    (void)state;
    const uint64_t huge = (uint64_t)1 << 53, most = FRAG_REQUEST_BYTES_MAX;
    const uint64_t sizes[] = {huge - 1, huge, most, most + 1, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        frag_recording recording = {0}, again;
        frag_error error = {0}, expected = {0};
        frag_builder *builder = frag_builder_create(&recording);
        for (uint32_t slot = 0; slot < 40; slot++) {
            frag_build_event event = {.slot = frag_builder_slot_take(builder), .bytes = 1};
            event.flags = slot == 0 ? FRAG_EVENT_INITIAL : 0;
            frag_builder_add(builder, &event);
        }
        assert_true(frag_builder_finish(builder, "sample", &error));
        frag_trace *trace = &recording.traces[0];
        trace->events[39].bytes = sizes[i];
        bool ok = frag_trace_accept(&recording, trace, NULL, &expected);
        assert_int_equal(ok, i < 3);
        size_t bytes = 0;
        char *file = sample_written(&recording, frag_fgt_write, &bytes);
        assert_int_equal(sample_load(file, bytes, false, &again, &error), ok);
        if (ok) {
            assert_memory_equal(&again.traces[0].stats, &trace->stats, sizeof trace->stats);
            frag_recording_destroy(&again);
        } else {
            assert_string_equal(error.sentence, expected.sentence);
        }
        free(file);
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_plain_events_among_all_others),
        cmocka_unit_test(names_the_plain_event_that_is_wrong),
        cmocka_unit_test(huge_requests_are_taken_and_refused_as_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
