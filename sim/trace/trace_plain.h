/* Plain events: allocs and frees without flags, which nearly all events of a trace are. No
 * processor can predict which of the two comes next, so the state of the scan is updated without
 * branches; an error sets a mark, and the marks are checked once at the end. Used by loops that
 * create such events and by the one that checks existing ones (sim/trace/trace_check.c): slots are
 * checked here; fields of one event are checked by the loop, in the way that is cheapest there. */
#ifndef FRAG_TRACE_TRACE_PLAIN_H
#define FRAG_TRACE_TRACE_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "sim/trace/trace.h"

/* So few events stand between begin and end, and so small are their requests, that no sum wraps
 * around. */
#define FRAG_PLAIN_EVENTS_MAX 512u
#define FRAG_PLAIN_REQUEST_BYTES ((uint64_t)1 << 53)

/* What changes from event to event: a copy, which the compiler can keep in registers where its
 * address goes nowhere between begin and end. */
typedef struct frag_plain_state {
    uint64_t *slots;     /* of each: 0, the bytes of its block, or bit 63: it waits */
    uint32_t slot_count; /* those below this were used before */
    uint32_t slot_limit; /* those below this may be used */
    uint64_t live_room;  /* so many more blocks were live before */
    uint64_t requested_bytes;
    uint64_t peak_bytes;
    uint64_t peak_index; /* of the event that reached it, as the loop counts; UINT64_MAX: earlier */
    uint64_t wrong;      /* bit 63: an event does not go with its slot */
} frag_plain_state;

/* What the loop alone knows of the events between begin and end. Streams that are not in the
 * trace's table and requests that are not 1 to FRAG_PLAIN_REQUEST_BYTES - 1 make it unsound. */
typedef struct frag_plain_run {
    uint32_t count;
    uint32_t alloc_count;
    uint64_t live_rise; /* at most so many more blocks were live than at the beginning; any number
                         * up to live_room if there were never more than that */
    uint64_t bytes;     /* of the allocs */
    bool is_sound;
} frag_plain_run;

/* Goes on from an event. false: this scan has not come that far, or has failed; then there is
 * nothing to end, and events are for frag_trace_scan_to. */
bool frag_plain_begin(const frag_trace_scan *scan, uint64_t first, frag_plain_state *state);

/* One event; if_alloc has all bits set for an alloc and none for a free, bytes is 0 for a free.
 * false: this one is for frag_trace_scan_to, and nothing has changed. */
FRAG_INLINE bool frag_plain_step(frag_plain_state *state, uint64_t index, uint32_t slot,
                                 uint64_t if_alloc, uint64_t bytes)
{
    if (FRAG_UNLIKELY(slot >= state->slot_count)) {
        if (slot >= state->slot_limit)
            return false;
        state->slot_count = slot + 1;
    }
    uint64_t before = state->slots[slot];
    state->slots[slot] = bytes;
    /* Of a block that waits for its complete, bit 63 makes a peak that no trace can have. */
    state->requested_bytes += bytes;
    state->requested_bytes -= before;
    state->wrong |= (before - 1) ^ if_alloc; /* free before an alloc, live before a free */
    if (FRAG_UNLIKELY(state->requested_bytes > state->peak_bytes)) {
        state->peak_bytes = state->requested_bytes;
        state->peak_index = index;
    }
    return true;
}

/* Takes over the result of the steps; indices began at base. If a mark is set the scan has failed,
 * and frag_trace_accept checks all events one by one, to find the wrong one or to accept them all
 * (a request may have up to 2^56 - 1 bytes). */
void frag_plain_end(frag_trace_scan *scan, const frag_plain_state *state, uint64_t base,
                    const frag_plain_run *run);

#endif
