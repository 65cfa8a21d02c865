/* What the reader of snapshots makes of random histories whose beginning is lost, as a ring buffer
 * loses it, with and without the pool of each entry, and with kinds of entries left out. What was
 * changed on purpose is pinned anew:
 *
 *   test_snapshot_answers            compares with tests/data/answers/snapshots.txt.zst
 *   test_snapshot_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"

/* Of the last runs, those with private pools, only the history without pools is read: whole, and
 * without its beginning. */
enum { RUNS = 150, POOL_RUNS = 250, EVENTS_MAX = 700 };

typedef struct seen_span {
    frag_span span;
    uint64_t requested_bytes;
    bool is_waiting;
} seen_span;

/* A run: all that happened, and the memory at the end. */
typedef struct history {
    const frag_trace *trace;
    frag_note *notes;
    size_t note_count;
    size_t note_capacity;
    seen_span *spans;
    size_t span_count;
    size_t span_capacity;
    bool is_expandable;
} history;

/* What is left out of a snapshot of it. */
typedef struct loss {
    size_t first; /* note that is still there */
    uint32_t kinds;
    bool has_pools;
} loss;

static const char *const actions[FRAG_NOTE_HELD_SEGMENT] = {
    [FRAG_NOTE_ALLOC] = "alloc",
    [FRAG_NOTE_FREE_REQUESTED] = "free_requested",
    [FRAG_NOTE_FREE_COMPLETED] = "free_completed",
    [FRAG_NOTE_SEGMENT_ALLOC] = "segment_alloc",
    [FRAG_NOTE_SEGMENT_FREE] = "segment_free",
    [FRAG_NOTE_SEGMENT_MAP] = "segment_map",
    [FRAG_NOTE_SEGMENT_UNMAP] = "segment_unmap",
    [FRAG_NOTE_OOM] = "oom",
};

static bool makes_segment(frag_note_kind kind)
{
    return kind == FRAG_NOTE_SEGMENT_ALLOC || kind == FRAG_NOTE_SEGMENT_MAP;
}

/* A segment goes with the stream and pool that it came with. */
static void take_note(void *context, const frag_note *note)
{
    history *of = context;
    if (note->kind >= FRAG_NOTE_HELD_SEGMENT ||
        (of->trace->events[note->event].flags & FRAG_EVENT_INITIAL) != 0)
        return;
    of->notes = frag_grow(of->notes, &of->note_capacity, of->note_count + 1, sizeof *of->notes);
    frag_note *kept = &of->notes[of->note_count++];
    *kept = *note;
    of->is_expandable |= note->kind == FRAG_NOTE_SEGMENT_MAP;
    if (note->kind != FRAG_NOTE_SEGMENT_FREE && note->kind != FRAG_NOTE_SEGMENT_UNMAP)
        return;
    for (const frag_note *made = kept; made-- != of->notes;)
        if (makes_segment(made->kind) && made->address <= note->address &&
            note->address - made->address < made->bytes) {
            kept->stream = made->stream;
            kept->pool = made->pool;
            return;
        }
}

static void take_span(void *context, const frag_span *span, const frag_block_view *block)
{
    history *of = context;
    of->spans = frag_grow(of->spans, &of->span_capacity, of->span_count + 1, sizeof *of->spans);
    of->spans[of->span_count++] = (seen_span){*span, block != NULL ? block->requested_bytes : 0,
                                              block != NULL && block->is_waiting};
}

static void take_end(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)result;
    frag_replay_walk(replay, take_span, context);
}

/* ---- the snapshot, in JSON */

static void add_pool(frag_text *text, const frag_trace *trace, const char *key, uint32_t pool)
{
    frag_text_add(text, ",\"%s\":[%" PRIu64 ",%" PRIu64 "]", key, trace->pool_ids[pool].high,
                  trace->pool_ids[pool].low);
}

static void add_entry(frag_text *text, const history *of, const frag_note *note, bool has_pool)
{
    frag_text_add(text,
                  "{\"action\":\"%s\",\"%s\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":%" PRIu64
                  ",\"time_us\":%" PRIu64,
                  actions[note->kind], note->kind == FRAG_NOTE_OOM ? "device_free" : "addr",
                  note->address & INT64_MAX, note->bytes,
                  frag_trace_stream_handle(of->trace, note->stream), 5000000 + note->event);
    if (has_pool)
        add_pool(text, of->trace, "pool_id", note->pool);
    frag_text_add(text, "},\n");
}

static void add_segment(frag_text *text, const history *of, const frag_span *at)
{
    frag_text_add(text,
                  "{\"device\":0,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64
                  ",\"stream\":%" PRIu64 ",\"segment_type\":\"%s\",\"is_expandable\":%s",
                  at->address, at->bytes, frag_trace_stream_handle(of->trace, at->stream),
                  at->is_small_pool ? "small" : "large", at->is_growing ? "true" : "false");
    add_pool(text, of->trace, "segment_pool_id", at->pool);
    frag_text_add(text, ",\"blocks\":[\n");
}

static void add_block(frag_text *text, const seen_span *at)
{
    const char *state = at->span.kind == FRAG_SPAN_HOLE ? "inactive"
                        : at->is_waiting                ? "active_pending_free"
                                                        : "active_allocated";
    frag_text_add(text,
                  "{\"address\":%" PRIu64 ",\"size\":%" PRIu64 ",\"requested_size\":%" PRIu64
                  ",\"state\":\"%s\"},\n",
                  at->span.address, at->span.bytes, at->requested_bytes, state);
}

/* A list ends without a comma. */
static void end_list(frag_text *text, const char *end)
{
    if (text->bytes[text->length - 2] == ',')
        text->length -= 2;
    frag_text_add(text, "%s", end);
}

static void write_json(frag_text *text, const history *of, const loss *lost)
{
    frag_text_add(text, "{\"segments\":[\n");
    for (size_t i = 0; i < of->span_count; i++) {
        if (of->spans[i].span.kind == FRAG_SPAN_SEGMENT)
            add_segment(text, of, &of->spans[i].span);
        else
            add_block(text, &of->spans[i]);
        if (i + 1 == of->span_count || of->spans[i + 1].span.kind == FRAG_SPAN_SEGMENT)
            end_list(text, "]},\n");
    }
    end_list(text, "],\"device_traces\":[[\n");
    for (size_t i = lost->first; i < of->note_count; i++)
        if ((lost->kinds >> of->notes[i].kind & 1) == 0)
            add_entry(text, of, &of->notes[i], lost->has_pools);
    end_list(text, "]],\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"\",");
    frag_text_add(text, "\"expandable_segments\":%s}}", of->is_expandable ? "true" : "false");
}

/* ---- what is made of it */

static void tell_findings(frag_text *out, const frag_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        frag_text_add(out, ", %s %" PRIu64, findings->items[i].kind, findings->items[i].count);
}

static void tell_recording(frag_text *out, const frag_recording *recording)
{
    const frag_trace *trace = &recording->traces[0];
    uint64_t sum = 0;
    pinned_add_text(&sum, trace->digest);
    for (uint32_t i = 0; i < recording->metadata_count; i++)
        for (int j = 0; j < 2; j++)
            pinned_add_text(&sum, frag_strings_get(&recording->strings, recording->metadata[i][j]));
    frag_text_add(
        out, "%" PRIu64 " events, %" PRIu64 " blocks before, %" PRIu32 " pools, %08" PRIx32,
        trace->event_count, trace->stats.initial_count, trace->pool_count, (uint32_t)(sum >> 32));
}

static void tell_snapshot(frag_text *out, const history *of, const loss *lost)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    write_json(&text, of, lost);
    frag_text_add(out, "  from %zu, without %x%s: ", lost->first, lost->kinds,
                  lost->has_pools ? ", pools" : "");
    if (frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording, &findings,
                       &error)) {
        tell_recording(out, &recording);
        tell_findings(out, &findings);
        frag_recording_destroy(&recording);
    } else {
        frag_text_add(out, "error %d in line %" PRIu64, (int)error.code, error.line);
    }
    frag_text_add(out, "\n");
    frag_text_destroy(&text);
}

static void tell_pools(frag_text *out, const history *of)
{
    tell_snapshot(out, of, &(loss){0});
    tell_snapshot(out, of, &(loss){.first = of->note_count / 5});
}

static void tell_history(frag_text *out, const history *of, uint64_t seed)
{
    static const uint32_t kinds[] = {1u << FRAG_NOTE_FREE_REQUESTED, 1u << FRAG_NOTE_FREE_COMPLETED,
                                     1u << FRAG_NOTE_ALLOC,
                                     1u << FRAG_NOTE_SEGMENT_ALLOC | 1u << FRAG_NOTE_SEGMENT_MAP,
                                     1u << FRAG_NOTE_SEGMENT_FREE | 1u << FRAG_NOTE_SEGMENT_UNMAP};
    const size_t firsts[] = {0, 1, of->note_count / 4, of->note_count / 2,
                             of->note_count - of->note_count / 8};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        loss lost = {.first = firsts[i]};
        tell_snapshot(out, of, &lost);
        lost.has_pools = true;
        tell_snapshot(out, of, &lost);
        lost.kinds = kinds[(seed + i) % (sizeof kinds / sizeof kinds[0])];
        lost.has_pools = i % 2 == 0;
        tell_snapshot(out, of, &lost);
    }
}

/* Drivers reserve ranges from above: what is made later lies below. */
static frag_device *open_descending(void *context, const frag_trace *trace,
                                    const frag_sim_device_options *rule, frag_error *error)
{
    (void)context;
    (void)trace;
    (void)error;
    frag_sim_device_options options = *rule;
    options.address_rule = FRAG_ADDRESS_BUMP;
    options.base_address = (uint64_t)1 << 46;
    options.is_descending = true;
    return frag_sim_device_create(&options);
}

static void tell_run(frag_text *out, const random_trace *trace, uint64_t seed, bool has_pools)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_policy_spec spec;
    frag_error error = {0};
    random_trace_write(trace, &text);
    frag_test_load_well(text.bytes, &recording, &findings);
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    policy_case what = policy_case_draw(frag_policy_find("pytorch"), &recording.traces[0], &bits);
    if (seed % 2 == 0) { /* hardly ever drawn */
        free(what.policy);
        what.policy = frag_copy_text("pytorch:expandable_segments=true");
    }
    history of = {.trace = &recording.traces[0]};
    const frag_device_opener descending = {.open = open_descending};
    frag_device_spec device = {.capacity_bytes = what.capacity_bytes,
                               .opener = seed % 4 < 2 ? NULL : &descending};
    frag_replay_options options = {.is_oom_skipped = true,
                                   .stop_after = FRAG_UNLIMITED,
                                   .on_note = take_note,
                                   .on_note_context = &of};
    if (frag_policy_spec_parse(what.policy, &spec, &error)) {
        if (frag_run_look(&(frag_run_setup){&recording, of.trace, spec.ops, spec.values, &device},
                          &options, take_end, &of, &error)) {
            frag_text_add(out, "trace %" PRIu64 ", %s: %zu notes\n", seed, what.policy,
                          of.note_count);
            if (has_pools)
                tell_pools(out, &of);
            else
                tell_history(out, &of, seed);
        }
        frag_policy_spec_destroy(&spec);
    }
    free(of.notes);
    free(of.spans);
    free(what.policy);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static bool has_private_pools(const random_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].op == FRAG_OP_POOL_BEGIN)
            return true;
    return false;
}

static void tell_all(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 5001; count < RUNS + POOL_RUNS; seed++) {
        bool is_late = count >= RUNS;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX || (is_late && !has_private_pools(&trace)))
            continue;
        tell_run(out, &trace, seed, is_late);
        count++;
    }
    random_trace_destroy(&trace);
}

static const pinned_lines pinned = {"tests/data/answers/snapshots.txt.zst", tell_all,
                                    "answers-golden"};

static void every_reading_is_as_before(void **state)
{
    (void)state;
    assert_int_equal(pinned_lines_compare(&pinned), 0);
}

int main(int argc, char **argv)
{
    if (pinned_lines_write(&pinned, argc, argv))
        return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_reading_is_as_before)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
