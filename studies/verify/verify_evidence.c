#include "studies/verify/verify_evidence.h"

#include "base/bits.h"
#include "base/bytes.h"
#include "sim/device.h"
#include "sim/device/oracle_device.h"

uint64_t frag_evidence_capacity(const frag_trace *trace)
{
    uint64_t held = 0;
    for (uint64_t i = 0; i < trace->event_count && trace->addresses != NULL; i++) {
        const frag_event *event = &trace->events[i];
        uint64_t pages = frag_align_up(event->bytes, FRAG_DEVICE_PAGE_BYTES);
        if (event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP)
            held += pages;
        else if (event->op == FRAG_OP_SEGMENT_FREE || event->op == FRAG_OP_SEGMENT_UNMAP)
            held -= pages < held ? pages : held;
        else if (event->op == FRAG_OP_OOM)
            return held + trace->addresses[i];
    }
    return 0;
}

uint64_t frag_evidence_range_distance(const frag_trace *trace)
{
    frag_seen_ranges ranges = {.count = 0};
    uint64_t least = UINT64_MAX;
    for (uint64_t i = 0; i < trace->event_count && trace->addresses != NULL; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_SEGMENT_MAP &&
            !frag_seen_ranges_extend(&ranges, trace->addresses[i], event->bytes))
            frag_seen_ranges_add(&ranges, trace->addresses[i], event->bytes);
    }
    for (uint32_t i = 0; i < ranges.count; i++)
        for (uint32_t j = 0; j < ranges.count; j++)
            if (ranges.base[j] > ranges.base[i] && ranges.base[j] - ranges.base[i] < least)
                least = ranges.base[j] - ranges.base[i];
    return least == UINT64_MAX ? 0 : least;
}

/* The request that a segment or mapping was taken for is the next that lies at its beginning. */
static const frag_event *first_request(const frag_trace *trace, uint64_t taken)
{
    uint64_t i = taken + 1;
    if (i >= trace->event_count || trace->addresses == NULL ||
        trace->events[i].op != FRAG_OP_ALLOC || trace->addresses[i] != trace->addresses[taken])
        return NULL;
    return &trace->events[i];
}

#define DEFAULT_SEGMENT (20 * FRAG_MIB)

/* Not even a request rounded up to a power of two has a segment like that of its own. */
static bool is_shared_segment(uint64_t requested, uint64_t segment)
{
    return requested > FRAG_MIB &&
           (requested <= 5 * FRAG_MIB || segment > 2 * requested + FRAG_DEVICE_PAGE_BYTES);
}

static uint32_t add_size(uint64_t *sizes, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] == bytes / FRAG_MIB)
            return count;
    if (count == FRAG_EVIDENCE_SIZES_MAX || bytes % FRAG_MIB != 0 || bytes <= 10 * FRAG_MIB ||
        bytes == DEFAULT_SEGMENT)
        return count;
    sizes[count] = bytes / FRAG_MIB;
    return count + 1;
}

uint32_t frag_evidence_segment_sizes(const frag_trace *trace,
                                     uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX])
{
    uint32_t count = 0;
    uint64_t unit = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_SEGMENT_MAP && event->bytes > 2 * FRAG_MIB)
            unit = frag_common_divisor(unit, event->bytes);
        const frag_event *request =
            event->op == FRAG_OP_SEGMENT_ALLOC ? first_request(trace, i) : NULL;
        if (request != NULL && request->bytes < 10 * FRAG_MIB &&
            is_shared_segment(request->bytes, event->bytes))
            count = add_size(sizes, count, event->bytes);
    }
    return add_size(sizes, count, unit);
}

uint64_t frag_evidence_unit(const frag_trace *trace)
{
    uint64_t unit = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op >= FRAG_OP_SEGMENT_ALLOC &&
            trace->events[i].op <= FRAG_OP_SEGMENT_UNMAP)
            unit = frag_common_divisor(unit, trace->events[i].bytes);
    return unit;
}

double frag_evidence_limit_ratio(const frag_trace *trace)
{
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_LIMIT &&
            (trace->events[i].flags & FRAG_EVENT_RATIO) != 0)
            return frag_ratio_value(trace->events[i].bytes);
    return 0;
}

/* Reserved bytes before the device events that were made for a request begin, and those events. */
static uint64_t held_before(const frag_trace *trace, uint64_t first)
{
    uint64_t held = 0;
    for (uint64_t i = 0; i < first; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP)
            held += event->bytes;
        else if (event->op == FRAG_OP_SEGMENT_FREE || event->op == FRAG_OP_SEGMENT_UNMAP)
            held -= event->bytes < held ? event->bytes : held;
    }
    return held;
}

bool frag_evidence_collects(const frag_trace *trace, uint64_t event, uint64_t *held_bytes)
{
    if (event >= trace->event_count || trace->events[event].op != FRAG_OP_ALLOC)
        return false;
    uint64_t first = event;
    uint64_t freed = 0;
    bool is_large = true;
    while (first > 0 && frag_op_is_observed((frag_op)trace->events[first - 1].op)) {
        const frag_event *before = &trace->events[--first];
        freed += before->op == FRAG_OP_SEGMENT_FREE ? 1 : 0;
        is_large = is_large && before->op != FRAG_OP_SEGMENT_UNMAP && before->op != FRAG_OP_OOM &&
                   (before->op != FRAG_OP_SEGMENT_FREE || before->bytes > 2 * FRAG_MIB);
    }
    *held_bytes = held_before(trace, first);
    return freed > 0 && is_large && *held_bytes < trace->stats.observed_reserved_peak_bytes;
}

uint64_t frag_evidence_switch(const frag_trace *trace, bool *is_on)
{
    bool has_segments = false;
    bool has_mappings = false;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        bool is_segment = event->op == FRAG_OP_SEGMENT_ALLOC;
        if ((!is_segment && event->op != FRAG_OP_SEGMENT_MAP) ||
            (event->flags & FRAG_EVENT_INITIAL) != 0 ||
            (trace->pools != NULL && trace->pools[i] != 0))
            continue;
        if (is_segment ? has_mappings : has_segments) {
            *is_on = !is_segment;
            return i;
        }
        has_segments |= is_segment;
        has_mappings |= !is_segment;
    }
    return 0;
}
