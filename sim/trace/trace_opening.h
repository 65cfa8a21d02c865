/* What of the events before an index still has a say there: device memory held, blocks live or
 * waiting for a stream, settings, pools and uses in force. A piece of a trace starts from it. */
#ifndef FRAG_TRACE_TRACE_OPENING_H
#define FRAG_TRACE_TRACE_OPENING_H

#include "sim/trace/trace.h"

/* A piece of device memory that the recorded allocator held. */
typedef struct frag_held_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t event; /* that got it */
    bool is_mapped;
} frag_held_range;

typedef struct frag_open_block {
    uint64_t alloc_event;
    uint64_t free_event; /* the deferred one, when is_waiting */
    bool is_live;
    bool is_waiting;
} frag_open_block;

typedef struct frag_opening frag_opening;

/* Of a checked trace, before its first event. */
frag_opening *frag_opening_create(const frag_trace *trace);
/* Goes on to the event before index. */
void frag_opening_follow_to(frag_opening *opening, uint64_t index);
void frag_opening_destroy(frag_opening *opening);

/* By slot: as many as the trace has. */
const frag_open_block *frag_opening_blocks(const frag_opening *opening);
/* In no order. */
const frag_held_range *frag_opening_held(const frag_opening *opening, size_t *count);
/* Indices of the events whose settings, pools and uses are in force, ascending. Good until the next
 * call. */
const uint64_t *frag_opening_in_force(frag_opening *opening, size_t *count);

/* The cost so far of keeping track of memory held, in ranges looked at: large where thousands of
 * ranges come and go. */
uint64_t frag_opening_cost(const frag_opening *opening);

/* An event that has a say. Of one that got memory, which part of it is still held; else its own
 * address and bytes. */
typedef struct frag_open_event {
    uint64_t event;
    uint64_t address;
    uint64_t bytes;
} frag_open_event;

/* All of them, in order of event and then address: a trace of these alone has the same opening. The
 * caller frees the list. */
frag_open_event *frag_opening_list(frag_opening *opening, size_t *count);

#endif
