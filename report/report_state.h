/* What a report is made of: recordings, the runs of their traces, and the rows of result files
 * whose recordings may or may not be at hand. report.h says how it is made. */
#ifndef FRAG_REPORT_REPORT_STATE_H
#define FRAG_REPORT_REPORT_STATE_H

#include "report/page.h"
#include "report/report_wishes.h"
#include "studies/capacity/bounds.h"
#include "studies/rows/result_rows.h"

typedef struct frag_report_source {
    char *path;
    bool is_optional; /* looked for because a row names it; that it cannot be read is no mistake */
    bool is_borrowed; /* the recording is the caller's */
    bool is_for_rows; /* named, and rows of a result file are of it: not shown on its own */
    frag_recording recording;
    frag_error error;
    bool is_loaded;
    char recorded_by[64];
    char *explanation; /* lines of `explain --format jsonl`, one for each device that ran out */
    uint64_t explained_bytes; /* on a device of this size */
} frag_report_source;

/* One trace of the page. */
typedef struct frag_report_trace {
    frag_report_source *source;   /* NULL: the recording is not at hand */
    const frag_trace *trace;      /* of the source, or what rows say of it */
    const frag_row_group *group;  /* its rows; NULL: it is replayed as the wishes say */
    frag_device_description card; /* of the rows, as bundled */
    bool has_card;
    frag_request_list requests;
    frag_row_packing packing;
    bool has_packing;
    frag_text name;    /* of the recording, with the device behind it where there are several */
    char *explanation; /* of this device; NULL: none */
    frag_error error;
    size_t first_run;
    size_t run_count;
} frag_report_trace;

typedef struct frag_report_run {
    size_t trace;                  /* index */
    const frag_stored_row *stored; /* NULL: the run makes its row */
    frag_policy_spec spec;
    frag_device_spec device;
    bool is_oom_skipped;
    bool is_replayed;
    frag_policy_plan *plan;
    frag_run_result result;
    frag_history history;
    frag_error error;
    bool is_drawn;
    frag_text note; /* beside the row */
} frag_report_run;

typedef struct frag_report_state {
    const frag_report_wishes *wishes;
    frag_stored_rows rows; /* of all result files */
    const char *rows_path; /* the last of them */
    frag_report_source *sources;
    size_t source_count;
    size_t source_capacity;
    frag_report_trace *traces;
    size_t trace_count;
    frag_report_run *runs;
    size_t run_count;
    size_t run_capacity;
    frag_progress *progress;
} frag_report_state;

/* ---- report_sources.c */
/* Tells result files and recordings apart, reads the rows, loads the recordings. */
bool frag_report_load(frag_report_state *report, frag_error *error);
/* The trace that a group of rows is of, and where it is from; NULL: not at hand. */
const frag_trace *frag_report_trace_of(const frag_report_state *report, const frag_row_group *group,
                                       frag_report_source **source);

/* ---- report_runs.c */
/* Replays, as the wishes or the rows say. */
bool frag_report_replay(frag_report_state *report, frag_error *error);

/* ---- report_explain.c */
void frag_report_explain(frag_report_state *report);

#endif
