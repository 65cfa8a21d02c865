/* What the page draws from: one JSON element that names everything, and for each trace and each run
 * an element of columns. docs/report.md lists both. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text_stream.h"
#include "base/text.h"
#include "report/columns.h"
#include "report/markup.h"
#include "report/page_view.h"
#include "sim/trace/site_names.h"
#include "sim/version.h"
#include "studies/explain/explain_purpose.h"

/* More marks than one can distinguish would only make the page slow. */
enum { MARKS_MAX = 20000 };

/* Where a part of the events is drawn: tries to meet the limit, and how near each comes to it. */
enum { TRIES_MAX = 8 };
#define AIM 0.93
/* Tables, scripts and style. */
#define FIXED_BYTES (400 * 1000u)

/* ---- names: frames, call sites and marks, as JSON that is compressed like columns are */

/* Frames of the call sites that are used. The caller frees. */
static bool *find_frames(const frag_page_view *view)
{
    const frag_recording *recording = view->page->recording;
    bool *is_used = frag_alloc((size_t)recording->frame_count + 1, sizeof *is_used);
    memset(is_used, view->is_part ? 0 : 1, recording->frame_count);
    for (uint32_t i = 0; i < recording->site_count; i++) {
        const frag_site *site = &recording->sites[i];
        for (uint32_t f = 0; f < site->count && view->is_site_used[i]; f++)
            is_used[recording->site_frames[site->first + f]] = true;
        uint32_t named = frag_site_frame(recording, i);
        if (view->is_site_used[i] && named > 0)
            is_used[named - 1] = true;
    }
    return is_used;
}

/* [["model.py:10 forward", "/home/me/model.py"], ...]; those of nobody drawn are empty */
static void write_frames(FILE *stream, const frag_recording *recording, const bool *is_used)
{
    frag_text text = {0};
    fputs("{\"frames\":[", stream);
    for (uint32_t i = 0; i < recording->frame_count; i++) {
        if (!is_used[i]) {
            fputs(i > 0 ? ",[]" : "[]", stream);
            continue;
        }
        frag_text_clear(&text);
        frag_frame_add(recording, i, &text);
        fputs(i > 0 ? ",[" : "[", stream);
        frag_markup_json(stream, text.bytes);
        fputc(',', stream);
        frag_markup_json(stream, frag_strings_get(&recording->strings, recording->frames[i].file));
        fputc(']', stream);
    }
    fputc(']', stream);
    frag_text_destroy(&text);
}

/* [[named frame and 1, or 0: none; frames, innermost first], ...] */
static void write_sites(FILE *stream, const frag_recording *recording, const bool *is_used)
{
    fputs(",\"sites\":[", stream);
    for (uint32_t i = 0; i < recording->site_count; i++) {
        const frag_site *site = &recording->sites[i];
        fprintf(stream, "%s[%" PRIu32, i > 0 ? "," : "",
                is_used[i] ? frag_site_frame(recording, i) : 0);
        for (uint32_t f = 0; f < site->count && is_used[i]; f++)
            fprintf(stream, ",%" PRIu32, recording->site_frames[site->first + f]);
        fputc(']', stream);
    }
    fputc(']', stream);
}

/* What each call site asks memory for, as a number of purpose_names. */
static void write_purposes(FILE *stream, const frag_recording *recording, const bool *is_used)
{
    frag_purpose *of_site = frag_purposes_of_sites(recording);
    fputs(",\"purposes\":[", stream);
    for (uint32_t i = 0; i < recording->site_count; i++)
        fprintf(stream, "%s%d", i > 0 ? "," : "",
                is_used[i] ? (int)of_site[i] : FRAG_PURPOSE_UNKNOWN);
    frag_free(of_site);
    fputs("],\"purpose_names\":[", stream);
    for (int i = 0; i < FRAG_PURPOSE_COUNT; i++) {
        fputs(i > 0 ? "," : "", stream);
        frag_markup_json(stream, frag_purpose_title((frag_purpose)i));
    }
    fputc(']', stream);
}

static void write_streams(FILE *stream, const frag_trace *trace)
{
    fputs(",\"streams\":[", stream);
    for (uint32_t i = 0; i < trace->stream_count; i++)
        fprintf(stream, "%s\"0x%" PRIx64 "\"", i > 0 ? "," : "", trace->stream_handles[i]);
    fputs("],\"pools\":[", stream);
    for (uint32_t i = 0; i < trace->pool_count; i++)
        fprintf(stream, "%s\"%" PRIu64 ":%" PRIu64 "\"", i > 0 ? "," : "", trace->pool_ids[i].high,
                trace->pool_ids[i].low);
    fputc(']', stream);
}

/* Marks: everything that is neither a request nor its release. */
static bool is_mark(const frag_event *event)
{
    switch ((frag_op)event->op) {
    case FRAG_OP_ALLOC:
        return (event->flags & FRAG_EVENT_FAILED) != 0;
    case FRAG_OP_FREE:
    case FRAG_OP_USE:
    case FRAG_OP_COMPLETE:
    case FRAG_OP_SEGMENT_ALLOC:
    case FRAG_OP_SEGMENT_FREE:
    case FRAG_OP_SEGMENT_MAP:
    case FRAG_OP_SEGMENT_UNMAP:
        return false;
    default:
        return true;
    }
}

static const char *mark_kind(const frag_event *event)
{
    if (event->op == FRAG_OP_ALLOC)
        return "recorded oom";
    if (event->op == FRAG_OP_MARK && (event->flags & FRAG_EVENT_BEGIN) != 0)
        return "begin";
    if (event->op == FRAG_OP_MARK && (event->flags & FRAG_EVENT_END) != 0)
        return "end";
    return frag_op_name((frag_op)event->op);
}

/* [event, kind, text or null] */
static void write_mark(FILE *stream, const frag_recording *recording, const frag_trace *trace,
                       uint64_t number)
{
    const frag_event *event = &trace->events[number];
    fprintf(stream, "[%" PRIu64 ",", number);
    frag_markup_json(stream, mark_kind(event));
    fputc(',', stream);
    if (event->op == FRAG_OP_MARK || event->op == FRAG_OP_CONFIG)
        frag_markup_json(stream, frag_strings_get(&recording->strings, event->slot));
    else
        fputs("null", stream);
    fputc(']', stream);
}

static void write_marks(FILE *stream, const frag_recording *recording, const frag_trace *trace,
                        uint64_t first)
{
    uint64_t count = 0;
    fputs(",\"marks\":[", stream);
    for (uint64_t i = first; i < trace->event_count; i++) {
        if (!is_mark(&trace->events[i]) || count++ >= MARKS_MAX)
            continue;
        fputs(count > 1 ? "," : "", stream);
        write_mark(stream, recording, trace, i);
    }
    fprintf(stream, "],\"marks_left_out\":%" PRIu64 "}", count > MARKS_MAX ? count - MARKS_MAX : 0);
}

/* ---- columns of a trace */

static void add_request_columns(frag_columns *columns, const frag_page_view *view)
{
    const frag_request_list *requests = &view->requests;
    const frag_trace *trace = &view->trace;
    frag_columns_begin(columns);
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add_step(columns, requests->events[i]);
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add(columns, requests->free_events[i] != FRAG_UNLIMITED
                                      ? requests->free_events[i] - requests->events[i] + 1
                                      : 0);
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add(columns, trace->events[requests->events[i]].bytes);
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add(columns, trace->sites != NULL ? trace->sites[requests->events[i]] : 0);
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add(columns, trace->events[requests->events[i]].stream);
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add(columns, frag_trace_pool(trace, requests->events[i]));
}

/* Microseconds since the first event, never going back: recorded clocks may step back a little
 * between threads, an axis may not. */
static void add_times(frag_columns *columns, const frag_page_view *view)
{
    const frag_trace *trace = &view->trace;
    uint64_t start = trace->stats.time_first_ns;
    uint64_t latest = 0;
    uint64_t told = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        uint64_t time = trace->times_ns[i] > start ? (trace->times_ns[i] - start) / 1000 : 0;
        latest = time > latest ? time : latest;
        if (i < view->first)
            continue;
        frag_columns_add(columns, latest - told);
        told = latest;
    }
}

/* What each event is; then, in order of events, what a list of events says about those that are
 * neither alloc nor free: the request (and 1) of a use and of a complete, the bytes of the others.
 */
static void add_ops(frag_columns *columns, const frag_page_view *view)
{
    const frag_trace *trace = &view->trace;
    uint32_t *in_slot = frag_alloc((size_t)trace->slot_count + 1, sizeof *in_slot);
    for (uint64_t i = view->first; i < trace->event_count; i++)
        frag_columns_add(columns, trace->events[i].op);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC && event->slot < trace->slot_count)
            in_slot[event->slot] = view->requests.by_event[i] + 1; /* NONE becomes 0 */
        else if (i < view->first || event->op == FRAG_OP_ALLOC || event->op == FRAG_OP_FREE)
            continue;
        else if (event->op == FRAG_OP_USE || event->op == FRAG_OP_COMPLETE)
            frag_columns_add(columns, event->slot < trace->slot_count ? in_slot[event->slot] : 0);
        else
            frag_columns_add(columns, event->bytes <= FRAG_COLUMN_MAX ? event->bytes : 0);
    }
    frag_free(in_slot);
}

static bool has_times(const frag_trace *trace)
{
    return trace->times_ns != NULL && trace->stats.time_last_ns > trace->stats.time_first_ns &&
           trace->stats.time_last_ns - trace->stats.time_first_ns < FRAG_COLUMN_MAX;
}

/* ---- columns of a run */

static bool fits(const frag_page_trace *page, const frag_history *history)
{
    uint64_t most = page->trace->stats.requested_bytes_total;
    for (uint32_t i = 0; i < page->requests->count && most <= FRAG_COLUMN_MAX; i++) {
        const frag_placement *at = &history->placements[i];
        if (at->address > FRAG_COLUMN_MAX || at->block_bytes > FRAG_COLUMN_MAX - at->address)
            return false;
    }
    for (size_t i = 0; i < history->segment_count && most <= FRAG_COLUMN_MAX; i++) {
        const frag_held_segment *at = &history->segments[i];
        if (at->address > FRAG_COLUMN_MAX || at->bytes > FRAG_COLUMN_MAX - at->address)
            return false;
    }
    return most <= FRAG_COLUMN_MAX && history->result.peak.reserved_bytes <= FRAG_COLUMN_MAX;
}

/* Addresses have many zero bits at their end. */
static unsigned address_shift(const frag_page_view *view, const frag_history *history)
{
    uint64_t bits = 0;
    unsigned shift = 0;
    for (uint32_t i = 0; i < view->requests.count; i++)
        if (history->placements[i].block_bytes > 0)
            bits |= history->placements[i].address;
    while (bits != 0 && (bits >> shift & 1) == 0)
        shift++;
    return shift;
}

/* How long the place stayed taken after the free: 0 not at all, 1 to the end of the run, else the
 * events and 1. */
static uint64_t wait_of(const frag_placement *at, uint64_t free_event)
{
    if (free_event == FRAG_UNLIMITED || at->end == free_event)
        return 0;
    return at->end == FRAG_UNLIMITED || at->end < free_event ? 1 : at->end - free_event + 1;
}

static void add_placement_columns(frag_columns *columns, const frag_page_view *view,
                                  const frag_history *history, unsigned shift)
{
    const frag_request_list *requests = &view->requests;
    const frag_event *events = view->trace.events;
    const frag_placement *placements = history->placements;
    for (uint32_t i = 0; i < requests->count; i++)
        frag_columns_add(columns, placements[i].block_bytes > 0);
    frag_columns_begin(columns);
    for (uint32_t i = 0; i < requests->count; i++)
        if (placements[i].block_bytes > 0)
            frag_columns_add_step(columns, placements[i].address >> shift);
    for (uint32_t i = 0; i < requests->count; i++)
        if (placements[i].block_bytes > 0)
            frag_columns_add(columns,
                             placements[i].block_bytes - events[requests->events[i]].bytes);
    for (uint32_t i = 0; i < requests->count; i++)
        if (placements[i].block_bytes > 0)
            frag_columns_add(columns,
                             placements[i].rounded_bytes - events[requests->events[i]].bytes);
    for (uint32_t i = 0; i < requests->count; i++)
        if (placements[i].block_bytes > 0)
            frag_columns_add(columns, wait_of(&placements[i], requests->free_events[i]));
}

static void add_segment_columns(frag_columns *columns, const frag_history *history)
{
    const frag_held_segment *segments = history->segments;
    frag_columns_begin(columns);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add_step(columns, segments[i].begin);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add(columns, segments[i].end != FRAG_UNLIMITED
                                      ? segments[i].end - segments[i].begin + 1
                                      : 0);
    frag_columns_begin(columns);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add_step(columns, segments[i].address);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add(columns, segments[i].bytes);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add(columns, segments[i].stream);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add(columns, segments[i].pool);
    for (size_t i = 0; i < history->segment_count; i++)
        frag_columns_add(columns, segments[i].is_mapped);
    frag_columns_begin(columns);
    for (size_t i = 0; i < history->step_count; i++)
        frag_columns_add_step(columns, history->steps[i].event);
    frag_columns_begin(columns);
    for (size_t i = 0; i < history->step_count; i++)
        frag_columns_add_step(columns, history->steps[i].reserved_bytes);
}

static int compare_addresses(const void *left, const void *right)
{
    const frag_held_segment *a = *(const frag_held_segment *const *)left;
    const frag_held_segment *b = *(const frag_held_segment *const *)right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* Are mapped pieces that touch one segment that grew, or did the policy map each for itself? The
 * segments that it had at its peak tell. */
static bool is_grown(const frag_page_run *run)
{
    const frag_history *history = run->history;
    uint64_t event = history->result.reserved_at_event;
    const frag_held_segment **held = frag_alloc(history->segment_count, sizeof *held);
    size_t count = 0;
    for (size_t i = 0; i < history->segment_count; i++)
        if (history->segments[i].begin <= event && history->segments[i].end > event)
            held[count++] = &history->segments[i];
    qsort(held, count, sizeof *held, compare_addresses);
    size_t joined = count;
    for (size_t i = 1; i < count; i++)
        joined -= held[i]->is_mapped && held[i - 1]->is_mapped &&
                  held[i - 1]->address + held[i - 1]->bytes == held[i]->address;
    frag_free(held);
    return joined == count || count != run->row.result->at_peak.segment_count;
}

/* ---- the JSON element */

static void write_oom(FILE *stream, const frag_oom *oom)
{
    if (!oom->has_happened) {
        fputs(",\"oom\":null", stream);
        return;
    }
    fprintf(stream,
            ",\"oom\":{\"event\":%" PRIu64 ",\"requested_bytes\":%" PRIu64
            ",\"largest_hole_bytes\":%" PRIu64 ",\"total_hole_bytes\":%" PRIu64 "}",
            oom->event, oom->requested_bytes, oom->largest_hole_bytes, oom->total_hole_bytes);
}

static void write_run(FILE *stream, const frag_page_view *view, size_t number)
{
    const frag_page_run *run = &view->page->runs[number];
    bool is_drawn = view->runs != NULL && view->runs[number].is_drawn;
    fputs("{\"label\":", stream);
    frag_markup_json(stream, run->row.label);
    fprintf(stream, ",\"is_drawn\":%s", is_drawn ? "true" : "false");
    if (is_drawn) {
        const frag_history *history = &view->runs[number].history;
        fprintf(stream, ",\"is_grown\":%s", view->runs[number].is_grown ? "true" : "false");
        const frag_replay_result *result = &history->result;
        fprintf(stream,
                ",\"events\":%" PRIu64 ",\"shift\":%u,\"segments\":%zu,\"steps\":%zu"
                ",\"peak_event\":%" PRIu64 ",\"peak_reserved_bytes\":%" PRIu64,
                result->events, address_shift(view, history), history->segment_count,
                history->step_count, result->reserved_at_event, result->peak.reserved_bytes);
        uint64_t capacity = run->row.device->capacity_bytes;
        if (capacity <= FRAG_COLUMN_MAX)
            fprintf(stream, ",\"capacity_bytes\":%" PRIu64, capacity);
        write_oom(stream, &result->oom);
    }
    fputc('}', stream);
}

/* The first event that is drawn: behind the state at the start. */
static uint64_t start_of(const frag_page_view *view)
{
    uint64_t start = frag_trace_start(view->page->trace);
    return start > view->first ? start : view->first;
}

static void write_drawn(FILE *stream, const frag_page_view *view)
{
    const frag_page_trace *page = view->page;
    fprintf(stream,
            ",\"events\":%" PRIu64 ",\"start\":%" PRIu64 ",\"requests\":%" PRIu32
            ",\"has_times\":%s",
            view->end, start_of(view), view->requests.count,
            has_times(&view->trace) ? "true" : "false");
    if (view->is_part)
        fprintf(stream, ",\"first\":%" PRIu64 ",\"all_events\":%" PRIu64, view->first,
                page->trace->event_count);
    if (page->trace == frag_recording_main_trace(page->recording))
        fputs(",\"is_main\":true", stream);
    if (frag_trace_bound_bytes(page->trace) <= FRAG_COLUMN_MAX)
        fprintf(stream, ",\"bound_bytes\":%" PRIu64, frag_trace_bound_bytes(page->trace));
    write_streams(stream, page->trace);
}

static void write_trace(FILE *stream, const frag_page_trace *page)
{
    const frag_page_view none = {.page = page};
    const frag_page_view *view = page->view != NULL ? page->view : &none;
    fputs("{\"name\":", stream);
    frag_markup_json(stream, page->name);
    fprintf(stream, ",\"is_drawn\":%s", page->view != NULL ? "true" : "false");
    if (page->view != NULL)
        write_drawn(stream, view);
    fputs(",\"runs\":[", stream);
    for (size_t i = 0; i < page->run_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", stream);
        write_run(stream, view, i);
    }
    fputs("]}", stream);
}

/* ---- columns, packed */

static void pack_names(frag_page_view *view)
{
    frag_columns names = {0};
    size_t length = 0;
    bool *is_frame_used = find_frames(view);
    frag_text_stream *stream_of_names = frag_text_stream_open();
    FILE *memory = frag_text_stream_file(stream_of_names);
    write_frames(memory, view->page->recording, is_frame_used);
    write_sites(memory, view->page->recording, view->is_site_used);
    write_purposes(memory, view->page->recording, view->is_site_used);
    write_marks(memory, view->page->recording, &view->trace, view->first);
    char *text = frag_text_stream_close(stream_of_names, &length);
    frag_columns_add_bytes(&names, text, length);
    frag_columns_pack(&names, &view->names);
    frag_columns_destroy(&names);
    frag_free(is_frame_used);
    frag_free(text);
}

static void pack_run(frag_page_view *view, size_t number)
{
    frag_columns columns = {0};
    const frag_page_run *run = &view->page->runs[number];
    frag_page_run_view *drawn = &view->runs[number];
    drawn->is_drawn = run->history != NULL && fits(view->page, run->history);
    if (!drawn->is_drawn)
        return;
    drawn->is_grown = is_grown(run);
    add_placement_columns(&columns, view, &drawn->history, address_shift(view, &drawn->history));
    add_segment_columns(&columns, &drawn->history);
    frag_columns_pack(&columns, &drawn->columns);
    frag_columns_destroy(&columns);
}

/* How much it takes on the page. */
static uint64_t pack(frag_page_view *view)
{
    frag_columns columns = {0};
    pack_names(view);
    add_request_columns(&columns, view);
    add_ops(&columns, view);
    if (has_times(&view->trace))
        add_times(&columns, view);
    frag_columns_pack(&columns, &view->columns);
    frag_columns_destroy(&columns);
    uint64_t bytes =
        frag_packed_columns_printed(&view->names) + frag_packed_columns_printed(&view->columns);
    for (size_t i = 0; i < view->page->run_count; i++) {
        pack_run(view, i);
        bytes += frag_packed_columns_printed(&view->runs[i].columns);
    }
    return bytes;
}

/* ---- all traces of a page */

static void drop_view(frag_page_trace *trace)
{
    if (trace->view != NULL)
        frag_page_view_destroy(trace->view);
    frag_free(trace->view);
    trace->view = NULL;
}

/* Draws this share of the events of each trace; what that takes. */
static uint64_t draw_share(frag_page *page, double share)
{
    uint64_t bytes = FIXED_BYTES;
    for (size_t i = 0; i < page->trace_count; i++) {
        frag_page_trace *trace = &page->traces[i];
        if (trace->recording == NULL)
            continue;
        uint64_t all = trace->trace->event_count;
        uint64_t events = share < 1 ? (uint64_t)(share * (double)all) + 1 : all;
        drop_view(trace);
        trace->view = frag_alloc(1, sizeof *trace->view);
        frag_page_view_create(trace->view, trace, events);
        bytes += pack(trace->view);
    }
    return bytes;
}

void frag_page_draw(frag_page *page)
{
    double share = 1;
    uint64_t whole = draw_share(page, share);
    uint64_t bytes = whole;
    for (int i = 0; i < TRIES_MAX && bytes > page->limit_bytes; i++) {
        share *= AIM * (double)page->limit_bytes / (double)bytes;
        bytes = draw_share(page, share);
    }
    for (size_t i = 0; i < page->trace_count && share < 1; i++)
        if (page->traces[i].view != NULL)
            page->traces[i].view->whole_bytes = whole;
}

void frag_page_drop(frag_page *page)
{
    for (size_t i = 0; i < page->trace_count; i++)
        drop_view(&page->traces[i]);
}

static void print_columns(frag_page *page, FILE *stream, const frag_packed_columns *columns,
                          size_t trace, const char *kind, size_t run)
{
    char id[64];
    snprintf(id, sizeof id, "data-%zu-%s-%zu", trace, kind, run);
    if (page->has_failed)
        return;
    if (page->data_folder != NULL) {
        frag_page_write_piece(page, columns, id, stream);
        return;
    }
    fprintf(stream, "<script type=\"application/octet-stream\" id=\"%s\">\n", id);
    frag_packed_columns_print(columns, stream);
    fputs("\n</script>\n", stream);
}

static void write_columns(frag_page *page, FILE *stream, size_t number)
{
    const frag_page_view *view = page->traces[number].view;
    print_columns(page, stream, &view->names, number, "names", 0);
    print_columns(page, stream, &view->columns, number, "trace", 0);
    for (size_t i = 0; i < view->page->run_count; i++)
        if (view->runs[i].is_drawn)
            print_columns(page, stream, &view->runs[i].columns, number, "run", i);
}

static void write_ops(FILE *stream)
{
    fputs(",\"ops\":[", stream);
    for (int op = 0; op < FRAG_OP_COUNT; op++)
        fprintf(stream, "%s\"%s\"", op > 0 ? "," : "", frag_op_name((frag_op)op));
    fputc(']', stream);
}

void frag_page_write_data(frag_page *page, FILE *stream)
{
    fputs("<script type=\"application/json\" id=\"data\">\n{\"schema\":\"fraglab.report/2\"",
          stream);
    fprintf(stream, ",\"version\":\"%s\"", frag_version());
    write_ops(stream);
    fputs(",\"traces\":[", stream);
    for (size_t i = 0; i < page->trace_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", stream);
        write_trace(stream, &page->traces[i]);
    }
    fputs("]}\n</script>\n", stream);
    for (size_t i = 0; i < page->trace_count; i++)
        if (page->traces[i].view != NULL)
            write_columns(page, stream, i);
}
