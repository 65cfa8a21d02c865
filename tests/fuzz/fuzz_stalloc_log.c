/* Any bytes as a trace of STAlloc. What is not read says in which line. */
#include "base/bytes.h"
#include "tests/support/round_trip.h"
#include "traces/exchange/stalloc_log.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_stalloc_is_like(bytes, count);
    frag_error refusal = frag_test_round_trip(bytes, count, frag_stalloc_read);
    FRAG_ASSERT(refusal.code == FRAG_E_NONE || refusal.line > 0 || refusal.has_offset);
    return 0;
}
