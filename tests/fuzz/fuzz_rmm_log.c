/* Any bytes behind the header of a log of RMM, or as a text log. What is not read says why, of a
 * CSV log in which line. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/round_trip.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    static const char header[] = "Thread,Time,Action,Pointer,Size,Stream\n";
    if (count > FRAG_MIB)
        return 0;
    bool is_text = count > 0 && bytes[0] == '[';
    size_t start = is_text || frag_format_rmm.is_like(bytes, count) ? 0 : sizeof header - 1;
    char *text = frag_alloc(start + count, 1);
    memcpy(text, header, start);
    if (count > 0)
        memcpy(text + start, bytes, count);
    frag_error refusal = frag_test_round_trip(text, start + count, frag_format_rmm.read);
    FRAG_ASSERT(refusal.code == FRAG_E_NONE || refusal.line > 0 || is_text);
    free(text);
    return 0;
}
