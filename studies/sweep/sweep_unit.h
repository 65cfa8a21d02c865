/* The piece of work that a sweep is cut into: one policy with options on one trace, through all
 * capacities. Its rows are a function of the experiment, so it does not matter who works on it. */
#ifndef FRAG_SWEEP_SWEEP_UNIT_H
#define FRAG_SWEEP_SWEEP_UNIT_H

#include "base/context.h"
#include "base/threads.h"
#include "base/text.h"
#include "sim/run.h"
#include "studies/capacity/bounds.h"
#include "studies/sweep/experiment.h"
#include "studies/sweep/sweep_known.h"

typedef struct frag_sweep_unit {
    uint64_t number; /* counts those that are handed out, in order of the rows */
    uint32_t file;   /* of the experiment's traces */
    uint32_t trace;  /* of the recording */
    uint64_t policy;
    uint64_t first_capacity; /* the rows of those before are there already */
} frag_sweep_unit;

typedef struct frag_sweep_rows {
    frag_text text;
    uint64_t count;
    uint64_t replayed;
    bool is_whole;    /* false: an interrupt came between, or the error */
    frag_error error; /* the trace cannot be packed, and the experiment asks for bounds */
} frag_sweep_rows;

/* A trace of it. The first unit that needs the packing finds it, the others wait for that. */
typedef struct frag_sweep_trace {
    frag_sweep_known *known;
    frag_lock *lock;
    frag_row_packing packing;
    bool is_packed;
} frag_sweep_trace;

/* A recording that is worked on. */
typedef struct frag_sweep_recording {
    frag_recording recording;
    char recorded_by[64];
    bool is_recorder_known;
    frag_sweep_trace *traces;
    bool is_loaded;
    uint32_t users;
} frag_sweep_recording;

/* What all units have in common. */
typedef struct frag_sweep_job {
    const frag_context *context;
    frag_experiment experiment;
    bool has_counts_only;
    bool is_all_replayed; /* nothing is concluded from another run */
    frag_progress *progress;
    frag_lock *lock;                  /* of the recordings */
    frag_sweep_recording *recordings; /* one for each of the experiment's traces */
} frag_sweep_job;

bool frag_sweep_job_open(const char *path, frag_sweep_job *job, frag_error *error);
/* As frag_experiment_parse. */
bool frag_sweep_job_parse(const char *text, size_t length, const char *folder, frag_sweep_job *job,
                          frag_error *error);
void frag_sweep_job_close(frag_sweep_job *job);

/* What two processes must agree on so that their rows are of one sweep: build, policies, capacities
 * and names of the traces. */
void frag_sweep_job_digest(const frag_sweep_job *job, char text[33]);

/* Loads the recording, or finds it loaded; it stays until the last who holds it lets it go. NULL:
 * it cannot be read. From any thread. */
const frag_sweep_recording *frag_sweep_hold(frag_sweep_job *job, uint32_t file, frag_error *error);
void frag_sweep_let_go(frag_sweep_job *job, uint32_t file);

/* Replays; the caller holds the recording, and frees the text. From any thread. */
void frag_sweep_unit_run(const frag_sweep_job *job, const frag_sweep_unit *unit,
                         frag_sweep_rows *rows);

#endif
