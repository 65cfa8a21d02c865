/* Device logs: what a recorder saw a program ask of its device (docs/recording.md).
 *
 * A log is read into memory whole, in proportion to the file, and becomes a recording with one
 * trace for each device. Where its program was killed, or the file was cut, the log simply ends
 * there; how much is missing is a finding and no error. */
#ifndef FRAG_EXCHANGE_DEVICE_LOG_H
#define FRAG_EXCHANGE_DEVICE_LOG_H

#include "base/file.h"
#include "sim/device/device_log_format.h"
#include "sim/trace/trace.h"
#include "traces/builder.h"
#include "traces/formats.h"

/* Devices have numbers below this. */
#define FRAG_DEVICE_LOG_DEVICES_MAX 256u

typedef struct frag_device_log {
    frag_device_log_header header;
    char command[FRAG_DEVICE_LOG_COMMAND_BYTES];
    frag_device_record *records; /* in the order in which things came about */
    size_t record_count;
    uint64_t unfinished_count; /* calls that were under way when their program ended */
    uint64_t missing_count;    /* calls that the header counts and the file does not have */
} frag_device_log;

/* FRAG_E_INPUT names the offset. *log is {0} on failure. */
bool frag_device_log_read(frag_input *input, frag_device_log *log, frag_error *error);
void frag_device_log_destroy(frag_device_log *log);

/* "malloc"; NULL: there is no such call. */
const char *frag_log_call_name(uint32_t call);

/* ---- device_log_record.c: as a recording */

typedef enum frag_device_log_view {
    FRAG_DEVICE_LOG_AS_REQUESTS, /* the program is the one who asks: what a policy could serve */
    FRAG_DEVICE_LOG_AS_SEGMENTS  /* an allocator asked for its segments: only observed events */
} frag_device_log_view;

/* What does not fit is counted in findings. The metadata say who recorded what program. */
bool frag_device_log_record(const frag_device_log *log, frag_device_log_view view, const char *name,
                            frag_recording *recording, frag_findings *findings, frag_error *error);

/* The traces of several programs' logs into one recording: each program has its own addresses, and
 * no two of the logs may name the same device. Metadata are the caller's. */
void frag_device_logs_build(const frag_device_log *logs, size_t log_count,
                            frag_device_log_view view, frag_builder *builder,
                            frag_findings *findings);

#endif
