/* fraglab run --snapshot: the run as a file for PyTorch's memory viewers. */
#ifndef FRAG_RUN_RUN_SNAPSHOT_H
#define FRAG_RUN_RUN_SNAPSHOT_H

#include "cli/inputs.h"

#define FRAG_SNAPSHOT_OPTIONS                                                                      \
    {"snapshot", "FILE", .writes = "snapshot", .scope = FRAG_OF_ONE_DEVICE,                        \
     .help = "write the run there as a memory snapshot, for PyTorch's viewers: its history and "   \
             "the memory at its end (one trace, one policy); .zst and .gz are compressed"},        \
    {                                                                                              \
        "snapshot-at", "POINT",                                                                    \
            .help =                                                                                \
                "end the snapshot at the peak of reserved bytes, at the first OOM, at the end or " \
                "after an event: peak, oom, end or its number (default: end)"                      \
    }

typedef struct frag_run_snapshot frag_run_snapshot;

/* *snapshot is NULL when none is asked for. */
bool frag_run_snapshot_open(const frag_arguments *arguments, const frag_policy_list *policies,
                            frag_run_snapshot **snapshot, frag_error *error);
/* Runs a trace again and writes it; first is the result of its first run. The traces of one
 * recording, in order, which outlives the snapshot. */
bool frag_run_snapshot_add(frag_run_snapshot *snapshot, const frag_recording *recording,
                           const frag_trace *trace, const frag_policy_spec *policy,
                           const frag_device_spec *device, const frag_run_options *run,
                           const frag_replay_result *first, frag_error *error);
/* The recording has been added. */
bool frag_run_snapshot_end(frag_run_snapshot *snapshot, frag_error *error);
/* Puts the file in place if it is whole; frees. */
bool frag_run_snapshot_close(frag_run_snapshot *snapshot, frag_error *error);

#endif
