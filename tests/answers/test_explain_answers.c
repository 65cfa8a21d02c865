/* What is explained of recordings that random runs left, on devices that they do not fit on: as
 * JSON and in words. What was changed on purpose is pinned anew:
 *
 *   test_explain_answers            compares with tests/data/answers/explanations.txt.zst
 *   test_explain_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "studies/explain/explain_recording.h"
#include "tests/support/made_snapshot.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum {
    RUNS = 200,
    FOLDED_RUNS = 100,
    EVENTS_MAX = 400,
    SHARES = 3,
    EXTRA_MAX = 3,
    SETTING_RUNS = 120
};

static void tell_explanation(frag_text *out, const frag_recording *recording,
                             const frag_explain_options *options, bool is_json)
{
    frag_error error = {0};
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    if (!frag_explain_recording(NULL, recording, options, stream, is_json, &error))
        fprintf(stream, "error %d\n", (int)error.code);
    fclose(stream);
    uint64_t sum = 0;
    const char *tool = strstr(bytes, "\"tool\":{"); /* which has the commit */
    pinned_add_text(&sum, tool != NULL ? strchr(tool, '}') : bytes);
    if (is_json) { /* the verdict, and a sum of all the rest */
        const char *verdict = strstr(bytes, "\"verdict\":");
        size_t length = verdict != NULL ? strcspn(verdict, ",}") : 0;
        frag_text_add(out, "json %08" PRIx32 " %.*s", (uint32_t)(sum >> 32), (int)length,
                      verdict != NULL ? verdict : "");
    } else {
        frag_text_add(out, ", text %08" PRIx32 "\n", (uint32_t)(sum >> 32));
    }
    free(bytes);
}

/* Policies that are tried beside those of the list; some are of it. */
static void add_extra(frag_policy_list *extra, uint64_t *bits)
{
    static const char *const others[] = {
        "best-fit",  "tlsf", "pytorch:max_split_size_mb=128", "frugal", "pytorch:version=2.4",
        "size-class"};
    frag_error error = {0};
    extra->specs = frag_alloc(EXTRA_MAX, sizeof *extra->specs);
    extra->count = 1 + xorshift_next(bits) % EXTRA_MAX;
    for (size_t i = 0; i < extra->count; i++)
        assert_true(
            frag_policy_spec_parse(others[xorshift_next(bits) % (sizeof others / sizeof *others)],
                                   &extra->specs[i], &error));
}

static void tell_recording(frag_text *out, const frag_recording *recording, uint64_t *bits)
{
    uint64_t peak = recording->traces[0].stats.peak_requested_bytes;
    for (uint64_t i = 0; i < SHARES; i++) {
        frag_explain_options options = {.capacity_bytes = FRAG_UNLIMITED};
        uint64_t others = *bits + i; /* the other draws stay as they are */
        if (i == 2)
            add_extra(&options.extra, &others);
        if (i > 0 && peak < (uint64_t)1 << 50)
            options.capacity_bytes = peak / 16 * (6 + xorshift_next(bits) % 14) + FRAG_MIB;
        frag_text_add(out, "  in %" PRIx64 ": ", options.capacity_bytes);
        tell_explanation(out, recording, &options, true);
        tell_explanation(out, recording, &options, false);
        frag_policy_list_destroy(&options.extra);
    }
}

static void tell_snapshot(frag_text *out, const made_snapshot *of, uint64_t *bits)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    const made_snapshot_loss lost = {.first = xorshift_next(bits) % 4 == 0 ? of->note_count / 4 : 0,
                                     .has_pools = xorshift_next(bits) % 2 == 0,
                                     .is_old = xorshift_next(bits) % 2 == 0};
    made_snapshot_write(&text, of, &lost);
    if (frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording, &findings,
                       &error)) {
        tell_recording(out, &recording, bits);
        frag_recording_destroy(&recording);
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
    random_trace_write(trace, &text);
    frag_test_load_well(text.bytes, &recording, &findings);
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    policy_case what = policy_case_draw(frag_policy_find("pytorch"), &recording.traces[0], &bits);
    made_snapshot of = {0};
    frag_device_spec device = {.capacity_bytes = what.capacity_bytes};
    if (frag_policy_spec_parse(what.policy, &spec, &error)) {
        const frag_run_setup setup = {&recording, &recording.traces[0], spec.ops, spec.values,
                                      &device};
        if (made_snapshot_make(&of, &setup, &error)) {
            frag_text_add(out, "trace %" PRIu64 ", %s in %" PRIx64 "\n", seed, what.policy,
                          what.capacity_bytes);
            tell_snapshot(out, &of, &bits);
        }
        frag_policy_spec_destroy(&spec);
    }
    made_snapshot_destroy(&of);
    free(what.policy);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

/* Frames as stacks of training programs have them, the innermost first; what a request was for is
 * concluded from them. */
static const char frames[] = "frame \"step\" \"train.py\" 12\n"
                             "frame \"forward\" \"model.py\" 30\n"
                             "frame \"forward\" \"/lib/torch/nn/modules/linear.py\" 120\n"
                             "frame \"backward\" \"/lib/torch/_tensor.py\" 500\n"
                             "frame \"_init_group\" \"/lib/torch/optim/adamw.py\" 90\n"
                             "frame \"convert\" \"/lib/torch/nn/modules/module.py\" 1100\n"
                             "frame \"load\" \"data.py\" 7\n"
                             "frame \"autograd thread (no Python stack)\" \"\" 0\n";
static const char *const stacks[] = {"0", "1 0", "2 1 0", "3 0", "4 0", "5 0", "6 0", "7", "2 6"};

enum { STACKS = sizeof stacks / sizeof *stacks };

/* The trace with call sites: of all requests, or of those that are drawn. */
static void write_with_sites(frag_text *out, const random_trace *trace, bool is_all, uint64_t *bits)
{
    frag_text plain = {0};
    random_trace_write(trace, &plain);
    const char *line = strchr(plain.bytes, '\n');
    size_t first = line == NULL ? plain.length : (size_t)(line + 1 - plain.bytes);
    frag_text_add(out, "%.*s%s", (int)first, plain.bytes, frames);
    for (size_t i = 0; i < STACKS; i++)
        frag_text_add(out, "site %s\n", stacks[i]);
    for (line = plain.bytes + first; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        frag_text_add(out, "%.*s", (int)length, line);
        if (strncmp(line, "alloc ", 6) == 0 && (is_all || xorshift_next(bits) % 4 != 0))
            frag_text_add(out, " site=%u", (unsigned)(1 + xorshift_next(bits) % STACKS));
        frag_text_add(out, "\n");
        line += length + (line[length] == '\n');
    }
    frag_text_destroy(&plain);
}

static void tell_sites(frag_text *out, const random_trace *trace, uint64_t seed)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    write_with_sites(&text, trace, seed % 2 == 0, &bits);
    frag_test_load_well(text.bytes, &recording, &findings);
    frag_text_add(out, "trace %" PRIu64 " with call sites\n", seed);
    tell_recording(out, &recording, &bits);
    const frag_explain_options exactly = {.capacity_bytes =
                                              recording.traces[0].stats.peak_requested_bytes};
    frag_text_add(out, "  in %" PRIx64 ": ", exactly.capacity_bytes);
    tell_explanation(out, &recording, &exactly, true);
    tell_explanation(out, &recording, &exactly, false);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

/* With settings that the recording holds, of some release; and what is held is close to what there
 * is. */
static void tell_settings(frag_text *out, const random_trace *trace, uint64_t seed)
{
    static const char *const settings[] = {
        "",
        "expandable_segments:True",
        "expandable_segments:True,expandable_segments_reserve:0.5",
        "max_split_size_mb:32",
        "max_split_size_mb:128",
        "roundup_power2_divisions:8",
        "roundup_power2_divisions:[64:2,256:4,>:1]",
        "large_segment_size_mb:64",
    };
    static const char *const releases[] = {"", "2.1", "2.4", "2.9", "2.13", "2.15"};
    frag_text text = {0};
    frag_text whole = {0};
    frag_recording recording;
    frag_findings findings;
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    write_with_sites(&text, trace, true, &bits);
    const char *conf = settings[seed % (sizeof settings / sizeof *settings)];
    const char *release = releases[xorshift_next(&bits) % (sizeof releases / sizeof *releases)];
    size_t first = strcspn(text.bytes, "\n") + 1;
    frag_text_add(&whole, "%.*smeta \"torch.conf\" \"%s\"\n", (int)first, text.bytes, conf);
    if (*release != '\0')
        frag_text_add(&whole, "meta \"torch.version_hint\" \"%s\"\n", release);
    frag_text_add(&whole, "%s", text.bytes + first);
    frag_test_load_well(whole.bytes, &recording, &findings);
    frag_text_add(out, "trace %" PRIu64 " with %s of %s\n", seed, conf, release);
    tell_recording(out, &recording, &bits);
    frag_recording_destroy(&recording);
    frag_text_destroy(&whole);
    frag_text_destroy(&text);
}

static void tell_all(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 15001; count < RUNS + FOLDED_RUNS; seed++) {
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        tell_run(out, &trace, seed);
        if (count >= RUNS)
            pinned_fold(out, from, "one more");
        count++;
    }
    count = 0;
    for (uint64_t seed = 17001; count < RUNS + FOLDED_RUNS; seed++) {
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        tell_sites(out, &trace, seed);
        if (count >= RUNS)
            pinned_fold(out, from, "one more");
        count++;
    }
    for (uint64_t seed = 19001; seed < 19001 + SETTING_RUNS; seed++) {
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX / 2)
            continue;
        tell_settings(out, &trace, seed);
        pinned_fold(out, from, "with settings");
    }
    random_trace_destroy(&trace);
}

static const pinned_lines pinned = {"tests/data/answers/explanations.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
