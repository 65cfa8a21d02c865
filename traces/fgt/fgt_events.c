#include "traces/fgt/fgt_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/trace/trace_plain.h"
#include "traces/fgt/fgt.h"

/* Fewer plain events in a row than this are made one by one, like those that are not plain. */
#define PLAIN_RUN_MIN 16u

/* ---- slots */
void frag_fgt_slots_reserve(frag_fgt_slots *slots, uint32_t events)
{
    size_t added = slots->count < events ? events : 0;
    size_t wanted = slots->count + added + events;
    slots->free = frag_grow(slots->free, &slots->capacity, wanted, sizeof *slots->free);
    if (added == 0)
        return;
    memmove(slots->free + added, slots->free, slots->count * sizeof *slots->free);
    for (size_t i = 0; i < added; i++)
        slots->free[i] = slots->fresh + (uint32_t)(added - 1 - i);
    slots->count += added;
    slots->fresh += (uint32_t)added;
}

void frag_fgt_slots_destroy(frag_fgt_slots *slots)
{
    frag_free(slots->free);
    *slots = (frag_fgt_slots){0};
}

/* ---- events */

/* How far the events of a block are made: the next place in each of its columns. */
typedef struct block_position {
    uint32_t index; /* event */
    uint32_t slot;
    uint32_t taken_slot;
    uint32_t alloc;
    uint32_t other;
} block_position;

static inline void set_head(frag_event *event, const uint32_t *head)
{
    memcpy(event, head, sizeof *head);
}

static inline uint32_t op_of(const uint32_t *head)
{
    return *(const uint8_t *)head;
}

/* The next plain events in a row that are enough to be made together, or else those that the block
 * ends with, up to *end. Returns the first. */
static uint32_t find_plain_run(const frag_fgt_block *block, uint32_t from, uint32_t *end)
{
    *end = block->size;
    if (block->is_plain)
        return from;
    const uint32_t other_bits = frag_fgt_event_head(0xff & ~(uint32_t)FRAG_OP_FREE, 0xff, 0);
    uint32_t start = from;
    for (uint32_t i = from; i < block->size; i++) {
        const uint32_t *next = &block->heads[i];
        while (i + 4 < block->size && ((next[0] | next[1] | next[2] | next[3]) & other_bits) == 0) {
            next += 4;
            i += 4;
        }
        if ((*next & other_bits) == 0)
            continue;
        if (i - start >= PLAIN_RUN_MIN) {
            *end = i;
            return start;
        }
        start = i + 1;
    }
    return start;
}

static void make_any_event(block_position *at, const frag_fgt_block *block, frag_fgt_slots *slots,
                           frag_event *events)
{
    frag_event event;
    set_head(&event, &block->heads[at->index]);
    event.bytes =
        event.op == FRAG_OP_ALLOC ? block->bytes[at->alloc++] : block->other_bytes[at->other++];
    if (frag_fgt_takes_slot(event.op, event.flags)) {
        uint32_t foreseen = slots->free[--slots->count];
        event.slot = block->is_foreseen ? foreseen : block->taken_slots[at->taken_slot++];
    } else {
        event.slot = block->slots[at->slot++];
    }
    if (frag_fgt_gives_slot(event.op, event.flags))
        slots->free[slots->count++] = event.slot;
    events[at->index++] = event;
}

/* Are there frees in this plain run with a size of their own? */
static bool has_free_bytes(const block_position *at, const frag_fgt_block *block, uint32_t end)
{
    if (!block->has_other_bytes)
        return false;
    uint32_t free_count = 0;
    for (uint32_t i = at->index; i < end; i++)
        free_count += op_of(&block->heads[i]);
    return frag_fgt_has_value(block->other_bytes + at->other, free_count);
}

/* Sums up the requests of a run. */
static void add_requests(const uint64_t *bytes, frag_plain_run *run)
{
    uint64_t total = 0;
    uint64_t all = 0; /* bits of each, and of one less: of 0 that has them all */
    for (uint32_t i = 0; i < run->alloc_count; i++) {
        total += bytes[i];
        all |= bytes[i] | (bytes[i] - 1);
    }
    run->bytes = total;
    run->is_sound = run->is_sound && all < FRAG_PLAIN_REQUEST_BYTES;
}

/* Allocs and frees alternate as they like, which no processor foresees: nothing here branches but
 * on what hardly ever happens. false: the scan does not go on from here, and nothing was made. */
static FRAG_NOINLINE bool make_plain_events(block_position *at, const frag_fgt_block *block,
                                            uint32_t end, frag_fgt_slots *slots,
                                            frag_trace_scan *scan, uint64_t first,
                                            frag_event *events)
{
    frag_plain_state begun;
    if (!frag_plain_begin(scan, first + at->index, &begun))
        return false;
    frag_plain_state state = begun;
    uint32_t *const bottom = slots->free + slots->count;
    uint32_t *top = bottom;
    uint32_t *floor = state.live_room < slots->count ? bottom - state.live_room : slots->free;
    frag_event *const event_first = events + at->index;
    frag_event *event = event_first;
    uint64_t i = at->index;
    uint64_t next_free = at->slot;
    uint64_t next_alloc = at->alloc;
    for (; i < end; i++, event++) {
        uint64_t is_free = op_of(&block->heads[i]);
        uint64_t if_alloc = is_free - 1;
        uint64_t bytes = block->bytes[next_alloc] & if_alloc;
        *top = block->slots[next_free]; /* of an alloc: nothing, above what is free */
        uint32_t slot = *(top + is_free - 1);
        set_head(event, &block->heads[i]);
        event->slot = slot;
        event->bytes = bytes;
        if (FRAG_UNLIKELY(!frag_plain_step(&state, i, slot, if_alloc, bytes)))
            break;
        top += 2 * is_free;
        top--;
        if (FRAG_UNLIKELY(top < floor))
            floor = top;
        next_free += is_free;
        next_alloc -= if_alloc;
    }
    uint32_t free_count = (uint32_t)next_free - at->slot;
    frag_plain_run run = {
        .count = (uint32_t)(event - event_first),
        .alloc_count = (uint32_t)next_alloc - at->alloc,
        .live_rise = (uint64_t)(bottom - floor),
        .is_sound = block->has_known_streams,
    };
    add_requests(block->bytes + at->alloc, &run);
    begun = state;
    frag_plain_end(scan, &begun, first, &run);
    slots->count = (size_t)(top - slots->free);
    at->index += run.count;
    at->slot += free_count;
    at->other += free_count;
    at->alloc += run.alloc_count;
    return true;
}

void frag_fgt_block_make(const frag_fgt_block *block, frag_fgt_slots *slots,
                         const frag_recording *recording, const frag_trace *trace, uint64_t first,
                         frag_trace_scan *scan)
{
    block_position at = {0};
    frag_event *events = trace->events + first;
    bool is_quick = block->is_foreseen && scan != NULL;
    frag_fgt_slots_reserve(slots, block->size);
    while (at.index < block->size) {
        uint32_t end = block->size;
        uint32_t start = is_quick ? find_plain_run(block, at.index, &end) : end;
        while (at.index < start)
            make_any_event(&at, block, slots, events);
        if (scan != NULL)
            frag_trace_scan_to(scan, recording, trace, first + start);
        if (start == end)
            return;
        is_quick = !has_free_bytes(&at, block, end) &&
                   make_plain_events(&at, block, end, slots, scan, first, events);
        if (is_quick && at.index < end) /* for one, frag_trace_scan_to has to make room */
            make_any_event(&at, block, slots, events);
    }
    if (scan != NULL)
        frag_trace_scan_to(scan, recording, trace, first + block->size);
}

void frag_fgt_block_make_old(const frag_fgt_block *block, frag_event *events)
{
    for (uint32_t i = 0; i < block->size; i++) {
        set_head(&events[i], &block->heads[i]);
        events[i].slot = block->slots[i];
        events[i].bytes = block->bytes[i];
    }
}

void frag_fgt_summary_numbers(frag_trace_stats *stats, uint64_t *numbers[FRAG_FGT_SUMMARY_NUMBERS])
{
    uint64_t *const all[FRAG_FGT_SUMMARY_NUMBERS] = {
        &stats->request_count,
        &stats->initial_count,
        &stats->initial_bytes,
        &stats->failed_count,
        &stats->requested_bytes_total,
        &stats->peak_requested_bytes,
        &stats->peak_requested_event,
        &stats->end_requested_bytes,
        &stats->live_count_max,
        &stats->observed_reserved_peak_bytes,
        &stats->observed_reserved_end_bytes,
        &stats->time_first_ns,
        &stats->time_last_ns,
    };
    memcpy(numbers, all, sizeof all);
}
