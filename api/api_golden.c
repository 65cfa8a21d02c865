/* A policy against logs of allocator libraries themselves. */
#include <stdio.h>

#include "api/api_policy.h"
#include "base/text_stream.h"
#include "studies/verify/golden_check.h"

typedef struct golden_call {
    const fraglab_context *context;
    const char *path; /* NULL: bytes */
    const void *bytes;
    size_t count;
    const char *name;
    const fraglab_policy *policy;
    uint64_t check_every;
    fraglab_golden *golden; /* NULL: not wanted */
    bool wants_json;
    char *json;
} golden_call;

static const char *log_name(const golden_call *call)
{
    if (call->path == NULL)
        return call->name != NULL ? call->name : "memory";
    return frag_golden_check_name(call->path);
}

static bool check(const golden_call *call, frag_golden_check_result *checked, frag_error *error)
{
    const frag_golden_options options = {.check_every = call->check_every,
                                         .context = frag_call_context(call->context)};
    frag_policy_spec recorded = {0};
    frag_input *input = call->path != NULL
                            ? frag_input_open(call->path, error)
                            : frag_input_from_memory(call->bytes, call->count, log_name(call));
    bool ok = input != NULL;
    if (ok && call->policy == NULL)
        ok = frag_policy_spec_parse("pytorch:recorded", &recorded, error);
    ok = ok && frag_golden_check(input, log_name(call),
                                 call->policy != NULL ? &call->policy->spec : &recorded, &options,
                                 checked, error);
    frag_input_close(input);
    return (frag_call_goes_on(options.context, error) && ok) ||
           frag_error_in(error, call->path != NULL ? call->path : log_name(call));
}

static bool fill(const golden_call *call, const frag_golden_result *result, frag_error *error)
{
    fraglab_golden full = {
        .size = sizeof full,
        .is_identical = result->is_identical,
        .has_failed = result->has_failed,
        .requests = result->requests,
        .device_events = result->device_events,
        .trace_events = result->trace_events,
        .ooms = result->ooms,
        .stat_lines = result->stat_lines,
        .segments = result->segments,
        .first_line = result->is_identical ? FRAGLAB_UNLIMITED : result->line,
    };
    if (!result->is_identical)
        snprintf(full.first_kind, sizeof full.first_kind, "%s", result->kind);
    return call->golden == NULL ||
           frag_call_write(&full, sizeof full, call->golden, "fraglab_golden", error);
}

static bool golden_work(void *arguments, frag_error *error)
{
    golden_call *call = arguments;
    frag_golden_check_result checked = {0};
    if (!check(call, &checked, error) || !fill(call, &checked.result, error))
        return false;
    if (!call->wants_json)
        return true;
    frag_text_stream *stream = frag_text_stream_open();
    frag_golden_check_print_json(frag_text_stream_file(stream), log_name(call), &checked);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

static int verify(golden_call *call, char **json, fraglab_error *error)
{
    call->wants_json = json != NULL;
    int code = frag_call_once(golden_work, call, error);
    if (json != NULL)
        *json = call->json;
    return code;
}

int fraglab_verify_golden_path(const fraglab_context *context, const char *path,
                               const fraglab_policy *policy, uint64_t check_every,
                               fraglab_golden *golden, char **json, fraglab_error *error)
{
    golden_call call = {.context = context,
                        .path = path,
                        .policy = policy,
                        .check_every = check_every,
                        .golden = golden};
    return verify(&call, json, error);
}

int fraglab_verify_golden_memory(const fraglab_context *context, const void *bytes, size_t count,
                                 const char *name, const fraglab_policy *policy,
                                 uint64_t check_every, fraglab_golden *golden, char **json,
                                 fraglab_error *error)
{
    golden_call call = {.context = context,
                        .bytes = bytes != NULL && count > 0 ? bytes : "",
                        .count = bytes != NULL ? count : 0,
                        .name = name,
                        .policy = policy,
                        .check_every = check_every,
                        .golden = golden};
    return verify(&call, json, error);
}
