/* Files that `fraglab run` writes besides its rows: --snapshot, --chrome, --placement. They are
 * opened before the first run, so that nothing is computed for a file that cannot be written. */
#ifndef FRAG_RUN_RUN_FILES_H
#define FRAG_RUN_RUN_FILES_H

#include "cli/inputs.h"
#include "studies/run/run_chrome.h"
#include "studies/run/run_placement.h"
#include "studies/run/run_snapshot.h"

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

#define FRAG_CHROME_OPTION                                                                         \
    {                                                                                              \
        "chrome", "FILE",                                                                          \
            .writes = "Chrome trace", .scope = FRAG_OF_ONE_DEVICE,                                 \
            .help =                                                                                \
                "write the run there as a Chrome trace, for Perfetto: counters of requested, "     \
                "allocated, active and reserved bytes, slices for requests, segments and device "  \
                "calls (one trace, one policy; a microsecond stands for an event)"                 \
    }

#define FRAG_PLACEMENT_OPTION                                                                      \
    {                                                                                              \
        "placement", "FILE",                                                                       \
            .writes = "placement", .scope = FRAG_OF_ONE_RUN,                                       \
            .help =                                                                                \
                "write where each request was placed there, as MiniMalloc's CSV with a column "    \
                "offset (one trace, one policy); exit 1 if a request could not be placed"          \
    }

typedef struct frag_run_file {
    frag_output *output; /* NULL: not asked for */
    bool is_whole;
} frag_run_file;

typedef struct frag_run_files {
    frag_run_file snapshot;
    frag_run_file chrome;
    frag_run_file placement;
    frag_run_snapshot *snapshot_of; /* NULL: none wanted */
    frag_chrome_writer chrome_of;
} frag_run_files;

bool frag_run_files_open(const frag_arguments *arguments, const frag_policy_list *policies,
                         frag_run_files *files, frag_error *error);
/* Puts those in place that are whole. The exit code of the first failure, which has been reported,
 * else 0. */
int frag_run_files_close(frag_run_files *files);

#endif
