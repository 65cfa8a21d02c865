#include "sim/trace/demand.h"

#include "base/memory.h"

void frag_demand_begin(frag_demand *demand, const frag_trace *trace)
{
    demand->trace = trace;
    demand->alloc_of = frag_alloc(trace->slot_count, sizeof *demand->alloc_of);
}

bool frag_demand_step(frag_demand *demand, uint64_t event, frag_demand_change *change)
{
    const frag_event *at = &demand->trace->events[event];
    if (at->op == FRAG_OP_ALLOC && at->slot != FRAG_SLOT_NONE) {
        demand->alloc_of[at->slot] = event + 1;
        *change = (frag_demand_change){event, at->bytes, false};
        return true;
    }
    if (at->op != FRAG_OP_FREE || demand->alloc_of[at->slot] == 0)
        return false;
    uint64_t alloc_event = demand->alloc_of[at->slot] - 1;
    *change = (frag_demand_change){alloc_event, demand->trace->events[alloc_event].bytes, true};
    demand->alloc_of[at->slot] = 0;
    return true;
}

void frag_demand_end(frag_demand *demand)
{
    frag_free(demand->alloc_of);
    *demand = (frag_demand){0};
}
