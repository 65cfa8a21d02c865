#include "studies/verify/verify_supposed.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Is memory taken for a request right after what was given back? */
static bool is_before_growth(const frag_trace *trace, uint64_t call, bool is_large_only)
{
    bool has_grown = false;
    uint64_t i = call + 1;
    for (; i < trace->event_count && frag_op_is_observed((frag_op)trace->events[i].op); i++) {
        const frag_event *event = &trace->events[i];
        bool is_given = event->op == FRAG_OP_SEGMENT_FREE || event->op == FRAG_OP_SEGMENT_UNMAP;
        bool is_large = event->op == FRAG_OP_SEGMENT_FREE && event->bytes > 2 * FRAG_MIB;
        if (is_given && is_large_only && !is_large)
            return false;
        has_grown |= event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP ||
                     event->op == FRAG_OP_OOM;
    }
    return has_grown && i < trace->event_count && trace->events[i].op == FRAG_OP_ALLOC;
}

uint64_t frag_supposed_leave_out(const frag_trace *trace, bool is_large_only, frag_trace *copy)
{
    uint64_t count = 0;
    *copy = *trace;
    copy->events = frag_alloc(trace->event_count, sizeof *copy->events);
    memcpy(copy->events, trace->events, (size_t)trace->event_count * sizeof *copy->events);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        frag_event *event = &copy->events[i];
        if (event->op != FRAG_OP_EMPTY_CACHE || (event->flags & FRAG_EVENT_INFERRED) == 0 ||
            !is_before_growth(trace, i, is_large_only))
            continue;
        /* A mark without a name: nobody acts on it, and all events keep their places. */
        *event = (frag_event){.op = FRAG_OP_MARK};
        count++;
    }
    return count;
}

void frag_supposed_destroy(frag_trace *copy)
{
    frag_free(copy->events);
    copy->events = NULL;
}
