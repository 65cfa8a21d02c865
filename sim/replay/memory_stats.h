/* The statistics that a policy keeps under its framework's names, taken at one point of a run, and
 * PyTorch's table of them. Start from {0}. */
#ifndef FRAG_REPLAY_MEMORY_STATS_H
#define FRAG_REPLAY_MEMORY_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

typedef struct frag_stats {
    frag_strings names; /* "allocated_bytes.all.current", in the policy's order */
    int64_t *values;    /* by id of the name */
    size_t capacity;
} frag_stats;

/* A name given twice keeps its last value. */
void frag_stats_add(frag_stats *stats, const char *name, int64_t value);
bool frag_stats_find(const frag_stats *stats, const char *name, int64_t *value);
void frag_stats_destroy(frag_stats *stats);

/* The table of torch.cuda.memory_summary(), byte for byte where all its statistics are there; one
 * that is missing shows as "-". device: the number in its head. Source: torch/cuda/memory.py. */
void frag_stats_summary(const frag_stats *stats, uint32_t device, FILE *stream);

#endif
