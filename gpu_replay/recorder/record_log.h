/* Writing a device log (sim/device/device_log_format.h) from inside somebody else's program.
 *
 * The log is a mapped file. A record is claimed by one atomic addition and then written by its own
 * thread, so that threads never wait for each other, and what was written outlives the program
 * however it ends: the pages are the kernel's. Only calls that were under way then are lost.
 *
 * The first claim of a process makes its log: FOLDER/PID-N.devlog, where FOLDER is FRAGLAB_RECORD
 * (else the folder in which the program started). A forked child begins a log of its own. Nothing
 * here may disturb the program: when the log cannot be written, one line on stderr says so and
 * recording ends. */
#ifndef FRAG_RECORDER_RECORD_LOG_H
#define FRAG_RECORDER_RECORD_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/device/device_log_format.h"

#define FRAG_RECORD_NONE UINT64_MAX

/* Once, before anything else. recorded_by: FRAG_RECORDED_BY_... */
void frag_record_start(uint32_t recorded_by);

/* Notes that the program ends in order. Later calls are still recorded. has_driver: leave a log
 * even when there were no calls, as the driver was there. */
void frag_record_end(bool has_driver);

/* Nanoseconds of the clock of the records. */
uint64_t frag_record_now(void);

/* The place of the next record, or FRAG_RECORD_NONE when recording is over. Places are the order of
 * the log: what gives memory back claims before the call, what takes memory after it, so that an
 * address is never given out before its free. */
uint64_t frag_record_claim(void);

/* Fills a claimed place; number and thread are filled in here. */
void frag_record_write(uint64_t place, const frag_device_record *record);

/* true once for each log: its header wants the versions of runtime and driver (12040 is 12.4; 0:
 * not known). */
bool frag_record_wants_versions(void);
void frag_record_versions(uint32_t runtime_version, uint32_t driver_version);

#endif
