/* What becomes of traces that are cut at many places: random ones, and recordings with addresses,
 * times and segments. What was changed on purpose is pinned anew:
 *
 *   test_trace_answers            compares with tests/data/answers/traces.txt.zst
 *   test_trace_answers --write    prints what that file should hold (make answers-golden)
 */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "sim/run.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "traces/cut.h"

enum { RANDOM_TRACES = 40, FOLDED_TRACES = 300, EVENTS_MAX = 400, CUTS = 10 };

/* How the piece replays. */
static void tell_run(frag_text *out, const frag_recording *piece)
{
    const frag_policy_ops *ops = frag_policy_find("pytorch");
    frag_policy_spec spec;
    frag_error error = {0};
    frag_run_result result;
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    frag_run_options options = {.is_oom_skipped = true};
    assert_true(frag_policy_spec_parse(ops->name, &spec, &error));
    if (frag_run(&(frag_run_setup){piece, &piece->traces[0], ops, spec.values, &device}, &options,
                 &result, &error))
        frag_text_add(out, ", %" PRIu64 " reserved", result.replay.peak.reserved_bytes);
    else
        frag_text_add(out, ", refused");
    frag_policy_spec_destroy(&spec);
}

static void tell_cut(frag_text *out, const frag_recording *recording, uint32_t device,
                     frag_cut_range range)
{
    frag_recording piece;
    frag_error error = {0};
    frag_text_add(out, "  %" PRIu64 " to %" PRIu64 ": ", range.first, range.end);
    if (frag_cut(recording, &recording->traces[device], range, &piece, &error)) {
        const frag_trace *trace = &piece.traces[0];
        frag_trace_digest(&piece, &piece.traces[0]);
        uint64_t sum = 0;
        pinned_add_recording(&sum, &piece);
        frag_text_add(out, "%" PRIu64 " events, %" PRIu64 " blocks before, %08" PRIx32,
                      trace->event_count, trace->stats.initial_count, (uint32_t)(sum >> 32));
        tell_run(out, &piece);
        frag_recording_destroy(&piece);
    } else {
        frag_text_add(out, "error %d", (int)error.code);
    }
    frag_text_add(out, "\n");
}

static void tell_times(frag_text *out, const frag_trace *trace)
{
    const uint64_t last = trace->stats.time_last_ns;
    const uint64_t first = trace->stats.time_first_ns;
    const frag_cut_times times[] = {
        {first, last}, {first + 1, last}, {first, last + 1}, {last, last + 1},
        {last, last},  {0, first},        {0, first + 1},    {first + (last - first) / 2, last}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        frag_cut_range range = {0, 0};
        frag_error error = {0};
        bool is_found = frag_cut_find_times(trace, times[i], &range, &error);
        frag_text_add(out, "  times %zu: %d, %" PRIu64 " to %" PRIu64 "\n", i, is_found,
                      range.first, range.end);
    }
}

static void tell_recording(frag_text *out, const char *name, const frag_recording *recording)
{
    for (uint32_t device = 0; device < recording->trace_count; device++) {
        const frag_trace *trace = &recording->traces[device];
        uint64_t count = trace->event_count;
        frag_text_add(out, "%s, %" PRIu32 ": %" PRIu64 " events\n", name, device, count);
        tell_times(out, trace);
        for (uint64_t i = 0; i < CUTS; i++) {
            tell_cut(out, recording, device, (frag_cut_range){count * i / CUTS, count});
            tell_cut(out, recording, device,
                     (frag_cut_range){count * i / CUTS, count * (i + 2) / (CUTS + 2)});
        }
    }
}

static void tell_file(frag_text *out, const char *path)
{
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    frag_load_options options = {.with_sites = true, .with_columns = true};
    if (!frag_recording_load(path, &options, &recording, &findings, &error))
        return; /* there are broken ones */
    tell_recording(out, path, &recording);
    frag_recording_destroy(&recording);
}

static void tell_folder(frag_text *out, const char *folder, bool is_folded)
{
    struct dirent **found = NULL;
    int count = scandir(folder, &found, NULL, alphasort);
    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        frag_text path = {0};
        size_t from = out->length;
        frag_text_add(&path, "%s/%s", folder, found[i]->d_name);
        if (found[i]->d_name[0] != '.')
            tell_file(out, path.bytes);
        if (is_folded && out->length > from)
            pinned_fold(out, from, found[i]->d_name);
        frag_text_destroy(&path);
        free(found[i]);
    }
    free(found);
}

static void tell_random(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 9001; count < RANDOM_TRACES + FOLDED_TRACES; seed++) {
        size_t from = out->length;
        frag_text text = {0};
        frag_text name = {0};
        frag_recording recording;
        frag_findings findings;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        random_trace_write(&trace, &text);
        frag_test_load_well(text.bytes, &recording, &findings);
        frag_text_add(&name, "random %" PRIu64, seed);
        tell_recording(out, name.bytes, &recording);
        if (count >= RANDOM_TRACES)
            pinned_fold(out, from, "one more");
        frag_recording_destroy(&recording);
        frag_text_destroy(&name);
        frag_text_destroy(&text);
        count++;
    }
    random_trace_destroy(&trace);
}

static void tell_all(frag_text *out)
{
    tell_random(out);
    tell_folder(out, "tests/fuzz/corpus/text_trace", false);
    tell_folder(out, "tests/fuzz/corpus/pickle", false);
    tell_folder(out, "tests/data/snapshots", true);
    tell_folder(out, "tests/data/recordings", true);
}

static const pinned_lines pinned = {"tests/data/answers/traces.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
