/* Does a policy do what was recorded? */
#include <stdio.h>

#include "api/api_policy.h"
#include "api/api_recording.h"
#include "base/bytes.h"
#include "base/text_stream.h"
#include "studies/verify/verify_json.h"

typedef struct verify_call {
    const fraglab_context *context;
    const fraglab_recording *recording;
    size_t number;
    const fraglab_policy *policy;
    const fraglab_verify_options *given;
    fraglab_verify_options options;
    const frag_trace *trace;
    frag_verification found;
    fraglab_verification *verification;
    char *json;
} verify_call;

/* Without its columns a recording has no addresses left to compare, and all would be identical. */
static bool check_columns(const fraglab_recording *recording, frag_error *error)
{
    if (recording->has_columns)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, recording->recording.name,
                        "it was opened without its recorded addresses; set with_sites of "
                        "fraglab_open_options to 1");
}

static bool verify(verify_call *call, frag_error *error)
{
    const frag_context *below = frag_call_context(call->context);
    const frag_recording *recording = &call->recording->recording;
    if (!frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_verify_options",
                        error))
        return false;
    call->trace = frag_recording_trace_at(call->recording, call->number, error);
    if (call->trace == NULL || !check_columns(call->recording, error))
        return false;
    if (!frag_verify_check_observed(recording, error))
        return frag_error_in(error, recording->name);
    uint64_t capacity = call->options.capacity_bytes;
    bool ok = frag_verify_recorded(below, recording, call->trace,
                                   call->policy != NULL ? &call->policy->spec : NULL,
                                   capacity != 0 ? capacity : FRAG_UNLIMITED,
                                   call->options.count_all != 0, &call->found, error);
    return frag_call_goes_on(below, error) && ok;
}

static bool verify_work(void *arguments, frag_error *error)
{
    verify_call *call = arguments;
    const frag_verify_result *result = &call->found.result;
    const frag_inferred *inferred = &call->found.inferred;
    if (!verify(call, error))
        return false;
    fraglab_verification full = {
        .size = sizeof full,
        .is_identical = result->is_identical,
        .has_first = !result->is_identical,
        .requests = result->requests,
        .device_events = result->device_events,
        .ooms = result->ooms,
        .first_event = result->is_identical ? FRAGLAB_UNLIMITED : result->first.event,
        .differences = result->difference_count,
        .inferred_capacity_bytes = inferred->capacity_bytes,
        .inferred_limit_bytes = inferred->limit_bytes,
    };
    if (!result->is_identical)
        snprintf(full.first_kind, sizeof full.first_kind, "%s",
                 frag_difference_name(result->first.kind));
    else
        snprintf(full.inferred_settings, sizeof full.inferred_settings, "%s", inferred->settings);
    return frag_call_write(&full, sizeof full, call->verification, "fraglab_verification", error);
}

static bool json_work(void *arguments, frag_error *error)
{
    verify_call *call = arguments;
    if (!verify(call, error))
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    frag_verification_print_json(frag_text_stream_file(stream), &call->recording->recording,
                                 call->trace, &call->found);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_verify(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                   const fraglab_policy *policy, uint64_t capacity_bytes,
                   fraglab_verification *verification, fraglab_error *error)
{
    const fraglab_verify_options options = {.size = sizeof options,
                                            .capacity_bytes = capacity_bytes};
    verify_call call = {.context = context,
                        .recording = recording,
                        .number = trace,
                        .policy = policy,
                        .given = &options,
                        .verification = verification};
    return frag_call_once(verify_work, &call, error);
}

int fraglab_verify_json(const fraglab_context *context, const fraglab_recording *recording,
                        size_t trace, const fraglab_policy *policy,
                        const fraglab_verify_options *options, char **json, fraglab_error *error)
{
    verify_call call = {.context = context,
                        .recording = recording,
                        .number = trace,
                        .policy = policy,
                        .given = options};
    int code = frag_call_once(json_work, &call, error);
    *json = call.json;
    return code;
}
