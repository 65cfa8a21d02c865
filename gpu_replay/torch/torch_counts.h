/* What a device has served, counted from requests, grants and device calls, under the names of
 * torch.cuda.memory_stats. */
#ifndef FRAG_TORCH_TORCH_COUNTS_H
#define FRAG_TORCH_TORCH_COUNTS_H

#include <stdint.h>

#include "sim/policy_engine.h"

typedef struct frag_torch_count {
    uint64_t current;
    uint64_t peak;
    uint64_t added; /* in all */
    uint64_t removed;
} frag_torch_count;

typedef struct frag_torch_counts {
    frag_torch_count requested_bytes;
    frag_torch_count allocated_bytes;
    frag_torch_count active_bytes;
    frag_torch_count reserved_bytes;
    frag_torch_count allocations;
    frag_torch_count active;
    frag_torch_count segments; /* device mallocs, and mapped stretches of ranges */
    uint64_t oom_count;
} frag_torch_counts;

static inline void frag_torch_count_add(frag_torch_count *count, uint64_t amount)
{
    count->current += amount;
    count->added += amount;
    if (count->current > count->peak)
        count->peak = count->current;
}

static inline void frag_torch_count_remove(frag_torch_count *count, uint64_t amount)
{
    count->current -= amount;
    count->removed += amount;
}

/* Every statistic as "allocated_bytes.all.current". */
void frag_torch_counts_visit(const frag_torch_counts *counts, frag_stat_visitor *visit,
                             void *context);

#endif
