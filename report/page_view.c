#include "report/page_view.h"

#include <string.h>

#include "base/memory.h"

/* ---- which events */

/* What the part is to show, as an event; *is_end: the run ends there. */
static uint64_t find_middle(const frag_page_trace *page, bool *is_end)
{
    *is_end = false;
    for (size_t i = 0; i < page->run_count; i++) {
        const frag_history *history = page->runs[i].history;
        if (history == NULL)
            continue;
        *is_end = history->result.oom.has_happened;
        return *is_end ? history->result.oom.event : history->result.reserved_at_event;
    }
    return 0;
}

static void choose_events(frag_page_view *view, uint64_t events)
{
    uint64_t all = view->page->trace->event_count;
    bool is_end = false;
    uint64_t middle = find_middle(view->page, &is_end);
    view->is_part = events < all;
    view->end = all;
    if (!view->is_part)
        return;
    /* Other policies may get past the end of the first. */
    uint64_t after = is_end ? events / 8 + 1 : events / 2;
    view->end = middle < all - after ? middle + after : all;
    view->first = view->end > events ? view->end - events : 0;
    view->end = view->first + events;
}

/* ---- requests */

/* Until when a request is of interest: to its free, or to when its place was free in the last of
 * the runs. */
static uint64_t last_of(const frag_page_trace *page, uint32_t request)
{
    uint64_t last = page->requests->free_events[request];
    for (size_t i = 0; i < page->run_count; i++) {
        const frag_history *history = page->runs[i].history;
        if (history == NULL || history->placements[request].block_bytes == 0)
            continue;
        uint64_t end = history->placements[request].end;
        last = end > last ? end : last;
    }
    return last;
}

/* The requests that are kept: *kept holds their numbers in the whole. */
static void keep_requests(frag_page_view *view, uint32_t **kept)
{
    const frag_request_list *whole = view->page->requests;
    frag_request_list *requests = &view->requests;
    uint32_t *numbers = frag_alloc((size_t)whole->count + 1, sizeof *numbers);
    for (uint32_t i = 0; i < whole->count && whole->events[i] < view->end; i++)
        if (whole->events[i] >= view->first || last_of(view->page, i) >= view->first)
            numbers[requests->count++] = i;
    requests->events = frag_alloc((size_t)requests->count + 1, sizeof *requests->events);
    requests->free_events = frag_alloc((size_t)requests->count + 1, sizeof *requests->free_events);
    requests->by_event = frag_alloc((size_t)view->end + 1, sizeof *requests->by_event);
    memset(requests->by_event, 0xff, (size_t)view->end * sizeof *requests->by_event);
    for (uint32_t i = 0; i < requests->count; i++) {
        requests->events[i] = whole->events[numbers[i]];
        requests->free_events[i] = whole->free_events[numbers[i]];
        requests->by_event[requests->events[i]] = i;
    }
    *kept = numbers;
}

static void find_sites(frag_page_view *view)
{
    const frag_trace *trace = view->page->trace;
    view->is_site_used = frag_alloc((size_t)view->page->recording->site_count + 1, sizeof(bool));
    for (uint32_t i = 0; !view->is_part && i < view->page->recording->site_count; i++)
        view->is_site_used[i] = true;
    for (uint32_t i = 0; i < view->requests.count && trace->sites != NULL; i++)
        view->is_site_used[trace->sites[view->requests.events[i]]] = true;
}

/* ---- runs */

static void keep_history(const frag_page_view *view, const uint32_t *kept,
                         const frag_history *whole, frag_history *history)
{
    *history = (frag_history){.result = whole->result};
    if (history->result.events > view->end)
        history->result.events = view->end;
    history->placements = frag_alloc((size_t)view->requests.count + 1, sizeof *history->placements);
    for (uint32_t i = 0; i < view->requests.count; i++)
        history->placements[i] = whole->placements[kept[i]];
    history->segments = frag_alloc(whole->segment_count + 1, sizeof *history->segments);
    for (size_t i = 0; i < whole->segment_count; i++)
        if (whole->segments[i].begin < view->end && whole->segments[i].end >= view->first)
            history->segments[history->segment_count++] = whole->segments[i];
    history->steps = frag_alloc(whole->step_count + 1, sizeof *history->steps);
    for (size_t i = 0; i < whole->step_count && whole->steps[i].event < view->end; i++) {
        /* Of the levels before the part the last one is enough. */
        if (whole->steps[i].event < view->first)
            history->step_count = 0;
        history->steps[history->step_count++] = whole->steps[i];
    }
}

void frag_page_view_create(frag_page_view *view, const frag_page_trace *page, uint64_t events)
{
    uint32_t *kept = NULL;
    *view = (frag_page_view){.page = page, .trace = *page->trace};
    choose_events(view, events);
    view->trace.event_count = view->end;
    keep_requests(view, &kept);
    find_sites(view);
    view->runs = frag_alloc(page->run_count + 1, sizeof *view->runs);
    for (size_t i = 0; i < page->run_count; i++)
        if (page->runs[i].history != NULL)
            keep_history(view, kept, page->runs[i].history, &view->runs[i].history);
    frag_free(kept);
}

void frag_page_view_destroy(frag_page_view *view)
{
    for (size_t i = 0; view->runs != NULL && i < view->page->run_count; i++) {
        frag_history_destroy(&view->runs[i].history);
        frag_packed_columns_destroy(&view->runs[i].columns);
    }
    frag_free(view->runs);
    frag_request_list_destroy(&view->requests);
    frag_free(view->is_site_used);
    frag_packed_columns_destroy(&view->names);
    frag_packed_columns_destroy(&view->columns);
    *view = (frag_page_view){0};
}
