/* Any bytes as a trace of PyTorch's profiler: what is read passes every check of a trace and comes
 * back from its text form; what is not says why. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "tests/sample_recording.h"
#include "traces/kineto_trace.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    /* Its own copy, at whose end a sanitizer sees a byte too much. */
    unsigned char *copy = frag_alloc(count > 0 ? count : 1, 1);
    if (count > 0)
        memcpy(copy, bytes, count);
    frag_input *input = frag_input_from_memory(copy, count, "fuzzed");
    frag_recording recording;
    frag_recording again;
    frag_findings findings = {0};
    frag_error error = {.code = FRAG_E_NONE};
    (void)frag_kineto_is_like(copy, count);
    if (frag_kineto_read(input, &recording, &findings, &error)) {
        size_t written = 0;
        char *file = sample_written(&recording, frag_text_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        frag_recording_destroy(&recording);
        free(file);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        FRAG_ASSERT(recording.traces == NULL);
    }
    frag_input_close(input);
    free(copy);
    return 0;
}
