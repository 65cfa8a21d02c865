/* Any bytes behind the first line of a text trace. What is not read says why. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/round_trip.h"
#include "traces/text/text_trace.h"

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
    frag_test_round_trip(text, length, frag_recording_load_input);
    free(text);
    return 0;
}
