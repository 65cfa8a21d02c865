/* Any bytes as a trace of STAlloc. What is not read says in which line. */
#include "base/bytes.h"
#include "tests/support/round_trip.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_format_stalloc.is_like(bytes, count);
    frag_error refusal = frag_test_round_trip(bytes, count, frag_format_stalloc.read);
    FRAG_ASSERT(refusal.code == FRAG_E_NONE || refusal.line > 0 || refusal.has_offset);
    return 0;
}
