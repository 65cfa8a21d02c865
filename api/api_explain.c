/* Explaining why memory ran out: the text of a message, or a recording. */
#include <string.h>

#include "api/api_policy.h"
#include "api/api_recording.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "studies/explain/explain_recording.h"
#include "studies/explain/explain_text.h"

typedef struct text_call {
    const char *text;
    size_t length;
    char *json;
} text_call;

static bool text_work(void *arguments, frag_error *error)
{
    text_call *call = arguments;
    frag_text_stream *stream = frag_text_stream_open();
    (void)error;
    frag_explain_message(frag_text_stream_file(stream), call->text, call->length,
                         frag_explain_print_json);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_explain_text(const char *text, size_t length, char **json, fraglab_error *error)
{
    text_call call = {.text = text, .length = length};
    int code = frag_call_once(text_work, &call, error);
    *json = call.json;
    return code;
}

/* ---- a recording */

typedef struct recording_call {
    const fraglab_context *context;
    const fraglab_recording *recording;
    const fraglab_explain_options *given;
    char *explanation;
} recording_call;

static bool take_options(const fraglab_explain_options *given, frag_explain_options *options,
                         frag_error *error)
{
    double ratio = 0;
    *options = (frag_explain_options){
        .capacity_bytes = given->capacity_bytes != 0 ? given->capacity_bytes : FRAG_UNLIMITED,
        .fraction = given->memory_fraction,
        .whole = given->whole != NULL ? &given->whole->recording : NULL,
        .extra = {.count = given->policy_count},
    };
    if (options->fraction != NULL && !frag_ratio_parse(options->fraction, 0, 1, &ratio, error))
        return frag_error_in(error, "memory_fraction");
    options->extra.specs = frag_alloc(given->policy_count, sizeof *options->extra.specs);
    for (size_t i = 0; i < given->policy_count; i++)
        frag_policy_spec_copy(&given->policies[i]->spec, &options->extra.specs[i]);
    return true;
}

static bool recording_work(void *arguments, frag_error *error)
{
    recording_call *call = arguments;
    fraglab_explain_options given;
    frag_explain_options options;
    const frag_context *below = frag_call_context(call->context);
    if (!frag_call_read(call->given, &given, sizeof given, "fraglab_explain_options", error) ||
        !take_options(&given, &options, error))
        return false;
    frag_text_stream *stream = frag_text_stream_open();
    bool ok = frag_explain_recording(below, &call->recording->recording, &options,
                                     frag_text_stream_file(stream), given.as_text == 0, error);
    if (!frag_call_goes_on(below, error) || !ok)
        return false;
    call->explanation = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_explain_recording(const fraglab_context *context, const fraglab_recording *recording,
                              const fraglab_explain_options *options, char **explanation,
                              fraglab_error *error)
{
    recording_call call = {.context = context, .recording = recording, .given = options};
    int code = frag_call_once(recording_work, &call, error);
    *explanation = call.explanation;
    return code;
}
