/* Any bytes behind the first line of a text trace; what loads must survive a round trip. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "tests/sample_recording.h"
#include "traces/text_trace.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    static const char first_line[] = FRAG_TEXT_FIRST_LINE "\n";
    if (count > FRAG_MIB)
        return 0;
    size_t start = sizeof first_line - 1;
    bool has_first_line = count >= start && memcmp(bytes, first_line, start) == 0;
    unsigned char *text = frag_alloc(start + count, 1);
    size_t length = has_first_line ? 0 : start;
    memcpy(text, first_line, length);
    if (count > 0)
        memcpy(text + length, bytes, count);
    length += count;
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording recording;
    if (sample_load(text, length, true, &recording, &error)) {
        frag_recording again;
        size_t written = 0;
        char *file = sample_written(&recording, frag_text_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        free(file);
        frag_recording_destroy(&recording);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
    }
    free(text);
    return 0;
}
