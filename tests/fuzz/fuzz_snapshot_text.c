/* Any bytes as a snapshot in JSON or in a web page. What is not read says why. */
#include "base/bytes.h"
#include "tests/support/round_trip.h"
#include "traces/torch/snapshot_page.h"
#include "traces/torch/snapshot_parse.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static bool read_snapshot(frag_input *input, frag_recording *recording, frag_findings *findings,
                          frag_error *error)
{
    frag_load_options options = {
        .format = FRAG_FORMAT_SNAPSHOT, .with_sites = true, .with_columns = true};
    return frag_snapshot_read(input, &options, recording, findings, error);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    (void)frag_snapshot_json_is_like(bytes, count);
    (void)frag_snapshot_page_is_like(bytes, count);
    frag_test_round_trip(bytes, count, read_snapshot);
    return 0;
}
