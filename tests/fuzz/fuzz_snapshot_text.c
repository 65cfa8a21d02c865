/* Any bytes as a snapshot in JSON or in a web page. What is not read says why. */
#include "base/bytes.h"
#include "tests/support/round_trip.h"
#include "traces/torch/snapshot_page.h"
#include "traces/torch/history/snapshot_parse.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_snapshot_json_is_like(bytes, count);
    (void)frag_snapshot_page_is_like(bytes, count);
    frag_test_round_trip(bytes, count, frag_format_snapshot.read);
    return 0;
}
