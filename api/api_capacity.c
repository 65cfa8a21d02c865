/* The least capacity that survives. */
#include "api/api_run.h"

typedef struct capacity_call {
    frag_replay_call replay;
    fraglab_capacity *capacity;
} capacity_call;

static bool capacity_work(void *arguments, frag_error *error)
{
    capacity_call *call = arguments;
    frag_replay_call *replay = &call->replay;
    frag_capacity_result found = {0};
    if (!frag_replay_call_begin(replay, error))
        return false;
    replay->device.capacity_bytes = FRAG_UNLIMITED;
    if (!frag_find_capacity(&replay->setup, NULL, replay->below, &found, error) ||
        !frag_replay_call_goes_on(replay, error))
        return false;
    const fraglab_capacity full = {
        .size = sizeof full,
        .capacity_bytes = found.is_found ? found.capacity_bytes : FRAGLAB_UNLIMITED,
        .failing_above_bytes = found.is_monotone ? FRAGLAB_UNLIMITED : found.failing_above_bytes,
        .enough_bytes = found.enough_bytes,
        .runs = found.runs,
        .below_event = found.has_below ? found.below.event : FRAGLAB_UNLIMITED,
        .below_requested_bytes = found.has_below ? found.below.requested_bytes : 0,
    };
    return frag_call_write(&full, sizeof full, call->capacity, "fraglab_capacity", error);
}

int fraglab_min_capacity(const fraglab_context *context, const fraglab_recording *recording,
                         size_t trace, const fraglab_policy *policy,
                         const fraglab_run_options *options, fraglab_capacity *capacity,
                         fraglab_error *error)
{
    capacity_call call = {.replay = frag_replay_call_of(context, recording, trace, policy, options),
                          .capacity = capacity};
    return frag_call_once(capacity_work, &call, error);
}
