/* A run of a policy on a random trace as the snapshot that PyTorch would have written of it: all
 * that happened, and the memory at the end. */
#ifndef FRAG_SUPPORT_MADE_SNAPSHOT_H
#define FRAG_SUPPORT_MADE_SNAPSHOT_H

#include "base/text.h"
#include "sim/run.h"

typedef struct made_span {
    frag_span span;
    uint64_t requested_bytes;
    bool is_waiting;
} made_span;

typedef struct made_snapshot {
    const frag_trace *trace;
    frag_note *notes;
    size_t note_count;
    size_t note_capacity;
    made_span *spans;
    size_t span_count;
    size_t span_capacity;
    bool is_expandable;
} made_snapshot;

/* What is left out of what is written. */
typedef struct made_snapshot_loss {
    size_t first;             /* note that is still there */
    uint32_t kinds;           /* one bit for each kind of note that is not */
    bool has_pools;           /* of each entry */
    uint64_t max_split_bytes; /* 0: no setting of it is written */
    double gc_threshold;      /* as well */
    bool is_old;              /* of a release that did not write its settings */
} made_snapshot_loss;

/* As PyTorch names them in a snapshot. */
extern const char *const made_snapshot_actions[FRAG_NOTE_HELD_SEGMENT];

/* Requests that fail are skipped. false: as frag_run. The caller destroys, either way. */
bool made_snapshot_make(made_snapshot *of, const frag_run_setup *setup, frag_error *error);

/* Adds the snapshot in JSON. */
void made_snapshot_write(frag_text *text, const made_snapshot *of, const made_snapshot_loss *lost);

void made_snapshot_destroy(made_snapshot *of);

#endif
