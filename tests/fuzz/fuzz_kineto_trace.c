/* Any bytes as a trace of PyTorch's profiler. What is not read says why. */
#include "base/bytes.h"
#include "tests/support/round_trip.h"
#include "traces/torch/kineto_trace.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_kineto_is_like(bytes, count);
    frag_test_round_trip(bytes, count, frag_kineto_read);
    return 0;
}
