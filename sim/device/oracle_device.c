#include "sim/device/oracle_device.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"

#define ELSEWHERE ((uint64_t)0x500000000000)

bool frag_seen_ranges_extend(frag_seen_ranges *ranges, uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < ranges->count; i++)
        if (address >= ranges->base[i] && address <= ranges->high[i]) {
            if (address + bytes > ranges->high[i])
                ranges->high[i] = address + bytes;
            return true;
        }
    return false;
}

void frag_seen_ranges_add(frag_seen_ranges *ranges, uint64_t address, uint64_t bytes)
{
    if (ranges->count == FRAG_SEEN_RANGES_MAX)
        return;
    ranges->base[ranges->count] = address;
    ranges->high[ranges->count++] = address + bytes;
}

typedef struct oracle_device {
    frag_device base;
    const frag_trace *trace;
    uint64_t next; /* index of the next observed event, or event_count */
    uint64_t last; /* index of the last event met */
    uint64_t met;
    frag_seen_ranges ranges;
    uint64_t served;    /* index of the event that is replayed, or of one before it */
    uint64_t elsewhere; /* where calls go that have no recorded place */
    frag_oracle_call difference;
    bool is_different;
    frag_oracle_call refused;
    bool is_refused;
} oracle_device;

static oracle_device *from_base(frag_device *device)
{
    return (oracle_device *)(void *)device;
}

static const oracle_device *from_const(const frag_device *device)
{
    return (const oracle_device *)(const void *)device;
}

/* The first observed event at or behind from that is not of the start state. */
static uint64_t find_observed(const frag_trace *trace, uint64_t from)
{
    while (from < trace->event_count && (!frag_op_is_observed(trace->events[from].op) ||
                                         (trace->events[from].flags & FRAG_EVENT_INITIAL) != 0))
        from++;
    return from;
}

static bool is_next(const oracle_device *oracle, frag_op op, uint64_t bytes)
{
    if (oracle->next >= oracle->trace->event_count)
        return false;
    const frag_event *event = &oracle->trace->events[oracle->next];
    return event->op == op && event->bytes == bytes;
}

static uint64_t next_address(const oracle_device *oracle)
{
    return oracle->trace->addresses != NULL ? oracle->trace->addresses[oracle->next] : 0;
}

static void meet(oracle_device *oracle)
{
    oracle->last = oracle->next;
    oracle->next = find_observed(oracle->trace, oracle->next + 1);
    oracle->met++;
    oracle->is_refused = false;
}

static frag_device_result refuse(oracle_device *oracle, frag_op op, uint64_t address,
                                 uint64_t bytes)
{
    oracle->refused = (frag_oracle_call){op, address, bytes};
    oracle->is_refused = true;
    return FRAG_DEVICE_OUT_OF_MEMORY;
}

static void differ(oracle_device *oracle, frag_op op, uint64_t address, uint64_t bytes)
{
    if (!oracle->is_different)
        oracle->difference = (frag_oracle_call){op, address, bytes};
    oracle->is_different = true;
}

static frag_device_result oracle_malloc(frag_device *device, uint64_t bytes, uint64_t *address)
{
    oracle_device *oracle = from_base(device);
    if (!is_next(oracle, FRAG_OP_SEGMENT_ALLOC, bytes))
        return refuse(oracle, FRAG_OP_SEGMENT_ALLOC, 0, bytes);
    *address = next_address(oracle);
    meet(oracle);
    return FRAG_DEVICE_OK;
}

/* Giving back always works; when it is not what was recorded, that is noted. */
static frag_device_result give_back(oracle_device *oracle, frag_op op, uint64_t address,
                                    uint64_t bytes)
{
    if (is_next(oracle, op, bytes) && next_address(oracle) == address)
        meet(oracle);
    else
        differ(oracle, op, address, bytes);
    return FRAG_DEVICE_OK;
}

static frag_device_result oracle_free(frag_device *device, uint64_t address, uint64_t bytes)
{
    return give_back(from_base(device), FRAG_OP_SEGMENT_FREE, address, bytes);
}

static frag_device_result oracle_unmap(frag_device *device, uint64_t address, uint64_t bytes)
{
    return give_back(from_base(device), FRAG_OP_SEGMENT_UNMAP, address, bytes);
}

static bool is_small(const frag_event *request)
{
    return request->bytes <= FRAG_MIB;
}

/* Could a mapping that begins a range have been made for requests like that one? A range serves one
 * stream and pool, and either small requests or large ones, the first of which lies at its
 * beginning. */
static bool may_be_for(const frag_trace *trace, uint64_t mapping, uint64_t request)
{
    for (uint64_t i = mapping; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC && trace->addresses[i] == trace->addresses[mapping])
            return event->stream == trace->events[request].stream &&
                   is_small(event) == is_small(&trace->events[request]) &&
                   frag_trace_pool(trace, i) == frag_trace_pool(trace, request);
    }
    return true;
}

/* The request that is being served. */
static uint64_t find_request(const oracle_device *oracle)
{
    uint64_t i = oracle->served;
    while (i < oracle->trace->event_count && oracle->trace->events[i].op != FRAG_OP_ALLOC)
        i++;
    return i;
}

/* A fresh range is mapped from its beginning: it begins at the first mapping from here on that is
 * of no range known by then, and for requests of this kind. The mapping it is reserved for may have
 * been refused, so it need not be the next. */
static frag_device_result oracle_reserve(frag_device *device, uint64_t bytes, uint64_t *address)
{
    oracle_device *oracle = from_base(device);
    frag_seen_ranges ranges = oracle->ranges;
    uint64_t base = oracle->elsewhere;
    const frag_trace *trace = oracle->trace;
    uint64_t request = find_request(oracle);
    for (uint64_t i = oracle->next; i < trace->event_count && trace->addresses != NULL; i++) {
        if (trace->events[i].op != FRAG_OP_SEGMENT_MAP ||
            frag_seen_ranges_extend(&ranges, trace->addresses[i], trace->events[i].bytes))
            continue;
        if (request == trace->event_count || may_be_for(trace, i, request)) {
            base = trace->addresses[i];
            break;
        }
        frag_seen_ranges_add(&ranges, trace->addresses[i], trace->events[i].bytes);
    }
    oracle->elsewhere += base == oracle->elsewhere ? bytes : 0;
    frag_seen_ranges_add(&oracle->ranges, base, 0);
    *address = base;
    return FRAG_DEVICE_OK;
}

static frag_device_result oracle_unreserve(frag_device *device, uint64_t address, uint64_t bytes)
{
    (void)device;
    (void)address;
    (void)bytes;
    return FRAG_DEVICE_OK;
}

static frag_device_result oracle_map(frag_device *device, uint64_t address, uint64_t bytes)
{
    oracle_device *oracle = from_base(device);
    if (!is_next(oracle, FRAG_OP_SEGMENT_MAP, bytes) || next_address(oracle) != address)
        return refuse(oracle, FRAG_OP_SEGMENT_MAP, address, bytes);
    frag_seen_ranges_extend(&oracle->ranges, address, bytes);
    meet(oracle);
    return FRAG_DEVICE_OK;
}

static frag_device_result oracle_memory_info(frag_device *device, bool is_look,
                                             uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)is_look;
    *free_bytes = FRAG_UNLIMITED;
    *total_bytes = device->capacity_bytes;
    return FRAG_DEVICE_OK;
}

static frag_device_result oracle_synchronize(frag_device *device)
{
    (void)device;
    return FRAG_DEVICE_OK;
}

static frag_device_result oracle_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                       bool is_mapped_range)
{
    oracle_device *oracle = from_base(device);
    if (is_mapped_range && !frag_seen_ranges_extend(&oracle->ranges, address, bytes))
        frag_seen_ranges_add(&oracle->ranges, address, bytes);
    return FRAG_DEVICE_OK;
}

static void oracle_destroy(frag_device *device)
{
    frag_free(from_base(device));
}

static const frag_device_ops oracle_ops = {
    .name = "oracle",
    .malloc = oracle_malloc,
    .free = oracle_free,
    .reserve = oracle_reserve,
    .unreserve = oracle_unreserve,
    .map = oracle_map,
    .unmap = oracle_unmap,
    .memory_info = oracle_memory_info,
    .synchronize = oracle_synchronize,
    .adopt = oracle_adopt,
    .destroy = oracle_destroy,
};

frag_device *frag_oracle_device_create(const frag_trace *trace, uint64_t capacity_bytes)
{
    oracle_device *oracle = frag_alloc(1, sizeof *oracle);
    oracle->base = (frag_device){
        .ops = &oracle_ops,
        .name = "oracle",
        .capacity_bytes = capacity_bytes,
        .page_bytes = FRAG_DEVICE_PAGE_BYTES,
        .needs.refused_min_bytes = FRAG_UNLIMITED,
        .ordinal = trace->device,
    };
    oracle->trace = trace;
    oracle->elsewhere = ELSEWHERE;
    oracle->next = find_observed(trace, 0);
    return &oracle->base;
}

void frag_oracle_serve(frag_device *device, uint64_t event)
{
    from_base(device)->served = event;
}

uint64_t frag_oracle_position(const frag_device *device)
{
    return from_const(device)->next;
}

uint64_t frag_oracle_last(const frag_device *device)
{
    return from_const(device)->last;
}

uint64_t frag_oracle_met(const frag_device *device)
{
    return from_const(device)->met;
}

bool frag_oracle_meet_oom(frag_device *device, uint64_t bytes)
{
    oracle_device *oracle = from_base(device);
    if (oracle->next >= oracle->trace->event_count)
        return false;
    const frag_event *event = &oracle->trace->events[oracle->next];
    if (event->op != FRAG_OP_OOM || event->bytes < bytes)
        return false;
    meet(oracle);
    return true;
}

bool frag_oracle_difference(const frag_device *device, frag_oracle_call *call)
{
    *call = from_const(device)->difference;
    return from_const(device)->is_different;
}

bool frag_oracle_refused(const frag_device *device, frag_oracle_call *call)
{
    *call = from_const(device)->refused;
    return from_const(device)->is_refused;
}

void frag_oracle_resume(frag_device *device, uint64_t event)
{
    oracle_device *oracle = from_base(device);
    oracle->next = find_observed(oracle->trace, event);
    oracle->last = 0;
    oracle->is_different = false;
    oracle->is_refused = false;
}
