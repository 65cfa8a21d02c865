/* What `fraglab report` works on: recordings, the runs of their traces, and the rows of result
 * files whose recordings may or may not be at hand. */
#ifndef FRAG_CLI_REPORT_STATE_H
#define FRAG_CLI_REPORT_STATE_H

#include "report/page.h"
#include "sim/cli/bounds.h"
#include "sim/cli/inputs.h"

typedef struct frag_report_source {
    const char *path; /* as typed */
    frag_recording recording;
    frag_error error;
    bool is_loaded;
    char recorded_by[64];
    char *explanation; /* lines of `explain --format jsonl`, one for each device that ran out */
} frag_report_source;

/* One trace of a recording, and what was found about it. */
typedef struct frag_report_trace {
    frag_report_source *source;
    frag_trace *trace;
    frag_request_list requests;
    frag_row_packing packing;
    bool has_packing;
    char *name;        /* of the recording, with the device behind it where there are several */
    char *explanation; /* of this device; NULL: none */
    frag_error error;
    size_t first_run;
    size_t run_count;
} frag_report_trace;

typedef struct frag_report_run {
    frag_report_trace *of;
    frag_policy_spec spec;
    frag_device_spec device;
    bool is_oom_skipped;
    frag_policy_plan *plan;
    frag_run_result result;
    frag_history history;
    frag_error error;
    bool is_ok;
} frag_report_run;

typedef struct frag_report_state {
    const frag_arguments *arguments;
    frag_policy_list policies;
    bool has_policies; /* false: a few that are worth a look, by recording */
    frag_device_spec device;
    frag_device_description gpu;
    frag_trace_format format;
    bool is_oom_skipped;
    bool has_bounds;
    uint32_t threads;
    frag_report_source *sources;
    size_t source_count;
    frag_report_trace *traces;
    size_t trace_count;
    frag_report_run *runs;
    size_t run_count;
    size_t run_capacity;
    frag_progress *progress;
} frag_report_state;

/* ---- report_runs.c */
/* Loads the recordings, replays their traces and explains what ran out of memory. The exit code of
 * the first failure, which has been reported, else 0. */
int frag_report_replay(frag_report_state *report);
void frag_report_destroy(frag_report_state *report);

#endif
