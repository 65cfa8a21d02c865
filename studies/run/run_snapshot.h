/* A run as a memory snapshot of PyTorch: its history, and the memory at its end. */
#ifndef FRAG_RUN_RUN_SNAPSHOT_H
#define FRAG_RUN_RUN_SNAPSHOT_H

#include <stdio.h>

#include "allocators/registry.h"
#include "base/formats/codec.h"
#include "studies/run/run_point.h"

typedef struct frag_run_snapshot frag_run_snapshot;

/* Ends at that point of each run, which point_option (a literal) named. Errors of writing stay with
 * the stream. */
frag_run_snapshot *frag_run_snapshot_create(const frag_run_point *point, const char *point_option,
                                            frag_codec codec, FILE *stream);
/* Runs a trace again and writes it; first is the result of its first run. The traces of one
 * recording, in order, which outlives the snapshot. FRAG_E_USAGE: the run has no such point. */
bool frag_run_snapshot_add(frag_run_snapshot *snapshot, const frag_recording *recording,
                           const frag_trace *trace, const frag_policy_spec *policy,
                           const frag_device_spec *device, const frag_run_options *run,
                           const frag_replay_result *first, frag_error *error);
/* All traces (one or more) have been added: writes the rest. */
bool frag_run_snapshot_end(frag_run_snapshot *snapshot, frag_error *error);
/* Without frag_run_snapshot_end, what was written is no snapshot. NULL is allowed. */
void frag_run_snapshot_destroy(frag_run_snapshot *snapshot);

#endif
