/* What random runs leave: their rows in every format, alone, in tables and beside each other, the
 * comparison of two files of them, their histories, and the least capacities. What was changed on
 * purpose is pinned anew:
 *
 *   test_row_answers            compares with tests/data/answers/rows.txt.zst
 *   test_row_answers --write    prints what that file should hold (make answers-golden)
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

#include "sim/replay/history.h"
#include "sim/replay/hole_series.h"
#include "sim/rows/result.h"
#include "studies/compare/comparison.h"
#include "studies/rows/result_rows.h"
#include "studies/rows/row_policy.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum { TRACES = 8, FOLDED_TRACES = 212, EVENTS_MAX = 300, POLICIES = 4 };

static const char *const names[] = {"pytorch", "best-fit", "size-class", "buddy",
                                    "tlsf",    "rmm-pool", "first-fit",  "cuda-async"};

typedef struct made_row {
    policy_case what;
    frag_policy_spec spec;
    frag_device_spec device;
    frag_run_result result;
    frag_row_stats stats;
    frag_row_packing packing;
    frag_row_gpu gpu;
    frag_row row;
    bool is_made;
} made_row;

/* What f prints, as a sum; the words themselves with is_whole. */
typedef void printer(FILE *stream, const void *what);

static void tell_printed(frag_text *out, const char *name, bool is_whole, printer *print,
                         const void *what)
{
    char *bytes = NULL;
    size_t count = 0;
    uint64_t sum = 0;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    print(stream, what);
    fclose(stream);
    pinned_add_text(&sum, bytes);
    frag_text_add(out, "  %s %08" PRIx32 "\n", name, (uint32_t)(sum >> 32));
    for (const char *line = strtok(bytes, "\n"); line != NULL && is_whole;
         line = strtok(NULL, "\n")) /* no empty ones, which are not compared */
        frag_text_add(out, "%s\n", line);
    free(bytes);
}

/* ---- rows */

typedef struct row_list {
    const frag_row *rows;
    size_t count;
    frag_result_format format;
} row_list;

static void print_rows(FILE *stream, const void *what)
{
    const row_list *list = what;
    if (list->format == FRAG_RESULT_TABLE || list->format == FRAG_RESULT_MARKDOWN) {
        frag_result_table(list->format, stream, list->rows, list->count);
        return;
    }
    frag_result_begin(list->format, stream);
    for (size_t i = 0; i < list->count; i++)
        frag_result_write(list->format, stream, &list->rows[i]);
}

static void print_columns(FILE *stream, const void *what)
{
    const row_list *list = what;
    frag_stats_columns *columns = frag_stats_columns_create();
    for (size_t i = 0; i < list->count; i++)
        frag_stats_columns_add(columns, &list->rows[i]);
    frag_stats_columns_write(columns, stream);
}

/* The first row of two as that of the simulated device, the second as that of a card. */
static void print_beside(FILE *stream, const void *what)
{
    const row_list *list = what;
    if (list->format == FRAG_RESULT_JSONL)
        frag_result_write_comparison(list->format, stream, &list->rows[0], &list->rows[1]);
    else
        frag_result_compare_table(list->format, stream, &list->rows[0], &list->rows[1], 1);
}

/* The same rows read from their file, and the policy of each. */
static void print_stored(FILE *stream, const void *what)
{
    const row_list *list = what;
    char *bytes = NULL;
    size_t count = 0;
    frag_error error = {0};
    frag_stored_rows stored = {.items = NULL};
    FILE *file = open_memstream(&bytes, &count);
    assert_non_null(file);
    print_rows(file, &(row_list){list->rows, list->count, FRAG_RESULT_JSONL});
    fclose(file);
    frag_input *input = frag_input_from_memory(bytes, count, "rows");
    assert_true(frag_stored_rows_read(input, &stored, &error));
    frag_input_close(input);
    frag_stored_rows_print(&stored, list->format, stream);
    for (size_t i = 0; i < stored.count; i++) {
        frag_policy_spec spec = {.ops = NULL};
        bool ok = frag_row_policy(stored.items[i]->json, &spec, &error);
        fprintf(stream, "%s of %zu groups\n", ok ? spec.text : error.sentence, stored.group_count);
        for (uint32_t k = 0; ok && k < spec.value_count; k++)
            fprintf(stream, "%s ", spec.values[k].text);
        if (ok)
            frag_policy_spec_destroy(&spec);
    }
    frag_stored_rows_destroy(&stored);
    free(bytes);
}

static void add_stats(made_row *made, uint64_t *bits)
{
    static const char *const keys[] = {"num_ooms", "allocated_bytes.all.current",
                                       "reserved_bytes.all.peak"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (xorshift_next(bits) % 3 != 0)
            frag_stats_add(&made->stats.values, keys[i], (int64_t)(xorshift_next(bits) >> 20));
    made->stats.event = 7;
    made->stats.point = "peak";
    made->stats.problem = "";
    made->row.stats = &made->stats;
}

static void make_row(made_row *made, const frag_recording *recording, const char *policy,
                     uint64_t *bits)
{
    const frag_trace *trace = &recording->traces[0];
    frag_error error = {0};
    made->what = policy_case_draw(frag_policy_find(policy), trace, bits);
    made->device = (frag_device_spec){
        .capacity_bytes = xorshift_next(bits) % 4 == 0 ? FRAG_UNLIMITED : made->what.capacity_bytes,
        .used_by_others_bytes = xorshift_next(bits) % 3 == 0 ? 3000000 : 0,
        .page_bytes = made->what.page_bytes,
        .fail_call = made->what.fail_call};
    if (!frag_policy_spec_parse(made->what.policy, &made->spec, &error))
        return;
    const frag_run_setup setup = {recording, trace, made->spec.ops, made->spec.values,
                                  &made->device};
    const frag_run_options options = {.is_oom_skipped = made->what.is_oom_skipped,
                                      .is_layout_skipped = xorshift_next(bits) % 4 == 0};
    made->is_made = frag_run(&setup, &options, &made->result, &error);
    made->packing =
        (frag_row_packing){trace->stats.peak_requested_bytes + 512, xorshift_next(bits) % 2 == 0};
    made->row = (frag_row){.tool_version = "1",
                           .tool_commit = "2",
                           .trace_name = "trace",
                           .trace = trace,
                           .ops = made->spec.ops,
                           .values = made->spec.values,
                           .label = policy,
                           .device = &made->device,
                           .result = &made->result,
                           .packing = xorshift_next(bits) % 2 == 0 ? &made->packing : NULL};
}

static void free_row(made_row *made)
{
    frag_stats_destroy(&made->stats.values);
    frag_policy_spec_destroy(&made->spec);
    free(made->what.policy);
}

static void tell_rows(frag_text *out, const frag_row *rows, size_t count)
{
    static const char *const formats[FRAG_RESULT_FORMAT_COUNT] = {"table", "jsonl", "csv",
                                                                  "markdown"};
    for (frag_result_format i = 0; i < FRAG_RESULT_FORMAT_COUNT; i++)
        tell_printed(out, formats[i], i == FRAG_RESULT_TABLE, print_rows,
                     &(row_list){rows, count, i});
    for (frag_result_format i = 0; i < FRAG_RESULT_FORMAT_COUNT; i++)
        tell_printed(out, "read again", false, print_stored, &(row_list){rows, count, i});
    for (size_t i = 0; i + 1 < count; i++) {
        made_row card = {.row = rows[i + 1]};
        snprintf(card.gpu.facts.name, sizeof card.gpu.facts.name, "card");
        card.gpu.limit = "card";
        card.row.gpu = &card.gpu;
        const frag_row pair[] = {rows[i], card.row};
        tell_printed(out, "beside, jsonl", true, print_beside,
                     &(row_list){pair, 2, FRAG_RESULT_JSONL});
        tell_printed(out, "beside, table", true, print_beside,
                     &(row_list){pair, 2, FRAG_RESULT_TABLE});
        tell_printed(out, "beside, read again", true, print_stored,
                     &(row_list){pair, 2, FRAG_RESULT_TABLE});
    }
}

/* ---- files of rows */

/* A file of one row, as if it were of that policy and device. */
static void write_file(char *path, const frag_row *from, const frag_device_spec *device)
{
    int file = mkstemp(path);
    FILE *stream = fdopen(file, "w");
    assert_non_null(stream);
    frag_row row = *from;
    row.label = "one";
    row.device = device;
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
    fclose(stream);
}

static void tell_comparison(frag_text *out, const frag_comparison *found)
{
    frag_text_add(out, "  %" PRIu64 " compared, %" PRIu64 " not, %" PRIu64 " new:", found->compared,
                  found->problems, found->fresh);
    for (size_t i = 0; i < found->row_count; i++) {
        const frag_compared_row *row = &found->rows[i];
        uint64_t sum = 0;
        for (size_t k = 0; k < row->metric_count; k++) {
            const frag_compared_metric *metric = &row->metrics[k];
            pinned_add_text(&sum, metric->path);
            pinned_add(&sum, metric->direction);
            pinned_add(&sum, metric->verdict);
            pinned_add(&sum, (uint64_t)(int64_t)(metric->change_ratio * 1e6));
            pinned_add(&sum, (uint64_t)(metric->base - metric->now));
        }
        frag_text_add(out, " [%s%s%s %s %08" PRIx32, row->is_missing ? "missing " : "",
                      row->is_new ? "new " : "", row->problem != NULL ? "problem" : "",
                      row->note != NULL ? "note" : "", (uint32_t)(sum >> 32));
        for (int k = 0; k < FRAG_VERDICT_COUNT; k++)
            frag_text_add(out, " %" PRIu64, row->verdicts[k]);
        frag_text_add(out, "]");
    }
    frag_text_add(out, "\n");
}

static void tell_files(frag_text *out, const frag_row *rows, size_t count)
{
    static const frag_threshold thresholds[] = {{"peak.*", 0.05, 0}, {"oom.*", 0, 1e9}};
    static const char *const metrics[] = {"peak.*", "device.*"};
    const frag_comparison_options options[] = {
        {.general = {"*", 0.01, 0}},
        {.general = {"*", 0, 100}, .thresholds = thresholds, .threshold_count = 2},
        {.general = {"*", 0.2, 4096}, .metrics = metrics, .metric_count = 2},
    };
    char base[] = "/tmp/fraglab-rows-XXXXXX";
    char now[] = "/tmp/fraglab-rows-XXXXXX";
    write_file(base, &rows[0], rows[0].device);
    write_file(now, &rows[count - 1], rows[0].device);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        frag_comparison found;
        frag_error error = {0};
        if (frag_comparison_read(base, now, &options[i], &found, &error)) {
            tell_comparison(out, &found);
            frag_comparison_destroy(&found);
        } else {
            frag_text_add(out, "  error %d in line %" PRIu64 "\n", (int)error.code, error.line);
        }
    }
    unlink(base);
    unlink(now);
}

/* ---- histories and capacities */

static void tell_history(frag_text *out, const frag_run_setup *setup, bool is_oom_skipped)
{
    frag_request_list requests;
    frag_history history;
    frag_error error = {0};
    uint64_t sums[3] = {0};
    const frag_run_options options = {.is_oom_skipped = is_oom_skipped};
    assert_true(frag_request_list_create(&requests, setup->trace, &error));
    if (frag_history_record(setup, &requests, &options, &history, &error)) {
        for (uint32_t i = 0; i < requests.count; i++) {
            pinned_add(&sums[0], history.placements[i].address);
            pinned_add(&sums[0], history.placements[i].block_bytes);
            pinned_add(&sums[0], history.placements[i].rounded_bytes);
            pinned_add(&sums[0], history.placements[i].end);
        }
        for (size_t i = 0; i < history.segment_count; i++) {
            const frag_held_segment *at = &history.segments[i];
            pinned_add(&sums[1], at->begin);
            pinned_add(&sums[1], at->end);
            pinned_add(&sums[1], at->address);
            pinned_add(&sums[1], at->bytes);
            pinned_add(&sums[1], (uint64_t)at->stream << 32 | at->pool << 1 | at->is_mapped);
        }
        for (size_t i = 0; i < history.step_count; i++) {
            pinned_add(&sums[2], history.steps[i].event);
            pinned_add(&sums[2], history.steps[i].reserved_bytes);
        }
        frag_text_add(out,
                      "  history: %" PRIu32 " requests %08" PRIx32 ", %zu segments %08" PRIx32
                      ", %zu steps %08" PRIx32 "\n",
                      requests.count, (uint32_t)(sums[0] >> 32), history.segment_count,
                      (uint32_t)(sums[1] >> 32), history.step_count, (uint32_t)(sums[2] >> 32));
        frag_history_destroy(&history);
    }
    frag_request_list_destroy(&requests);
}

/* The holes of each layout, in samples and in a grid. */
static void tell_holes(frag_text *out, const frag_run_setup *setup, bool is_oom_skipped,
                       uint64_t bits)
{
    frag_error error = {0};
    frag_hole_options options = {.trace = setup->trace, .end = setup->trace->event_count - 1};
    options.size_count = 1 + (uint32_t)(xorshift_next(&bits) % 4);
    options.every = 1 + xorshift_next(&bits) % 3;
    options.column_count = 1 + (uint32_t)(xorshift_next(&bits) % 9);
    options.log_min = 9 + (uint32_t)(xorshift_next(&bits) % 4);
    options.log_max = 18 + (uint32_t)(xorshift_next(&bits) % 8);
    options.start = xorshift_next(&bits) % 2 * (setup->trace->event_count / 3);
    for (uint32_t i = 0; i < options.size_count; i++)
        options.sizes[i] = (uint64_t)4096 << (4 * i + xorshift_next(&bits) % 4);
    options.sample_max = frag_hole_sample_min(options.size_count) + xorshift_next(&bits) % 40;
    frag_hole_series *series = frag_hole_series_create(&options);
    frag_replay_options replay = {.is_oom_skipped = is_oom_skipped,
                                  .stop_after = FRAG_UNLIMITED,
                                  .observer = frag_hole_series_observe,
                                  .observer_context = series};
    uint64_t sum = 0;
    bool ok = frag_run_look(setup, &replay, NULL, NULL, &error);
    size_t count = ok ? frag_hole_series_finish(series) : 0;
    for (size_t i = 0; i < count; i++) {
        frag_hole_sample at = frag_hole_series_sample(series, i);
        pinned_add(&sum, at.event);
        pinned_add(&sum, at.level.reserved_bytes);
        pinned_add(&sum, at.free_bytes);
        pinned_add(&sum, at.largest_hole_bytes);
        pinned_add(&sum, at.hole_count);
        for (uint32_t k = 0; k < options.size_count; k++)
            pinned_add(&sum, at.small_bytes[k]);
    }
    for (uint32_t column = 0; ok && column < options.column_count; column++)
        for (uint32_t log = options.log_min; log <= options.log_max; log++)
            pinned_add(&sum, (uint64_t)(int64_t)(frag_hole_series_mean(series, column, log) * 1e9));
    frag_text_add(out, "  holes: %zu samples %08" PRIx32 "\n", count, (uint32_t)(sum >> 32));
    frag_hole_series_destroy(series);
}

/* After so many questions; a search among sizes of 2^60 would take days. */
static bool cancels(void *user)
{
    unsigned *left = user;
    return *left == 0 || --*left == 0;
}

static void tell_capacity(frag_text *out, const frag_run_setup *setup, unsigned questions)
{
    frag_capacity_result found;
    frag_error error = {0};
    const frag_context context = {.is_cancelled = cancels, .user = &questions};
    if (!frag_find_capacity(setup, NULL, &context, &found, &error)) {
        frag_text_add(out, "  capacity: error %d\n", (int)error.code);
        return;
    }
    frag_text_add(out,
                  "  capacity: %d %" PRIu64 ", below %d at %" PRIu64 ", %d %" PRIu64 " %" PRIu64
                  ", %" PRIu64 " runs",
                  found.is_found, found.capacity_bytes, found.has_below, found.below.event,
                  found.is_monotone, found.failing_above_bytes, found.enough_bytes, found.runs);
    for (int i = 0; i < 2; i++) {
        uint64_t give_up = found.capacity_bytes - (i == 0 ? 0 : 1);
        frag_capacity_result least;
        if (frag_find_least_capacity(setup, NULL, give_up, &context, &least, &error))
            frag_text_add(out, ", %d %" PRIu64 "%s", least.is_found, least.capacity_bytes,
                          least.is_given_up ? " given up" : "");
    }
    frag_text_add(out, "\n");
}

static void tell_trace(frag_text *out, const random_trace *trace, uint64_t seed)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    made_row made[POLICIES] = {0};
    frag_row rows[POLICIES];
    size_t count = 0;
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    random_trace_write(trace, &text);
    frag_test_load_well(text.bytes, &recording, &findings);
    frag_text_add(out, "trace %" PRIu64 "\n", seed);
    for (size_t i = 0; i < POLICIES; i++) {
        const char *name = names[(seed + i * 3) % (sizeof names / sizeof names[0])];
        make_row(&made[i], &recording, name, &bits);
        if (!made[i].is_made)
            continue;
        if (seed % 3 == 0)
            add_stats(&made[i], &bits);
        frag_text_add(out, " %s\n", made[i].what.policy);
        const frag_run_setup setup = {&recording, &recording.traces[0], made[i].spec.ops,
                                      made[i].spec.values, &made[i].device};
        tell_history(out, &setup, made[i].what.is_oom_skipped);
        tell_holes(out, &setup, made[i].what.is_oom_skipped, bits);
        tell_capacity(out, &setup, seed % 10 == 0 ? 3 : 400);
        rows[count++] = made[i].row;
    }
    tell_rows(out, rows, count);
    if (count > 0) {
        if (rows[0].stats != NULL)
            tell_printed(out, "statistics", true, print_columns,
                         &(row_list){rows, count, FRAG_RESULT_CSV});
        tell_files(out, rows, count);
    }
    for (size_t i = 0; i < POLICIES; i++)
        free_row(&made[i]);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void tell_all(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 12001; count < TRACES + FOLDED_TRACES; seed++) {
        size_t from = out->length;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        tell_trace(out, &trace, seed);
        if (count >= TRACES)
            pinned_fold(out, from, "one more");
        count++;
    }
    random_trace_destroy(&trace);
}

static const pinned_lines pinned = {"tests/data/answers/rows.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
