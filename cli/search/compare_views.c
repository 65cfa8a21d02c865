#include "cli/search/compare_views.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text_table.h"

/* ---- words */

/* In the unit that the metric's name says. */
static void add_value(frag_text *text, const frag_compared_metric *metric, bool has, double value)
{
    if (!has)
        frag_text_add(text, "%s", strcmp(metric->path, "oom.event") == 0 ? "none" : "–");
    else if (frag_text_ends(metric->path, "_bytes") && value >= 0 && value < 0x1p53)
        frag_text_add(text, "%s", FRAG_BYTES((uint64_t)value));
    else if (frag_text_ends(metric->path, "_ratio") || frag_text_ends(metric->path, "_ratio_max"))
        frag_text_add(text, "%.4f", value);
    else if (value >= 0 && value < 0x1p53 && value == floor(value))
        frag_text_add(text, "%s", FRAG_COUNT((uint64_t)value));
    else
        frag_text_add(text, "%.9g", value);
}

static void add_change(frag_text *text, const frag_compared_metric *metric)
{
    if (!metric->has_base || !metric->has_now)
        frag_text_add(text, "–");
    else if (isinf(metric->change_ratio))
        frag_text_add(text, "from 0");
    else
        frag_text_add(text, "%+.2f%%", 100 * metric->change_ratio);
}

static const char *verdict_words(frag_verdict verdict)
{
    return verdict == FRAG_VERDICT_WITHIN    ? "within the threshold"
           : verdict == FRAG_VERDICT_UNKNOWN ? "only one of the two says"
                                             : frag_verdict_name(verdict);
}

static void add_summary(frag_text *text, const frag_comparison *comparison)
{
    uint64_t metrics = 0;
    for (size_t v = 0; v < FRAG_VERDICT_COUNT; v++)
        metrics += comparison->verdicts[v];
    frag_text_add(text, "%s of %s metrics worse, %s better",
                  FRAG_COUNT(comparison->verdicts[FRAG_VERDICT_WORSE]), FRAG_COUNT(metrics),
                  FRAG_COUNT(comparison->verdicts[FRAG_VERDICT_BETTER]));
    if (comparison->verdicts[FRAG_VERDICT_WITHIN] > 0)
        frag_text_add(text, ", %s within their thresholds",
                      FRAG_COUNT(comparison->verdicts[FRAG_VERDICT_WITHIN]));
    if (comparison->verdicts[FRAG_VERDICT_UNKNOWN] > 0)
        frag_text_add(text, ", %s that only one side has",
                      FRAG_COUNT(comparison->verdicts[FRAG_VERDICT_UNKNOWN]));
    frag_text_add(text, "; %s row%s compared", FRAG_COUNT(comparison->compared),
                  comparison->compared == 1 ? "" : "s");
    if (comparison->problems > 0)
        frag_text_add(text, ", %s could not be", FRAG_COUNT(comparison->problems));
    if (comparison->fresh > 0)
        frag_text_add(text, ", %s new", FRAG_COUNT(comparison->fresh));
}

static const frag_verdict shown_order[] = {FRAG_VERDICT_WORSE, FRAG_VERDICT_UNKNOWN,
                                           FRAG_VERDICT_BETTER, FRAG_VERDICT_WITHIN,
                                           FRAG_VERDICT_SAME};

static size_t shown_kinds(const frag_compare_view *view)
{
    return view->shows_all ? sizeof shown_order / sizeof shown_order[0] : 3;
}

/* ---- table and Markdown: lines of cells, padded in the table */

#define COLUMN_COUNT 6

static const char *const headers[COLUMN_COUNT] = {"trace", "policy", "metric",
                                                  "base",  "now",    "change"};

typedef struct line {
    frag_text cells[COLUMN_COUNT];
    frag_verdict verdict;
} line;

typedef struct lines {
    line *items;
    size_t count;
    size_t capacity;
} lines;

static void add_line(lines *into, const frag_compared_row *row, const frag_compared_metric *metric)
{
    line *item = FRAG_APPEND(into->items, into->count, into->capacity);
    *item = (line){.verdict = metric->verdict};
    frag_text_add(&item->cells[0], "%s", row->trace);
    frag_text_add(&item->cells[1], "%s", row->policy);
    frag_text_add(&item->cells[2], "%s", metric->path);
    add_value(&item->cells[3], metric, metric->has_base, metric->base);
    add_value(&item->cells[4], metric, metric->has_now, metric->now);
    add_change(&item->cells[5], metric);
}

static void collect(lines *into, const frag_comparison *comparison, frag_verdict verdict)
{
    for (size_t i = 0; i < comparison->row_count; i++)
        for (size_t m = 0; m < comparison->rows[i].metric_count; m++)
            if (comparison->rows[i].metrics[m].verdict == verdict)
                add_line(into, &comparison->rows[i], &comparison->rows[i].metrics[m]);
}

static void free_lines(lines *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t c = 0; c < COLUMN_COUNT; c++)
            frag_text_destroy(&list->items[i].cells[c]);
    frag_free(list->items);
}

static void print_padded(FILE *stream, const char *text, int width, bool is_right)
{
    int own = frag_text_width(text), space = width > own ? width - own : 0;
    if (is_right)
        fprintf(stream, "%*s%s", space, "", text);
    else
        fprintf(stream, "%s%*s", text, space, "");
}

void frag_compare_print_table(FILE *stream, const frag_comparison *comparison,
                              const frag_compare_view *view)
{
    lines list = {0};
    int widths[COLUMN_COUNT];
    for (size_t v = 0; v < shown_kinds(view); v++)
        collect(&list, comparison, shown_order[v]);
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        widths[c] = frag_text_width(headers[c]);
        for (size_t i = 0; i < list.count; i++)
            if (frag_text_width(list.items[i].cells[c].bytes) > widths[c])
                widths[c] = frag_text_width(list.items[i].cells[c].bytes);
    }
    for (size_t i = 0; i < list.count; i++) {
        bool is_first = i == 0 || list.items[i - 1].verdict != list.items[i].verdict;
        for (size_t c = 0; is_first && c < COLUMN_COUNT; c++) {
            fputs(c == 0 ? (i == 0 ? "" : "\n") : "  ", stream);
            print_padded(stream, c == 0 ? verdict_words(list.items[i].verdict) : headers[c],
                         widths[c], c >= 3);
        }
        for (size_t c = 0; c < COLUMN_COUNT; c++) {
            fputs(c == 0 ? "\n" : "  ", stream);
            print_padded(stream, list.items[i].cells[c].bytes, widths[c], c >= 3);
        }
        if (i + 1 == list.count || list.items[i + 1].verdict != list.items[i].verdict)
            fputc('\n', stream);
    }
    for (size_t i = 0; i < comparison->row_count; i++) {
        const frag_compared_row *row = &comparison->rows[i];
        if (row->problem != NULL)
            fprintf(stream, "%s%s, %s: %s\n", row->is_new ? "new: " : "not compared: ", row->trace,
                    row->policy, row->problem);
        else if (row->note != NULL)
            fprintf(stream, "note: %s, %s: %s\n", row->trace, row->policy, row->note);
    }
    frag_text summary = {0};
    add_summary(&summary, comparison);
    fprintf(stream, "%s%s\n", list.count > 0 ? "\n" : "", summary.bytes);
    frag_text_destroy(&summary);
    free_lines(&list);
}

/* In a cell of a Markdown table no character means anything but itself. */
static void print_markdown_cell(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\`*_|<>[]#~", *text) != NULL)
            fputc('\\', stream);
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, stream);
    }
}

void frag_compare_print_markdown(FILE *stream, const frag_comparison *comparison,
                                 const frag_compare_view *view)
{
    frag_text summary = {0};
    add_summary(&summary, comparison);
    fprintf(stream, "**fraglab: %s**\n", summary.bytes);
    frag_text_destroy(&summary);
    for (size_t v = 0; v < shown_kinds(view); v++) {
        lines list = {0};
        collect(&list, comparison, shown_order[v]);
        if (list.count > 0)
            fprintf(stream,
                    "\n%s:\n\n| trace | policy | metric | base | now | change |\n"
                    "| --- | --- | --- | ---: | ---: | ---: |\n",
                    verdict_words(shown_order[v]));
        for (size_t i = 0; i < list.count; i++) {
            for (size_t c = 0; c < COLUMN_COUNT; c++) {
                fputs("| ", stream);
                print_markdown_cell(stream, list.items[i].cells[c].bytes);
                fputc(' ', stream);
            }
            fputs("|\n", stream);
        }
        free_lines(&list);
    }
    bool is_first = true;
    for (size_t i = 0; i < comparison->row_count; i++) {
        const frag_compared_row *row = &comparison->rows[i];
        if (row->problem == NULL && row->note == NULL)
            continue;
        fputs(is_first ? "\n* " : "* ", stream);
        is_first = false;
        print_markdown_cell(stream, row->trace);
        fputs(", ", stream);
        print_markdown_cell(stream, row->policy);
        fputs(row->problem == NULL ? ": " : row->is_new ? ", new: " : ", not compared: ", stream);
        print_markdown_cell(stream, row->problem != NULL ? row->problem : row->note);
        fputc('\n', stream);
    }
}

/* ---- JUnit */

/* Bytes that no XML may hold become '?'. */
static void print_xml(FILE *stream, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = frag_text_sequence(at, left);
        bool is_control = length == 1 && (*at < 0x20 || *at == 0x7F);
        /* U+FFFE and U+FFFF are no characters. */
        bool is_none = length == 3 && at[0] == 0xEF && at[1] == 0xBF && at[2] >= 0xBE;
        if (length == 0 || is_control || is_none)
            fputc('?', stream);
        else if (*at == '&')
            fputs("&amp;", stream);
        else if (*at == '<')
            fputs("&lt;", stream);
        else if (*at == '>')
            fputs("&gt;", stream);
        else if (*at == '"')
            fputs("&quot;", stream);
        else
            fwrite(at, 1, length, stream);
        length = length == 0 ? 1 : length;
        at += length;
        left -= length;
    }
}

static void begin_case(FILE *stream, const frag_compared_row *row, const char *name)
{
    fputs("  <testcase classname=\"", stream);
    print_xml(stream, row->trace);
    fputs(" · ", stream);
    print_xml(stream, row->policy);
    fputs("\" name=\"", stream);
    print_xml(stream, name);
    fputs("\">", stream);
}

static void print_case(FILE *stream, const frag_compared_row *row,
                       const frag_compared_metric *metric)
{
    frag_text words = {0};
    add_value(&words, metric, metric->has_base, metric->base);
    frag_text_add(&words, " → ");
    add_value(&words, metric, metric->has_now, metric->now);
    frag_text_add(&words, " (");
    add_change(&words, metric);
    frag_text_add(&words, ")");
    begin_case(stream, row, metric->path);
    bool is_failed = metric->verdict == FRAG_VERDICT_WORSE;
    bool is_skipped = metric->verdict == FRAG_VERDICT_UNKNOWN;
    if (is_failed || is_skipped) {
        fprintf(stream, "<%s message=\"", is_failed ? "failure" : "skipped");
        print_xml(stream, words.bytes);
        fputs("\"/>", stream);
    }
    fputs("</testcase>\n", stream);
    frag_text_destroy(&words);
}

void frag_compare_print_junit(FILE *stream, const frag_comparison *comparison,
                              const frag_compare_view *view)
{
    uint64_t tests = comparison->problems + comparison->fresh;
    uint64_t failures = comparison->verdicts[FRAG_VERDICT_WORSE];
    uint64_t skipped = comparison->verdicts[FRAG_VERDICT_UNKNOWN] + comparison->fresh;
    for (size_t v = 0; v < FRAG_VERDICT_COUNT; v++)
        tests += comparison->verdicts[v];
    failures += view->is_missing_a_fault ? comparison->problems : 0;
    skipped += view->is_missing_a_fault ? 0 : comparison->problems;
    fprintf(stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"fraglab compare\" "
            "tests=\"%" PRIu64 "\" failures=\"%" PRIu64 "\" skipped=\"%" PRIu64
            "\" errors=\"0\">\n",
            tests, failures, skipped);
    for (size_t i = 0; i < comparison->row_count; i++) {
        const frag_compared_row *row = &comparison->rows[i];
        for (size_t m = 0; m < row->metric_count; m++)
            print_case(stream, row, &row->metrics[m]);
        if (row->problem == NULL)
            continue;
        begin_case(stream, row, "row");
        fprintf(stream, "<%s message=\"",
                view->is_missing_a_fault && !row->is_new ? "failure" : "skipped");
        print_xml(stream, row->problem);
        fputs("\"/></testcase>\n", stream);
    }
    fputs("</testsuite>\n", stream);
}

/* ---- GitHub */

/* is_property: in the part before "::", where ',' and ':' end a value. */
static void print_github(FILE *stream, const char *text, bool is_property)
{
    for (; *text != '\0'; text++)
        if (strchr(is_property ? "%\r\n:," : "%\r\n", *text) != NULL)
            fprintf(stream, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, stream);
}

static void print_annotation(FILE *stream, const char *kind, const frag_compared_row *row,
                             const char *words)
{
    fprintf(stream, "::%s title=fraglab%%3A ", kind);
    print_github(stream, row->trace, true);
    fputs("::", stream);
    print_github(stream, row->policy, false);
    fputs(": ", stream);
    print_github(stream, words, false);
    fputc('\n', stream);
}

void frag_compare_print_github(FILE *stream, const frag_comparison *comparison,
                               const frag_compare_view *view)
{
    for (size_t i = 0; i < comparison->row_count; i++) {
        const frag_compared_row *row = &comparison->rows[i];
        for (size_t m = 0; m < row->metric_count; m++) {
            const frag_compared_metric *metric = &row->metrics[m];
            if (metric->verdict != FRAG_VERDICT_WORSE)
                continue;
            frag_text words = {0};
            frag_text_add(&words, "%s is worse: ", metric->path);
            add_value(&words, metric, metric->has_base, metric->base);
            frag_text_add(&words, " before, ");
            add_value(&words, metric, metric->has_now, metric->now);
            frag_text_add(&words, " now (");
            add_change(&words, metric);
            frag_text_add(&words, ")");
            print_annotation(stream, "error", row, words.bytes);
            frag_text_destroy(&words);
        }
        if (row->problem != NULL && !row->is_new)
            print_annotation(stream, view->is_missing_a_fault ? "error" : "warning", row,
                             row->problem);
        else if (row->note != NULL)
            print_annotation(stream, "notice", row, row->note);
    }
}
