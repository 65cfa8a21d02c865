/* Any bytes as an exported report of Nsight Systems, behind the first bytes of a database: what is
 * read, in both views, passes every check of a trace and comes back from its text form; what is not
 * says why. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "sim/base/sqlite_file.h"
#include "tests/sample_recording.h"
#include "traces/nsys_database.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void read_as(const unsigned char *bytes, size_t count, frag_device_log_view view)
{
    frag_input *input = frag_input_from_memory(bytes, count, "fuzzed");
    frag_recording recording;
    frag_recording again;
    frag_findings findings = {0};
    frag_error error = {.code = FRAG_E_NONE};
    if (frag_nsys_read(input, view, &recording, &findings, &error)) {
        size_t written = 0;
        char *file = sample_written(&recording, frag_text_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        frag_recording_destroy(&recording);
        free(file);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        FRAG_ASSERT(recording.traces == NULL);
    }
    frag_input_close(input);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count < FRAG_SQLITE_MAGIC_BYTES || count > FRAG_MIB)
        return 0;
    unsigned char *copy = frag_alloc(count, 1);
    memcpy(copy, bytes, count);
    memcpy(copy, FRAG_SQLITE_MAGIC, FRAG_SQLITE_MAGIC_BYTES);
    read_as(copy, count, FRAG_DEVICE_LOG_AS_REQUESTS);
    read_as(copy, count, FRAG_DEVICE_LOG_AS_SEGMENTS);
    free(copy);
    return 0;
}
