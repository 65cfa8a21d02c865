/* The page of a report: one HTML file with its tables, pictures and the data that they are drawn
 * from. It asks nothing of a network and opens from the file system.
 *
 * What must be readable without a script (figures, tables, verdicts) is plain HTML; what is drawn
 * is drawn by report/page/NAME.js from the data of report/page_data.c. */
#ifndef FRAG_REPORT_PAGE_H
#define FRAG_REPORT_PAGE_H

#include <stdio.h>

#include "base/error.h"
#include "report/columns.h"
#include "sim/replay/history.h"
#include "sim/rows/result.h"

/* One run. Everything is borrowed. */
typedef struct frag_page_run {
    frag_row row;
    const char *note;            /* beside the row, such as why it is not drawn; NULL: nothing */
    const frag_history *history; /* NULL: only the row is shown */
} frag_page_run;

/* The runs of one trace. */
typedef struct frag_page_trace {
    const char *name;                /* as named by the user */
    const frag_recording *recording; /* NULL: only the rows are shown */
    const frag_trace *trace;
    const frag_request_list *requests;
    frag_page_run *runs;
    size_t run_count;
    const char *explanation;     /* as `fraglab explain --format jsonl` prints it; NULL: none */
    struct frag_page_view *view; /* what is drawn of it; NULL: nothing. Of frag_page_draw. */
} frag_page_trace;

typedef struct frag_page {
    const char *title;
    const char *command; /* that makes the page again, as typed */
    frag_page_trace *traces;
    size_t trace_count;
    uint64_t limit_bytes;    /* what is drawn is cut to a part of the events where it takes more */
    const char *data_folder; /* columns are written to files there; NULL: into the page */
    frag_error error;        /* what went wrong with such a file */
    bool has_failed;
} frag_page;

/* Errors of writing stay with the stream, but for those of files in the data folder. */
void frag_page_write(frag_page *page, FILE *stream);

/* ---- page_data.c */
/* Makes the data that the script reads, for as many events as the limit allows; frag_page_drop
 * gives it back. */
void frag_page_draw(frag_page *page);
void frag_page_drop(frag_page *page);
/* The data elements that the script reads. */
void frag_page_write_data(frag_page *page, FILE *stream);

/* ---- page_piece.c */
/* Columns as a file of the data folder, and the element of the page that names it. */
void frag_page_write_piece(frag_page *page, const frag_packed_columns *columns, const char *id,
                           FILE *stream);

/* ---- page_tables.c */
/* Everything about one trace that is plain HTML; number tells the traces of a page apart. */
void frag_page_write_rows(const frag_page_trace *trace, size_t number, FILE *stream);

/* ---- page_verdict.c */
/* Entries of the list of figures: where memory ran out, on a device of what size. */
void frag_page_write_oom_facts(const char *explanation, FILE *stream);
void frag_page_write_verdict(const char *explanation, FILE *stream);

#endif
