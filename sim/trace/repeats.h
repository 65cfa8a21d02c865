/* Stretches of a trace that repeat exactly: the same requests in the same order, each freed as many
 * events later, as the steps of a training of fixed shapes. A replay that is in the same state
 * before and after one of them need not replay the others (sim/replay/replay_repeats.c). */
#ifndef FRAG_TRACE_REPEATS_H
#define FRAG_TRACE_REPEATS_H

#include "sim/trace/trace.h"

/* Events [first + period, end) are the same as those `period` before. Slots may be others; events
 * that say nothing to a policy, as marks and what was observed, count as the same. */
typedef struct frag_repeat {
    uint64_t first;
    uint64_t period;
    uint64_t end;
} frag_repeat;

typedef struct frag_repeats {
    frag_repeat *items; /* in order, apart */
    size_t count;
    size_t capacity;
} frag_repeats;

/* The long ones; linear time. They may be fewer than there are. */
void frag_repeats_find(const frag_trace *trace, frag_repeats *repeats);
void frag_repeats_destroy(frag_repeats *repeats);

#endif
