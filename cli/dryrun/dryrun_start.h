/* Starts a command in the surroundings of a dry run and waits for it. */
#ifndef FRAG_DRYRUN_DRYRUN_START_H
#define FRAG_DRYRUN_DRYRUN_START_H

#include <stdio.h>

#include "studies/dryrun/dryrun_card.h"
#include "cli/dryrun/dryrun_parts.h"
#include "cli/dryrun/dryrun_progress.h"

/* One rank of a world of which only some are run (--ranks). */
typedef struct frag_dryrun_rank {
    uint64_t rank;
    uint64_t count;       /* of ranks; 0: none is set */
    uint64_t local_count; /* of ranks on one machine: each has a card */
} frag_dryrun_rank;

typedef struct frag_dryrun_start {
    const frag_dryrun_parts *parts;
    const char *folder;      /* where the processes leave what they saw */
    const char *settings;    /* of the software CUDA */
    const char *conf;        /* PYTORCH_CUDA_ALLOC_CONF; NULL: as it is */
    const char *environment; /* of which virtual environment the programs are; NULL: as it is */
    FILE *log;               /* for what the command prints; NULL: as it is */
    frag_dryrun_progress *progress; /* NULL: none is shown */
    uint64_t timeout_ns;            /* 0: none */
    frag_dryrun_rank rank;
} frag_dryrun_start;

typedef struct frag_dryrun_end {
    int code; /* of the command; 128 + N when signal N ended it */
    bool is_timed_out;
    bool is_started;
    uint64_t time_ns;
} frag_dryrun_end;

/* command ends with NULL. Signals that this process gets are passed on. false: no process can be
 * made; a command that cannot be run fills the error too, with end->is_started false. */
bool frag_dryrun_run(const frag_dryrun_start *start, char *const *command, frag_dryrun_end *end,
                     frag_error *error);

#endif
