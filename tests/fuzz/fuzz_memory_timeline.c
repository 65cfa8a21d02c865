/* Any bytes as a memory timeline of PyTorch's profiler. What is not read says why. */
#include "base/bytes.h"
#include "tests/support/round_trip.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_format_timeline.is_like(bytes, count);
    frag_test_round_trip(bytes, count, frag_format_timeline.read);
    return 0;
}
