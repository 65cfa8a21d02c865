/* The table for people, on a terminal or as Markdown: rows of one trace together, with its bound.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "sim/base/text.h"
#include "sim/device_description.h"
#include "sim/result.h"

#define COLUMN_COUNT 7
#define TIME_COLUMN 5 /* left out where no time is modelled */

static const char *const headers[COLUMN_COUNT] = {
    "policy", "peak reserved", "over bound", "utilisation", "device calls", "modelled time", "OOM",
};

typedef struct cells {
    frag_text columns[COLUMN_COUNT];
} cells;

static void fill_cells(cells *line, const frag_row *row)
{
    const frag_replay_result *replay = &row->result->replay;
    uint64_t bound = row->trace->stats.peak_requested_bytes;
    char a[FRAG_BYTES_TEXT_MAX];
    char b[FRAG_BYTES_TEXT_MAX];
    char c[FRAG_BYTES_TEXT_MAX];
    frag_text_add(&line->columns[0], "%s", row->label);
    frag_text_add(&line->columns[1], "%s", frag_bytes_text(replay->peak.reserved_bytes, a));
    /* After an OOM the run ended early: its peak says nothing about the whole trace. */
    if (bound > 0 && !replay->oom.has_happened)
        frag_text_add(&line->columns[2], "%+.1f%%",
                      ((double)replay->peak.reserved_bytes / (double)bound - 1) * 100);
    else
        frag_text_add(&line->columns[2], "–");
    if (replay->peak.reserved_bytes > 0)
        frag_text_add(&line->columns[3], "%.1f%%",
                      100 * (double)replay->peak.allocated_bytes /
                          (double)replay->peak.reserved_bytes);
    else
        frag_text_add(&line->columns[3], "–");
    frag_text_add(&line->columns[4], "%s", frag_count_text(frag_run_memory_calls(row->result), a));
    if (row->result->is_time_modelled)
        frag_text_add(&line->columns[TIME_COLUMN], "%.3f ms", row->result->modelled_time_ns / 1e6);
    if (replay->oom.has_happened)
        frag_text_add(&line->columns[6], "event %s (needs %s, largest hole %s)",
                      frag_count_text(replay->oom.event, a),
                      frag_bytes_text(replay->oom.requested_bytes, b),
                      frag_bytes_text(replay->oom.largest_hole_bytes, c));
    else
        frag_text_add(&line->columns[6], "–");
}

static void leave_out_time(cells *line)
{
    frag_text_destroy(&line->columns[TIME_COLUMN]);
    memmove(&line->columns[TIME_COLUMN], &line->columns[TIME_COLUMN + 1],
            (COLUMN_COUNT - TIME_COLUMN - 1) * sizeof line->columns[0]);
    line->columns[COLUMN_COUNT - 1] = (frag_text){0};
}

/* The last line: what a policy needs that knows the future. */
static void fill_packing(cells *line, const frag_row *row)
{
    char text[FRAG_BYTES_TEXT_MAX];
    uint64_t bound = row->trace->stats.peak_requested_bytes;
    frag_text_add(&line->columns[0], "bound: offline packing%s",
                  row->packing->is_proved ? " (optimal)" : "");
    frag_text_add(&line->columns[1], "%s", frag_bytes_text(row->packing->bytes, text));
    if (bound > 0)
        frag_text_add(&line->columns[2], "%+.1f%%",
                      ((double)row->packing->bytes / (double)bound - 1) * 100);
    for (int i = bound > 0 ? 3 : 2; i < COLUMN_COUNT; i++)
        frag_text_add(&line->columns[i], "–");
}

/* Columns of a terminal: UTF-8 continuation bytes take none. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
    return width;
}

static void print_cell(FILE *stream, const char *text, int width, bool is_left, bool is_last)
{
    int pad = width - width_of(text);
    if (is_left)
        fprintf(stream, "%s%*s", text, is_last || pad < 0 ? 0 : pad, "");
    else
        fprintf(stream, "%*s%s", pad < 0 ? 0 : pad, "", text);
}

static void print_line(FILE *stream, const cells *line, const int *widths, int columns)
{
    for (int i = 0; i < columns; i++) {
        if (i > 0)
            fputs("   ", stream);
        print_cell(stream, line->columns[i].bytes, widths[i], i == 0 || i == columns - 1,
                   i == columns - 1);
    }
    fputc('\n', stream);
}

static void print_markdown(FILE *stream, const cells *line, int columns)
{
    for (int i = 0; i < columns; i++) {
        fputs(i == 0 ? "| " : " | ", stream);
        for (const char *at = line->columns[i].bytes; *at != '\0'; at++) {
            if (*at == '|')
                fputc('\\', stream);
            fputc(*at, stream);
        }
    }
    fputs(" |\n", stream);
}

/* All lines, the first of which is the header, in columns of one width each; drops them. */
static void print_lines(frag_result_format format, FILE *stream, cells *lines, size_t count,
                        int columns)
{
    int widths[COLUMN_COUNT] = {0};
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < columns; j++) {
            int width = width_of(lines[i].columns[j].bytes);
            widths[j] = width > widths[j] ? width : widths[j];
        }
    for (size_t i = 0; i < count; i++) {
        if (format == FRAG_RESULT_MARKDOWN)
            print_markdown(stream, &lines[i], columns);
        else
            print_line(stream, &lines[i], widths, columns);
        for (int j = 0; i == 0 && format == FRAG_RESULT_MARKDOWN && j < columns; j++)
            fputs(j == 0 ? "| --- |" : j == columns - 1 ? " --- |\n" : " ---: |", stream);
        for (int j = 0; j < columns; j++)
            frag_text_destroy(&lines[i].columns[j]);
    }
}

static void print_head(frag_result_format format, FILE *stream, const frag_row *row)
{
    char a[FRAG_BYTES_TEXT_MAX];
    char b[FRAG_BYTES_TEXT_MAX];
    const char *dot = " · ";
    fprintf(stream, "%s%s", format == FRAG_RESULT_TABLE ? "trace    " : "**", row->trace_name);
    if (row->trace->device > 0)
        fprintf(stream, "%sdevice %" PRIu32, dot, row->trace->device);
    if (row->recorded_by != NULL)
        fprintf(stream, "%s%s", dot, row->recorded_by);
    fprintf(stream, "%s%s request%s%speak requested %s", dot,
            frag_count_text(row->trace->stats.request_count, a),
            row->trace->stats.request_count == 1 ? "" : "s", dot,
            frag_bytes_text(row->trace->stats.peak_requested_bytes, b));
    if (row->trace->stats.observed_reserved_peak_bytes > 0)
        fprintf(stream, "%srecorded peak reserved %s", dot,
                frag_bytes_text(row->trace->stats.observed_reserved_peak_bytes, a));
    fprintf(stream, "%s", format == FRAG_RESULT_TABLE ? "\ndevice   " : "** on ");
    if (row->gpu != NULL)
        fprintf(stream, "cuda:%" PRIu32 "%s%s%s%s by %s", row->gpu->ordinal, dot,
                row->gpu->facts.name, dot, frag_bytes_text(row->device->capacity_bytes, a),
                row->gpu->limit);
    else
        fprintf(stream, "sim%s%s%s%s", dot, row->device->gpu != NULL ? row->device->gpu->name : "",
                row->device->gpu != NULL ? dot : "",
                frag_bytes_text(row->device->capacity_bytes, a));
    if (row->device->used_by_others_bytes > 0)
        fprintf(stream, "%s%s used by others", dot,
                frag_bytes_text(row->device->used_by_others_bytes, a));
    fputs("\n\n", stream);
}

static void print_table(frag_result_format format, FILE *stream, const frag_row *rows, size_t count)
{
    const frag_row_packing *packing = rows[0].packing;
    /* The header above, the bounds below. */
    size_t line_count = count + 2 + (packing != NULL ? 1 : 0);
    cells *lines = frag_alloc(line_count, sizeof *lines);
    for (int i = 0; i < COLUMN_COUNT; i++)
        frag_text_add(&lines[0].columns[i], "%s", headers[i]);
    for (size_t i = 0; i < count; i++)
        fill_cells(&lines[i + 1], &rows[i]);
    char bound[FRAG_BYTES_TEXT_MAX];
    frag_bytes_text(rows[0].trace->stats.peak_requested_bytes, bound);
    for (int i = 0; i < COLUMN_COUNT; i++)
        frag_text_add(&lines[count + 1].columns[i], "%s",
                      i == 0   ? "bound: peak requested"
                      : i == 1 ? bound
                               : "–");
    if (packing != NULL)
        fill_packing(&lines[count + 2], &rows[0]);
    /* All rows of a table are of one device. */
    int columns = rows[0].result->is_time_modelled ? COLUMN_COUNT : COLUMN_COUNT - 1;
    for (size_t i = 0; columns < COLUMN_COUNT && i < line_count; i++)
        leave_out_time(&lines[i]);
    print_head(format, stream, &rows[0]);
    print_lines(format, stream, lines, line_count, columns);
    free(lines);
}

/* What the policy itself has counted, as PyTorch prints it. */
static void print_stats(frag_result_format format, FILE *stream, const frag_row *row)
{
    const frag_row_stats *stats = row->stats;
    bool is_markdown = format == FRAG_RESULT_MARKDOWN;
    char count[FRAG_BYTES_TEXT_MAX];
    fprintf(stream, is_markdown ? "\n**%s**" : "\n%s", row->label);
    if (stats->problem[0] != '\0') {
        fprintf(stream, ": no statistics: %s\n", stats->problem);
    } else if (stats->event == FRAG_UNLIMITED) {
        fputs(row->ops->stats == NULL ? ": the policy keeps no statistics\n"
                                      : ": no statistics: the trace has no events\n",
              stream);
    } else {
        fprintf(stream, " after event %s (%s)\n", frag_count_text(stats->event, count),
                stats->point);
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

#define COMPARED_COUNT 5

static const char *const compared_headers[COMPARED_COUNT] = {
    "cuda against sim", "peak reserved", "device calls", "time in calls", "OOM",
};

static void add_difference(frag_text *text, uint64_t sim, uint64_t gpu, bool is_bytes)
{
    char a[FRAG_BYTES_TEXT_MAX];
    uint64_t by = gpu > sim ? gpu - sim : sim - gpu;
    if (by == 0)
        frag_text_add(text, "same");
    else
        frag_text_add(text, "%s%s", gpu > sim ? "+" : "-",
                      is_bytes ? frag_bytes_text(by, a) : frag_count_text(by, a));
}

static void add_ooms(frag_text *text, const frag_oom *sim, const frag_oom *gpu)
{
    char a[FRAG_BYTES_TEXT_MAX];
    char b[FRAG_BYTES_TEXT_MAX];
    if (!sim->has_happened && !gpu->has_happened)
        frag_text_add(text, "–");
    else if (sim->has_happened && gpu->has_happened && sim->event == gpu->event)
        frag_text_add(text, "same, event %s", frag_count_text(sim->event, a));
    else
        frag_text_add(text, "event %s on sim, %s on cuda",
                      sim->has_happened ? frag_count_text(sim->event, a) : "none",
                      gpu->has_happened ? frag_count_text(gpu->event, b) : "none");
}

void frag_result_compare_table(frag_result_format format, FILE *stream, const frag_row *sim,
                               const frag_row *gpu, size_t count)
{
    cells *lines = frag_alloc(count + 1, sizeof *lines);
    for (int i = 0; i < COMPARED_COUNT; i++)
        frag_text_add(&lines[0].columns[i], "%s", compared_headers[i]);
    for (size_t i = 0; i < count; i++) {
        frag_text *columns = lines[i + 1].columns;
        const frag_run_result *a = sim[i].result;
        const frag_run_result *b = gpu[i].result;
        frag_text_add(&columns[0], "%s", sim[i].label);
        add_difference(&columns[1], a->replay.peak.reserved_bytes, b->replay.peak.reserved_bytes,
                       true);
        add_difference(&columns[2], frag_run_memory_calls(a), frag_run_memory_calls(b), false);
        frag_text_add(&columns[3], "%.3f ms", (double)frag_run_measured_ns(b) / 1e6);
        add_ooms(&columns[4], &a->replay.oom, &b->replay.oom);
    }
    fputc('\n', stream);
    print_lines(format, stream, lines, count + 1, COMPARED_COUNT);
    free(lines);
}
