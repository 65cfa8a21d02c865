/* The loop of a replay. */
#ifndef FRAG_SIM_REPLAY_LOOP_H
#define FRAG_SIM_REPLAY_LOOP_H

#include "sim/replay_state.h"

/* Events off the fast path, and what comes of device calls; all in replay.c. */
void frag_replay_note_reserved(frag_replay *replay);
void frag_replay_attempt(frag_replay *replay, const frag_request *request);
void frag_replay_handle_rare(frag_replay *replay, const frag_event *event);
void frag_replay_free_unusual(frag_replay *replay, uint32_t number, uint32_t stream);

/* Events from replay->event to end, or to where an OOM stops the run. The sums of requested and
 * allocated bytes stay in registers; whoever needs the level is given it first. */
FRAG_INLINE void
frag_replay_loop(frag_replay *replay, uint64_t end,
                 bool (*alloc)(frag_policy *policy, const frag_request *request, frag_grant *grant),
                 void (*give_back)(frag_policy *policy, frag_handle handle, uint32_t stream))
{
    frag_policy *seen_policy = replay->seen_policy;
    const frag_device *device = replay->device;
    const frag_event *events = replay->trace->events;
    const uint32_t *pools = replay->trace->pools;
    frag_replay_result *result = &replay->result;
    frag_level *peak = &result->peak;
    frag_slot *slots = replay->slots;
    uint64_t requests = 0;
    uint64_t requested_sum = 0;
    uint64_t allocated_sum = 0;
    uint64_t requested = replay->level.requested_bytes;
    uint64_t allocated = replay->level.allocated_bytes;
    uint64_t i = replay->event;
    while (i < end) {
        const frag_event *event = &events[i];
        replay->event = i;
        i++;
        if (event->op == FRAG_OP_ALLOC) {
            frag_request request = {event->bytes, event->stream, pools != NULL ? pools[i - 1] : 0};
            frag_grant grant;
            if (FRAG_LIKELY((event->flags & FRAG_EVENT_FAILED) == 0 &&
                            alloc(seen_policy, &request, &grant))) {
                requests++;
                frag_slot_fill(replay, event->slot, event->bytes, grant.block_bytes, grant.handle);
                requested += event->bytes;
                allocated += grant.block_bytes;
                if (requested > peak->requested_bytes) {
                    peak->requested_bytes = requested;
                    result->peak_requested_event = i - 1;
                }
                if (allocated > peak->allocated_bytes)
                    peak->allocated_bytes = allocated;
                if (allocated + replay->waiting_bytes > peak->active_bytes)
                    peak->active_bytes = allocated + replay->waiting_bytes;
            } else {
                frag_replay_set_level(replay, requested, allocated);
                if ((event->flags & FRAG_EVENT_FAILED) != 0) {
                    frag_replay_attempt(replay, &request);
                } else {
                    requests++;
                    slots[event->slot].handle = FRAG_HANDLE_NONE;
                    frag_replay_run_out(replay, &request);
                }
                end = replay->has_stopped ? i : end;
            }
        } else if (event->op == FRAG_OP_FREE) {
            const frag_slot *at = &slots[event->slot];
            if (FRAG_UNLIKELY(at->handle == FRAG_HANDLE_NONE)) {
                /* its request had failed */
            } else if (FRAG_UNLIKELY((event->flags & FRAG_EVENT_DEFERRED) != 0)) {
                frag_replay_set_level(replay, requested, allocated);
                frag_replay_wait(replay, event->slot, event->stream);
                requested = replay->level.requested_bytes;
                allocated = replay->level.allocated_bytes;
            } else {
                uint64_t surplus = at->surplus_bytes;
                requested -= at->requested_bytes;
                allocated -= at->requested_bytes;
                if (FRAG_LIKELY(surplus != FRAG_SURPLUS_ELSEWHERE)) {
                    allocated -= surplus;
                    give_back(seen_policy, at->handle, event->stream);
                    slots[event->slot].handle = FRAG_HANDLE_NONE;
                } else {
                    allocated -= frag_slot_large_surplus(replay, event->slot);
                    frag_replay_free_unusual(replay, event->slot, event->stream);
                }
            }
        } else {
            frag_replay_handle_rare(replay, event);
        }
        requested_sum += requested;
        allocated_sum += allocated;
        if (FRAG_UNLIKELY(device->changes != replay->changes_seen)) {
            frag_replay_set_level(replay, requested, allocated);
            frag_replay_note_reserved(replay);
            frag_replay_note_peak(replay);
            replay->has_stopped = replay->has_stopped || device->has_failed;
            end = replay->has_stopped ? i : end;
        }
    }
    replay->event = i;
    frag_replay_set_level(replay, requested, allocated);
    result->requests += requests;
    frag_wide_add(&result->requested_sum, requested_sum);
    frag_wide_add(&result->allocated_sum, allocated_sum);
}

#endif
