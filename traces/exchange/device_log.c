#include "traces/exchange/device_log.h"

#include <string.h>

#include "base/memory.h"

/* More than a later version could need in its header or its records. */
#define HEADER_BYTES_MAX 65536u
#define RECORD_BYTES_MAX 1024u

static uint16_t read_16(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t read_32(const unsigned char *bytes)
{
    return read_16(bytes) | (uint32_t)read_16(bytes + 2) << 16;
}

static uint64_t read_64(const unsigned char *bytes)
{
    return read_32(bytes) | (uint64_t)read_32(bytes + 4) << 32;
}

const char *frag_log_call_name(uint32_t call)
{
    switch (call) {
#define CALL_NAME(name, code, text)                                                                \
    case code:                                                                                     \
        return text;
        FRAG_LOG_CALLS(CALL_NAME)
#undef CALL_NAME
    default:
        return NULL;
    }
}

static bool read_header(frag_input *input, frag_device_log *log, frag_error *error)
{
    unsigned char bytes[FRAG_DEVICE_LOG_HEADER_BYTES];
    if (!frag_input_read(input, bytes, sizeof bytes, error))
        return false;
    frag_device_log_header *header = &log->header;
    memcpy(header->magic, bytes, sizeof header->magic);
    header->major = read_16(bytes + 8);
    header->minor = read_16(bytes + 10);
    header->header_bytes = read_32(bytes + 12);
    header->record_bytes = read_32(bytes + 16);
    header->pid = read_32(bytes + 20);
    header->parent_pid = read_32(bytes + 24);
    header->recorded_by = read_32(bytes + 28);
    header->start_unix_ns = read_64(bytes + 32);
    header->start_monotonic_ns = read_64(bytes + 40);
    header->runtime_version = read_32(bytes + 48);
    header->driver_version = read_32(bytes + 52);
    header->flags = read_64(bytes + 56);
    header->begun_count = read_64(bytes + 64);
    header->end_monotonic_ns = read_64(bytes + 72);
    memcpy(log->command, bytes + FRAG_DEVICE_LOG_COMMAND_OFFSET, sizeof log->command);
    log->command[sizeof log->command - 1] = '\0';
    if (memcmp(header->magic, FRAG_DEVICE_LOG_MAGIC, FRAG_DEVICE_LOG_MAGIC_BYTES) != 0)
        return frag_fail_at(error, 0,
                            "not a device log; expected 89 46 44 4c 0d 0a 1a 0a at its start");
    if (header->major != FRAG_DEVICE_LOG_MAJOR)
        return frag_fail_at(error, 8, "the device log has version %u; expected %u", header->major,
                            FRAG_DEVICE_LOG_MAJOR);
    if (header->header_bytes < FRAG_DEVICE_LOG_HEADER_BYTES ||
        header->header_bytes > HEADER_BYTES_MAX)
        return frag_fail_at(error, 12, "the header has %u bytes; expected %u to %u",
                            header->header_bytes, FRAG_DEVICE_LOG_HEADER_BYTES, HEADER_BYTES_MAX);
    if (header->record_bytes < FRAG_DEVICE_LOG_RECORD_BYTES ||
        header->record_bytes > RECORD_BYTES_MAX)
        return frag_fail_at(error, 16, "records have %u bytes; expected %u to %u",
                            header->record_bytes, FRAG_DEVICE_LOG_RECORD_BYTES, RECORD_BYTES_MAX);
    return true;
}

static frag_device_record decode(const unsigned char *bytes)
{
    return (frag_device_record){
        .time_ns = read_64(bytes),
        .address = read_64(bytes + 8),
        .bytes = read_64(bytes + 16),
        .stream = read_64(bytes + 24),
        .other = read_64(bytes + 32),
        .thread = read_32(bytes + 40),
        .duration_ns = read_32(bytes + 44),
        .result = (int32_t)read_32(bytes + 48),
        .device = read_16(bytes + 52),
        .call = bytes[54],
        .flags = bytes[55],
        .number = read_32(bytes + 56),
    };
}

static bool check_record(const frag_device_record *record, uint64_t index, uint64_t offset,
                         frag_error *error)
{
    if (record->number != (uint32_t)(index + 1))
        return frag_fail_at(error, offset + 56, "record %llu has number %u; expected %u",
                            (unsigned long long)index, record->number, (uint32_t)(index + 1));
    if (record->device != FRAG_DEVICE_UNKNOWN && record->device >= FRAG_DEVICE_LOG_DEVICES_MAX)
        return frag_fail_at(error, offset + 52,
                            "record %llu names device %u; expected one below %u",
                            (unsigned long long)index, record->device, FRAG_DEVICE_LOG_DEVICES_MAX);
    if (record->bytes > FRAG_REQUEST_BYTES_MAX && record->result == 0 &&
        record->call != FRAG_LOG_POOL_SET && record->call != FRAG_LOG_POOL_TRIM &&
        record->call != FRAG_LOG_POOL_CREATE)
        return frag_fail_at(error, offset + 16,
                            "record %llu is of %llu bytes; expected at most 2^56 - 1",
                            (unsigned long long)index, (unsigned long long)record->bytes);
    return true;
}

/* Up to the count of the header or the end of the file, whichever comes first. */
static bool read_records(frag_input *input, frag_device_log *log, frag_error *error)
{
    size_t capacity = 0;
    uint64_t begun = log->header.begun_count;
    uint32_t record_bytes = log->header.record_bytes;
    for (uint64_t i = 0; i < begun; i++) {
        const unsigned char *bytes = NULL;
        size_t count = 0;
        uint64_t offset = frag_input_offset(input);
        if (!frag_input_peek(input, record_bytes, &bytes, &count, error))
            return false;
        if (count < record_bytes) {
            log->missing_count = begun - i;
            return true;
        }
        frag_device_record record = decode(bytes);
        frag_input_skip(input, record_bytes);
        if (record.number == 0) {
            log->unfinished_count++;
            continue;
        }
        if (!check_record(&record, i, offset, error))
            return false;
        *FRAG_APPEND(log->records, log->record_count, capacity) = record;
    }
    return true;
}

bool frag_device_log_read(frag_input *input, frag_device_log *log, frag_error *error)
{
    *log = (frag_device_log){0};
    unsigned char rest[4096];
    bool ok = read_header(input, log, error);
    uint32_t left = ok ? log->header.header_bytes - FRAG_DEVICE_LOG_HEADER_BYTES : 0;
    while (ok && left > 0) {
        size_t part = left < sizeof rest ? left : sizeof rest;
        ok = frag_input_read(input, rest, part, error);
        left -= (uint32_t)part;
    }
    ok = ok && read_records(input, log, error);
    if (!ok)
        frag_device_log_destroy(log);
    return ok;
}

void frag_device_log_destroy(frag_device_log *log)
{
    frag_free(log->records);
    *log = (frag_device_log){0};
}
