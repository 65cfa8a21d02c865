/* Any bytes as an exported report of Nsight Systems, behind the first bytes of a database, in both
 * views. What is not read says why. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/formats/sqlite_file.h"
#include "base/memory.h"
#include "tests/support/round_trip.h"
#include "traces/exchange/nsys_database.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static bool read_segments(frag_input *input, const frag_load_options *options,
                          frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    return frag_nsys_read(input, FRAG_DEVICE_LOG_AS_SEGMENTS, recording, findings, error);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count < FRAG_SQLITE_MAGIC_BYTES || count > FRAG_MIB)
        return 0;
    unsigned char *copy = frag_alloc(count, 1);
    memcpy(copy, bytes, count);
    memcpy(copy, FRAG_SQLITE_MAGIC, FRAG_SQLITE_MAGIC_BYTES);
    frag_test_round_trip(copy, count, frag_format_nsys.read);
    frag_test_round_trip(copy, count, read_segments);
    free(copy);
    return 0;
}
