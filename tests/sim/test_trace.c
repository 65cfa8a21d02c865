/* Tests of trace.c: checking, measuring and digesting traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/sample_recording.h"
#include "tests/support/text_recording.h"
#include "traces/cut.h"

typedef struct fixture {
    frag_recording recording;
    frag_trace *trace;
} fixture;

/* A trace straight from an array of events, with one stream and two pools; nothing is checked. */
static fixture make(const frag_event *events, uint64_t count)
{
    fixture made = {0};
    frag_error error = {0};
    frag_builder *builder = frag_builder_create(&made.recording);
    const uint64_t handles[] = {0};
    frag_builder_device(builder, 0);
    frag_builder_streams(builder, handles, 1);
    frag_builder_pool(builder, (frag_pool_id){0, 1});
    assert_true(frag_builder_finish(builder, "made", &error));
    made.trace = &made.recording.traces[0];
    made.trace->events = calloc(count, sizeof *events);
    assert_non_null(made.trace->events);
    memcpy(made.trace->events, events, count * sizeof *events);
    made.trace->event_count = count;
    return made;
}

static void accepts_a_recording_in_which_everything_occurs(void **state)
{
    (void)state;
    frag_recording recording;
    frag_error error = {0};
    sample_recording(&recording);
    for (uint32_t i = 0; i < recording.trace_count; i++)
        assert_true(frag_trace_check(&recording, &recording.traces[i], &error));
    frag_recording_destroy(&recording);
}

#define EVENTS_MAX 3
typedef struct bad_trace {
    frag_event events[EVENTS_MAX];
    uint64_t bad; /* index of the event that is wrong */
} bad_trace;

static void names_the_first_event_that_is_wrong(void **state)
{
    (void)state;
    enum {
        A = FRAG_OP_ALLOC,
        F = FRAG_OP_FREE,
        C = FRAG_OP_COMPLETE,
        U = FRAG_OP_USE,
        SYNC = FRAG_OP_SYNC
    };
    enum {
        INITIAL = FRAG_EVENT_INITIAL,
        DEFERRED = FRAG_EVENT_DEFERRED,
        FAILED = FRAG_EVENT_FAILED
    };
    const uint32_t none = FRAG_SLOT_NONE;
    const bad_trace bad[] = {
        {{{FRAG_OP_COUNT, 0, 0, 0, 0}}, 0},
        {{{A, 0, 0, 0, 0}}, 0},
        {{{A, 0, 0, 0, FRAG_REQUEST_BYTES_MAX + 1}}, 0},
        {{{A, 0, 0, 0, UINT64_MAX}}, 0},
        {{{A, 0, 1, 0, 8}}, 0},
        {{{A, 0, FRAG_STREAM_ALL, 0, 8}}, 0},
        {{{A, 0, 0, none, 8}}, 0},
        {{{A, 0, 0, 100000, 8}}, 0},
        {{{A, FAILED, 0, 0, 8}}, 0},
        {{{A, FAILED | INITIAL, 0, none, 8}}, 0},
        {{{A, DEFERRED, 0, 0, 8}}, 0},
        {{{A, 0, 0, 0, 8}, {A, 0, 0, 0, 8}}, 1},
        {{{A, 0, 0, 0, 8}, {A, INITIAL, 0, 1, 8}}, 1},
        {{{F, 0, 0, 0, 0}}, 0},
        {{{F, 0, 0, none, 0}}, 0},
        {{{A, 0, 0, 0, 8}, {F, 0, 0, 0, 0}, {F, 0, 0, 0, 0}}, 2},
        {{{A, 0, 0, 0, 8}, {F, DEFERRED, 0, 0, 0}, {F, 0, 0, 0, 0}}, 2},
        {{{A, 0, 0, 0, 8}, {F, DEFERRED, 0, 0, 0}, {A, 0, 0, 0, 8}}, 2},
        {{{A, 0, 0, 0, 8}, {F, DEFERRED, 0, 0, 0}, {U, 0, 0, 0, 0}}, 2},
        {{{A, INITIAL, 0, 0, 8}, {F, INITIAL, 0, 0, 0}}, 1},
        {{{A, 0, 0, 0, 8}, {F, DEFERRED | INITIAL, 0, 0, 0}}, 1},
        {{{A, 0, 0, 0, 8}, {C, 0, 0, 0, 0}}, 1},
        {{{A, 0, 0, 0, 8}, {F, 0, 0, 0, 0}, {C, 0, 0, 0, 0}}, 2},
        {{{U, 0, 0, 0, 0}}, 0},
        {{{SYNC, 0, 1, 0, 0}}, 0},
        {{{SYNC, 0, 0, 1, 0}}, 0},
        {{{A, FRAG_EVENT_PLACED | FAILED, 0, none, 8}}, 0},
        {{{A, FRAG_EVENT_PLACED | INITIAL, 0, 0, 8}}, 0},
        {{{A, 0, 0, 0, 8}, {F, FRAG_EVENT_PLACED, 0, 0, 0}}, 1},
        {{{FRAG_OP_LIMIT, FRAG_EVENT_RATIO, 0, 0, 1000000001}}, 0},
        {{{FRAG_OP_LIMIT, FRAG_EVENT_RATIO, 0, 0, UINT64_C(0x000fffffffffffff)}},
         0}, /* < 2^-1022 */
        {{{FRAG_OP_LIMIT, FRAG_EVENT_RATIO, 0, 0, UINT64_C(0x3fe0000000000000)}}, 0}, /* 0.5 */
        {{{FRAG_OP_LIMIT, FRAG_EVENT_RATIO, 0, 0, UINT64_C(0x3ff0000000000001)}}, 0}, /* > 1 */
        {{{FRAG_OP_LIMIT, FRAG_EVENT_RATIO, 0, 0, UINT64_C(0x7ff8000000000000)}},
         0}, /* no number */
        {{{FRAG_OP_LIMIT, FRAG_EVENT_RATIO, 0, 0, UINT64_C(0xbfe0000000000001)}}, 0}, /* < 0 */
        {{{FRAG_OP_EMPTY_CACHE, 0, 0, 2, 0}}, 0},
        {{{FRAG_OP_POOL_BEGIN, 0, 0, 2, 0}}, 0},
        {{{FRAG_OP_POOL_END, 0, FRAG_STREAM_ALL, 1, 0}}, 0},
        {{{FRAG_OP_MARK, 0, 0, 1000, 0}}, 0},
        {{{FRAG_OP_MARK, FRAG_EVENT_BEGIN | FRAG_EVENT_END, 0, 0, 0}}, 0},
        {{{FRAG_OP_CONFIG, 0, 0, 1000, 0}}, 0},
        {{{FRAG_OP_SEGMENT_FREE, INITIAL, 0, 0, 8}}, 0},
        {{{FRAG_OP_SEGMENT_ALLOC, 0, 0, 0, UINT64_MAX}}, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture made = make(bad[i].events, EVENTS_MAX);
        frag_error error = {0};
        char start[32];
        made.trace->event_count = bad[i].bad + 1;
        if (frag_trace_check(&made.recording, made.trace, &error))
            fail_msg("case %zu was accepted", i);
        snprintf(start, sizeof start, "event %llu of device 0 (", (unsigned long long)bad[i].bad);
        assert_int_equal(strncmp(error.sentence, start, strlen(start)), 0);
        made.trace->event_count = bad[i].bad;
        assert_true(frag_trace_check(&made.recording, made.trace, NULL));
        frag_recording_destroy(&made.recording);
    }
}

/* As a reader has them: some events at a time, and at first without the strings that marks name. */
static void events_that_came_in_pieces_are_accepted_alike(void **state)
{
    (void)state;
    for (uint32_t step = 1; step < 40; step += 3)
        for (uint32_t is_early = 0; is_early < 2; is_early++) {
            frag_recording recording;
            frag_error error = {0};
            sample_recording(&recording);
            frag_trace *trace = &recording.traces[1];
            const frag_trace_stats stats = trace->stats;
            const uint32_t slot_count = trace->slot_count;
            const uint32_t strings = recording.strings.count;
            frag_trace_scan *scan = frag_trace_scan_create();
            recording.strings.count = is_early == 1 ? 1 : strings;
            for (uint64_t i = step; i < trace->event_count; i += step)
                frag_trace_scan_to(scan, &recording, trace, i);
            recording.strings.count = strings;
            trace->slot_count = 0;
            memset(&trace->stats, 0xff, sizeof trace->stats);
            assert_true(frag_trace_accept(&recording, trace, scan, &error));
            assert_memory_equal(&trace->stats, &stats, sizeof stats);
            assert_int_equal(trace->slot_count, slot_count);
            frag_trace_scan_destroy(scan);
            frag_recording_destroy(&recording);
        }
}

/* Allocs and frees are looked at many at a time; what is wrong with one is found all the same. */
static void one_wrong_event_among_many_is_named(void **state)
{
    (void)state;
    enum { COUNT = 2000, SLOTS = 500 };
    static const frag_event wrong[] = {
        {.op = FRAG_OP_ALLOC, .slot = 1, .bytes = 7}, /* in use */
        {.op = FRAG_OP_FREE, .slot = 0},              /* free already */
        {.op = FRAG_OP_FREE, .slot = SLOTS},          /* never used */
        {.op = FRAG_OP_ALLOC, .slot = SLOTS},         /* no bytes */
        {.op = FRAG_OP_ALLOC, .slot = SLOTS, .bytes = (uint64_t)1 << 56},
        {.op = FRAG_OP_ALLOC, .slot = SLOTS, .bytes = UINT64_MAX},
        {.op = FRAG_OP_ALLOC, .slot = SLOTS, .bytes = 1, .stream = 1},
        {.op = FRAG_OP_ALLOC, .slot = SLOTS, .bytes = 1, .stream = 2},
        {.op = FRAG_OP_ALLOC, .slot = 70000, .bytes = 1},
        {.op = FRAG_OP_ALLOC, .slot = FRAG_SLOT_NONE, .bytes = 1},
    };
    static frag_event events[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        events[i] = i < SLOTS ? (frag_event){.op = FRAG_OP_ALLOC, .slot = i, .bytes = 1 + i}
                              : (frag_event){.op = i % 2 == 0 ? FRAG_OP_FREE : FRAG_OP_ALLOC,
                                             .bytes = 1 + i % 9 * (uint64_t)(i % 2)};
    for (uint32_t at = SLOTS + 1; at < COUNT; at += 171)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            frag_event right = events[at];
            frag_error error = {0};
            char named[32];
            events[at] = wrong[i];
            if (wrong[i].op == FRAG_OP_FREE && wrong[i].slot == 0 && at % 2 == 0)
                events[at].slot = SLOTS;
            fixture made = make(events, COUNT);
            snprintf(named, sizeof named, "event %u of device 0 ", at);
            assert_false(frag_trace_check(&made.recording, made.trace, &error));
            if (strstr(error.sentence, named) == NULL)
                fail_msg("%zu at %u: %s", i, at, error.sentence);
            frag_recording_destroy(&made.recording);
            events[at] = right;
        }
    frag_error error = {0};
    fixture made = make(events, COUNT);
    assert_true(frag_trace_check(&made.recording, made.trace, &error));
    frag_recording_destroy(&made.recording);
}

/* Requests that failed may be of any size, and any number of them. */
static void failed_requests_are_counted_up_to_the_most(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    frag_event events[COUNT];
    frag_error error = {0};
    for (uint32_t i = 0; i < COUNT; i++)
        events[i] = (frag_event){.op = FRAG_OP_ALLOC,
                                 .flags = FRAG_EVENT_FAILED,
                                 .slot = FRAG_SLOT_NONE,
                                 .bytes = FRAG_REQUEST_BYTES_MAX};
    fixture made = make(events, COUNT);
    assert_true(frag_trace_check(&made.recording, made.trace, &error));
    frag_trace_measure(made.trace);
    assert_int_equal(made.trace->stats.failed_count, COUNT);
    assert_int_equal(made.trace->stats.requested_bytes_total, INT64_MAX);
    assert_int_equal(made.trace->stats.peak_requested_bytes, 0);
    frag_recording_destroy(&made.recording);
}

/* 2^62 bytes in all are allowed, one more is not. */
static void the_sum_of_all_requests_has_a_bound(void **state)
{
    (void)state;
    enum { COUNT = 66 };
    frag_event events[2 * COUNT];
    frag_error error = {0};
    uint64_t left = (uint64_t)1 << 62;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t bytes = left < FRAG_REQUEST_BYTES_MAX ? left : FRAG_REQUEST_BYTES_MAX;
        events[2 * i] = (frag_event){.op = FRAG_OP_ALLOC, .bytes = bytes > 0 ? bytes : 1};
        events[2 * i + 1] = (frag_event){.op = FRAG_OP_FREE};
        left -= bytes;
    }
    fixture made = make(events, 2 * COUNT - 2);
    assert_true(frag_trace_check(&made.recording, made.trace, &error));
    frag_recording_destroy(&made.recording);
    made = make(events, 2 * COUNT);
    assert_false(frag_trace_check(&made.recording, made.trace, &error));
    assert_non_null(strstr(error.sentence, "the sum of all requests"));
    frag_recording_destroy(&made.recording);
}

static void a_deferred_free_may_stay_without_complete(void **state)
{
    (void)state;
    const frag_event events[] = {{FRAG_OP_ALLOC, 0, 0, 0, 8},
                                 {FRAG_OP_FREE, FRAG_EVENT_DEFERRED, 0, 0, 0}};
    fixture made = make(events, 2);
    assert_true(frag_trace_check(&made.recording, made.trace, NULL));
    frag_recording_destroy(&made.recording);
}

static void refuses_columns_that_point_beyond_their_tables(void **state)
{
    (void)state;
    frag_recording recording;
    frag_error error = {0};
    sample_recording(&recording);
    frag_trace *trace = &recording.traces[0];
    uint32_t *const columns[] = {trace->sites, trace->pools, trace->notes};
    const uint32_t counts[] = {recording.site_count, trace->pool_count, recording.strings.count};
    for (size_t i = 0; i < 3; i++) {
        uint32_t kept = columns[i][5];
        columns[i][5] = counts[i] - 1;
        assert_true(frag_trace_check(&recording, trace, &error) || i == 1);
        columns[i][5] = counts[i];
        assert_false(frag_trace_check(&recording, trace, &error));
        assert_int_equal(strncmp(error.sentence, "event 5 of device 0", 19), 0);
        columns[i][5] = kept;
    }
    /* The last as well as the first. */
    uint32_t *const names[] = {&recording.frames[0].file,
                               &recording.frames[0].name,
                               &recording.frames[recording.frame_count - 1].file,
                               &recording.frames[recording.frame_count - 1].name,
                               &recording.metadata[0][0],
                               &recording.metadata[recording.metadata_count - 1][1],
                               &recording.site_frames[0],
                               &recording.site_frames[recording.site_frame_count - 1]};
    assert_true(recording.frame_count > 1 && recording.site_frame_count > 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t kept = *names[i];
        *names[i] = i < 6 ? recording.strings.count : recording.frame_count;
        assert_false(frag_trace_check(&recording, trace, &error));
        *names[i] = kept;
    }
    uint64_t *const halves[] = {&trace->pool_ids[0].high, &trace->pool_ids[0].low};
    for (size_t i = 0; i < 2; i++) {
        *halves[i] = 77;
        assert_false(frag_trace_check(&recording, trace, &error));
        assert_non_null(strstr(error.sentence, "is not the default pool 0:0"));
        *halves[i] = 0;
    }
    recording.sites[1].count = UINT32_MAX;
    assert_false(frag_trace_check(&recording, trace, &error));
    recording.sites[1].count = 0;
    assert_true(frag_trace_check(&recording, trace, &error));
    frag_recording_destroy(&recording);
}

/* In tables of two to four the one at `to` becomes what stands at `from`. */
static void refuses_streams_and_pools_that_come_twice(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 4; count++)
        for (uint32_t from = 0; from < count; from++)
            for (uint32_t to = 1; to < count; to++) {
                frag_recording recording = {0};
                frag_error error = {0};
                frag_builder *builder = frag_builder_create(&recording);
                const uint64_t handles[] = {0, 7, 9, 8};
                frag_builder_device(builder, 0);
                frag_builder_streams(builder, handles, count);
                for (uint32_t i = 1; i < count; i++)
                    frag_builder_pool(builder, (frag_pool_id){i % 2, i});
                assert_true(frag_builder_finish(builder, "made", &error));
                frag_trace *trace = &recording.traces[0];
                trace->stream_handles[to] = trace->stream_handles[from];
                assert_int_equal(frag_trace_check(&recording, trace, &error), from == to);
                if (from != to)
                    assert_non_null(strstr(error.sentence, "of device 0 is in the table twice"));
                trace->stream_handles[to] = handles[to];
                trace->pool_ids[to] = trace->pool_ids[from];
                assert_int_equal(frag_trace_check(&recording, trace, &error), from == to);
                if (from != to)
                    assert_non_null(strstr(error.sentence, "of device 0 is in the table twice"));
                frag_recording_destroy(&recording);
            }
}

static void refuses_blocks_and_slots_that_cannot_be(void **state)
{
    (void)state;
    const frag_event events[] = {{FRAG_OP_ALLOC, FRAG_EVENT_INITIAL, 0, 0, 512},
                                 {FRAG_OP_ALLOC, 0, 0, 1, 512}};
    fixture made = make(events, 2);
    frag_error error = {0};
    uint64_t *bytes = calloc(2, sizeof *bytes);
    assert_non_null(bytes);
    made.trace->block_bytes = bytes;
    bytes[0] = 1024;
    assert_true(frag_trace_check(&made.recording, made.trace, &error));
    bytes[1] = 1024;
    assert_false(frag_trace_check(&made.recording, made.trace, &error));
    bytes[1] = 0;
    for (uint32_t slots = 0; slots < 4; slots++) {
        made.trace->slot_count = slots;
        assert_int_equal(frag_trace_check(&made.recording, made.trace, &error),
                         slots == 0 || slots >= 2);
    }
    frag_recording_destroy(&made.recording);
}

static void the_last_number_that_is_allowed_is_accepted(void **state)
{
    (void)state;
    enum { SLOT_LAST = 65536 }; /* of the first event; later ones may go further */
    static const struct {
        frag_event event;
        bool is_sound;
    } cases[] = {
        {{.op = FRAG_OP_ALLOC, .slot = SLOT_LAST, .bytes = 8}, true},
        {{.op = FRAG_OP_ALLOC, .slot = SLOT_LAST + 1, .bytes = 8}, false},
        {{.op = FRAG_OP_ALLOC, .slot = 0, .bytes = FRAG_REQUEST_BYTES_MAX}, true},
        {{.op = FRAG_OP_SEGMENT_ALLOC, .bytes = FRAG_REQUEST_BYTES_MAX}, true},
        {{.op = FRAG_OP_SEGMENT_ALLOC, .bytes = FRAG_REQUEST_BYTES_MAX + 1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_error error = {0};
        fixture made = make(&cases[i].event, 1);
        if (frag_trace_check(&made.recording, made.trace, &error) != cases[i].is_sound)
            fail_msg("case %zu: %s", i, error.sentence);
        frag_recording_destroy(&made.recording);
    }
}

static void a_trace_without_a_table_of_streams_has_the_default_stream_alone(void **state)
{
    (void)state;
    for (uint32_t stream = 0; stream < 4; stream++) {
        const frag_event event = {.op = FRAG_OP_ALLOC, .bytes = 8, .stream = (uint16_t)stream};
        frag_error error = {0};
        fixture made = make(&event, 1);
        uint32_t streams = made.trace->stream_count;
        made.trace->stream_count = 0;
        assert_int_equal(frag_trace_check(&made.recording, made.trace, &error), stream == 0);
        made.trace->stream_count = streams;
        frag_recording_destroy(&made.recording);
    }
}

static void a_device_that_is_not_there_has_no_trace(void **state)
{
    (void)state;
    frag_recording recording;
    frag_test_recording("device 1\nalloc 0 512\n", &recording);
    assert_ptr_equal(frag_recording_device_trace(&recording, 1), &recording.traces[0]);
    assert_null(frag_recording_device_trace(&recording, 0));
    assert_null(frag_recording_device_trace(&recording, 2));
    frag_recording_destroy(&recording);
}

/* "a" begins twice, one inside the other; "b" is a point. */
static void a_mark_ends_where_its_phase_ends(void **state)
{
    (void)state;
    frag_recording recording;
    frag_cut_range range;
    frag_error error = {0};
    frag_test_recording("mark \"a\" begin\nalloc 0 512\nmark \"a\" begin\nmark \"a\" end\n"
                        "free 0\nmark \"a\" end\nmark \"b\"\nalloc 1 512\n",
                        &recording);
    const frag_trace *trace = &recording.traces[0];
    assert_true(frag_cut_find_marks(&recording, trace, "a", NULL, &range, &error));
    assert_int_equal(range.first, 0);
    assert_int_equal(range.end, 6);
    assert_true(frag_cut_find_marks(&recording, trace, "a", "b", &range, &error));
    assert_int_equal(range.end, 7);
    assert_false(frag_cut_find_marks(&recording, trace, "aa", NULL, &range, &error));
    assert_non_null(strstr(error.sentence, "did you mean 'a'"));
    frag_recording_destroy(&recording);
    frag_test_recording("alloc 0 512\n", &recording);
    assert_false(frag_cut_find_marks(&recording, recording.traces, "a", NULL, &range, &error));
    assert_non_null(strstr(error.sentence, "has no marks"));
    frag_recording_destroy(&recording);
}

static void measures_by_hand_counted_numbers(void **state)
{
    (void)state;
    const frag_event events[] = {
        {FRAG_OP_SEGMENT_ALLOC, FRAG_EVENT_INITIAL, 0, 0, 1000},
        {FRAG_OP_ALLOC, FRAG_EVENT_INITIAL, 0, 0, 100},
        {FRAG_OP_SEGMENT_MAP, 0, 0, 0, 500},
        {FRAG_OP_ALLOC, 0, 0, 1, 50},
        {FRAG_OP_FREE, FRAG_EVENT_DEFERRED, 0, 0, 0},
        {FRAG_OP_ALLOC, FRAG_EVENT_FAILED, 0, FRAG_SLOT_NONE, 5000},
        {FRAG_OP_ALLOC, 0, 0, 2, 99},
        {FRAG_OP_SEGMENT_FREE, 0, 0, 0, 1000},
        {FRAG_OP_ALLOC, 0, 0, 3, 2},
        {FRAG_OP_FREE, 0, 0, 2, 0},
    };
    fixture made = make(events, sizeof events / sizeof *events);
    frag_trace_measure(made.trace);
    const frag_trace_stats *stats = &made.trace->stats;
    assert_int_equal(made.trace->slot_count, 4);
    assert_int_equal(stats->request_count, 4);
    assert_int_equal(stats->initial_count, 1);
    assert_int_equal(stats->initial_bytes, 100);
    assert_int_equal(stats->failed_count, 1);
    assert_int_equal(stats->requested_bytes_total, 50 + 5000 + 99 + 2);
    assert_int_equal(stats->peak_requested_bytes, 151);
    assert_int_equal(stats->peak_requested_event, 8);
    assert_int_equal(stats->end_requested_bytes, 52);
    assert_int_equal(stats->live_count_max, 4);
    assert_int_equal(stats->observed_reserved_peak_bytes, 1500);
    assert_int_equal(stats->observed_reserved_end_bytes, 500);
    assert_int_equal(stats->op_counts[FRAG_OP_ALLOC], 5);
    frag_recording_destroy(&made.recording);
}

static void a_trace_starts_behind_the_state_it_finds(void **state)
{
    (void)state;
    const frag_event held = {.op = FRAG_OP_ALLOC, .flags = FRAG_EVENT_INITIAL, .bytes = 1};
    const frag_event events[] = {held, held, {.op = FRAG_OP_ALLOC, .slot = 2, .bytes = 1}};
    const uint64_t starts[] = {0, 0, 1, 2};
    for (uint64_t count = 0; count <= 3; count++) {
        fixture made = make(events, count > 0 ? count : 1);
        made.trace->event_count = count;
        assert_int_equal(frag_trace_start(made.trace), starts[count]);
        frag_recording_destroy(&made.recording);
    }
}

static void the_digest_changes_with_everything_but_call_sites(void **state)
{
    (void)state;
    frag_recording recording;
    sample_recording(&recording);
    frag_trace *trace = &recording.traces[1];
    char before[FRAG_DIGEST_TEXT_BYTES];
    memcpy(before, trace->digest, sizeof before);
    unsigned char *const parts[] = {
        (unsigned char *)&trace->device,
        &trace->events[7].flags,
        (unsigned char *)&trace->events[7].bytes + 7,
        (unsigned char *)&trace->addresses[20],
        (unsigned char *)&trace->times_ns[20],
        (unsigned char *)&trace->pools[20],
        (unsigned char *)&trace->notes[20],
        (unsigned char *)&trace->block_bytes[20],
        (unsigned char *)&trace->stream_handles[3],
        (unsigned char *)&trace->pool_ids[1].high,
        (unsigned char *)&recording.metadata[0][1],
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i] ^= 1;
        frag_trace_digest(&recording, trace);
        assert_string_not_equal(before, trace->digest);
        *parts[i] ^= 1;
    }
    frag_trace_digest(&recording, trace);
    assert_string_equal(before, trace->digest);
    free(trace->sites);
    trace->sites = NULL;
    frag_trace_digest(&recording, trace);
    assert_string_equal(before, trace->digest);
    frag_recording_destroy(&recording);
}

static void a_column_of_zeros_is_no_column(void **state)
{
    (void)state;
    const frag_event events[] = {{FRAG_OP_ALLOC, 0, 0, 0, 8}};
    fixture made = make(events, 1);
    frag_trace_digest(&made.recording, made.trace);
    char before[FRAG_DIGEST_TEXT_BYTES];
    memcpy(before, made.trace->digest, sizeof before);
    made.trace->times_ns = calloc(1, 8);
    made.trace->notes = calloc(1, 4);
    frag_trace_digest(&made.recording, made.trace);
    assert_string_equal(before, made.trace->digest);
    frag_recording_destroy(&made.recording);
}

static void every_cut_is_a_sound_trace_that_ends_alike(void **state)
{
    (void)state;
    frag_recording recording;
    frag_error error = {0};
    sample_recording(&recording);
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        const frag_trace *trace = &recording.traces[i];
        for (uint64_t first = 0; first <= trace->event_count; first++)
            for (uint64_t end = first; end <= trace->event_count; end++) {
                frag_recording piece;
                if (!frag_cut(&recording, trace, (frag_cut_range){first, end}, &piece, &error))
                    fail_msg("%llu..%llu: %s", (unsigned long long)first, (unsigned long long)end,
                             error.sentence);
                const frag_trace_stats *stats = &piece.traces[0].stats;
                if (end == trace->event_count) {
                    assert_int_equal(stats->end_requested_bytes, trace->stats.end_requested_bytes);
                    assert_int_equal(stats->observed_reserved_end_bytes,
                                     trace->stats.observed_reserved_end_bytes);
                }
                frag_recording_destroy(&piece);
            }
    }
    frag_recording piece;
    assert_false(frag_cut(&recording, recording.traces, (frag_cut_range){3, 2}, &piece, &error));
    assert_false(frag_cut(&recording, recording.traces, (frag_cut_range){0, 1000}, &piece, &error));
    frag_recording_destroy(&recording);
}

static void a_cut_of_everything_is_the_same_program(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording piece;
    frag_error error = {0};
    sample_recording(&recording);
    const frag_trace *trace = &recording.traces[1];
    assert_true(
        frag_cut(&recording, trace, (frag_cut_range){0, trace->event_count}, &piece, &error));
    assert_int_equal(piece.traces[0].event_count, trace->event_count);
    assert_memory_equal(&piece.traces[0].stats, &trace->stats, sizeof trace->stats);
    frag_recording_destroy(&piece);
    frag_recording_destroy(&recording);
}

/* In the order of their codes: a stream, a slot (l), both, a stream of what is observed, neither.
 */
static void each_op_has_a_stream_or_a_slot_or_is_observed(void **state)
{
    (void)state;
    static const char expected[] = "bbbbsl-bllllooooolll---";
    assert_int_equal(FRAG_OP_COUNT, sizeof expected - 1);
    for (uint32_t op = 0; op < FRAG_OP_COUNT; op++) {
        assert_int_equal(frag_op_has_stream(op), strchr("bso", expected[op]) != NULL);
        assert_int_equal(frag_op_has_slot(op), strchr("bl", expected[op]) != NULL);
        assert_int_equal(frag_op_is_observed(op), expected[op] == 'o');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_op_has_a_stream_or_a_slot_or_is_observed),
        cmocka_unit_test(accepts_a_recording_in_which_everything_occurs),
        cmocka_unit_test(names_the_first_event_that_is_wrong),
        cmocka_unit_test(events_that_came_in_pieces_are_accepted_alike),
        cmocka_unit_test(one_wrong_event_among_many_is_named),
        cmocka_unit_test(failed_requests_are_counted_up_to_the_most),
        cmocka_unit_test(the_sum_of_all_requests_has_a_bound),
        cmocka_unit_test(a_deferred_free_may_stay_without_complete),
        cmocka_unit_test(refuses_columns_that_point_beyond_their_tables),
        cmocka_unit_test(refuses_streams_and_pools_that_come_twice),
        cmocka_unit_test(refuses_blocks_and_slots_that_cannot_be),
        cmocka_unit_test(the_last_number_that_is_allowed_is_accepted),
        cmocka_unit_test(a_trace_without_a_table_of_streams_has_the_default_stream_alone),
        cmocka_unit_test(a_device_that_is_not_there_has_no_trace),
        cmocka_unit_test(a_mark_ends_where_its_phase_ends),
        cmocka_unit_test(measures_by_hand_counted_numbers),
        cmocka_unit_test(a_trace_starts_behind_the_state_it_finds),
        cmocka_unit_test(the_digest_changes_with_everything_but_call_sites),
        cmocka_unit_test(a_column_of_zeros_is_no_column),
        cmocka_unit_test(every_cut_is_a_sound_trace_that_ends_alike),
        cmocka_unit_test(a_cut_of_everything_is_the_same_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
