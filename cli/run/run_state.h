/* What `fraglab run` works on: the rows to compute, and everything asked for on the command line
 * that they share. One block of recordings is loaded, run and printed at a time. */
#ifndef FRAG_RUN_RUN_STATE_H
#define FRAG_RUN_RUN_STATE_H

#include "cli/gpu_run.h"
#include "cli/inputs.h"
#include "cli/run/run_files.h"
#include "sim/rows/result.h"
#include "studies/capacity/bounds.h"
#include "studies/run/run_stats.h"

/* One row to compute. */
typedef struct frag_run_job {
    const frag_recording *recording;
    const frag_trace *trace;
    frag_policy_spec spec;
    frag_policy_plan *plan; /* NULL: the policy does not plan */
    bool is_gpu;
    bool has_twin; /* the next job is the same on the card, this one is compared with it */
    frag_device_spec device; /* of the row: with what a card turned out to have */
    frag_gpu_run gpu;
    bool is_counted; /* is_gpu: it has run on the card */
    frag_row_gpu row_gpu;
    frag_run_result result;
    frag_row_packing packing; /* with --bounds: of the trace, in its first frag_run_job */
    frag_error packing_error;
    bool has_packing;
    frag_row_stats stats; /* with --stats-at */
    frag_error stats_error;
    frag_error error;
    bool is_ok;
} frag_run_job;

typedef struct frag_run_source {
    frag_recording recording;
    frag_error error;
    bool is_loaded;
    char recorded_by[64];
    frag_policy_list policies; /* of its own, where the command line names none */
} frag_run_source;

typedef struct frag_run_state {
    const frag_arguments *arguments;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_gpu_devices devices;
    frag_device_spec beside_gpu; /* simulated, as the card was before the first run */
    frag_run_options run;
    frag_trace_format format;
    frag_result_format result_format;
    frag_run_stats stats_at;
    frag_stats_columns *columns; /* of CSV with statistics */
    uint64_t threads;
    frag_run_source *sources; /* of the block being worked on */
    size_t first_source;
    frag_run_job *jobs;
    frag_progress *progress;
    frag_run_files files;
    size_t row_count; /* printed */
    bool has_oom;
} frag_run_state;

/* ---- run_jobs.c */
/* Every trace of the loaded recordings with every policy on every device, in the order in which
 * rows are printed; returns how many. */
size_t frag_run_jobs_list(frag_run_state *state, size_t source_count);
/* One after the other: jobs beside each other would share the card's memory. */
void frag_run_job_on_gpu(frag_run_state *state, frag_run_job *task);
/* For frag_for_each; context is the state. A job of a card has run on it before. */
void frag_run_job_do(void *context, uint64_t index);
/* The packing of the trace, once for all of its jobs. */
void frag_run_job_bound(void *context, uint64_t index);
/* Runs again for the snapshot; what stands in its way takes the place of the row. */
void frag_run_jobs_snapshot(frag_run_state *state, size_t count);
void frag_run_jobs_chrome(frag_run_state *state, size_t count);
void frag_run_jobs_placement(frag_run_state *state, size_t count);

/* ---- run_print.c */
/* What went wrong, in the order of the command line, so that threads change nothing; the exit code
 * of the first failure, else 0. */
int frag_run_report_problems(const frag_run_state *state, size_t source_count, size_t job_count);
void frag_run_print_rows(frag_run_state *state, size_t count, FILE *stream);

#endif
