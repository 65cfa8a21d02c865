/* What is drawn of a trace on a page: all of its events, or a part of them where all would take too
 * much. A part holds every request, block and segment that is there at some time in it, under the
 * numbers of events that they have in the whole. */
#ifndef FRAG_REPORT_PAGE_VIEW_H
#define FRAG_REPORT_PAGE_VIEW_H

#include "report/columns.h"
#include "report/page.h"

typedef struct frag_page_run_view {
    frag_history history; /* of what is drawn */
    bool is_drawn;
    bool is_grown; /* mapped pieces that touch are one segment */
    frag_packed_columns columns;
} frag_page_run_view;

typedef struct frag_page_view {
    const frag_page_trace *page;
    uint64_t first; /* events [first, end) are drawn */
    uint64_t end;
    bool is_part;
    uint64_t whole_bytes; /* that all of it would take; 0: nothing was left out */
    frag_trace trace;     /* as if it ended there */
    frag_request_list requests;
    frag_page_run_view *runs; /* as many as the page has */
    bool *is_site_used;
    frag_packed_columns names;
    frag_packed_columns columns;
} frag_page_view;

/* So many events around what the first run that is drawn is about: where memory ran out, or its
 * peak. */
void frag_page_view_create(frag_page_view *view, const frag_page_trace *page, uint64_t events);
void frag_page_view_destroy(frag_page_view *view);

#endif
