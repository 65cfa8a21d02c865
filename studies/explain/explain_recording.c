#include "studies/explain/explain_recording.h"

typedef struct printing {
    FILE *stream;
    bool is_json;
} printing;

static void print_explanation(void *user, const frag_trace_explanation *explanation)
{
    const printing *state = user;
    if (state->is_json)
        frag_explain_print_trace_json(state->stream, explanation);
    else
        frag_explain_print_trace(state->stream, explanation);
}

/* *has_explained: the trace has something to explain. */
static bool explain_trace(const frag_context *context, const frag_recording *recording,
                          const frag_trace *trace, const frag_explain_options *options,
                          printing *state, bool *has_explained, frag_error *error)
{
    uint64_t failed = frag_explain_failed_event(trace);
    bool is_sized = frag_explain_capacity(trace, options) != FRAG_UNLIMITED;
    if (!is_sized && failed == trace->event_count)
        return true;
    *has_explained = true;
    if (is_sized)
        return frag_explain_trace(context, recording, trace, options, print_explanation, state,
                                  error);
    frag_explain_failure(recording, trace, failed, state->stream, state->is_json);
    return true;
}

bool frag_explain_recording(const frag_context *context, const frag_recording *recording,
                            const frag_explain_options *options, FILE *stream, bool is_json,
                            frag_error *error)
{
    printing state = {.stream = stream, .is_json = is_json};
    bool has_explained = false;
    bool ok = true;
    for (uint32_t i = 0; i < recording->trace_count && !frag_is_cancelled(context); i++) {
        frag_error failure = {0};
        if (!explain_trace(context, recording, &recording->traces[i], options, &state,
                           &has_explained, &failure) &&
            ok) {
            *error = failure;
            ok = false;
        }
    }
    if (has_explained || !ok || frag_is_cancelled(context))
        return ok;
    return frag_fail_in(error, FRAG_E_USAGE, recording->name, "%s",
                        frag_explain_why_not(recording));
}
