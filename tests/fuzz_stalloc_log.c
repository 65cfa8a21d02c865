/* Any bytes as a trace of STAlloc: what is read passes every check of a trace and comes back from
 * its text form; what is not says in which line. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "tests/sample_recording.h"
#include "traces/stalloc_log.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_stalloc_is_like(bytes, count);
    frag_input *input = frag_input_from_memory(bytes, count, "fuzzed");
    frag_recording recording;
    frag_recording again;
    frag_findings findings = {0};
    frag_error error = {.code = FRAG_E_NONE};
    if (frag_stalloc_read(input, &recording, &findings, &error)) {
        size_t written = 0;
        char *file = sample_written(&recording, frag_text_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        frag_recording_destroy(&recording);
        free(file);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        FRAG_ASSERT(error.line > 0 || error.has_offset);
        FRAG_ASSERT(recording.traces == NULL);
    }
    frag_input_close(input);
    return 0;
}
