/* Fuzzes the reader of out-of-memory messages with any bytes as text. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "studies/explain/advice.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    frag_messages messages;
    frag_messages_read(&messages, (const char *)bytes, count);
    uint64_t line = 1;
    for (size_t i = 0; i < messages.count; i++) {
        const frag_message *message = &messages.items[i];
        frag_diagnosis diagnosis;
        frag_advice advice;
        FRAG_ASSERT(message->kind != FRAG_MESSAGE_NONE && message->line >= line);
        line = message->line;
        frag_diagnose(message, &diagnosis);
        frag_advise(&messages, message, &diagnosis, &advice);
        bool is_oom = message->kind == FRAG_MESSAGE_OOM;
        FRAG_ASSERT(is_oom == (diagnosis.verdict != FRAG_OOM_VERDICT_NOT_AN_OOM));
        FRAG_ASSERT((is_oom || message->kind == FRAG_MESSAGE_HOST) == (advice.count > 0));
        FRAG_ASSERT(message->size_count <= FRAG_MESSAGE_SIZES);
        FRAG_ASSERT(diagnosis.because.length > 0);
        for (size_t j = 0; j < advice.count; j++)
            FRAG_ASSERT(advice.steps[j].text.length > 0 &&
                        strchr(advice.steps[j].text.bytes, '%') == NULL);
        frag_advice_destroy(&advice);
        frag_diagnosis_destroy(&diagnosis);
    }
    frag_diagnosis whole;
    frag_diagnose_text(&messages, &whole);
    FRAG_ASSERT(whole.because.length > 0);
    frag_diagnosis_destroy(&whole);
    FRAG_ASSERT((frag_messages_best(&messages) == NULL) == (messages.count == 0));
    frag_messages_destroy(&messages);
    return 0;
}
