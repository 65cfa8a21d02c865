/* The studies of the library as a program sees them: explanations, comparisons, tuning,
 * sweeps. What they say is that of the commands (library.bats); here, that they end as the header
 * says on wrong arguments, when they are told to and without host memory, and that threads change
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

#define SMALL_SAMPLE "tests/data/snapshots/empty-with-gc.pickle"
#define OOM_SAMPLE "traces/samples/gpt-varlen-oom.pickle.zst"
#define UNET_SAMPLE "traces/samples/unet.pickle.zst"

static fraglab_recording *open_sample(const char *path)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    fraglab_open_options options = {.size = sizeof options, .with_sites = 1};
    if (fraglab_open_path(NULL, path, &options, &recording, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    return recording;
}

static fraglab_recording *open_text(const char *text)
{
    fraglab_recording *recording = NULL;
    assert_int_equal(fraglab_open_memory(NULL, text, strlen(text), NULL, &recording, NULL), 0);
    return recording;
}

static fraglab_policy *parse(const char *text)
{
    fraglab_policy *policy = NULL;
    assert_int_equal(fraglab_policy_parse(text, &policy, NULL), FRAGLAB_OK);
    return policy;
}

static fraglab_context *with_threads(uint32_t threads)
{
    fraglab_context *context = NULL;
    fraglab_context_options options = {.size = sizeof options, .threads = threads};
    assert_int_equal(fraglab_context_create(&options, &context, NULL), FRAGLAB_OK);
    return context;
}

/* Says that the call is to end when it is asked so often; goes on to say so. */
static int count_down(void *user)
{
    int *left = user;
    return *left == 0 || --*left == 0;
}

static fraglab_context *to_be_cancelled(int *left)
{
    fraglab_context *context = NULL;
    fraglab_context_options options = {
        .size = sizeof options, .user = left, .is_cancelled = count_down, .threads = 2};
    assert_int_equal(fraglab_context_create(&options, &context, NULL), FRAGLAB_OK);
    return context;
}

static void expect_error(int code, int expected, const fraglab_error *error, const char *where,
                         const char *part)
{
    assert_int_equal(code, expected);
    assert_string_equal(error->where, where);
    if (strstr(error->sentence, part) == NULL)
        fail_msg("%s: expected %s", error->sentence, part);
}

static void refuses_too_many_threads(void **state)
{
    (void)state;
    fraglab_context *context = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_context_options options = {.size = sizeof options, .threads = 4097};
    expect_error(fraglab_context_create(&options, &context, &error), FRAGLAB_E_USAGE, &error,
                 "threads", "expected at most 4096");
    assert_null(context);
}

/* ---- explanations of recordings */

static char *explain(const fraglab_context *context, const fraglab_recording *recording,
                     const fraglab_explain_options *options)
{
    char *explanation = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    if (fraglab_explain_recording(context, recording, options, &explanation, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    return explanation;
}

static void explains_a_recording(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(OOM_SAMPLE);
    fraglab_policy *policy = parse("buddy");
    const fraglab_policy *const policies[] = {policy};
    fraglab_context *context = with_threads(3);
    fraglab_explain_options options = {
        .size = sizeof options, .policies = policies, .policy_count = 1};
    char *plain = explain(NULL, recording, NULL);
    char *more = explain(NULL, recording, &options);
    char *threaded = explain(context, recording, &options);
    assert_non_null(strstr(plain, "\"verdict\":\"fragmentation\""));
    assert_null(strstr(plain, "\"policy\":\"buddy\""));
    assert_non_null(strstr(more, "\"policy\":\"buddy\""));
    assert_string_equal(more, threaded);
    options = (fraglab_explain_options){.size = sizeof options, .as_text = 1};
    char *text = explain(NULL, recording, &options);
    assert_memory_equal(text, "verdict    fragmentation", 24);
    fraglab_free(text);
    fraglab_free(threaded);
    fraglab_free(more);
    fraglab_free(plain);
    fraglab_context_destroy(context);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

/* The request that failed is recorded rounded; the other recording knows its size. */
static void another_recording_leaves_this_one_as_it_was(void **state)
{
    (void)state;
    static const char cut[] = "# fraglab trace 1\nalloc 0 62914560\nalloc - 10485760 failed\n";
    static const char rest[] = "# fraglab trace 1\nalloc 0 62914560\nalloc 1 9437184\nfree 1\n";
    fraglab_recording *recording = open_text(cut);
    fraglab_recording *whole = open_text(rest);
    fraglab_explain_options options = {
        .size = sizeof options, .capacity_bytes = 64 << 20, .whole = whole};
    void *before = NULL;
    void *after = NULL;
    size_t bytes = 0;
    size_t bytes_after = 0;
    assert_int_equal(fraglab_recording_write_memory(recording, "text", &before, &bytes, NULL), 0);
    char *explanation = explain(NULL, recording, &options);
    assert_non_null(strstr(explanation, "\"rest\":\"given\""));
    fraglab_recording_write_memory(recording, "text", &after, &bytes_after, NULL);
    assert_int_equal(bytes, bytes_after);
    assert_memory_equal(before, after, bytes);
    fraglab_free(explanation);
    fraglab_free(after);
    fraglab_free(before);
    fraglab_recording_close(whole);
    fraglab_recording_close(recording);
}

static void refuses_what_cannot_be_explained(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(SMALL_SAMPLE);
    fraglab_recording *failed = open_sample(OOM_SAMPLE);
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_explain_options options = {.size = sizeof options, .memory_fraction = "1.5"};
    char *explanation = NULL;
    expect_error(fraglab_explain_recording(NULL, recording, NULL, &explanation, &error),
                 FRAGLAB_E_USAGE, &error, "empty-with-gc.pickle", "it did not run out of memory");
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_USAGE, &error, "memory_fraction", "1.5");
    options = (fraglab_explain_options){.size = sizeof options, .whole = failed};
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_INPUT, &error, "gpt-varlen-oom.pickle.zst", "ran out of memory itself");
    options.whole = recording;
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_INPUT, &error, "empty-with-gc.pickle", "is not that of the recording");
    options.size = 3;
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_USAGE, &error, "fraglab_explain_options", "its size is 3");
    assert_null(explanation);
    fraglab_recording_close(failed);
    fraglab_recording_close(recording);
}

/* ---- comparisons */

/* The row of a policy that is called "mine", whichever it is. */
static char *row_of(const char *name, uint64_t capacity)
{
    fraglab_recording *recording = open_sample(SMALL_SAMPLE);
    fraglab_policy *policy = parse(name);
    fraglab_result *result = NULL;
    fraglab_run_options options = FRAGLAB_RUN_OPTIONS_INIT;
    options.label = "mine";
    options.capacity_bytes = capacity;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, &options, &result, NULL), FRAGLAB_OK);
    char *row = strdup(fraglab_result_json(result));
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    return row;
}

static int compare(const char *base, const char *now, const fraglab_compare_options *options,
                   fraglab_comparison **comparison, fraglab_error *error)
{
    return fraglab_compare_memory(base, strlen(base), now, strlen(now), options, comparison, error);
}

/* The metric of that name in the comparison. */
static fraglab_compared_metric metric_of(const fraglab_comparison *comparison, const char *path)
{
    fraglab_compared_metric metrics[200];
    size_t count = fraglab_comparison_metrics(comparison, metrics, 200);
    assert_in_range(count, 1, 200);
    for (size_t i = 0; i < count; i++)
        if (strcmp(metrics[i].path, path) == 0)
            return metrics[i];
    fail_msg("no %s", path);
    return metrics[0];
}

static void compares_rows(void **state)
{
    (void)state;
    fraglab_comparison *comparison = NULL;
    fraglab_compared_row rows[3];
    char *base = row_of("best-fit", 0);
    char *now = row_of("buddy", 0);
    assert_int_equal(compare(base, now, NULL, &comparison, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_comparison_has_finding(comparison), 1);
    assert_int_equal(fraglab_comparison_rows(comparison, NULL, 0), 1);
    assert_int_equal(fraglab_comparison_rows(comparison, rows, 3), 1);
    assert_string_equal(rows[0].policy, "mine");
    assert_null(rows[0].problem);
    assert_true(rows[0].worse > 0);
    fraglab_compared_metric peak = metric_of(comparison, "peak.reserved_bytes");
    assert_int_equal(peak.verdict, FRAGLAB_WORSE);
    assert_int_equal(peak.row, 0);
    assert_true(peak.now > peak.base && peak.change > 0.01);
    assert_int_equal(metric_of(comparison, "peak.requested_bytes").verdict, FRAGLAB_SAME);
    assert_non_null(strstr(fraglab_comparison_json(comparison), "fraglab.compare-summary/1"));
    fraglab_comparison_destroy(comparison);
    static const char *const metrics[] = {"peak.reserved_bytes"};
    static const char *const thresholds[] = {"peak.*=1TiB"};
    fraglab_compare_options options = {.size = sizeof options,
                                       .fail_above = "0%",
                                       .metrics = metrics,
                                       .metric_count = 1,
                                       .thresholds = thresholds,
                                       .threshold_count = 1};
    assert_int_equal(compare(base, now, &options, &comparison, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_comparison_has_finding(comparison), 0);
    assert_int_equal(metric_of(comparison, metrics[0]).verdict, FRAGLAB_WITHIN);
    assert_int_equal(fraglab_comparison_metrics(comparison, NULL, 0), 1);
    fraglab_comparison_destroy(comparison);
    free(now);
    free(base);
}

static void a_row_without_a_counterpart_is_a_finding(void **state)
{
    (void)state;
    fraglab_comparison *comparison = NULL;
    fraglab_compared_row rows[2];
    fraglab_compare_options options = {.size = sizeof options};
    char *base = row_of("best-fit", 0);
    char both[20000];
    char *other = strdup(base);
    memcpy(strstr(other, "mine"), "else", 4);
    snprintf(both, sizeof both, "%s%s", base, other);
    assert_int_equal(compare(both, base, &options, &comparison, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_comparison_has_finding(comparison), 1);
    assert_int_equal(fraglab_comparison_rows(comparison, rows, 2), 2);
    assert_string_equal(rows[1].policy, "else");
    assert_int_equal(rows[1].is_missing, 1);
    assert_non_null(rows[1].problem);
    fraglab_comparison_destroy(comparison);
    options.allow_missing = 1;
    assert_int_equal(compare(both, base, &options, &comparison, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_comparison_has_finding(comparison), 0);
    fraglab_comparison_destroy(comparison);
    assert_int_equal(compare(base, both, &options, &comparison, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_comparison_rows(comparison, rows, 2), 2);
    assert_int_equal(rows[1].is_new, 1);
    fraglab_comparison_destroy(comparison);
    free(other);
    free(base);
}

static void refuses_what_cannot_be_compared(void **state)
{
    (void)state;
    static const char *const metrics[] = {"peak.reserved_byte"};
    static const char *const thresholds[] = {"=1%"};
    fraglab_comparison *comparison = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_compare_options options = {.size = sizeof options, .fail_above = "a little"};
    char *base = row_of("best-fit", 0);
    expect_error(compare(base, base, &options, &comparison, &error), FRAGLAB_E_USAGE, &error,
                 "fail_above", "is not an amount");
    options = (fraglab_compare_options){
        .size = sizeof options, .thresholds = thresholds, .threshold_count = 1};
    expect_error(compare(base, base, &options, &comparison, &error), FRAGLAB_E_USAGE, &error,
                 "thresholds", "names no metric");
    options =
        (fraglab_compare_options){.size = sizeof options, .metrics = metrics, .metric_count = 1};
    expect_error(compare(base, base, &options, &comparison, &error), FRAGLAB_E_USAGE, &error,
                 "metrics", "no row has a metric 'peak.reserved_byte'");
    expect_error(compare(base, "{}\n", NULL, &comparison, &error), FRAGLAB_E_INPUT, &error, "now",
                 "is not a result row");
    assert_int_equal(error.line, 1);
    expect_error(compare("", base, NULL, &comparison, &error), FRAGLAB_E_INPUT, &error, "base",
                 "has no result rows");
    assert_int_equal(fraglab_compare_memory(NULL, 0, base, 1, NULL, &comparison, &error),
                     FRAGLAB_E_INPUT);
    expect_error(fraglab_compare_paths("no/file", "no/file", NULL, &comparison, &error),
                 FRAGLAB_E_INPUT, &error, "no/file", "cannot be opened");
    assert_null(comparison);
    free(base);
}

static void hostile_rows_end_in_an_error_or_a_comparison(void **state)
{
    (void)state;
    char *base = row_of("pytorch", 1 << 20);
    size_t count = strlen(base);
    uint32_t seed = 1;
    int refused = 0;
    int read = 0;
    long before = frag_live_memory();
    char *broken = malloc(count);
    for (int round = 0; round < 600; round++) {
        fraglab_comparison *comparison = NULL;
        fraglab_error error = FRAGLAB_ERROR_INIT;
        memcpy(broken, base, count);
        for (int i = 0; i < 1 + round % 3; i++) {
            seed = seed * 1664525u + 1013904223u;
            broken[(seed >> 8) % count] = (char)(round % 2 == 0 ? '0' + (seed >> 4) % 10 : seed);
        }
        size_t kept = round % 4 == 0 ? seed % count : count;
        int code = fraglab_compare_memory(broken, kept, base, count, NULL, &comparison, &error);
        refused += code == FRAGLAB_E_INPUT && error.sentence[0] != '\0';
        read += code == FRAGLAB_OK;
        fraglab_comparison_destroy(comparison);
    }
    free(broken);
    assert_int_equal(refused + read, 600);
    assert_true(refused > 50 && read > 50);
    assert_int_equal(frag_live_memory(), before);
    free(base);
}

/* ---- tuning */

static fraglab_tuned *tune(const fraglab_context *context, const char *policy,
                           const fraglab_tune_options *options)
{
    fraglab_recording *recording = open_sample(UNET_SAMPLE);
    const fraglab_recording *const recordings[] = {recording};
    fraglab_policy *base = parse(policy);
    fraglab_tuned *tuned = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    if (fraglab_tune(context, recordings, 1, base, options, &tuned, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    fraglab_policy_destroy(base);
    fraglab_recording_close(recording);
    return tuned;
}

static uint64_t peak_of(const char *name)
{
    fraglab_recording *recording = open_sample(UNET_SAMPLE);
    fraglab_policy *policy = parse(name);
    fraglab_result *result = NULL;
    uint64_t bytes = 0;
    assert_int_equal(fraglab_run(NULL, recording, 0, policy, NULL, &result, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_result_u64(result, "peak.reserved_bytes", &bytes, NULL), FRAGLAB_OK);
    fraglab_result_destroy(result);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
    return bytes;
}

static void tunes_a_policy(void **state)
{
    (void)state;
    fraglab_context *context = with_threads(3);
    fraglab_recording *held_out = open_sample(OOM_SAMPLE);
    const fraglab_recording *const held[] = {held_out};
    fraglab_tune_options options = {.size = sizeof options,
                                    .settings = 30,
                                    .held_out = held,
                                    .held_out_count = 1,
                                    .with_bounds = 1};
    fraglab_tuned_trace traces[3];
    fraglab_tuned *tuned = tune(NULL, "pytorch", &options);
    fraglab_tuned *threaded = tune(context, "pytorch", &options);
    assert_string_equal(fraglab_tuned_json(tuned), fraglab_tuned_json(threaded));
    fraglab_tuned_destroy(threaded);
    assert_int_equal(fraglab_tuned_traces(tuned, NULL, 0), 2);
    assert_int_equal(fraglab_tuned_traces(tuned, traces, 3), 2);
    assert_string_equal(traces[0].name, "unet.pickle.zst");
    assert_int_equal(traces[0].is_held_out, 0);
    assert_int_equal(traces[1].is_held_out, 1);
    assert_true(traces[0].packing_bytes >= traces[0].peak_requested_bytes);
    assert_int_equal(traces[0].default_bytes, peak_of("pytorch"));
    assert_int_equal(traces[0].tuned_bytes, peak_of(fraglab_tuned_policy(tuned)));
    assert_true(traces[0].tuned_bytes < traces[0].default_bytes);
    assert_non_null(strstr(fraglab_tuned_policy(tuned), fraglab_tuned_setting(tuned)));
    assert_true(fraglab_tuned_setting(tuned)[0] != '\0');
    assert_null(fraglab_tuned_memory_fraction(tuned));
    fraglab_tuned_destroy(tuned);
    fraglab_recording_close(held_out);
    fraglab_context_destroy(context);
}

static void refuses_what_cannot_be_tuned(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(SMALL_SAMPLE);
    const fraglab_recording *const recordings[] = {recording};
    fraglab_policy *policy = parse("best-fit");
    fraglab_policy *recorded = parse("pytorch:recorded");
    fraglab_tuned *tuned = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_run_options device = FRAGLAB_RUN_OPTIONS_INIT;
    fraglab_tune_options options = {.size = sizeof options, .goal = 2};
    expect_error(fraglab_tune(NULL, recordings, 1, policy, &options, &tuned, &error),
                 FRAGLAB_E_USAGE, &error, "goal", "2 is not a goal");
    options = (fraglab_tune_options){.size = sizeof options, .settings = 10001};
    expect_error(fraglab_tune(NULL, recordings, 1, policy, &options, &tuned, &error),
                 FRAGLAB_E_USAGE, &error, "settings", "at most 10000");
    options = (fraglab_tune_options){.size = sizeof options, .max_seconds = 1000001};
    expect_error(fraglab_tune(NULL, recordings, 1, policy, &options, &tuned, &error),
                 FRAGLAB_E_USAGE, &error, "max_seconds", "at most 1000000");
    device.capacity_bytes = 1 << 20;
    options = (fraglab_tune_options){
        .size = sizeof options, .goal = FRAGLAB_TUNE_MIN_CAPACITY, .device = &device};
    expect_error(fraglab_tune(NULL, recordings, 1, policy, &options, &tuned, &error),
                 FRAGLAB_E_USAGE, &error, "capacity_bytes", "leave it 0");
    device.gpu = "no-such-card";
    options.goal = FRAGLAB_TUNE_PEAK;
    assert_int_equal(fraglab_tune(NULL, recordings, 1, policy, &options, &tuned, &error),
                     FRAGLAB_E_USAGE);
    expect_error(fraglab_tune(NULL, recordings, 1, recorded, NULL, &tuned, &error), FRAGLAB_E_USAGE,
                 &error, "policy", "takes settings from elsewhere");
    expect_error(fraglab_tune(NULL, NULL, 0, policy, NULL, &tuned, &error), FRAGLAB_E_USAGE, &error,
                 "recordings", "expected at least one");
    assert_null(tuned);
    fraglab_policy_destroy(recorded);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

/* ---- sweeps */

#define EXPERIMENT                                                                                 \
    "{traces: [empty-with-gc.pickle, two-devices.pickle], policies: [best-fit, {policy: pytorch, " \
    "options: {max_split_size_mb: [32, 64]}}, buddy], capacities: [24MiB, unlimited], bounds: "    \
    "true}"
enum { EXPERIMENT_ROWS = 3 * 4 * 2 };

static int sweep(const fraglab_context *context, const char *experiment,
                 const fraglab_sweep_options *given, char **rows, fraglab_sweep_totals *totals,
                 fraglab_error *error)
{
    fraglab_sweep_options options = {.size = sizeof options};
    if (given != NULL)
        options = *given;
    options.folder = "tests/data/snapshots";
    return fraglab_sweep_memory(context, experiment, strlen(experiment), &options, rows, totals,
                                error);
}

typedef struct seen_rows {
    char text[100000];
    size_t length;
    int count;
    int last; /* the sweep is to end with it; 0: none */
} seen_rows;

static int see_row(void *user, const char *line, size_t length)
{
    seen_rows *seen = user;
    assert_int_equal(line[length], '\0');
    assert_int_equal(line[length - 1], '\n');
    assert_in_range(length, 10, sizeof seen->text - seen->length - 1);
    memcpy(seen->text + seen->length, line, length);
    seen->length += length;
    return ++seen->count == seen->last;
}

static void sweeps_an_experiment(void **state)
{
    (void)state;
    static seen_rows seen;
    fraglab_context *context = with_threads(4);
    fraglab_sweep_totals totals = {.size = sizeof totals};
    fraglab_sweep_options options = {.size = sizeof options, .user = &seen, .row = see_row};
    char *rows = NULL;
    char *replayed = NULL;
    seen = (seen_rows){.count = 0};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    if (sweep(NULL, EXPERIMENT, &options, &rows, &totals, &error) != FRAGLAB_OK)
        fail_msg("%s:%d:%d: %s", error.where, (int)error.line, (int)error.column, error.sentence);
    assert_int_equal(totals.rows, EXPERIMENT_ROWS);
    assert_in_range(totals.replayed, 1, EXPERIMENT_ROWS - 1);
    assert_int_equal(seen.count, EXPERIMENT_ROWS);
    assert_string_equal(seen.text, rows);
    options = (fraglab_sweep_options){.size = sizeof options, .replay_all = 1};
    assert_int_equal(sweep(context, EXPERIMENT, &options, &replayed, &totals, NULL), FRAGLAB_OK);
    assert_int_equal(totals.replayed, EXPERIMENT_ROWS);
    assert_string_equal(rows, replayed);
    fraglab_free(replayed);
    options = (fraglab_sweep_options){.size = sizeof options, .counts_only = 1};
    assert_int_equal(sweep(context, EXPERIMENT, &options, &replayed, NULL, NULL), FRAGLAB_OK);
    assert_non_null(strstr(replayed, "\"unsplit_bytes\":null"));
    assert_null(strstr(rows, "\"unsplit_bytes\":null"));
    assert_int_equal(sweep(context, EXPERIMENT, NULL, NULL, NULL, NULL), FRAGLAB_OK);
    fraglab_free(replayed);
    fraglab_free(rows);
    fraglab_context_destroy(context);
}

static void a_row_may_be_the_last(void **state)
{
    (void)state;
    static seen_rows seen;
    fraglab_context *context = with_threads(3);
    fraglab_sweep_options options = {.size = sizeof options, .user = &seen, .row = see_row};
    for (int last = 1; last < EXPERIMENT_ROWS; last += 5) {
        char *rows = NULL;
        seen = (seen_rows){.last = last};
        assert_int_equal(sweep(context, EXPERIMENT, &options, &rows, NULL, NULL),
                         FRAGLAB_E_CANCELLED);
        assert_int_equal(seen.count, last);
        assert_null(rows);
    }
    fraglab_context_destroy(context);
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(100001, 1);
    size_t length = fread(text, 1, 100000, file);
    assert_in_range(length, 0, 99999);
    fclose(file);
    return text;
}

static void a_sweep_goes_on_where_it_ended(void **state)
{
    (void)state;
    static seen_rows seen;
    char path[] = "/tmp/fraglab-sweep-XXXXXX";
    close(mkstemp(path));
    char *whole = NULL;
    char *rest = NULL;
    fraglab_sweep_totals totals = {.size = sizeof totals};
    fraglab_sweep_options options = {
        .size = sizeof options, .user = &seen, .row = see_row, .output = path};
    assert_int_equal(sweep(NULL, EXPERIMENT, NULL, &whole, NULL, NULL), FRAGLAB_OK);
    seen = (seen_rows){.last = 5};
    assert_int_equal(sweep(NULL, EXPERIMENT, &options, NULL, NULL, NULL), FRAGLAB_E_CANCELLED);
    FILE *file = fopen(path, "ab");
    fputs("{\"schema\":\"fraglab.ru", file);
    fclose(file);
    seen = (seen_rows){.last = 0};
    assert_int_equal(sweep(NULL, EXPERIMENT, &options, &rest, &totals, NULL), FRAGLAB_OK);
    assert_in_range(totals.found, 5, EXPERIMENT_ROWS - 1);
    assert_int_equal(totals.found + totals.rows, EXPERIMENT_ROWS);
    assert_int_equal(seen.count, totals.rows);
    assert_string_equal(whole + strlen(whole) - strlen(rest), rest);
    char *file_text = read_text(path);
    assert_string_equal(file_text, whole);
    free(file_text);
    fraglab_free(rest);
    fraglab_error error = FRAGLAB_ERROR_INIT;
    options.counts_only = 1;
    expect_error(sweep(NULL, EXPERIMENT, &options, NULL, NULL, &error), FRAGLAB_E_INPUT, &error,
                 path, "counts-only");
    options.overwrite = 1;
    assert_int_equal(sweep(NULL, EXPERIMENT, &options, NULL, &totals, NULL), FRAGLAB_OK);
    assert_int_equal(totals.found, 0);
    options.output = "-";
    expect_error(sweep(NULL, EXPERIMENT, &options, NULL, NULL, &error), FRAGLAB_E_USAGE, &error,
                 "output", "name a file");
    fraglab_free(whole);
    unlink(path);
}

static void refuses_what_cannot_be_swept(void **state)
{
    (void)state;
    static const struct {
        const char *experiment;
        const char *where;
        uint64_t line;
        const char *part;
    } wrong[] = {
        {"", "experiment", 0, "document"},
        {"[]", "experiment", 1, "an experiment"},
        {"traces: [a]\npolicies: [no-such]\n", "experiment", 2, "there is no policy 'no-such'"},
        {"traces: [a]\npolicies: [buddy]\ncapacities: [0]\n", "experiment", 3, "24GiB"},
        {"traces: [no-file]\npolicies: [buddy]\n", "tests/data/snapshots/no-file", 0,
         "cannot be opened"},
        {"traces: [make.py]\npolicies: [buddy]\n", "tests/data/snapshots/make.py", 0, ""},
    };
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *rows = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_error(sweep(NULL, wrong[i].experiment, NULL, &rows, NULL, &error), FRAGLAB_E_INPUT,
                     &error, wrong[i].where, wrong[i].part);
        if (wrong[i].line != 0)
            assert_int_equal(error.line, wrong[i].line);
        assert_null(rows);
    }
    char *long_text = calloc((1 << 20) + 2, 1);
    memset(long_text, ' ', (1 << 20) + 1);
    expect_error(sweep(NULL, long_text, NULL, &rows, NULL, &error), FRAGLAB_E_INPUT, &error,
                 "experiment", "more than 1 MiB");
    free(long_text);
    expect_error(fraglab_sweep_path(NULL, "no/file", NULL, NULL, NULL, &error), FRAGLAB_E_INPUT,
                 &error, "no/file", "cannot be opened");
}

static void hostile_experiments_end_in_an_error_or_rows(void **state)
{
    (void)state;
    char text[] = EXPERIMENT;
    uint32_t seed = 1;
    int refused = 0;
    int read = 0;
    long before = frag_live_memory();
    for (int round = 0; round < 300; round++) {
        fraglab_error error = FRAGLAB_ERROR_INIT;
        char *rows = NULL;
        memcpy(text, EXPERIMENT, sizeof text);
        for (int i = 0; i < 1 + round % 3; i++) {
            seed = seed * 1664525u + 1013904223u;
            char *at = &text[(seed >> 8) % (sizeof text - 1)];
            bool is_digit = *at >= '0' && *at <= '9';
            if (round % 2 == 0)
                *at = is_digit ? (char)('1' + (seed >> 4) % 9) : *at;
            else
                *at = (char)(' ' + (seed >> 4) % 95);
        }
        int code = sweep(NULL, text, NULL, &rows, NULL, &error);
        refused += code == FRAGLAB_E_INPUT && error.sentence[0] != '\0';
        read += code == FRAGLAB_OK && rows != NULL;
        fraglab_free(rows);
    }
    assert_int_equal(refused + read, 300);
    assert_true(refused > 50 && read > 5);
    assert_int_equal(frag_live_memory(), before);
}

/* ---- the end of a call before its time */

typedef struct subject {
    const fraglab_context *context;
    fraglab_recording *recording;
    fraglab_recording *whole;
    fraglab_policy *policy;
    char *rows;
    int goal;
} subject;

static subject make_subject(const fraglab_context *context)
{
    return (subject){.context = context,
                     .recording = open_sample(SMALL_SAMPLE),
                     .policy = parse("buddy"),
                     .rows = row_of("best-fit", 0)};
}

static void destroy_subject(subject *of)
{
    free(of->rows);
    fraglab_policy_destroy(of->policy);
    fraglab_recording_close(of->recording);
}

static int call_explain(void *argument)
{
    const subject *of = argument;
    const fraglab_policy *const policies[] = {of->policy};
    fraglab_explain_options options = {.size = sizeof options,
                                       .capacity_bytes = 24 << 20,
                                       .policies = policies,
                                       .policy_count = 1};
    char *explanation = NULL;
    int code = fraglab_explain_recording(of->context, of->recording, &options, &explanation, NULL);
    assert_int_equal(explanation != NULL, code == FRAGLAB_OK);
    fraglab_free(explanation);
    return code;
}

static int call_explain_failure(void *argument)
{
    const subject *of = argument;
    fraglab_explain_options options = {.size = sizeof options, .whole = of->whole, .as_text = 1};
    char *explanation = NULL;
    fraglab_recording *failed = NULL;
    static const char cut[] = "# fraglab trace 1\nalloc 0 62914560\nalloc - 10485760 failed\n";
    int code = fraglab_open_memory(NULL, cut, sizeof cut - 1, NULL, &failed, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_explain_recording(of->context, failed, &options, &explanation, NULL);
    fraglab_free(explanation);
    fraglab_recording_close(failed);
    return code;
}

static int call_compare(void *argument)
{
    const subject *of = argument;
    static const char *const thresholds[] = {"peak.*=1TiB", "oom.*=3"};
    fraglab_compare_options options = {
        .size = sizeof options, .thresholds = thresholds, .threshold_count = 2};
    fraglab_comparison *comparison = NULL;
    int code = compare(of->rows, of->rows, &options, &comparison, NULL);
    assert_int_equal(comparison != NULL, code == FRAGLAB_OK);
    fraglab_comparison_destroy(comparison);
    return code;
}

static int call_tune(void *argument)
{
    const subject *of = argument;
    const fraglab_recording *const recordings[] = {of->recording};
    fraglab_tune_options options = {
        .size = sizeof options, .settings = 3, .with_bounds = 1, .goal = of->goal};
    fraglab_tuned *tuned = NULL;
    int code = fraglab_tune(of->context, recordings, 1, of->policy, &options, &tuned, NULL);
    assert_int_equal(tuned != NULL, code == FRAGLAB_OK);
    fraglab_tuned_destroy(tuned);
    return code;
}

static int call_tune_capacity(void *argument)
{
    subject of = *(subject *)argument;
    of.goal = FRAGLAB_TUNE_MIN_CAPACITY;
    return call_tune(&of);
}

static int call_sweep(void *argument)
{
    const subject *of = argument;
    char *rows = NULL;
    fraglab_sweep_totals totals = {.size = sizeof totals};
    int code = sweep(of->context, EXPERIMENT, NULL, &rows, &totals, NULL);
    assert_int_equal(rows != NULL, code == FRAGLAB_OK);
    fraglab_free(rows);
    return code;
}

/* The second time the rows are there. */
static int call_sweep_to_file(void *argument)
{
    const subject *of = argument;
    char path[] = "/tmp/fraglab-sweep-XXXXXX";
    close(mkstemp(path));
    fraglab_sweep_options options = {.size = sizeof options, .output = path};
    static const char experiment[] =
        "{traces: [empty-with-gc.pickle], policies: [buddy], capacities: [24MiB, unlimited]}";
    int code = sweep(of->context, experiment, &options, NULL, NULL, NULL);
    if (code == FRAGLAB_OK)
        code = sweep(of->context, experiment, &options, NULL, NULL, NULL);
    unlink(path);
    return code;
}

static const struct {
    const char *name;
    frag_call_to_try *call;
} entries[] = {
    {"explain", call_explain},
    {"explain a failure", call_explain_failure},
    {"compare", call_compare},
    {"tune", call_tune},
    {"tune for capacity", call_tune_capacity},
    {"sweep", call_sweep},
    {"sweep to a file", call_sweep_to_file},
};

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    fraglab_context *context = with_threads(2);
    subject of = make_subject(NULL);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        of.context = NULL;
        frag_expect_memory_may_fail(entries[i].name, entries[i].call, &of);
        of.context = context;
        frag_expect_memory_may_fail(entries[i].name, entries[i].call, &of);
    }
    destroy_subject(&of);
    fraglab_context_destroy(context);
}

static void ends_when_it_is_told_to(void **state)
{
    (void)state;
    int left = 1;
    fraglab_context *context = to_be_cancelled(&left);
    subject of = make_subject(context);
    for (int after = 1; after <= 4; after++) {
        left = after;
        assert_int_equal(call_explain(&of), FRAGLAB_E_CANCELLED);
        left = after;
        assert_int_equal(call_tune(&of), FRAGLAB_E_CANCELLED);
        left = after;
        assert_int_equal(call_sweep(&of), FRAGLAB_E_CANCELLED);
    }
    left = -1; /* never */
    assert_int_equal(call_explain(&of), FRAGLAB_OK);
    assert_int_equal(call_tune(&of), FRAGLAB_OK);
    assert_int_equal(call_sweep(&of), FRAGLAB_OK);
    destroy_subject(&of);
    fraglab_context_destroy(context);
}

/* ---- threads */

typedef struct shared_calls {
    subject *of;
    int problems;
} shared_calls;

static void *call_on_thread(void *argument)
{
    shared_calls *calls = argument;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        calls->problems += entries[i].call(calls->of) != FRAGLAB_OK;
    return NULL;
}

static void threads_share_recordings_and_policies(void **state)
{
    (void)state;
    fraglab_context *context = with_threads(2);
    subject of = make_subject(context);
    pthread_t threads[3];
    shared_calls calls[3];
    for (size_t i = 0; i < 3; i++) {
        calls[i] = (shared_calls){.of = &of};
        assert_int_equal(pthread_create(&threads[i], NULL, call_on_thread, &calls[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(calls[i].problems, 0);
    }
    destroy_subject(&of);
    fraglab_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_too_many_threads),
        cmocka_unit_test(explains_a_recording),
        cmocka_unit_test(another_recording_leaves_this_one_as_it_was),
        cmocka_unit_test(refuses_what_cannot_be_explained),
        cmocka_unit_test(compares_rows),
        cmocka_unit_test(a_row_without_a_counterpart_is_a_finding),
        cmocka_unit_test(refuses_what_cannot_be_compared),
        cmocka_unit_test(hostile_rows_end_in_an_error_or_a_comparison),
        cmocka_unit_test(tunes_a_policy),
        cmocka_unit_test(refuses_what_cannot_be_tuned),
        cmocka_unit_test(sweeps_an_experiment),
        cmocka_unit_test(a_row_may_be_the_last),
        cmocka_unit_test(a_sweep_goes_on_where_it_ended),
        cmocka_unit_test(refuses_what_cannot_be_swept),
        cmocka_unit_test(hostile_experiments_end_in_an_error_or_rows),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
        cmocka_unit_test(ends_when_it_is_told_to),
        cmocka_unit_test(threads_share_recordings_and_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
