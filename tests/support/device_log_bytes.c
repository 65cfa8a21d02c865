#include "tests/support/device_log_bytes.h"

#include <string.h>

#include "base/memory.h"

unsigned char *frag_device_log_bytes(const frag_device_record *records, size_t count, size_t *bytes)
{
    *bytes = FRAG_DEVICE_LOG_HEADER_BYTES + count * sizeof *records;
    unsigned char *log = frag_alloc(*bytes, 1);
    frag_device_log_header header = {
        .major = FRAG_DEVICE_LOG_MAJOR,
        .header_bytes = FRAG_DEVICE_LOG_HEADER_BYTES,
        .record_bytes = FRAG_DEVICE_LOG_RECORD_BYTES,
        .pid = 4242,
        .recorded_by = FRAG_RECORDED_BY_PRELOAD,
        .start_unix_ns = 1000000,
        .start_monotonic_ns = 1000,
        .runtime_version = 12040,
        .begun_count = count,
        .end_monotonic_ns = 5000,
    };
    memcpy(header.magic, FRAG_DEVICE_LOG_MAGIC, sizeof header.magic);
    memcpy(log, &header, sizeof header);
    memcpy(log + FRAG_DEVICE_LOG_COMMAND_OFFSET, "./solver -n 3", 14);
    for (size_t i = 0; i < count; i++) {
        frag_device_record record = records[i];
        if (record.number == UINT32_MAX)
            continue;
        record.number = (uint32_t)(i + 1);
        memcpy(log + FRAG_DEVICE_LOG_HEADER_BYTES + i * sizeof record, &record, sizeof record);
    }
    return log;
}
