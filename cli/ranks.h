/* This process as one of several that were started together, by mpirun or a cluster's launcher. */
#ifndef FRAG_CLI_RANKS_H
#define FRAG_CLI_RANKS_H

#include "cli/command.h"
#include "cluster/rank_module.h"

/* Finds out whether this process was started with others, and joins them then, which waits for all
 * of them. Alone: module stays NULL, and nothing of MPI is loaded. false: FRAG_E_SYSTEM, when there
 * are others but they cannot be joined, so that each would do the work of all. */
bool frag_ranks_join(frag_ranks *ranks, frag_error *error);

/* The cores that this process should use: its share of those that others may use too. */
uint32_t frag_ranks_cores(const frag_ranks *ranks);

/* The MPI library that would be used. false: why there is none. */
bool frag_ranks_library(char *text, size_t text_bytes, frag_error *error);

#endif
