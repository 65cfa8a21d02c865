/* What fixes cost in time: estimates (docs/plan.md), where all else in a plan is measured. */
#ifndef FRAG_PLAN_FIX_TIME_H
#define FRAG_PLAN_FIX_TIME_H

#include "studies/plan/fit_trial.h"

/* What an offload sends over the bus. */
typedef enum frag_fix_transfer {
    FRAG_FIX_MOVES_NOTHING,
    FRAG_FIX_MOVES_ACTIVATIONS, /* to the host and back */
    FRAG_FIX_MOVES_GRADIENTS,   /* to the host; stepped weights come back */
    FRAG_FIX_MOVES_SHARDS,      /* the same, and weights once more for each pass */
    FRAG_FIX_MOVES_WEIGHTS,     /* to the GPU */
} frag_fix_transfer;

/* By how much recomputing the activations of all blocks lengthens a step of training: an estimate
 * from floating-point operations (docs/plan.md). NAN: not known of this family. */
double frag_fix_recomputing_ratio(const frag_workload *workload);

/* Bytes that cross the bus in a step or a pass, out of what is at the peak without the offload. 0:
 * nothing does, or it is not known. */
uint64_t frag_fix_moved_bytes(frag_fix_transfer what, const frag_workload *workload,
                              const frag_fit_parts *parts);
/* How long that takes at 25 GB/s, which PCIe 4.0 with 16 lanes comes to. */
double frag_fix_moving_seconds(uint64_t bytes);

#endif
