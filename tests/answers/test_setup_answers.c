/* What is made of what people write: experiments with one thing changed, options of policies on
 * their borders, places in a trace, rows of results whose numbers meet. What was changed on purpose
 * is pinned anew:
 *
 *   test_setup_answers            compares with tests/data/answers/setups.txt.zst
 *   test_setup_answers --write    prints what that file should hold (make answers-golden);
 *                                 with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "include/fraglab.h"
#include "studies/diff/place.h"
#include "studies/sweep/experiment.h"
#include "tests/support/changed_bytes.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum { CHANGES = 900, PAIRS = 300, BORDERS = 2500, PLACE_TRACES = 40, ROW_TRACES = 3 };

static void tell_error(frag_text *out, const frag_error *error)
{
    frag_text_add(out, "%d in '%s', %" PRIu64 ":%" PRIu64 ": %s\n", (int)error->code, error->where,
                  error->line, error->column, error->sentence);
}

/* ---- experiments */

static const char *const experiments[] = {
    ("name: first\n"
     "traces: [a.trace, /b/c.trace, \"-\"]\n"
     "policies:\n"
     "  - pytorch\n"
     "  - {policy: pytorch, options: {max_split_size_mb: [unlimited, {from: 21, to: 84, factor: "
     "2}]}}\n"
     "  - {policy: best-fit, label: mine, options: {min_split: {from: 512, to: 2048, step: 512}}}\n"
     "  - {policy: \"pytorch:version=2.9\", options: {garbage_collection_threshold: {from: 0.2, "
     "to: "
     "0.8, step: 0.2}, expandable_segments: [true, false]}, random: {count: 3, seed: 7}}\n"
     "capacities: [unlimited, {from: 8MiB, to: 64MiB, factor: 2}]\n"
     "on_oom: skip\n"
     "bounds: true\n"),
    ("traces: a.trace\n"
     "policies:\n"
     "  - policy: tlsf\n"
     "    options:\n"
     "      grow: {from: 2097152, to: 8388608, step: 2097152}\n"
     "  - policy: pytorch\n"
     "    label: other\n"
     "    options:\n"
     "      garbage_collection_threshold: {from: 0.1, to: 0.8, factor: 2}\n"
     "      roundup_power2_divisions: [1, 2, 4]\n"
     "    random:\n"
     "      count: 9\n"
     "capacities: {from: 10MiB, to: 40MiB, step: 10MiB}\n"
     "on_oom: stop\n"
     "bounds: false\n"),
    ("{\"traces\": [\"x\"], \"policies\": [\"buddy\", {\"policy\": \"offline\"}], \"capacities\": "
     "[1, 2GiB, 4611686018427387904]}\n"),
};

static void tell_experiment(frag_text *out, const char *bytes, size_t count)
{
    frag_experiment experiment;
    frag_error error = {0};
    if (frag_experiment_parse(bytes, count, "runs/", &experiment, &error)) {
        for (size_t i = 0; i < experiment.trace_count; i++)
            frag_text_add(out, "%s ", experiment.traces[i]);
        frag_text_add(out, "%zu policies ", experiment.policy_count);
        for (size_t i = 0; i < experiment.policy_count && i < 50; i++)
            frag_text_add(out, "%s ", experiment.policies[i].text);
        frag_text_add(out, "%zu capacities ", experiment.capacity_count);
        for (size_t i = 0; i < experiment.capacity_count && i < 50; i++)
            frag_text_add(out, "%" PRIx64 " ", experiment.capacities[i]);
        frag_text_add(out, "%d %d\n", experiment.is_oom_skipped, experiment.has_bounds);
    } else {
        tell_error(out, &error);
    }
    frag_experiment_destroy(&experiment);
}

typedef void teller(frag_text *out, const char *bytes, size_t count);

/* Changes of all kinds of one text. */
static void tell_changes(frag_text *out, const char *text, teller *tell, uint64_t borders)
{
    const changed_file file = {(const unsigned char *)text, strlen(text), false};
    bool has_more = true;
    tell(out, text, strlen(text));
    for (uint64_t i = 0; i < CHANGES + PAIRS + borders && has_more; i++) {
        frag_text changed = {0}, what = {0};
        if (i < CHANGES)
            changed_bytes(&file, i, &changed, &what);
        else if (i < CHANGES + PAIRS)
            changed_pairs(&file, i, &changed, &what);
        else
            has_more = changed_borders(&file, i - CHANGES - PAIRS, &changed, &what);
        frag_text_add(out, "%s: ", what.bytes != NULL ? what.bytes : "");
        tell(out, changed.length > 0 ? changed.bytes : "", changed.length);
        frag_text_destroy(&what);
        frag_text_destroy(&changed);
    }
}

/* One from a file that is not there, one from a file that is. */
static void tell_files(frag_text *out)
{
    char path[] = "/tmp/fraglab-setup-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    for (int i = 0; i < 3; i++) {
        frag_experiment experiment;
        frag_error error = {0};
        const char *text = i == 0 ? "traces: [t]\npolicies: [buddy]\n" : "traces: []\n";
        assert_int_equal(ftruncate(file, 0), 0);
        assert_int_equal(pwrite(file, text, strlen(text), 0), (ssize_t)strlen(text));
        bool ok = frag_experiment_load(i == 2 ? "/tmp/no/such/file" : path, &experiment, &error);
        frag_text_add(out, "%d %d %s\n", ok, strcmp(error.where, path) == 0, error.sentence);
        for (size_t k = 0; k < experiment.trace_count; k++)
            frag_text_add(out, "%s\n", experiment.traces[k]);
        frag_experiment_destroy(&experiment);
    }
    close(file);
    unlink(path);
}

/* ---- policies */

static void tell_policies(frag_text *out, const char *text, size_t count)
{
    frag_policy_spec *specs = NULL;
    size_t spec_count = 0;
    frag_error error = {0};
    frag_text copy = {0};
    frag_text_add_bytes(&copy, count > 0 ? text : "", count);
    bool ok =
        frag_policy_specs_parse(copy.bytes != NULL ? copy.bytes : "", &specs, &spec_count, &error);
    for (size_t i = 0; ok && i < spec_count; i++) {
        frag_text_add(out, "%s:", specs[i].text);
        for (uint32_t k = 0; k < specs[i].value_count; k++)
            frag_text_add(out, " %" PRIu64 " %.9g %s %d", specs[i].values[k].number,
                          specs[i].values[k].ratio, specs[i].values[k].text,
                          specs[i].values[k].is_given);
        frag_text_add(out, " %d%d\n", specs[i].wants_recorded, specs[i].wants_env);
    }
    if (!ok)
        tell_error(out, &error);
    frag_policy_specs_destroy(specs, spec_count);
    frag_text_destroy(&copy);
}

/* Both, that with one thing changed the policy may not be made. */
static void tell_value(frag_text *out, const frag_policy_ops *ops, const frag_option *option,
                       const char *value)
{
    frag_text text = {0};
    frag_text_add(&text, "%s:%s=%s", ops->name, option->key, value);
    frag_text_add(out, "%s: ", text.bytes);
    tell_policies(out, text.bytes, text.length);
    frag_text_destroy(&text);
}

static void tell_option(frag_text *out, const frag_policy_ops *ops, const frag_option *option)
{
    static const char *const others[] = {
        "",     "true",   "false", "True", "1",          "0",      "2",
        "-1",   "0.5",    "1.0",   "1.5",  "1e3",        "nan",    "unlimited",
        "1KiB", "3",      "512",   "513",  "2097152",    "4 GiB",  "18446744073709551615",
        "best", "1.5MiB", "0x10",  "99",   "0.99999999", "100GiB", "18446744073709551616",
        "2.9",  "2.15",   "1|2",   "[1]"};
    const uint64_t limits[] = {option->min, option->max};
    const double ratios[] = {option->ratio_min, option->ratio_max};
    char value[40];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        tell_value(out, ops, option, others[i]);
    for (int i = 0; i < 2; i++) {
        for (uint64_t beside = 0; beside < 3; beside++) {
            snprintf(value, sizeof value, "%" PRIu64, limits[i] + beside - 1);
            tell_value(out, ops, option, value);
        }
        for (int beside = -1; beside < 2; beside++) {
            snprintf(value, sizeof value, "%.9g", ratios[i] + 0.001 * beside);
            tell_value(out, ops, option, value);
        }
    }
    tell_value(out, ops, option, option->default_text);
}

static void tell_options(frag_text *out)
{
    for (size_t i = 0; frag_policy_table[i] != NULL; i++) {
        const frag_policy_ops *ops = frag_policy_table[i];
        size_t from = out->length;
        for (uint32_t k = 0; k < frag_policy_option_count(ops); k++)
            tell_option(out, ops, &ops->options[k]);
        pinned_fold(out, from, ops->name);
    }
}

/* ---- places */

static void tell_places(frag_text *out, const frag_recording *recording, uint64_t seed)
{
    static const char *const names[] = {"peak", "end",   "a",    "a[0]", "a[1]", "a[2]", "a[9]",
                                        "b",    "b[1]",  "..",   "3..",  "..3",  "a[",   "a[x]",
                                        "",     "b[-1]", "none", "[1]",  "a[1]x"};
    const frag_trace *trace = &recording->traces[0];
    const frag_place_source source = {recording, trace};
    uint64_t count = trace->event_count;
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < sizeof names / sizeof *names + 40; i++) {
        char name[64];
        frag_use_range range = {0};
        frag_error error = {0};
        uint64_t first = xorshift_next(&bits) % (count + 2);
        uint64_t end = first + xorshift_next(&bits) % (count + 3 - first) - 1;
        if (i < sizeof names / sizeof *names)
            snprintf(name, sizeof name, "%s", names[i]);
        else if (i % 2 == 0)
            snprintf(name, sizeof name, "%" PRIu64, first + count - first / 2);
        else
            snprintf(name, sizeof name, "%" PRIu64 "..%" PRIu64, first, end);
        bool ok = frag_place_find(&source, name, &range, &error);
        frag_text_add(out, "%s: %d ", name, ok);
        if (ok)
            frag_text_add(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", range.first, range.end,
                          range.moment);
        else
            tell_error(out, &error);
    }
}

static void tell_place_traces(frag_text *out)
{
    random_trace trace = {0};
    for (uint64_t seed = 71001; seed < 71001 + PLACE_TRACES; seed++) {
        frag_text plain = {0}, text = {0};
        frag_recording recording;
        frag_findings findings;
        uint64_t bits = seed;
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        random_trace_write(&trace, &plain);
        bool has_begun = false;
        for (const char *line = plain.bytes; *line != '\0';) {
            size_t length = strcspn(line, "\n") + 1;
            const char *initial = strstr(line, " initial");
            frag_text_add_bytes(&text, line, length);
            has_begun |=
                strncmp(line, "alloc", 5) == 0 && (initial == NULL || initial > line + length);
            if (has_begun && xorshift_next(&bits) % 30 == 0)
                frag_text_add(&text, "mark \"%s\"\n", xorshift_next(&bits) % 3 == 0 ? "b" : "a");
            line += length;
        }
        frag_test_load_well(text.bytes, &recording, &findings);
        if (recording.traces[0].event_count > 0)
            tell_places(out, &recording, seed);
        pinned_fold(out, from, "places");
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
        frag_text_destroy(&plain);
    }
    random_trace_destroy(&trace);
}

/* ---- rows */

static frag_text base_rows; /* that changed ones are compared with */

static void tell_rows(frag_text *out, const char *bytes, size_t count)
{
    static const char *const limits[] = {NULL, "0", "1%", "1MiB", "3%,1MiB", "x", "-1", "1%%"};
    fraglab_comparison *comparison = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    const fraglab_compare_options options = {
        .size = sizeof options,
        .fail_above = limits[(count + (count > 0 ? (unsigned char)bytes[count / 2] : 0)) % 8]};
    int code = fraglab_compare_memory(base_rows.bytes, base_rows.length, bytes, count, &options,
                                      &comparison, &error);
    if (code == FRAGLAB_OK)
        frag_text_add(out, "%d %s", fraglab_comparison_has_finding(comparison),
                      fraglab_comparison_json(comparison));
    else
        frag_text_add(out, "%d: %s\n", code, error.sentence);
    fraglab_comparison_destroy(comparison);
}

/* Without what names the build. */
static void add_row(frag_text *rows, const char *json)
{
    const char *tool = strstr(json, "\"tool\":{");
    assert_non_null(tool);
    frag_text_add(rows, "%.*s\"tool\":{\"name\":\"fraglab\",\"version\":\"1\"%s\n",
                  (int)(tool - json), json, strchr(tool, '}'));
}

static void tell_row_traces(frag_text *out)
{
    static const char *const names[] = {"pytorch", "best-fit", "tlsf"};
    random_trace trace = {0};
    for (uint64_t seed = 73001; seed < 73001 + ROW_TRACES; seed++) {
        frag_text text = {0};
        fraglab_recording *recording = NULL;
        fraglab_run_options run = FRAGLAB_RUN_OPTIONS_INIT;
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        random_trace_write(&trace, &text);
        assert_int_equal(fraglab_open_memory(NULL, text.bytes, text.length, NULL, &recording, NULL),
                         FRAGLAB_OK);
        run.capacity_bytes = seed % 2 == 0 ? 1 << 26 : 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            fraglab_policy *policy = NULL;
            fraglab_result *result = NULL;
            assert_int_equal(fraglab_policy_parse(names[i], &policy, NULL), FRAGLAB_OK);
            if (fraglab_run(NULL, recording, 0, policy, &run, &result, NULL) == FRAGLAB_OK)
                add_row(&base_rows, fraglab_result_json(result));
            fraglab_result_destroy(result);
            fraglab_policy_destroy(policy);
        }
        if (base_rows.length > 0)
            tell_changes(out, base_rows.bytes, tell_rows, 0);
        pinned_fold(out, from, "rows");
        fraglab_recording_close(recording);
        frag_text_destroy(&base_rows);
        frag_text_destroy(&text);
    }
    random_trace_destroy(&trace);
}

static void tell_all(frag_text *out)
{
    static const char *const lists[] = {"pytorch,best-fit,buddy",
                                        "all",
                                        "pytorch:max_split_size_mb=64,expandable_segments=true",
                                        "pytorch:max_split_size_mb:64,expandable_segments:True",
                                        "pytorch:recorded",
                                        "best-fit:min_split=512KiB,grow=2MiB"};
    for (size_t i = 0; i < sizeof experiments / sizeof *experiments; i++) {
        size_t from = out->length;
        tell_changes(out, experiments[i], tell_experiment, BORDERS);
        pinned_fold(out, from, "experiments");
    }
    tell_files(out);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t from = out->length;
        tell_changes(out, lists[i], tell_policies, BORDERS);
        pinned_fold(out, from, "policies");
    }
    tell_options(out);
    tell_place_traces(out);
    tell_row_traces(out);
}

static const pinned_lines pinned = {"tests/data/answers/setups.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
