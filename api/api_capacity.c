/* The least capacity that survives, and whether a policy does what was recorded. */
#include <stdio.h>
#include <string.h>

#include "api/api_run.h"
#include "base/bytes.h"
#include "studies/verify/verify.h"
#include "studies/verify/verify_infer.h"

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
    if (!frag_find_capacity(&(frag_run_setup){&replay->recording->recording, replay->trace,
                                              replay->spec.ops, replay->spec.values,
                                              &replay->device},
                            replay->below, &found, error) ||
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
    capacity_call call = {.replay = {.context = context,
                                     .recording = recording,
                                     .number = trace,
                                     .policy = policy,
                                     .given = options},
                          .capacity = capacity};
    return frag_call_once(capacity_work, &call, error);
}

/* ---- against what was recorded */

typedef struct verify_call {
    frag_replay_call replay;
    uint64_t capacity_bytes;
    fraglab_verification *verification;
} verify_call;

static bool verify_work(void *arguments, frag_error *error)
{
    verify_call *call = arguments;
    frag_replay_call *replay = &call->replay;
    frag_verify_result found;
    uint64_t capacity = FRAG_UNLIMITED;
    if (!frag_replay_call_begin(replay, error))
        return false;
    const frag_recording *recording = &replay->recording->recording;
    const char *golden = frag_recording_get(recording, "golden.capacity");
    if (call->capacity_bytes != 0)
        capacity = call->capacity_bytes;
    else if (golden != NULL)
        frag_count_parse(golden, 0, UINT64_MAX, &capacity, NULL);
    if (!frag_verify(recording, replay->trace, replay->spec.ops, replay->spec.values,
                     frag_verify_capacity(recording, &replay->spec, capacity), false, &found,
                     error) ||
        !frag_replay_call_goes_on(replay, error))
        return false;
    fraglab_verification full = {
        .size = sizeof full,
        .is_identical = found.is_identical,
        .has_first = !found.is_identical,
        .requests = found.requests,
        .device_events = found.device_events,
        .ooms = found.ooms,
        .first_event = found.is_identical ? FRAGLAB_UNLIMITED : found.first.event,
    };
    if (!found.is_identical)
        snprintf(full.first_kind, sizeof full.first_kind, "%s",
                 frag_difference_name(found.first.kind));
    return frag_call_write(&full, sizeof full, call->verification, "fraglab_verification", error);
}

int fraglab_verify(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                   const fraglab_policy *policy, uint64_t capacity_bytes,
                   fraglab_verification *verification, fraglab_error *error)
{
    verify_call call = {
        .replay = {.context = context, .recording = recording, .number = trace, .policy = policy},
        .capacity_bytes = capacity_bytes,
        .verification = verification};
    return frag_call_once(verify_work, &call, error);
}
