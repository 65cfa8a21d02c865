/* Tests of snapshot_write.c: runs written as snapshots and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "sim/run.h"
#include "tests/support/text_recording.h"
#include "traces/load.h"
#include "traces/torch/snapshot_write.h"

typedef struct written {
    char *bytes;
    size_t count;
} written;

static void find_policy(const char *text, frag_policy_spec *spec)
{
    frag_error error = {0};
    if (!frag_policy_spec_parse(text, spec, &error))
        fail_msg("%s", error.sentence);
}

/* Every trace of a recording, run with a policy and written. */
static written write_runs(const frag_recording *recording, const char *policy, uint64_t capacity,
                          uint64_t stop_after)
{
    written snapshot = {0};
    frag_error error = {0};
    frag_policy_spec spec;
    find_policy(policy, &spec);
    FILE *stream = open_memstream(&snapshot.bytes, &snapshot.count);
    frag_snapshot_writer *writer = frag_snapshot_writer_create(recording, stream);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        frag_device_spec device = {.capacity_bytes = capacity};
        frag_replay_options options = {.stop_after = stop_after,
                                       .on_note = frag_snapshot_writer_note,
                                       .on_note_context = writer,
                                       .is_start_noted = true};
        frag_snapshot_writer_begin(writer, &recording->traces[i]);
        if (!frag_run_look(
                &(frag_run_setup){recording, &recording->traces[i], spec.ops, spec.values, &device},
                &options, frag_snapshot_writer_look, writer, &error))
            fail_msg("%s", error.sentence);
    }
    frag_snapshot_about about = {.conf = "",
                                 .max_split_bytes = FRAG_UNLIMITED,
                                 .tool = "fraglab",
                                 .policy = policy,
                                 .trace = recording->name};
    frag_snapshot_writer_finish(writer, &about);
    fclose(stream);
    frag_policy_spec_destroy(&spec);
    return snapshot;
}

/* Where the text ends that stands first from there on. */
static size_t behind_text(const written *snapshot, size_t from, const char *text)
{
    size_t length = strlen(text);
    for (size_t at = from; at + length <= snapshot->count; at++)
        if (memcmp(snapshot->bytes + at, text, length) == 0)
            return at + length;
    fail_msg("the snapshot does not hold %s", text);
    return 0;
}

static void divisions_are_written_of_every_power_of_two(void **state)
{
    (void)state;
    frag_recording recording;
    frag_test_recording("alloc 0 512\n", &recording);
    written snapshot = write_runs(&recording, "pytorch", FRAG_UNLIMITED, FRAG_UNLIMITED);
    size_t at = behind_text(&snapshot, 0, "roundup_power2_divisions");
    for (unsigned mib = 1; mib <= 1 << 15; mib *= 2) {
        char key[16];
        snprintf(key, sizeof key, "%u", mib);
        at = behind_text(&snapshot, at, key);
    }
    free(snapshot.bytes);
    frag_recording_destroy(&recording);
}

static void read_back(const written *snapshot, frag_recording *recording)
{
    frag_input *input = frag_input_from_memory(snapshot->bytes, snapshot->count, "snapshot");
    frag_load_options options = {
        .format = FRAG_FORMAT_SNAPSHOT, .with_sites = true, .with_columns = true};
    frag_findings findings = {0};
    frag_error error = {0};
    if (!frag_recording_load_input(input, &options, recording, &findings, &error))
        fail_msg("%s", error.sentence);
    assert_int_equal(frag_findings_inconsistencies(&findings), 0);
    frag_input_close(input);
}

/* Written, read again, and given back; free with frag_recording_destroy. */
static void round_trip(const char *text, const char *policy, uint64_t capacity, uint64_t stop_after,
                       frag_recording *back)
{
    frag_recording recording = {0};
    frag_test_recording(text, &recording);
    written snapshot = write_runs(&recording, policy, capacity, stop_after);
    read_back(&snapshot, back);
    free(snapshot.bytes);
    frag_recording_destroy(&recording);
}

static frag_replay_result result_of(const frag_recording *recording, const char *policy,
                                    uint64_t capacity)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_run_result result;
    frag_device_spec device = {.capacity_bytes = capacity};
    frag_run_options options = {.check_every = 1};
    find_policy(policy, &spec);
    if (!frag_run(
            &(frag_run_setup){recording, &recording->traces[0], spec.ops, spec.values, &device},
            &options, &result, &error))
        fail_msg("%s", error.sentence);
    frag_policy_spec_destroy(&spec);
    return result.replay;
}

static const frag_event *event_of(const frag_trace *trace, frag_op op, uint64_t nth)
{
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == op && nth-- == 0)
            return &trace->events[i];
    fail_msg("the trace has no such %s", frag_op_name(op));
    return NULL;
}

static void a_run_read_back_replays_to_the_same_peak(void **state)
{
    (void)state;
    static const char *const policies[] = {"pytorch",  "pytorch:expandable_segments=true",
                                           "best-fit", "tlsf",
                                           "buddy",    "size-class",
                                           "direct",   "gmlake:fragLimit=4MiB"};
    static const char text[] = "alloc 0 1000\nalloc 1 3145728\nalloc 2 30000000 stream=5\n"
                               "free 1\nalloc 3 2000000\nalloc 4 5000000\nfree 2\n"
                               "empty_cache\nalloc 5 1000\nalloc 6 7000000 stream=5\n"
                               /* Two blocks that can be put side by side for a third. */
                               "alloc 7 20971520\nalloc 8 22020096\nfree 7\nfree 8\n"
                               "alloc 9 41943040\n";
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        frag_recording recording = {0};
        frag_recording back = {0};
        frag_test_recording(text, &recording);
        round_trip(text, policies[i], FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
        frag_replay_result first = result_of(&recording, policies[i], FRAG_UNLIMITED);
        frag_replay_result second = result_of(&back, policies[i], FRAG_UNLIMITED);
        assert_int_equal(first.requests, second.requests);
        assert_int_equal(first.peak.requested_bytes, second.peak.requested_bytes);
        assert_int_equal(first.peak.allocated_bytes, second.peak.allocated_bytes);
        assert_int_equal(first.peak.reserved_bytes, second.peak.reserved_bytes);
        assert_int_equal(first.final.reserved_bytes, second.final.reserved_bytes);
        /* What the snapshot says was reserved is what the run reserved. */
        assert_int_equal(back.traces[0].stats.observed_reserved_peak_bytes,
                         first.peak.reserved_bytes);
        assert_int_equal(back.traces[0].stats.observed_reserved_end_bytes,
                         first.final.reserved_bytes);
        frag_recording_destroy(&recording);
        frag_recording_destroy(&back);
    }
}

static void says_stacks_streams_pools_times_and_notes(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip("frame \"forward\" \"model.py\" 7\nframe \"main\" \"train.py\" 3\nsite 0 1\n"
               "device 2\n"
               "alloc 0 1000 site=1 stream=9 time=5000000 note=\"weights\"\n"
               "alloc 1 1000 pool=4\n"
               "free 0 time=7000000\n",
               "pytorch", FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
    const frag_trace *trace = &back.traces[0];
    assert_int_equal(back.trace_count, 1);
    assert_int_equal(trace->device, 2);
    const frag_event *alloc = event_of(trace, FRAG_OP_ALLOC, 0);
    uint64_t at = (uint64_t)(alloc - trace->events);
    assert_int_equal(trace->stream_handles[alloc->stream], 9);
    assert_int_equal(trace->times_ns[at], 5000000);
    assert_string_equal(frag_strings_get(&back.strings, trace->notes[at]), "weights");
    const frag_site *site = &back.sites[trace->sites[at]];
    assert_int_equal(site->count, 2);
    const frag_frame *frame = &back.frames[back.site_frames[site->first]];
    assert_string_equal(frag_strings_get(&back.strings, frame->name), "forward");
    assert_string_equal(frag_strings_get(&back.strings, frame->file), "model.py");
    assert_int_equal(frame->line, 7);
    const frag_event *pooled = event_of(trace, FRAG_OP_ALLOC, 1);
    at = (uint64_t)(pooled - trace->events);
    assert_int_equal(trace->pool_ids[trace->pools[at]].low, 4);
    assert_int_equal(trace->times_ns[at], 5000000); /* none of its own: that of the one before */
    const frag_event *freed = event_of(trace, FRAG_OP_FREE, 0);
    assert_int_equal(trace->times_ns[freed - trace->events], 7000000);
    assert_int_equal(trace->sites[freed - trace->events], 0);
    frag_recording_destroy(&back);
}

static void marks_are_points_or_the_ends_of_a_phase(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip("mark \"step\" begin\nalloc 0 1000 time=5000000\nmark \"loss\"\n"
               "free 0 time=7000000\nmark \"step\" end\n",
               "pytorch", FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
    static const uint32_t ends[] = {FRAG_EVENT_BEGIN, 0, FRAG_EVENT_END};
    static const char *const names[] = {"step", "loss", "step"};
    for (uint64_t i = 0; i < 3; i++) {
        const frag_event *mark = event_of(&back.traces[0], FRAG_OP_MARK, i);
        assert_int_equal(mark->flags & (FRAG_EVENT_BEGIN | FRAG_EVENT_END), ends[i]);
        assert_string_equal(frag_strings_get(&back.strings, mark->slot), names[i]);
    }
    frag_recording_destroy(&back);
}

/* ASan would see what is left. */
static void a_snapshot_can_be_given_up(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_test_recording("alloc 0 1000\n", &recording);
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    frag_snapshot_writer_abandon(frag_snapshot_writer_create(&recording, stream));
    frag_snapshot_writer_abandon(NULL);
    fclose(stream);
    free(bytes);
    frag_recording_destroy(&recording);
}

static void a_free_that_waits_still_waits_in_the_snapshot(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip("alloc 0 1000\nalloc 1 2000\nfree 0 deferred\nalloc 2 512\n", "pytorch",
               FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
    const frag_event *freed = event_of(&back.traces[0], FRAG_OP_FREE, 0);
    assert_true((freed->flags & FRAG_EVENT_DEFERRED) != 0);
    assert_int_equal(back.traces[0].stats.op_counts[FRAG_OP_COMPLETE], 0);
    frag_recording_destroy(&back);
}

static void an_oom_is_the_last_that_is_told(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip("alloc 0 33554432\nalloc 1 50000000\nalloc 2 1000\n", "best-fit", 64 * FRAG_MIB,
               FRAG_UNLIMITED, &back);
    const frag_trace *trace = &back.traces[0];
    const frag_event *oom = event_of(trace, FRAG_OP_OOM, 0);
    assert_int_equal(trace->stats.op_counts[FRAG_OP_ALLOC], 2);
    assert_int_equal(trace->stats.failed_count, 1);
    assert_true(oom->bytes >= 50000000);
    assert_int_equal(trace->addresses[oom - trace->events], 32 * FRAG_MIB);
    frag_recording_destroy(&back);
}

static void ends_where_it_is_told_to(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip("alloc 0 1000\nalloc 1 2000\nfree 0\nfree 1\n", "tlsf", FRAG_UNLIMITED, 3, &back);
    assert_int_equal(back.traces[0].stats.end_requested_bytes, 2000);
    assert_int_equal(back.traces[0].stats.op_counts[FRAG_OP_FREE], 1);
    frag_recording_destroy(&back);
}

/* One segment of before the trace with a block that lives and one that waits. */
static const char begun_in_use[] =
    "frame \"before\" \"main.py\" 1\nsite 0\n"
    "segment_alloc 2097152 addr=0x10000000 initial stream=3\n"
    "alloc 0 1000 initial addr=0x10000000 block=1024 stream=3 site=1\n"
    "alloc 1 500 initial addr=0x10000400 block=512 stream=3\n"
    "free 1 initial deferred stream=3\n"
    "alloc 2 4096\ncomplete 1\nfree 0\nempty_cache\n";

static void memory_from_before_the_trace_has_no_history(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip(begun_in_use, "pytorch", FRAG_UNLIMITED, 5, &back);
    const frag_trace *trace = &back.traces[0];
    assert_int_equal(trace->stats.initial_count, 2);
    const frag_event *held = event_of(trace, FRAG_OP_SEGMENT_ALLOC, 0);
    assert_int_equal(held->flags, FRAG_EVENT_INITIAL);
    assert_int_equal(trace->addresses[held - trace->events], 0x10000000);
    const frag_event *block = event_of(trace, FRAG_OP_ALLOC, 0);
    assert_int_equal(block->bytes, 1000);
    assert_int_not_equal(trace->sites[block - trace->events], 0);
    const frag_event *waiting = event_of(trace, FRAG_OP_FREE, 0);
    assert_int_equal(waiting->flags, FRAG_EVENT_INITIAL | FRAG_EVENT_DEFERRED);
    frag_recording_destroy(&back);
}

static void a_segment_from_before_the_trace_goes_back_to_its_own_stream(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip(begun_in_use, "pytorch", FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
    const frag_trace *trace = &back.traces[0];
    const frag_event *freed = event_of(trace, FRAG_OP_SEGMENT_FREE, 0);
    assert_int_equal(trace->addresses[freed - trace->events], 0x10000000);
    assert_int_equal(trace->stream_handles[freed->stream], 3);
    frag_recording_destroy(&back);
}

/* Stacks may share frames; each is read back whole. */
static void stacks_that_share_frames_are_read_back(void **state)
{
    (void)state;
    static const char *const stacks[][4] = {
        {"leaf", "middle", "root", NULL}, {"other", "middle", "root", NULL},
        {"middle", "leaf", NULL, NULL},   {"leaf", "middle", "root", NULL},
        {"root", "root", "other", NULL},
    };
    frag_recording back = {0};
    round_trip("frame \"leaf\" \"a.py\" 1\nframe \"middle\" \"b.py\" 2\nframe \"root\" \"c.py\" 3\n"
               "frame \"other\" \"d.py\" 4\nsite 0 1 2\nsite 3 1 2\nsite 1 0\nsite 2 2 3\n"
               "alloc 0 1000 site=1\nalloc 1 2000 site=2\nalloc 2 3000 site=3\n"
               "alloc 3 4000 site=1\nalloc 4 5000 site=4\n",
               "best-fit", FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
    const frag_trace *trace = &back.traces[0];
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        const frag_event *event = event_of(trace, FRAG_OP_ALLOC, i);
        const frag_site *site = &back.sites[trace->sites[event - trace->events]];
        uint32_t count = 0;
        for (; stacks[i][count] != NULL; count++) {
            assert_true(count < site->count);
            const frag_frame *frame = &back.frames[back.site_frames[site->first + count]];
            assert_string_equal(frag_strings_get(&back.strings, frame->name), stacks[i][count]);
        }
        assert_int_equal(site->count, count);
    }
    frag_recording_destroy(&back);
}

/* The last of them repeats all stacks a hundred times over. */
static void stacks_are_written_once(void **state)
{
    (void)state;
    frag_text text = {0};
    size_t sizes[2] = {0};
    for (unsigned pass = 0; pass < 2; pass++) {
        unsigned count = pass == 0 ? 1 : 1000;
        frag_text_clear(&text);
        for (unsigned i = 0; i < 50; i++)
            frag_text_add(&text, "frame \"a_function_with_a_long_name_%u\" \"model.py\" %u\n", i,
                          i);
        frag_text_add(&text, "site");
        for (unsigned i = 0; i < 50; i++)
            frag_text_add(&text, " %u", i);
        for (unsigned i = 0; i < count; i++)
            frag_text_add(&text, "\nalloc 0 1000 site=1\nfree 0 site=1");
        frag_text_add(&text, "\n");
        frag_recording recording = {0};
        frag_test_recording(text.bytes, &recording);
        written snapshot = write_runs(&recording, "best-fit", FRAG_UNLIMITED, FRAG_UNLIMITED);
        sizes[pass] = snapshot.count;
        free(snapshot.bytes);
        frag_recording_destroy(&recording);
    }
    frag_text_destroy(&text);
    /* Three entries a pair, each well below the size of one stack. */
    assert_true(sizes[0] > 2000);
    assert_true(sizes[1] - sizes[0] < 999 * 3 * 100);
}

static void devices_without_a_trace_have_an_empty_history(void **state)
{
    (void)state;
    frag_recording back = {0};
    round_trip("device 1\nalloc 0 1000\ndevice 3\nalloc 0 2000\nalloc 1 3000\n", "pytorch",
               FRAG_UNLIMITED, FRAG_UNLIMITED, &back);
    assert_int_equal(back.trace_count, 2);
    assert_int_equal(back.traces[0].device, 1);
    assert_int_equal(back.traces[1].device, 3);
    assert_int_equal(back.traces[1].stats.end_requested_bytes, 5000);
    frag_recording_destroy(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_are_written_of_every_power_of_two),
        cmocka_unit_test(a_run_read_back_replays_to_the_same_peak),
        cmocka_unit_test(says_stacks_streams_pools_times_and_notes),
        cmocka_unit_test(marks_are_points_or_the_ends_of_a_phase),
        cmocka_unit_test(a_snapshot_can_be_given_up),
        cmocka_unit_test(a_free_that_waits_still_waits_in_the_snapshot),
        cmocka_unit_test(an_oom_is_the_last_that_is_told),
        cmocka_unit_test(ends_where_it_is_told_to),
        cmocka_unit_test(memory_from_before_the_trace_has_no_history),
        cmocka_unit_test(a_segment_from_before_the_trace_goes_back_to_its_own_stream),
        cmocka_unit_test(stacks_that_share_frames_are_read_back),
        cmocka_unit_test(stacks_are_written_once),
        cmocka_unit_test(devices_without_a_trace_have_an_empty_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
