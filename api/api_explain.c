/* Explaining the text of a message. */
#include "api/api_call.h"
#include "base/text_stream.h"
#include "studies/explain/explain_json.h"

typedef struct explain_call {
    const char *text;
    size_t length;
    char *json;
} explain_call;

static bool explain_work(void *arguments, frag_error *error)
{
    explain_call *call = arguments;
    frag_text_stream *stream = frag_text_stream_open();
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_advice advice;
    (void)error;
    frag_messages_read(&messages, call->text, call->length);
    const frag_message *best = frag_messages_best(&messages);
    frag_diagnose_text(&messages, &diagnosis);
    frag_advise(&messages, best, &diagnosis, &advice);
    const frag_explained explained = {
        .messages = &messages, .best = best, .diagnosis = &diagnosis, .advice = &advice};
    frag_explain_print_json(frag_text_stream_file(stream), &explained);
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
    call->json = frag_call_hand_out(frag_text_stream_close(stream, NULL));
    return true;
}

int fraglab_explain_text(const char *text, size_t length, char **json, fraglab_error *error)
{
    explain_call call = {.text = text, .length = length};
    int code = frag_call_once(explain_work, &call, error);
    *json = call.json;
    return code;
}
