/* What the reader of snapshots makes of random histories in the many forms that releases and tools
 * wrote: keys in another order or left out, call stacks, categories, annotations, blocks with a
 * history, several devices, memory of the host, entries that are cut anywhere. What was changed on
 * purpose is pinned anew:
 *
 *   test_form_answers            compares with tests/data/answers/forms.txt.zst
 *   test_form_answers --write    prints what that file should hold (make answers-golden);
 *                                with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/made_snapshot.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"
#include "traces/fgt/fgt.h"
#include "traces/window.h"
#include "traces/write.h"

enum { RUNS = 900, FORMS = 3, EVENTS_MAX = 260, GROUP = 6 };

/* How it is written. */
typedef struct form {
    uint64_t bits;
    size_t first, end; /* notes that are there */
    uint32_t without;  /* kinds of notes, one bit each */
    bool has_frames, has_times, has_pools, has_categories, has_metadata, has_annotations;
    bool has_history, has_sizes, has_settings, has_host, is_old, is_reordered, is_twice, is_late;
    bool has_segments;
} form;

static uint64_t draw(form *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

static bool one_in(form *of, uint64_t count)
{
    return draw(of, count) == 0;
}

static form draw_form(const made_snapshot *of, uint64_t seed)
{
    form made = {.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    bool *const flags[] = {&made.has_frames,     &made.has_times,    &made.has_pools,
                           &made.has_categories, &made.has_metadata, &made.has_annotations,
                           &made.has_history,    &made.has_sizes,    &made.has_settings,
                           &made.has_segments};
    bool *const rare[] = {&made.has_host, &made.is_old, &made.is_reordered, &made.is_twice,
                          &made.is_late};
    for (int i = 0; i < 4; i++)
        (void)xorshift_next(&made.bits);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        *flags[i] = !one_in(&made, 3);
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        *rare[i] = one_in(&made, 4);
    made.first = one_in(&made, 2) ? draw(&made, of->note_count / 2 + 1) : 0;
    made.end = of->note_count - (one_in(&made, 6) ? draw(&made, of->note_count / 4 + 1) : 0);
    made.without = one_in(&made, 4) ? 1u << draw(&made, FRAG_NOTE_HELD_SEGMENT) : 0;
    return made;
}

/* ---- the text */

static void add_frames(frag_text *text, const char *key, uint64_t number)
{
    static const char *const files[] = {"train.py", "/lib/torch/nn/modules/linear.py", "??",
                                        "/lib/torch/optim/adamw.py", "model \\u00e9.py"};
    frag_text_add(text, ",\"%s\":[", key);
    for (uint64_t i = 0; i < number % 4; i++)
        frag_text_add(text,
                      "%s{\"name\":\"f%" PRIu64 "\",\"filename\":\"%s\",\"line\":%" PRIu64 "}",
                      i > 0 ? "," : "", (number + i) % 7, files[(number + i) % 5],
                      (number + i) % 5 == 2 ? 0 : 10 + number % 6);
    frag_text_add(text, "]");
}

static void add_entry_rest(frag_text *text, form *as, const frag_note *note)
{
    static const char *const categories[] = {"parameter", "gradient", "activation", "unknown", ""};
    if (as->has_times)
        frag_text_add(text, ",\"time_us\":%" PRIu64,
                      5000000 + note->event * 3 - (as->is_late && one_in(as, 9) ? 7 : 0));
    if (as->has_frames)
        add_frames(text, "frames", note->event);
    if (as->has_frames && one_in(as, 5))
        add_frames(text, one_in(as, 2) ? "cpp_frames" : "forward_frames", note->event + 1);
    if (as->has_categories && one_in(as, 2))
        frag_text_add(text, ",\"category\":\"%s\"", categories[draw(as, 5)]);
    if (as->has_metadata && one_in(as, 3))
        frag_text_add(text, ",\"user_metadata\":\"%s\"", one_in(as, 2) ? "layer 1" : "");
    if (as->has_metadata && one_in(as, 3))
        frag_text_add(text, ",\"compile_context\":\"%" PRIu64 "/0\"", draw(as, 4));
    if (one_in(as, 40))
        frag_text_add(text, ",\"unknown\":[1,{\"a\":null}]");
}

static void add_pool(frag_text *text, const made_snapshot *of, const char *key, uint32_t pool)
{
    frag_text_add(text, ",\"%s\":[%" PRIu64 ",%" PRIu64 "]", key, of->trace->pool_ids[pool].high,
                  of->trace->pool_ids[pool].low);
}

static void add_entry(frag_text *text, const made_snapshot *of, form *as, const frag_note *note,
                      uint64_t moved)
{
    const char *key = note->kind == FRAG_NOTE_OOM && !as->is_old ? "device_free" : "addr";
    uint64_t address = (note->address + moved) & INT64_MAX;
    uint64_t stream = frag_trace_stream_handle(of->trace, note->stream);
    if (as->is_reordered)
        frag_text_add(text,
                      "{\"size\":%" PRIu64 ",\"stream\":%" PRIu64 ",\"%s\":%" PRIu64
                      ",\"action\":\"%s\"",
                      note->bytes, stream, key, address, made_snapshot_actions[note->kind]);
    else
        frag_text_add(
            text, "{\"action\":\"%s\",\"%s\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":%" PRIu64,
            made_snapshot_actions[note->kind], key, address, note->bytes, stream);
    if (as->has_pools)
        add_pool(text, of, "pool_id", note->pool);
    add_entry_rest(text, as, note);
    frag_text_add(text, "},\n");
    if (one_in(as, 60))
        frag_text_add(text,
                      "{\"action\":\"snapshot\",\"addr\":0,\"size\":%" PRIu64
                      ",\"stream\":0,\"time_us\":%" PRIu64 "},\n",
                      draw(as, 1 << 20), 5000000 + note->event * 3);
}

static void add_block(frag_text *text, form *as, const made_span *at)
{
    const char *waiting = as->is_old ? "active_awaiting_free" : "active_pending_free";
    const char *state = at->span.kind == FRAG_SPAN_HOLE ? "inactive"
                        : at->is_waiting                ? waiting
                                                        : "active_allocated";
    frag_text_add(text, "{\"size\":%" PRIu64 ",\"state\":\"%s\"", at->span.bytes, state);
    if (!as->is_old)
        frag_text_add(text, ",\"address\":%" PRIu64, at->span.address);
    if (as->has_sizes)
        frag_text_add(text, ",\"requested_size\":%" PRIu64, at->requested_bytes);
    if (as->has_frames && !as->is_old)
        add_frames(text, "frames", at->span.bytes / 512);
    if (as->has_history && as->is_old && at->span.kind == FRAG_SPAN_BLOCK) {
        frag_text_add(text, ",\"history\":[{\"addr\":%" PRIu64 ",\"real_size\":%" PRIu64,
                      at->span.address, at->requested_bytes);
        add_frames(text, "frames", at->span.bytes / 512);
        frag_text_add(text, "}]");
    }
    frag_text_add(text, "},\n");
}

static void add_segment(frag_text *text, const made_snapshot *of, form *as, const frag_span *at,
                        int device)
{
    frag_text_add(text,
                  "{\"device\":%d,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64
                  ",\"stream\":%" PRIu64 ",\"segment_type\":\"%s\"",
                  device, at->address, at->bytes, frag_trace_stream_handle(of->trace, at->stream),
                  at->is_small_pool ? "small" : "large");
    if (!as->is_old)
        frag_text_add(text, ",\"is_expandable\":%s", at->is_growing ? "true" : "false");
    if (as->has_pools)
        add_pool(text, of, "segment_pool_id", at->pool);
    frag_text_add(text, ",\"blocks\":[\n");
}

static void end_list(frag_text *text, const char *end)
{
    if (text->bytes[text->length - 2] == ',')
        text->length -= 2;
    frag_text_add(text, "%s", end);
}

static void add_segments(frag_text *text, const made_snapshot *of, form *as)
{
    frag_text_add(text, "\"segments\":[\n");
    for (size_t i = 0; i < of->span_count && as->has_segments; i++) {
        if (of->spans[i].span.kind == FRAG_SPAN_SEGMENT)
            add_segment(text, of, as, &of->spans[i].span, 0);
        else
            add_block(text, as, &of->spans[i]);
        if (i + 1 == of->span_count || of->spans[i + 1].span.kind == FRAG_SPAN_SEGMENT)
            end_list(text, "]},\n");
    }
    end_list(text, "]");
}

static void add_entries(frag_text *text, const made_snapshot *of, form *as, uint64_t moved)
{
    frag_text_add(text, "[\n");
    for (size_t i = as->first; i < as->end; i++)
        if ((as->without >> of->notes[i].kind & 1) == 0)
            add_entry(text, of, as, &of->notes[i], moved);
    end_list(text, "]");
}

static void add_annotations(frag_text *text, const made_snapshot *of, form *as)
{
    uint64_t last = of->note_count > 0 ? of->notes[of->note_count - 1].event : 0;
    frag_text_add(text, ",\"external_annotations\":[\n");
    for (uint64_t at = 0; at < last; at += 1 + last / 6) {
        frag_text_add(text, "{\"name\":\"step %" PRIu64 "\",\"stage\":\"%s\"", at % 3,
                      one_in(as, 2) ? "START" : "END");
        frag_text_add(text, ",\"device\":%d,\"time_us\":%" PRIu64 "},\n",
                      as->is_twice && one_in(as, 3), 5000000 + at * 3 - 1);
    }
    end_list(text, "]");
}

static void add_settings(frag_text *text, const made_snapshot *of, form *as)
{
    static const char *const confs[] = {"", "max_split_size_mb:24", "expandable_segments:True",
                                        "garbage_collection_threshold:0.6", "nonsense"};
    frag_text_add(text, ",\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"%s\"",
                  confs[draw(as, 5)]);
    frag_text_add(text, ",\"expandable_segments\":%s", of->is_expandable ? "true" : "false");
    if (one_in(as, 3))
        frag_text_add(text, ",\"max_split_size\":%d", one_in(as, 2) ? -1 : 24 << 20);
    if (one_in(as, 3))
        frag_text_add(text, ",\"roundup_power2_divisions\":{\"1\":0,\"64\":%" PRIu64 "}",
                      draw(as, 5));
    if (one_in(as, 3))
        frag_text_add(text, ",\"garbage_collection_threshold\":0.%" PRIu64, draw(as, 10));
    frag_text_add(text, "}");
}

static void write_form(frag_text *text, const made_snapshot *of, form *as)
{
    frag_text_add(text, "{");
    if (as->is_reordered && as->has_settings) {
        add_settings(text, of, as);
        text->bytes[1] = ' ';
        frag_text_add(text, ",");
    }
    if (!as->is_reordered) {
        add_segments(text, of, as);
        frag_text_add(text, ",");
    }
    frag_text_add(text, "\"device_traces\":[");
    add_entries(text, of, as, 0);
    if (as->is_twice) {
        frag_text_add(text, ",");
        add_entries(text, of, as, (uint64_t)1 << 44);
    }
    frag_text_add(text, "]");
    if (as->is_reordered) {
        frag_text_add(text, ",");
        add_segments(text, of, as);
    } else if (as->has_settings) {
        add_settings(text, of, as);
    }
    if (as->has_annotations)
        add_annotations(text, of, as);
    if (as->has_host)
        frag_text_add(text,
                      ",\"host_segments\":[{\"address\":4096,\"total_size\":%" PRIu64
                      "}],\"host_traces\":[]",
                      draw(as, 1 << 30));
    frag_text_add(text, "}");
}

/* ---- what is read */

static void tell_recording(frag_text *out, const frag_recording *recording,
                           const frag_findings *findings)
{
    uint64_t sum = 0;
    pinned_add_recording(&sum, recording);
    for (uint32_t i = 0; i < recording->trace_count; i++)
        frag_text_add(out, "%" PRIu64 " events, %" PRIu64 " at most, %" PRIu64 " held; ",
                      recording->traces[i].event_count,
                      recording->traces[i].stats.peak_requested_bytes,
                      recording->traces[i].stats.observed_reserved_peak_bytes);
    frag_text_add(out, "%016" PRIx64, sum);
    for (uint32_t i = 0; i < findings->count; i++)
        frag_text_add(out, ", %s %" PRIu64 " %" PRIu32 " %" PRIu64 " %s", findings->items[i].kind,
                      findings->items[i].count, findings->items[i].device, findings->items[i].event,
                      findings->items[i].first);
    frag_text_add(out, "\n");
}

/* The other form of it, of small sections, and a part that is read back: how many events its reader
 * left out. */
static void tell_part(frag_text *out, const frag_recording *recording, form *as)
{
    frag_error error = {0};
    frag_recording part;
    frag_findings findings = {0};
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    const frag_trace *trace = &recording->traces[draw(as, recording->trace_count)];
    frag_fgt_sizes sizes = {.chunk_events = 1 + (uint32_t)draw(as, 40)};
    sizes.opening_events = draw(as, 40);
    sizes.opening_ratio = (uint32_t)draw(as, 3);
    frag_window window = {.kind = FRAG_WINDOW_EVENTS,
                          .has_device = true,
                          .device = trace->device,
                          .first = draw(as, trace->event_count + 1)};
    window.end = window.first + draw(as, trace->event_count - window.first + 1);
    frag_load_options options = {.with_sites = !one_in(as, 4)};
    options.with_columns = !one_in(as, 4);
    options.window = one_in(as, 5) ? NULL : &window;
    assert_non_null(stream);
    assert_true(frag_fgt_write_sized(recording, sizes, stream, &error));
    assert_int_equal(fclose(stream), 0);
    frag_input *input = frag_input_from_memory(bytes, count, "part");
    if (frag_recording_load_input(input, &options, &part, &findings, &error)) {
        tell_recording(out, &part, &findings);
        frag_text_add(out, "%d, %" PRIu64 " left out\n", window.is_found, window.left_out);
        frag_recording_destroy(&part);
    } else {
        frag_text_add(out, "%d: %s\n", (int)error.code, error.sentence);
    }
    frag_input_close(input);
    free(bytes);
}

/* Its text, too, which is written and not read here. */
static void tell_text(frag_text *out, const frag_recording *recording)
{
    frag_error error = {0};
    char *bytes = NULL;
    size_t count = 0;
    uint64_t sum = 0;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    assert_true(frag_recording_write(recording, "text", stream, &error));
    assert_int_equal(fclose(stream), 0);
    pinned_add_text(&sum, bytes);
    frag_text_add(out, "%zu bytes, %016" PRIx64 "\n", count, sum);
    free(bytes);
}

static void tell_form(frag_text *out, const made_snapshot *of, uint64_t seed)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    form as = draw_form(of, seed);
    write_form(&text, of, &as);
    size_t count = one_in(&as, 12) ? text.length - draw(&as, text.length / 2) : text.length;
    if (frag_test_load(text.bytes, count, FRAG_FORMAT_SNAPSHOT, &recording, &findings, &error)) {
        tell_recording(out, &recording, &findings);
        if (one_in(&as, 6))
            tell_part(out, &recording, &as);
        if (one_in(&as, 4))
            tell_text(out, &recording);
        frag_recording_destroy(&recording);
    } else {
        frag_text_add(out, "%d, line %" PRIu64 ", %" PRIu64 ": %s\n", (int)error.code, error.line,
                      (uint64_t)error.column, error.sentence);
    }
    frag_text_destroy(&text);
}

static void tell_run(frag_text *out, const random_trace *trace, uint64_t seed)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_policy_spec spec;
    frag_error error = {0};
    made_snapshot of = {0};
    random_trace_write(trace, &text);
    frag_test_load_well(text.bytes, &recording, &findings);
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    policy_case what = policy_case_draw(frag_policy_find("pytorch"), &recording.traces[0], &bits);
    const char *policy = seed % 3 == 0 ? "pytorch:expandable_segments=true" : what.policy;
    frag_device_spec device = {.capacity_bytes = what.capacity_bytes};
    if (frag_policy_spec_parse(policy, &spec, &error)) {
        const frag_run_setup setup = {&recording, &recording.traces[0], spec.ops, spec.values,
                                      &device};
        if (made_snapshot_make(&of, &setup, &error) && of.note_count > 0)
            for (uint64_t i = 0; i < FORMS; i++)
                tell_form(out, &of, seed * FORMS + i);
        frag_policy_spec_destroy(&spec);
    }
    made_snapshot_destroy(&of);
    free(what.policy);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

/* A history of so many entries: round numbers are those that it was cut to. */
static void tell_entries(frag_text *out, uint32_t count)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    frag_text_add(&text, "{\"segments\":[],\"device_traces\":[[\n");
    for (uint32_t i = 0; i < count; i++)
        frag_text_add(&text,
                      "{\"action\":\"%s\",\"addr\":139637976727552,\"size\":%" PRIu32
                      ",\"stream\":0,\"time_us\":%" PRIu32 "}%s\n",
                      i % 3 == 0   ? "alloc"
                      : i % 3 == 1 ? "free_requested"
                                   : "free_completed",
                      512 + i / 3, i, i + 1 < count ? "," : "]]}");
    assert_true(frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording, &findings,
                               &error));
    tell_recording(out, &recording, &findings);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void tell_all(frag_text *out)
{
    static const uint32_t counts[] = {90,   900,  999,  1000, 1001, 1010, 1100,
                                      2000, 2020, 3500, 9000, 9999, 10000};
    random_trace trace = {0};
    size_t from = 0;
    unsigned count = 0;
    for (uint64_t seed = 41001; count < RUNS; seed++) {
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        tell_run(out, &trace, seed);
        if (++count % GROUP == 0) {
            pinned_fold(out, from, "runs");
            from = out->length;
        }
    }
    random_trace_destroy(&trace);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        tell_entries(out, counts[i]);
    pinned_fold(out, from, "counts of entries");
}

static const pinned_lines pinned = {"tests/data/answers/forms.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
