#include "sim/trace/trace_opening.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/memory.h"

#define NO_EVENT UINT64_MAX

/* Uses and pool ops are listed, and those without effect dropped once there are twice as many. */
#define LISTED_MIN 1024u

struct frag_opening {
    const frag_trace *trace;
    uint64_t next; /* event */
    frag_open_block *blocks;
    frag_held_range *held;
    size_t held_capacity;
    size_t held_count;
    uint64_t cost;
    uint64_t config; /* the last of its kind; NO_EVENT: none */
    uint64_t limit;
    uint64_t capture;    /* the last capture_begin that has no end */
    uint64_t *on_oom;    /* by pool, event + 1: it serves OOMs since */
    uint64_t *forgotten; /* by pool, event + 1: nobody owned it any more */
    uint32_t *owners;    /* by pool */
    uint64_t *listed;    /* uses and pool ops that may be in force, ascending */
    size_t listed_capacity;
    size_t listed_count;
    size_t listed_limit;
    uint64_t *in_force; /* what was asked for last */
    size_t in_force_capacity;
};

frag_opening *frag_opening_create(const frag_trace *trace)
{
    frag_opening *opening = frag_alloc(1, sizeof *opening);
    opening->trace = trace;
    opening->blocks = frag_alloc(trace->slot_count, sizeof *opening->blocks);
    opening->config = opening->limit = opening->capture = NO_EVENT;
    opening->on_oom = frag_alloc(trace->pool_count, sizeof *opening->on_oom);
    opening->forgotten = frag_alloc(trace->pool_count, sizeof *opening->forgotten);
    opening->owners = frag_alloc(trace->pool_count, sizeof *opening->owners);
    opening->listed_limit = LISTED_MIN;
    return opening;
}

void frag_opening_destroy(frag_opening *opening)
{
    if (opening == NULL)
        return;
    frag_free(opening->blocks);
    frag_free(opening->held);
    frag_free(opening->on_oom);
    frag_free(opening->forgotten);
    frag_free(opening->owners);
    frag_free(opening->listed);
    frag_free(opening->in_force);
    frag_free(opening);
}

/* ---- device memory */
static void hold(frag_opening *opening, frag_held_range range)
{
    *FRAG_APPEND(opening->held, opening->held_count, opening->held_capacity) = range;
}

/* A mapped range may be given back in pieces other than those it was got in. */
static void unhold(frag_opening *opening, uint64_t address, uint64_t bytes, bool is_mapped)
{
    uint64_t end = address + bytes;
    opening->cost += opening->held_count;
    for (size_t i = opening->held_count; i-- > 0;) {
        frag_held_range range = opening->held[i];
        uint64_t range_end = range.address + range.bytes;
        if (range.is_mapped != is_mapped || range_end <= address || range.address >= end)
            continue;
        opening->held[i] = opening->held[--opening->held_count];
        if (range.address < address)
            hold(opening,
                 (frag_held_range){range.address, address - range.address, range.event, is_mapped});
        if (range_end > end)
            hold(opening, (frag_held_range){end, range_end - end, range.event, is_mapped});
    }
}

/* ---- settings, pools, uses */

/* Can it have a say from here on? Owners of a pool are counted: every event since nobody owned it
 * is needed. */
static bool may_matter(const frag_opening *opening, uint64_t index)
{
    const frag_event *event = &opening->trace->events[index];
    uint32_t slot = event->slot;
    switch (event->op) {
    case FRAG_OP_USE:
        return opening->blocks[slot].is_live && opening->blocks[slot].alloc_event < index;
    case FRAG_OP_POOL_ON_OOM:
        return opening->on_oom[slot] == index + 1;
    default:
        return index >= opening->forgotten[slot];
    }
}

/* Has it one now? A pool without an owner may get one, but is none yet. */
static bool is_listed_in_force(const frag_opening *opening, uint64_t index)
{
    const frag_event *event = &opening->trace->events[index];
    return event->op == FRAG_OP_USE || event->op == FRAG_OP_POOL_ON_OOM ||
           opening->owners[event->slot] > 0;
}

static void drop_without_effect(frag_opening *opening)
{
    size_t kept = 0;
    for (size_t i = 0; i < opening->listed_count; i++) {
        opening->listed[kept] = opening->listed[i];
        kept += may_matter(opening, opening->listed[i]) ? 1 : 0;
    }
    opening->listed_count = kept;
}

static void list(frag_opening *opening, uint64_t index)
{
    if (opening->listed_count == opening->listed_limit) {
        drop_without_effect(opening);
        size_t twice = 2 * opening->listed_count;
        opening->listed_limit = twice > LISTED_MIN ? twice : LISTED_MIN;
    }
    *FRAG_APPEND(opening->listed, opening->listed_count, opening->listed_capacity) = index;
}

static void follow_pool(frag_opening *opening, const frag_event *event, uint64_t index)
{
    uint32_t pool = event->slot;
    switch (event->op) {
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_CREATE:
        opening->owners[pool]++;
        break;
    case FRAG_OP_POOL_RELEASE:
        opening->owners[pool] -= opening->owners[pool] > 0 ? 1 : 0;
        if (opening->owners[pool] == 0)
            opening->forgotten[pool] = index + 1;
        break;
    case FRAG_OP_POOL_ON_OOM:
        opening->on_oom[pool] = (event->flags & FRAG_EVENT_BEGIN) != 0 ? index + 1 : 0;
        break;
    default:
        break;
    }
    list(opening, index);
}

static void follow_rare(frag_opening *opening, const frag_event *event, uint64_t index)
{
    const uint64_t *addresses = opening->trace->addresses;
    uint64_t address = addresses == NULL ? 0 : addresses[index];
    switch ((frag_op)event->op) {
    case FRAG_OP_COMPLETE:
        opening->blocks[event->slot].is_waiting = false;
        break;
    case FRAG_OP_USE:
        list(opening, index);
        break;
    case FRAG_OP_SEGMENT_ALLOC:
    case FRAG_OP_SEGMENT_MAP:
        hold(opening,
             (frag_held_range){address, event->bytes, index, event->op == FRAG_OP_SEGMENT_MAP});
        break;
    case FRAG_OP_SEGMENT_FREE:
    case FRAG_OP_SEGMENT_UNMAP:
        unhold(opening, address, event->bytes, event->op == FRAG_OP_SEGMENT_UNMAP);
        break;
    case FRAG_OP_CONFIG:
        opening->config = index;
        break;
    case FRAG_OP_LIMIT:
        opening->limit = index;
        break;
    case FRAG_OP_CAPTURE_BEGIN:
        opening->capture = index;
        break;
    case FRAG_OP_CAPTURE_END:
        opening->capture = NO_EVENT;
        break;
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_END:
    case FRAG_OP_POOL_RELEASE:
    case FRAG_OP_POOL_CREATE:
    case FRAG_OP_POOL_ON_OOM:
    case FRAG_OP_POOL_NO_SPLIT:
        follow_pool(opening, event, index);
        break;
    default:
        break;
    }
}

void frag_opening_follow_to(frag_opening *opening, uint64_t index)
{
    for (; opening->next < index; opening->next++) {
        const frag_event *event = &opening->trace->events[opening->next];
        if (event->op == FRAG_OP_ALLOC) {
            if (event->slot != FRAG_SLOT_NONE)
                opening->blocks[event->slot] =
                    (frag_open_block){.alloc_event = opening->next, .is_live = true};
        } else if (event->op == FRAG_OP_FREE) {
            frag_open_block *block = &opening->blocks[event->slot];
            block->is_live = false;
            block->is_waiting = (event->flags & FRAG_EVENT_DEFERRED) != 0;
            block->free_event = opening->next;
        } else {
            follow_rare(opening, event, opening->next);
        }
    }
}

/* ---- what there is */
const frag_open_block *frag_opening_blocks(const frag_opening *opening)
{
    return opening->blocks;
}

const frag_held_range *frag_opening_held(const frag_opening *opening, size_t *count)
{
    *count = opening->held_count;
    return opening->held;
}

uint64_t frag_opening_cost(const frag_opening *opening)
{
    return opening->cost;
}

/* Those listed that are in force, or all that may come to be, and the last of each setting. */
static const uint64_t *find_in_force(frag_opening *opening, bool with_all, size_t *count)
{
    const uint64_t last[] = {opening->config, opening->limit, opening->capture};
    drop_without_effect(opening);
    opening->in_force = frag_grow(opening->in_force, &opening->in_force_capacity,
                                  opening->listed_count + 3, sizeof *opening->in_force);
    *count = 0;
    for (size_t i = 0; i < opening->listed_count; i++)
        if (with_all || is_listed_in_force(opening, opening->listed[i]))
            opening->in_force[(*count)++] = opening->listed[i];
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++)
        if (last[i] != NO_EVENT)
            opening->in_force[(*count)++] = last[i];
    qsort(opening->in_force, *count, sizeof *opening->in_force, frag_compare_numbers);
    return opening->in_force;
}

const uint64_t *frag_opening_in_force(frag_opening *opening, size_t *count)
{
    return find_in_force(opening, false, count);
}

static int compare_open_events(const void *left, const void *right)
{
    const frag_open_event *a = left;
    const frag_open_event *b = right;
    return frag_compare_then(frag_compare(a->event, b->event),
                             frag_compare(a->address, b->address));
}

frag_open_event *frag_opening_list(frag_opening *opening, size_t *count)
{
    const frag_trace *trace = opening->trace;
    size_t force_count = 0;
    const uint64_t *in_force = find_in_force(opening, true, &force_count);
    size_t room = force_count + opening->held_count;
    for (uint32_t slot = 0; slot < trace->slot_count; slot++) {
        const frag_open_block *block = &opening->blocks[slot];
        room += block->is_waiting ? 2 : block->is_live ? 1 : 0;
    }
    frag_open_event *events = frag_alloc(room, sizeof *events);
    *count = 0;
    for (size_t i = 0; i < force_count; i++)
        events[(*count)++].event = in_force[i];
    for (uint32_t slot = 0; slot < trace->slot_count; slot++) {
        const frag_open_block *block = &opening->blocks[slot];
        if (block->is_live || block->is_waiting)
            events[(*count)++].event = block->alloc_event;
        if (block->is_waiting)
            events[(*count)++].event = block->free_event;
    }
    for (size_t i = 0; i < *count; i++) {
        events[i].address = trace->addresses == NULL ? 0 : trace->addresses[events[i].event];
        events[i].bytes = trace->events[events[i].event].bytes;
    }
    for (size_t i = 0; i < opening->held_count; i++)
        events[(*count)++] = (frag_open_event){opening->held[i].event, opening->held[i].address,
                                               opening->held[i].bytes};
    qsort(events, *count, sizeof *events, compare_open_events);
    return events;
}
