/* fraglab dryrun --ranks, --only: some ranks of a world that is too large to start, one process
 * each, one after the other. */
#ifndef FRAG_DRYRUN_DRYRUN_RANKS_H
#define FRAG_DRYRUN_DRYRUN_RANKS_H

#include "cli/command.h"
#include "cli/dryrun/dryrun_start.h"

typedef struct frag_dryrun_ranks {
    uint64_t count;       /* of the world; 0: the command starts its ranks itself */
    uint64_t local_count; /* on one machine */
    uint64_t *chosen;     /* ascending */
    size_t chosen_count;
} frag_dryrun_ranks;

/* program: the first word of the command. false: wrong options, or a program that starts ranks
 * itself. */
bool frag_dryrun_ranks_read(const frag_arguments *arguments, const char *program,
                            frag_dryrun_ranks *ranks, frag_error *error);
void frag_dryrun_ranks_destroy(frag_dryrun_ranks *ranks);

/* Runs the command once for each chosen rank, or once where there are none. The code of end is that
 * of the first rank that did not end well; a rank that was interrupted or timed out is the last. */
bool frag_dryrun_ranks_run(const frag_dryrun_ranks *ranks, frag_dryrun_start *start,
                           char *const *command, frag_dryrun_end *end, frag_error *error);

#endif
