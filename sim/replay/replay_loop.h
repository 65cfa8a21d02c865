/* The loop of a replay. */
#ifndef FRAG_REPLAY_REPLAY_LOOP_H
#define FRAG_REPLAY_REPLAY_LOOP_H

#include "sim/replay/replay_state.h"

/* Events off the fast path, and what comes of device calls; all in replay.c. They know the level
 * from replay->level and keep it there. */
void frag_replay_note_reserved(frag_replay *replay);
void frag_replay_handle_unusual(frag_replay *replay, const frag_event *event);
void frag_replay_refuse(frag_replay *replay, const frag_event *event);

/* Notes peaks of allocated and active bytes. Returns the allocated bytes beyond which there will be
 * another one, as long as as many wait. */
static inline uint64_t frag_replay_note_allocated(frag_replay *replay, uint64_t allocated)
{
    frag_level *peak = &replay->result.peak;
    uint64_t active = allocated + replay->waiting_bytes;
    if (allocated > peak->allocated_bytes)
        peak->allocated_bytes = allocated;
    if (active > peak->active_bytes)
        peak->active_bytes = active;
    uint64_t unwaited = peak->active_bytes - replay->waiting_bytes;
    return unwaited < peak->allocated_bytes ? unwaited : peak->allocated_bytes;
}

/* Makes the replay know what the loop keeps for itself: the event it is at, and the level. */
FRAG_INLINE void frag_replay_come_to(frag_replay *replay, const frag_event *event,
                                     uint64_t requested, uint64_t allocated)
{
    replay->now = event;
    frag_replay_set_level(replay, requested, allocated);
}

/* Events from replay->now to end, or to where an OOM stops the run. pools is that of the trace.
 * alloc and give_back are those of the policy; both NULL: those who watch are shown its answers. */
FRAG_INLINE void frag_replay_loop_over(
    frag_replay *replay, uint64_t end, const uint32_t *pools,
    bool (*alloc)(frag_policy *policy, const frag_request *request, frag_grant *grant),
    void (*give_back)(frag_policy *policy, frag_handle handle, uint32_t stream))
{
    frag_policy *policy = replay->policy;
    const frag_device *device = replay->device;
    frag_slot *slots = replay->slots;
    uint64_t requests = 0;
    uint64_t requested_sum = 0;
    uint64_t allocated_sum = 0;
    uint64_t requested = replay->level.requested_bytes;
    uint64_t allocated = replay->level.allocated_bytes;
    uint64_t allocated_mark = 0; /* up to which there is no peak */
    const frag_event *first = replay->trace->events;
    const frag_event *stop = first + end;
    const frag_event *event = replay->now;
    for (; event < stop; event++) {
        uint32_t kind = frag_event_kind(event);
        if (kind == FRAG_OP_ALLOC) {
            frag_request request = {event->bytes, event->stream,
                                    pools != NULL ? pools[event - first] : 0};
            frag_grant grant;
            bool is_served = alloc != NULL ? alloc(policy, &request, &grant)
                                           : frag_notes_alloc(replay, &request, &grant);
            if (FRAG_LIKELY(is_served)) {
                requests++;
                frag_slot_fill(replay, event->slot, event->bytes, grant.block_bytes, grant.handle);
                requested += event->bytes;
                allocated += grant.block_bytes;
                if (requested > replay->result.peak.requested_bytes) {
                    replay->result.peak.requested_bytes = requested;
                    replay->result.peak_requested_event = (uint64_t)(event - first);
                }
                if (allocated > allocated_mark)
                    allocated_mark = frag_replay_note_allocated(replay, allocated);
            } else {
                frag_replay_come_to(replay, event, requested, allocated);
                frag_replay_refuse(replay, event);
                stop = replay->has_stopped ? event : stop;
            }
        } else if (kind == FRAG_OP_FREE &&
                   FRAG_LIKELY(slots[event->slot].surplus_bytes != FRAG_SURPLUS_ELSEWHERE)) {
            frag_slot *at = &slots[event->slot];
            frag_handle handle = at->handle;
            requested -= at->requested_bytes;
            allocated -= at->requested_bytes + at->surplus_bytes;
            at->handle = FRAG_HANDLE_NONE;
            if (give_back != NULL)
                give_back(policy, handle, event->stream);
            else
                frag_notes_free(replay, handle, event->stream);
        } else {
            frag_replay_come_to(replay, event, requested, allocated);
            frag_replay_handle_unusual(replay, event);
            requested = replay->level.requested_bytes;
            allocated = replay->level.allocated_bytes;
            allocated_mark = 0;
            stop = replay->has_stopped ? event : stop;
        }
        requested_sum += requested;
        allocated_sum += allocated;
        if (FRAG_UNLIKELY(device->has_changed)) {
            frag_replay_come_to(replay, event, requested, allocated);
            frag_replay_note_reserved(replay);
            frag_replay_note_peak(replay);
            replay->has_stopped = replay->has_stopped || device->has_failed;
            stop = replay->has_stopped ? event : stop;
        }
    }
    frag_replay_come_to(replay, event, requested, allocated);
    replay->result.requests += requests;
    frag_wide_add(&replay->result.requested_sum, requested_sum);
    frag_wide_add(&replay->result.allocated_sum, allocated_sum);
}

/* Most traces know one pool only, and then nobody asks which. */
FRAG_INLINE void
frag_replay_loop(frag_replay *replay, uint64_t end,
                 bool (*alloc)(frag_policy *policy, const frag_request *request, frag_grant *grant),
                 void (*give_back)(frag_policy *policy, frag_handle handle, uint32_t stream))
{
    if (replay->trace->pools == NULL)
        frag_replay_loop_over(replay, end, NULL, alloc, give_back);
    else
        frag_replay_loop_over(replay, end, replay->trace->pools, alloc, give_back);
}

#endif
