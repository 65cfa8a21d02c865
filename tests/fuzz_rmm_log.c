/* Any bytes behind the header of a log of RMM: what is read passes every check of a trace and comes
 * back from its text form; what is not says in which line. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "tests/sample_recording.h"
#include "traces/rmm_log.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    static const char header[] = FRAG_RMM_LOG_HEADER "\n";
    if (count > FRAG_MIB)
        return 0;
    size_t start = frag_rmm_log_is_like(bytes, count) ? 0 : sizeof header - 1;
    char *text = frag_alloc(start + count + 1, 1);
    memcpy(text, header, start);
    if (count > 0)
        memcpy(text + start, bytes, count);
    frag_input *input = frag_input_from_memory(text, start + count, "fuzzed");
    frag_recording recording;
    frag_recording again;
    frag_findings findings = {0};
    frag_error error = {.code = FRAG_E_NONE};
    if (frag_rmm_log_read(input, &recording, &findings, &error)) {
        size_t written = 0;
        char *file = sample_written(&recording, frag_text_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        frag_recording_destroy(&recording);
        free(file);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.line > 0 && error.sentence[0] != '\0');
        FRAG_ASSERT(recording.traces == NULL);
    }
    frag_input_close(input);
    free(text);
    return 0;
}
