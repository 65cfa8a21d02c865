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

#define COLUMN_COUNT 6

static const char *const headers[COLUMN_COUNT] = {
    "policy", "peak reserved", "over bound", "utilisation", "device calls", "OOM",
};

typedef struct cells {
    frag_text columns[COLUMN_COUNT];
} cells;

static uint64_t memory_calls(const frag_run_result *result)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++)
        if (frag_device_call_moves_memory((frag_device_call)i))
            sum += result->calls[i];
    return sum;
}

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
    frag_text_add(&line->columns[4], "%s", frag_count_text(memory_calls(row->result), a));
    if (replay->oom.has_happened)
        frag_text_add(&line->columns[5], "event %s (needs %s, largest hole %s)",
                      frag_count_text(replay->oom.event, a),
                      frag_bytes_text(replay->oom.requested_bytes, b),
                      frag_bytes_text(replay->oom.largest_hole_bytes, c));
    else
        frag_text_add(&line->columns[5], "–");
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

static void print_line(FILE *stream, const cells *line, const int *widths)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (i > 0)
            fputs("   ", stream);
        print_cell(stream, line->columns[i].bytes, widths[i], i == 0 || i == COLUMN_COUNT - 1,
                   i == COLUMN_COUNT - 1);
    }
    fputc('\n', stream);
}

static void print_markdown(FILE *stream, const cells *line)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        fputs(i == 0 ? "| " : " | ", stream);
        for (const char *at = line->columns[i].bytes; *at != '\0'; at++) {
            if (*at == '|')
                fputc('\\', stream);
            fputc(*at, stream);
        }
    }
    fputs(" |\n", stream);
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
    fprintf(stream, "%s%s requests%speak requested %s", dot,
            frag_count_text(row->trace->stats.request_count, a), dot,
            frag_bytes_text(row->trace->stats.peak_requested_bytes, b));
    if (row->trace->stats.observed_reserved_peak_bytes > 0)
        fprintf(stream, "%srecorded peak reserved %s", dot,
                frag_bytes_text(row->trace->stats.observed_reserved_peak_bytes, a));
    fprintf(stream, "%s", format == FRAG_RESULT_TABLE ? "\ndevice   " : "** on ");
    fprintf(stream, "sim%s", dot);
    if (row->device->gpu != NULL)
        fprintf(stream, "%s%s", row->device->gpu->name, dot);
    fprintf(stream, "%s", frag_bytes_text(row->device->capacity_bytes, a));
    if (row->device->used_by_others_bytes > 0)
        fprintf(stream, "%s%s used by others", dot,
                frag_bytes_text(row->device->used_by_others_bytes, a));
    fputs("\n\n", stream);
}

static void print_table(frag_result_format format, FILE *stream, const frag_row *rows, size_t count)
{
    size_t line_count = count + 2; /* the header above, the bound below */
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
    int widths[COLUMN_COUNT] = {0};
    for (size_t i = 0; i < line_count; i++)
        for (int j = 0; j < COLUMN_COUNT; j++) {
            int width = width_of(lines[i].columns[j].bytes);
            widths[j] = width > widths[j] ? width : widths[j];
        }
    print_head(format, stream, &rows[0]);
    for (size_t i = 0; i < line_count; i++) {
        if (format == FRAG_RESULT_MARKDOWN)
            print_markdown(stream, &lines[i]);
        else
            print_line(stream, &lines[i], widths);
        if (i == 0 && format == FRAG_RESULT_MARKDOWN)
            fputs("| --- | ---: | ---: | ---: | ---: | --- |\n", stream);
    }
    for (size_t i = 0; i < line_count; i++)
        for (int j = 0; j < COLUMN_COUNT; j++)
            frag_text_destroy(&lines[i].columns[j]);
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
        while (end < count && rows[end].trace == rows[first].trace)
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
