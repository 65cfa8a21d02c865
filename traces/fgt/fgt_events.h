/* Events of a .fgt, put together from the values of its columns. */
#ifndef FRAG_FGT_FGT_EVENTS_H
#define FRAG_FGT_FGT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "sim/trace/trace.h"

/* ---- which slot comes next: the one given back last, else the lowest that was never taken */

/* Free slots in a stack, the next one on top. As many fresh ones as are asked for lie below those
 * that were given back, so that taking needs no question. */
typedef struct frag_fgt_slots {
    uint32_t *free;
    size_t count;
    size_t capacity;
    uint32_t fresh; /* slots below this are or were in the stack */
} frag_fgt_slots;

/* Makes room for that many events, whatever they do. */
void frag_fgt_slots_reserve(frag_fgt_slots *slots, uint32_t events);
void frag_fgt_slots_destroy(frag_fgt_slots *slots);

/* Does the event take a slot away from the free ones, or give one back? */
static inline bool frag_fgt_takes_slot(uint32_t op, uint32_t flags)
{
    return op == FRAG_OP_ALLOC && (flags & FRAG_EVENT_FAILED) == 0;
}

static inline bool frag_fgt_gives_slot(uint32_t op, uint32_t flags)
{
    return (op == FRAG_OP_FREE && (flags & FRAG_EVENT_DEFERRED) == 0) || op == FRAG_OP_COMPLETE;
}

/* Events whose addresses replay needs, and that may have a block size. */
static inline bool frag_fgt_is_held(uint32_t op, uint32_t flags)
{
    return frag_op_is_observed(op) || (flags & FRAG_EVENT_INITIAL) != 0;
}

/* ---- events of a block */

/* So many events have their values in the nearest cache at once. */
#define FRAG_FGT_BLOCK_EVENTS 512u

/* What stands in the columns for some events. Places behind the last value are read, but never
 * used. */
typedef struct frag_fgt_block {
    uint32_t size;
    bool is_plain;          /* allocs that take a slot and frees that give it back, nothing else */
    bool is_foreseen;       /* there are no taken_slots */
    bool has_other_bytes;   /* some of other_bytes are not 0 */
    bool has_known_streams; /* all streams are in the trace's table */
    uint32_t heads[FRAG_FGT_BLOCK_EVENTS];           /* frag_fgt_event_head of each */
    uint32_t slots[FRAG_FGT_BLOCK_EVENTS + 1];       /* of those that take none */
    uint32_t taken_slots[FRAG_FGT_BLOCK_EVENTS + 1]; /* of those that take one */
    uint64_t bytes[FRAG_FGT_BLOCK_EVENTS + 1];       /* of allocs */
    uint64_t other_bytes[FRAG_FGT_BLOCK_EVENTS + 1]; /* of all others */
} frag_fgt_block;

/* The number that lies in memory like the first four bytes of an event. */
static inline uint32_t frag_fgt_event_head(uint32_t op, uint32_t flags, uint32_t stream)
{
    return frag_is_little_endian() ? op | flags << 8 | stream << 16
                                   : op << 24 | flags << 16 | stream;
}

/* Is any of these values not 0? */
static inline bool frag_fgt_has_value(const uint64_t *values, uint32_t count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++)
        all |= values[i];
    return all != 0;
}

/* Makes the events of a trace from an index on. scan, of the trace, goes over them where it is not
 * NULL; what it thinks of them is for frag_trace_accept to tell. */
void frag_fgt_block_make(const frag_fgt_block *block, frag_fgt_slots *slots,
                         const frag_recording *recording, const frag_trace *trace, uint64_t first,
                         frag_trace_scan *scan);

/* The same of version 1, where slots and bytes have a value for every event. */
void frag_fgt_block_make_old(const frag_fgt_block *block, frag_event *events);

#endif
