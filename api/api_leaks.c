/* What a program keeps step after step. */
#include "api/api_run.h"
#include "base/text_stream.h"
#include "studies/leaks/leaks_json.h"

typedef struct leaks_call {
    const fraglab_recording *recording;
    size_t number;
    const fraglab_leaks_options *given;
    frag_replay_call replay; /* its context and device */
    char *json;
} leaks_call;

static bool leaks_work(void *arguments, frag_error *error)
{
    leaks_call *call = arguments;
    fraglab_leaks_options options;
    frag_leaks leaks;
    const frag_trace *trace = frag_recording_trace_at(call->recording, call->number, error);
    if (trace == NULL ||
        !frag_call_read(call->given, &options, sizeof options, "fraglab_leaks_options", error) ||
        !frag_replay_call_device(&call->replay, error))
        return false;
    const frag_leaks_options wanted = {
        .context = call->replay.below,
        .mark = options.mark,
        .spec = options.policy != NULL ? &options.policy->spec : NULL,
        .device = &call->replay.device,
    };
    bool ok = frag_leaks_find(&wanted, &call->recording->recording, trace, &leaks, error);
    if (!frag_replay_call_goes_on(&call->replay, error) || !ok)
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    frag_leaks_print_json(frag_text_stream_file(stream), &call->recording->recording, trace,
                          &leaks);
    frag_leaks_destroy(&leaks);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_leaks(const fraglab_context *context, const fraglab_recording *recording, size_t trace,
                  const fraglab_run_options *run_options, const fraglab_leaks_options *options,
                  char **json, fraglab_error *error)
{
    leaks_call call = {.recording = recording,
                       .number = trace,
                       .given = options,
                       .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(leaks_work, &call, error);
    *json = call.json;
    return code;
}
