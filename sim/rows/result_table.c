/* The table for people, on a terminal or as Markdown: rows of one trace together, with its bound.
 */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/device/device_description.h"
#include "sim/policy_engine.h"
#include "sim/rows/result.h"

static void add_dash(frag_text_table *table)
{
    frag_text_table_add(table, "–");
}

static void add_bytes(frag_text_table *table, uint64_t bytes)
{
    frag_text_table_add(table, FRAG_BYTES(bytes));
}

static void add_over(frag_text_table *table, uint64_t bytes, uint64_t bound)
{
    if (bound > 0)
        frag_text_add(frag_text_table_cell(table), "%+.1f%%",
                      ((double)bytes / (double)bound - 1) * 100);
    else
        add_dash(table);
}

static void add_figure(frag_text_table *table, const frag_row *row, const char *form,
                       bool (*figure)(const frag_row *row, double *ratio))
{
    double ratio = 0;
    if (figure(row, &ratio))
        frag_text_add(frag_text_table_cell(table), form, 100 * ratio);
    else
        add_dash(table);
}

/* ---- the description of a trace: the parts shared with the tables of other commands */

const char *frag_result_bound_name(const frag_trace *trace)
{
    return frag_trace_bound_bytes(trace) > trace->stats.peak_requested_bytes
               ? "peak requested, failed included"
               : "peak requested";
}

void frag_result_oom_text(frag_text *text, const frag_oom *oom)
{
    frag_text_add(text, "event %s (needs %s, largest hole %s)", FRAG_COUNT(oom->event),
                  FRAG_BYTES(oom->requested_bytes), FRAG_BYTES(oom->largest_hole_bytes));
}

void frag_result_table_bounds(frag_text_table *table, const frag_row *row, uint64_t beside_bytes)
{
    uint64_t bound = frag_trace_bound_bytes(row->trace) + beside_bytes;
    const char *beside = beside_bytes > 0 ? " + used by others" : "";
    frag_text_add(frag_text_table_cell(table), "bound: %s%s", frag_result_bound_name(row->trace),
                  beside);
    add_bytes(table, bound);
    for (size_t i = 2; i < table->columns; i++)
        add_dash(table);
    if (row->packing == NULL)
        return;
    frag_text_add(frag_text_table_cell(table), "bound: offline packing%s%s",
                  row->packing->is_proved ? " (optimal)" : "", beside);
    add_bytes(table, row->packing->bytes + beside_bytes);
    add_over(table, row->packing->bytes + beside_bytes, bound);
    for (size_t i = 3; i < table->columns; i++)
        add_dash(table);
}

void frag_result_table_head(frag_result_format format, FILE *stream, const frag_row *row,
                            const char *capacity)
{
    const char *dot = " · ";
    fprintf(stream, "%s%s", format == FRAG_RESULT_TABLE ? "trace    " : "**", row->trace_name);
    if (row->trace->device > 0)
        fprintf(stream, "%sdevice %" PRIu32, dot, row->trace->device);
    if (row->recorded_by != NULL)
        fprintf(stream, "%s%s", dot, row->recorded_by);
    fprintf(stream, "%s%s request%s%speak requested %s", dot,
            FRAG_COUNT(row->trace->stats.request_count),
            row->trace->stats.request_count == 1 ? "" : "s", dot,
            FRAG_BYTES(row->trace->stats.peak_requested_bytes));
    if (row->trace->stats.observed_reserved_peak_bytes > 0)
        fprintf(stream, "%srecorded peak reserved %s", dot,
                FRAG_BYTES(row->trace->stats.observed_reserved_peak_bytes));
    fprintf(stream, "%s", format == FRAG_RESULT_TABLE ? "\ndevice   " : "** on ");
    if (row->gpu != NULL)
        fprintf(stream, "cuda:%" PRIu32 "%s%s%s%s by %s", row->gpu->ordinal, dot,
                row->gpu->facts.name, dot, capacity, row->gpu->limit);
    else
        fprintf(stream, "sim%s%s%s%s%s", dot,
                row->device->gpu != NULL ? row->device->gpu->name : "",
                row->device->gpu != NULL ? frag_device_description_mark(row->device->gpu) : "",
                row->device->gpu != NULL ? dot : "", capacity);
    if (row->device->used_by_others_bytes > 0)
        fprintf(stream, "%s%s used by others", dot, FRAG_BYTES(row->device->used_by_others_bytes));
    fputs("\n\n", stream);
}

/* ---- the table of runs */

static void add_headers(frag_text_table *table, bool has_time)
{
    static const char *const headers[] = {"policy",      "peak reserved", "over bound",
                                          "utilisation", "device calls",  "modelled time",
                                          "OOM"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (i != 5 || has_time)
            frag_text_table_add(table, headers[i]);
}

static void add_line(frag_text_table *table, const frag_row *row, bool has_time)
{
    const frag_replay_result *replay = &row->result->replay;
    frag_text_table_add(table, row->label);
    add_bytes(table, replay->peak.reserved_bytes);
    add_figure(table, row, "%+.1f%%", frag_row_over_bound);
    add_figure(table, row, "%.1f%%", frag_row_utilisation);
    frag_text_table_add(table, FRAG_COUNT(frag_run_memory_calls(row->result)));
    if (has_time)
        frag_text_add(frag_text_table_cell(table), "%.3f ms", row->result->modelled_time_ns / 1e6);
    if (replay->oom.has_happened)
        frag_result_oom_text(frag_text_table_cell(table), &replay->oom);
    else
        add_dash(table);
}

static void print_table(frag_result_format format, FILE *stream, const frag_row *rows, size_t count)
{
    /* All rows of a table are of one device. */
    bool has_time = rows[0].result->is_time_modelled;
    frag_text_table table = {.columns = has_time ? 7 : 6, .is_last_text = true};
    add_headers(&table, has_time);
    for (size_t i = 0; i < count; i++)
        add_line(&table, &rows[i], has_time);
    /* Rows that were stored may have been made with and without --bounds. */
    const frag_row *bounded = rows;
    while (bounded + 1 < rows + count && bounded->packing == NULL)
        bounded++;
    frag_result_table_bounds(&table, bounded, 0);
    frag_result_table_head(format, stream, &rows[0], FRAG_BYTES(rows[0].device->capacity_bytes));
    frag_text_table_print(&table, format == FRAG_RESULT_MARKDOWN, stream);
}

/* What the policy itself has counted, as PyTorch prints it. */
static void print_stats(frag_result_format format, FILE *stream, const frag_row *row)
{
    const frag_row_stats *stats = row->stats;
    bool is_markdown = format == FRAG_RESULT_MARKDOWN;
    fprintf(stream, is_markdown ? "\n**%s**" : "\n%s", row->label);
    if (stats->problem[0] != '\0') {
        fprintf(stream, ": no statistics: %s\n", stats->problem);
    } else if (stats->event == FRAG_UNLIMITED) {
        fputs(frag_policy_engine_of(row->ops)->statistics == NULL
                  ? ": the policy keeps no statistics\n"
                  : ": no statistics: the trace has no events\n",
              stream);
    } else {
        fprintf(stream, " after event %s (%s)\n", FRAG_COUNT(stats->event), stats->point);
        fputs(is_markdown ? "\n```\n" : "", stream);
        frag_stats_summary(&stats->values, row->trace->device, stream);
        fputs(is_markdown ? "```\n" : "", stream);
    }
}

void frag_result_table(frag_result_format format, FILE *stream, const frag_row *rows, size_t count)
{
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && rows[end].trace == rows[first].trace &&
               (rows[end].gpu == NULL) == (rows[first].gpu == NULL))
            end++;
        if (first > 0)
            fputc('\n', stream);
        print_table(format, stream, rows + first, end - first);
        for (size_t i = first; i < end; i++)
            if (rows[i].stats != NULL)
                print_stats(format, stream, &rows[i]);
        first = end;
    }
}

/* ---- two devices beside each other */

static void add_difference(frag_text *text, uint64_t sim, uint64_t gpu, bool is_bytes)
{
    uint64_t by = gpu > sim ? gpu - sim : sim - gpu;
    if (by == 0)
        frag_text_add(text, "same");
    else
        frag_text_add(text, "%s%s", gpu > sim ? "+" : "-",
                      is_bytes ? FRAG_BYTES(by) : FRAG_COUNT(by));
}

static void add_ooms(frag_text *text, const frag_oom *sim, const frag_oom *gpu)
{
    if (!sim->has_happened && !gpu->has_happened)
        frag_text_add(text, "–");
    else if (sim->has_happened && gpu->has_happened && sim->event == gpu->event)
        frag_text_add(text, "same, event %s", FRAG_COUNT(sim->event));
    else
        frag_text_add(text, "event %s on sim, %s on cuda",
                      sim->has_happened ? FRAG_COUNT(sim->event) : "none",
                      gpu->has_happened ? FRAG_COUNT(gpu->event) : "none");
}

void frag_result_compare_table(frag_result_format format, FILE *stream, const frag_row *sim,
                               const frag_row *gpu, size_t count)
{
    static const char *const headers[] = {"cuda against sim", "peak reserved", "device calls",
                                          "time in calls", "OOM"};
    const size_t columns = sizeof headers / sizeof headers[0];
    frag_text_table table = {.columns = columns, .is_last_text = true};
    frag_text_table_add_line(&table, headers);
    for (size_t i = 0; i < count; i++) {
        const frag_run_result *a = sim[i].result;
        const frag_run_result *b = gpu[i].result;
        frag_text_table_add(&table, sim[i].label);
        add_difference(frag_text_table_cell(&table), a->replay.peak.reserved_bytes,
                       b->replay.peak.reserved_bytes, true);
        add_difference(frag_text_table_cell(&table), frag_run_memory_calls(a),
                       frag_run_memory_calls(b), false);
        frag_text_add(frag_text_table_cell(&table), "%.3f ms",
                      (double)frag_run_measured_ns(b) / 1e6);
        add_ooms(frag_text_table_cell(&table), &a->replay.oom, &b->replay.oom);
    }
    fputc('\n', stream);
    frag_text_table_print(&table, format == FRAG_RESULT_MARKDOWN, stream);
}
