/* Any bytes as a device log, behind a head of our own unless they bring one: what is read must make
 * recordings of both views, or say why not. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/device_log_bytes.h"
#include "traces/exchange/device_log.h"
#include "traces/load.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void load(const unsigned char *bytes, size_t count, frag_trace_format format)
{
    frag_load_options options = {.format = format, .with_columns = true};
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording recording;
    frag_findings findings = {0};
    frag_input *input = frag_input_from_memory(bytes, count, "fuzzed");
    if (frag_recording_load_input(input, &options, &recording, &findings, &error))
        frag_recording_destroy(&recording);
    else
        FRAG_ASSERT(error.code != FRAG_E_NONE && error.sentence[0] != '\0');
    frag_input_close(input);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    if (count >= FRAG_DEVICE_LOG_MAGIC_BYTES &&
        memcmp(bytes, FRAG_DEVICE_LOG_MAGIC, FRAG_DEVICE_LOG_MAGIC_BYTES) == 0) {
        load(bytes, count, FRAG_FORMAT_DEVICE_LOG);
        load(bytes, count, FRAG_FORMAT_DEVICE_SEGMENTS);
        return 0;
    }
    /* Numbers are given anew, so that most changes get past the first check. */
    size_t record_count = count / sizeof(frag_device_record);
    frag_device_record *records = frag_alloc(record_count, sizeof *records);
    if (record_count > 0)
        memcpy(records, bytes, record_count * sizeof *records);
    size_t log_bytes = 0;
    unsigned char *log = frag_device_log_bytes(records, record_count, &log_bytes);
    load(log, log_bytes, FRAG_FORMAT_DEVICE_LOG);
    load(log, log_bytes, FRAG_FORMAT_DEVICE_SEGMENTS);
    free(log);
    free(records);
    return 0;
}
