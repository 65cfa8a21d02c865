/* What the program holds at each event of a trace, whatever a policy makes of it. */
#ifndef FRAG_TRACE_DEMAND_H
#define FRAG_TRACE_DEMAND_H

#include "sim/trace/trace.h"

typedef struct frag_demand {
    const frag_trace *trace;
    uint64_t *alloc_of; /* by slot: the event that requested what it names + 1; 0: nothing */
} frag_demand;

typedef struct frag_demand_change {
    uint64_t alloc_event;
    uint64_t bytes;
    bool is_free;
} frag_demand_change;

void frag_demand_begin(frag_demand *demand, const frag_trace *trace);

/* Takes the next event, in order. Does it change what is held? Requests that failed when recorded
 * do not; a free does when the program asks for it. */
bool frag_demand_step(frag_demand *demand, uint64_t event, frag_demand_change *change);

void frag_demand_end(frag_demand *demand);

#endif
