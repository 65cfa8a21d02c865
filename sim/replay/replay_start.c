/* The state at the start of a trace that begins in the middle of a program: the recorded layout,
 * taken over by a policy that can, or the blocks requested anew, in order of address. */

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/replay/replay_state.h"

static bool start_fails(const frag_trace *trace, uint64_t event, const char *what,
                        frag_error *error)
{
    return frag_fail(error, FRAG_E_INPUT,
                     "event %llu of device %u: %s; the state at the start does not fit together",
                     (unsigned long long)event, trace->device, what);
}

/* Can the recorded layout be taken over? Segments ascend and lie apart; blocks lie in them, in
 * order. */
static bool check_layout(const frag_trace *trace, uint64_t end, frag_error *error)
{
    uint64_t segment_end = 0;
    uint64_t at = 0;
    for (uint64_t i = 0; i < end; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_FREE)
            continue;
        uint64_t address = trace->addresses[i];
        uint64_t bytes = event->op == FRAG_OP_ALLOC ? trace->block_bytes[i] : event->bytes;
        uint64_t last = 0;
        if (!frag_add(address, bytes, &last) || last >> 48 != 0 || bytes == 0 || bytes >> 47 != 0)
            return start_fails(trace, i, "an address is out of range", error);
        if (event->op == FRAG_OP_ALLOC) {
            if (address < at || last > segment_end || bytes < event->bytes)
                return start_fails(trace, i, "a block overlaps its neighbour or leaves its segment",
                                   error);
            at = last;
        } else {
            if (address < segment_end)
                return start_fails(trace, i, "a segment overlaps the one before", error);
            segment_end = last;
            at = address;
        }
    }
    return true;
}

static bool is_adoptable(const frag_replay *replay, uint64_t end)
{
    const frag_trace *trace = replay->trace;
    if (replay->ops->adopt == NULL || trace->addresses == NULL || trace->block_bytes == NULL)
        return false;
    bool is_in_segment = false;
    for (uint64_t i = 0; i < end; i++) {
        const frag_event *event = &trace->events[i];
        bool is_segment = event->op == FRAG_OP_SEGMENT_ALLOC;
        bool is_range = event->op == FRAG_OP_SEGMENT_MAP;
        if (is_range &&
            (replay->ops->adopts_ranges == NULL || !replay->ops->adopts_ranges(replay->policy)))
            return false;
        uint64_t page_bytes = replay->device->page_bytes;
        if ((is_segment || is_range) &&
            (event->bytes % page_bytes != 0 || trace->addresses[i] == 0))
            return false; /* address 0: none was recorded */
        if (is_range && trace->addresses[i] % page_bytes != 0)
            return false;
        is_in_segment = is_in_segment || is_segment || is_range;
        if (event->op == FRAG_OP_ALLOC && (!is_in_segment || trace->block_bytes[i] == 0))
            return false;
    }
    return is_in_segment;
}

static void hold_initial(frag_replay *replay, const frag_event *event, uint64_t block_bytes,
                         uint32_t handle)
{
    frag_slot_fill(replay, event->slot, event->bytes, block_bytes, handle);
    frag_replay_set_level(replay, replay->level.requested_bytes + event->bytes,
                          replay->level.allocated_bytes + block_bytes);
}

/* Which pool a segment from before the trace belonged to, in allocators that have a pool for small
 * requests: small segments are one page; mapped ranges are known from their blocks. */
static bool is_small_segment(const frag_span *segment, uint64_t block_bytes_max)
{
    if (!segment->is_growing || segment->bytes <= FRAG_DEVICE_PAGE_BYTES)
        return segment->bytes <= FRAG_DEVICE_PAGE_BYTES;
    if (block_bytes_max > 0)
        return block_bytes_max <= FRAG_MIB;
    return segment->bytes % (20 * FRAG_MIB) != 0;
}

/* One segment and its blocks; the event of the segment is at first. Returns the event after its
 * last. */
static uint64_t adopt_segment(frag_replay *replay, uint64_t first, uint64_t end,
                              frag_adopted_block *blocks)
{
    const frag_trace *trace = replay->trace;
    const frag_event *segment = &trace->events[first];
    frag_span span = {
        .kind = FRAG_SPAN_SEGMENT,
        .address = trace->addresses[first],
        .bytes = segment->bytes,
        .stream = segment->stream,
        .pool = frag_trace_pool(trace, first),
        .is_growing = segment->op == FRAG_OP_SEGMENT_MAP,
    };
    uint32_t count = 0;
    uint64_t next = first + 1;
    uint64_t block_bytes_max = 0;
    for (; next < end && !frag_op_is_observed(trace->events[next].op); next++)
        if (trace->events[next].op == FRAG_OP_ALLOC) {
            blocks[count++] = (frag_adopted_block){trace->addresses[next], trace->block_bytes[next],
                                                   trace->events[next].bytes, 0};
            if (trace->block_bytes[next] > block_bytes_max)
                block_bytes_max = trace->block_bytes[next];
        }
    span.is_small_pool = is_small_segment(&span, block_bytes_max);
    if (!replay->ops->adopt(replay->policy, &span, blocks, count)) {
        frag_replay_go_to(replay, first);
        frag_request request = {segment->bytes, segment->stream, span.pool};
        frag_replay_run_out(replay, &request);
        replay->has_stopped = true;
        return end;
    }
    if (replay->notes != NULL)
        frag_note_adopted_segment(replay, &span, first);
    count = 0;
    for (uint64_t i = first + 1; i < next; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC) {
            hold_initial(replay, event, blocks[count].block_bytes, blocks[count].handle);
            if (replay->audit != NULL)
                frag_audit_note(replay, event->bytes,
                                &(frag_grant){blocks[count].address, blocks[count].block_bytes,
                                              blocks[count].handle});
            if (replay->notes != NULL)
                frag_note_adopted(replay, blocks[count].handle, blocks[count].address,
                                  blocks[count].block_bytes, i);
            count++;
        } else {
            frag_replay_wait(replay, event->slot, event->stream);
        }
    }
    return next;
}

static void allocate_initial(frag_replay *replay, uint64_t end)
{
    for (uint64_t i = 0; i < end && !replay->has_stopped; i++) {
        const frag_event *event = &replay->trace->events[i];
        frag_replay_go_to(replay, i);
        if (event->op == FRAG_OP_ALLOC) {
            frag_request request = {event->bytes, event->stream, frag_trace_pool(replay->trace, i)};
            frag_grant grant;
            if (frag_replay_ask(replay, &request, &grant)) {
                hold_initial(replay, event, grant.block_bytes, grant.handle);
            } else {
                frag_slot_lack(replay, event->slot);
                frag_replay_run_out(replay, &request);
            }
        } else if (event->op == FRAG_OP_FREE &&
                   replay->slots[event->slot].handle != FRAG_HANDLE_NONE) {
            frag_replay_wait(replay, event->slot, event->stream);
        }
    }
}

static uint64_t find_prologue_end(const frag_trace *trace)
{
    uint64_t end = 0;
    while (end < trace->event_count && (trace->events[end].flags & FRAG_EVENT_INITIAL) != 0)
        end++;
    return end;
}

bool frag_replay_begin(frag_replay *replay, frag_error *error)
{
    uint64_t end = find_prologue_end(replay->trace);
    replay->result.initial = FRAG_INITIAL_NONE;
    if (end > 0 && is_adoptable(replay, end)) {
        if (!check_layout(replay->trace, end, error))
            return false;
        replay->result.initial = FRAG_INITIAL_ADOPTED;
        frag_adopted_block *blocks = frag_alloc((size_t)end, sizeof *blocks);
        for (uint64_t i = 0; i < end;)
            i = adopt_segment(replay, i, end, blocks);
        frag_free(blocks);
    } else if (end > 0) {
        replay->result.initial = FRAG_INITIAL_ALLOCATED;
        allocate_initial(replay, end);
    }
    if (!replay->has_stopped)
        frag_replay_go_to(replay, end);
    frag_replay_result *result = &replay->result;
    result->peak.requested_bytes = replay->level.requested_bytes;
    result->peak.allocated_bytes = replay->level.allocated_bytes;
    result->peak.active_bytes = replay->level.active_bytes;
    replay->reserved_since = frag_replay_event(replay);
    replay->reserved_seen = replay->device->reserved_bytes;
    replay->device->has_changed = false;
    replay->level.reserved_bytes = replay->device->reserved_bytes;
    frag_replay_note_peak(replay);
    replay->is_peak_of_start = !replay->has_stopped && result->reserved_at_event > 0;
    return true;
}
