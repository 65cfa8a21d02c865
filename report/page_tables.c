/* Figures, tables and bars of one trace, as plain HTML that needs no script. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "report/markup.h"
#include "report/page_view.h"
#include "sim/device/device_description.h"

enum { BAR_WIDTH = 1000, BAR_HEIGHT = 22 };

typedef struct part {
    const char *key; /* class of its colour */
    const char *name;
    uint64_t bytes;
} part;

enum { PART_COUNT = 7 };

static void list_parts(const frag_decomposition *from, part parts[PART_COUNT])
{
    parts[0] = (part){"requested", "requested", from->requested_bytes};
    parts[1] = (part){"rounding", "rounding", from->rounding_bytes};
    parts[2] = (part){"unsplit", "unsplit", from->unsplit_bytes};
    parts[3] = (part){"holes", "holes", from->holes_bytes};
    parts[4] = (part){"cached", "cached", from->cached_bytes};
    parts[5] = (part){"waiting", "waiting", from->waiting_bytes};
    parts[6] = (part){"slack", "page slack", from->page_slack_bytes};
}

static void write_fact(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "<div><dt>%s</dt><dd>", name);
    frag_markup_text(stream, value);
    fputs("</dd></div>\n", stream);
}

static void write_byte_fact(FILE *stream, const char *name, uint64_t bytes)
{
    fprintf(stream, "<div><dt>%s</dt><dd title=\"%" PRIu64 " bytes\">%s</dd></div>\n", name, bytes,
            FRAG_BYTES(bytes));
}

static void write_facts(const frag_page_trace *page, FILE *stream)
{
    const frag_row *row = &page->runs[0].row;
    const frag_trace *trace = row->trace;
    fputs("<dl class=\"facts\">\n", stream);
    if (page->explanation != NULL)
        frag_page_write_oom_facts(page->explanation, stream);
    if (row->recorded_by != NULL)
        write_fact(stream, "recorded by", row->recorded_by);
    if (trace->device > 0)
        write_fact(stream, "device of the recording", FRAG_COUNT(trace->device));
    write_fact(stream, "events", FRAG_COUNT(trace->event_count));
    write_fact(stream, "requests", FRAG_COUNT(trace->stats.request_count));
    write_byte_fact(stream, "peak requested", trace->stats.peak_requested_bytes);
    if (frag_trace_bound_bytes(trace) > trace->stats.peak_requested_bytes)
        write_byte_fact(stream, "with the request that failed", frag_trace_bound_bytes(trace));
    if (row->packing != NULL)
        write_byte_fact(stream,
                        row->packing->is_proved ? "offline packing, optimal" : "offline packing",
                        row->packing->bytes);
    if (trace->stats.observed_reserved_peak_bytes > 0)
        write_byte_fact(stream, "recorded peak reserved",
                        trace->stats.observed_reserved_peak_bytes);
    if (row->device->gpu != NULL)
        write_fact(stream,
                   row->device->gpu->origin == FRAG_ORIGIN_NOMINAL ? "card, nominal memory"
                                                                   : "card",
                   row->device->gpu->name);
    write_fact(stream, "replayed on", FRAG_BYTES(row->device->capacity_bytes));
    if (row->device->used_by_others_bytes > 0)
        write_byte_fact(stream, "used by others", row->device->used_by_others_bytes);
    fputs("<div class=\"digest\"><dt>digest</dt><dd>", stream);
    frag_markup_text(stream, trace->digest);
    fputs("</dd></div>\n</dl>\n", stream);
}

/* ---- results */

static void write_bytes_cell(FILE *stream, const char *name, uint64_t bytes)
{
    fprintf(stream,
            "<td class=\"%s\" data-value=\"%" PRIu64 "\" title=\"%" PRIu64 " bytes\">%s</td>", name,
            bytes, bytes, FRAG_BYTES(bytes));
}

static void write_count_cell(FILE *stream, const char *name, uint64_t count)
{
    fprintf(stream, "<td class=\"%s\" data-value=\"%" PRIu64 "\">%s</td>", name, count,
            FRAG_COUNT(count));
}

static void write_percent_cell(FILE *stream, const char *name, const char *form, bool has,
                               double ratio)
{
    char text[64];
    if (has) {
        double percent = ratio * 100;
        snprintf(text, sizeof text, form, percent);
        fprintf(stream, "<td class=\"%s\" data-value=\"%.12g\">%s</td>", name, percent, text);
    } else {
        fprintf(stream, "<td class=\"%s\">–</td>", name);
    }
}

static void write_oom_cell(FILE *stream, const frag_oom *oom)
{
    if (!oom->has_happened) {
        fputs("<td class=\"oom none\">–</td>", stream);
        return;
    }
    fprintf(stream,
            "<td class=\"oom\" data-value=\"%" PRIu64 "\">event %s (needs %s, largest hole %s)"
            "</td>",
            oom->event, FRAG_COUNT(oom->event), FRAG_BYTES(oom->requested_bytes),
            FRAG_BYTES(oom->largest_hole_bytes));
}

static bool has_times(const frag_page_trace *page)
{
    for (size_t i = 0; i < page->run_count; i++)
        if (page->runs[i].row.result->is_time_modelled)
            return true;
    return false;
}

static void write_run_name(const frag_page_run *run, size_t trace, size_t number, FILE *stream)
{
    fputs("<th scope=\"row\" class=\"policy\">", stream);
    if (run->history != NULL)
        fprintf(stream, "<a href=\"#trace=%zu&amp;policy=%zu\">", trace, number);
    frag_markup_text(stream, run->row.label);
    fputs(run->history != NULL ? "</a>" : "", stream);
    if (run->note != NULL) {
        fputs("<span class=\"note\">", stream);
        frag_markup_text(stream, run->note);
        fputs("</span>", stream);
    }
    fputs("</th>", stream);
}

static void write_run(const frag_page_run *run, size_t trace, size_t number, bool with_time,
                      FILE *stream)
{
    const frag_row *row = &run->row;
    const frag_replay_result *replay = &row->result->replay;
    double ratio = 0;
    fprintf(stream, "<tr data-run=\"%zu\">", number);
    write_run_name(run, trace, number, stream);
    write_bytes_cell(stream, "reserved", replay->peak.reserved_bytes);
    bool has = frag_row_over_bound(row, &ratio);
    write_percent_cell(stream, "over", "%+.1f%%", has, ratio);
    has = frag_row_utilisation(row, &ratio);
    write_percent_cell(stream, "utilisation", "%.1f%%", has, ratio);
    write_bytes_cell(stream, "allocated", replay->peak.allocated_bytes);
    if (row->result->has_at_peak) {
        write_bytes_cell(stream, "hole", row->result->at_peak.largest_hole_bytes);
        write_count_cell(stream, "segments", row->result->at_peak.segment_count);
    } else {
        fputs("<td class=\"hole\">–</td><td class=\"segments\">–</td>", stream);
    }
    write_count_cell(stream, "calls", frag_run_memory_calls(row->result));
    if (with_time && row->result->is_time_modelled)
        fprintf(stream, "<td class=\"time\" data-value=\"%.0f\">%.3f ms</td>",
                row->result->modelled_time_ns, row->result->modelled_time_ns / 1e6);
    else if (with_time)
        fputs("<td class=\"time\">–</td>", stream);
    write_oom_cell(stream, &replay->oom);
    fputs("</tr>\n", stream);
}

static void write_bound(FILE *stream, const char *name, uint64_t bytes, uint64_t bound,
                        bool with_time)
{
    fprintf(stream, "<tr class=\"bound\"><th scope=\"row\">%s</th>", name);
    write_bytes_cell(stream, "reserved", bytes);
    write_percent_cell(stream, "over", "%+.1f%%", bound > 0,
                       bound > 0 ? (double)bytes / (double)bound - 1 : 0);
    for (int i = 0; i < (with_time ? 7 : 6); i++)
        fputs("<td>–</td>", stream);
    fputs("</tr>\n", stream);
}

static void write_results(const frag_page_trace *page, size_t number, FILE *stream)
{
    const frag_row *first = &page->runs[0].row;
    uint64_t bound = frag_trace_bound_bytes(first->trace);
    bool with_time = has_times(page);
    fprintf(stream, "<div class=\"scroll\"><table class=\"results sortable\" id=\"results-%zu\">\n",
            number);
    fputs("<caption>Results: one replay for each policy</caption>\n<thead><tr>"
          "<th scope=\"col\">policy</th><th scope=\"col\">peak reserved</th>"
          "<th scope=\"col\">over bound</th><th scope=\"col\">utilisation</th>"
          "<th scope=\"col\">peak allocated</th><th scope=\"col\">largest hole at peak</th>"
          "<th scope=\"col\">segments at peak</th><th scope=\"col\">device calls</th>",
          stream);
    fputs(with_time ? "<th scope=\"col\">modelled time</th>" : "", stream);
    fputs("<th scope=\"col\">out of memory</th></tr></thead>\n<tbody>\n", stream);
    for (size_t i = 0; i < page->run_count; i++)
        write_run(&page->runs[i], number, i, with_time, stream);
    fputs("</tbody>\n<tfoot>\n", stream);
    frag_text name = {0};
    frag_text_add(&name, "bound: %s", frag_result_bound_name(first->trace));
    write_bound(stream, name.bytes, bound, bound, with_time);
    frag_text_destroy(&name);
    if (first->packing != NULL)
        write_bound(stream,
                    first->packing->is_proved ? "bound: offline packing (optimal)"
                                              : "bound: offline packing",
                    first->packing->bytes, bound, with_time);
    fputs("</tfoot>\n</table></div>\n", stream);
}

/* ---- where reserved bytes are */

static uint64_t largest_reserved(const frag_page_trace *page)
{
    uint64_t largest = 1;
    for (size_t i = 0; i < page->run_count; i++) {
        part parts[PART_COUNT];
        uint64_t sum = 0;
        list_parts(&page->runs[i].row.result->at_peak, parts);
        for (size_t p = 0; p < PART_COUNT; p++)
            sum += parts[p].bytes;
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

static void write_bar(const part parts[PART_COUNT], uint64_t whole, FILE *stream)
{
    double at = 0;
    fprintf(stream,
            "<td class=\"bar\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "aria-hidden=\"true\">",
            BAR_WIDTH, BAR_HEIGHT);
    for (size_t i = 0; i < PART_COUNT; i++) {
        double width = (double)parts[i].bytes / (double)whole * BAR_WIDTH;
        if (width > 0)
            fprintf(stream,
                    "<rect class=\"part-%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"%d\"/>",
                    parts[i].key, at, width, BAR_HEIGHT);
        at += width;
    }
    fputs("</svg></td>", stream);
}

static bool has_part(const frag_page_trace *page, size_t number)
{
    for (size_t i = 0; i < page->run_count; i++) {
        part parts[PART_COUNT];
        list_parts(&page->runs[i].row.result->at_peak, parts);
        if (parts[number].bytes > 0)
            return true;
    }
    return false;
}

/* Parts that no run has are left out. */
static void write_parts(const frag_page_trace *page, FILE *stream)
{
    part parts[PART_COUNT];
    list_parts(&page->runs[0].row.result->at_peak, parts);
    uint64_t whole = largest_reserved(page);
    fputs("<div class=\"scroll\"><table class=\"parts\">\n<caption>Where reserved bytes are when "
          "they peak</caption>\n<thead><tr><th scope=\"col\">policy</th><th scope=\"col\">"
          "<span class=\"hidden\">as a bar</span></th>",
          stream);
    for (size_t p = 0; p < PART_COUNT; p++)
        if (has_part(page, p))
            fprintf(stream, "<th scope=\"col\"><i class=\"swatch part-%s\"></i>%s</th>",
                    parts[p].key, parts[p].name);
    fputs("</tr></thead>\n<tbody>\n", stream);
    for (size_t i = 0; i < page->run_count; i++) {
        if (!page->runs[i].row.result->has_at_peak)
            continue;
        list_parts(&page->runs[i].row.result->at_peak, parts);
        fputs("<tr><th scope=\"row\" class=\"policy\">", stream);
        frag_markup_text(stream, page->runs[i].row.label);
        fputs("</th>", stream);
        write_bar(parts, whole, stream);
        for (size_t p = 0; p < PART_COUNT; p++)
            if (has_part(page, p))
                write_bytes_cell(stream, parts[p].key, parts[p].bytes);
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div>\n", stream);
}

/* Which events are drawn, where that is not all of them. */
static void write_part(const frag_page_view *view, FILE *stream)
{
    fprintf(
        stream,
        "<p class=\"note part\">Timeline, map, lists and search hold events %s to %s of %s: the "
        "page would take %s with all of them. The tables are of all events. <code>fraglab "
        "report --page-limit SIZE</code> draws more, <code>fraglab trace cut</code> takes "
        "another part.</p>\n",
        FRAG_COUNT(view->first), FRAG_COUNT(view->end - 1),
        FRAG_COUNT(view->page->trace->event_count), FRAG_BYTES(view->whole_bytes));
}

void frag_page_write_rows(const frag_page_trace *page, size_t number, FILE *stream)
{
    fprintf(stream, "<section class=\"trace\" aria-labelledby=\"trace-%zu\">\n", number);
    fprintf(stream, "<h2 id=\"trace-%zu\">", number);
    frag_markup_text(stream, page->name);
    fputs("</h2>\n", stream);
    if (page->run_count > 0) {
        write_facts(page, stream);
        if (page->view != NULL && page->view->is_part)
            write_part(page->view, stream);
        if (page->explanation != NULL)
            frag_page_write_verdict(page->explanation, stream);
        write_results(page, number, stream);
        write_parts(page, stream);
    }
    if (page->run_count == 0 && page->explanation != NULL)
        frag_page_write_verdict(page->explanation, stream);
    fputs("</section>\n", stream);
}
