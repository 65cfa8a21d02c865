/* Databases of NVIDIA's profilers: which device memory a program took and gave back, call by call.
 * Those that Nsight Systems exports (nsys export --type sqlite) from reports made with
 * --cuda-memory-usage=true, and those of nvprof and the Visual Profiler (nvprof -o FILE
 * --track-memory-allocations on), whose tables hold CUPTI's records CUpti_ActivityMemory and
 * CUpti_ActivityMemory2 field by field.
 *
 * They say of the device what a recorder's log says (traces/exchange/device_log.h), and are taken
 * the same two ways. Each process has a trace for each of its devices. Columns that older releases
 * do not write may be missing. docs/exchange.md tells what is read and what is left out. Source:
 * the tables as public programs that read them have them; cupti_activity.h. */
#ifndef FRAG_EXCHANGE_NSYS_DATABASE_H
#define FRAG_EXCHANGE_NSYS_DATABASE_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/exchange/device_log.h"
#include "traces/formats.h"

/* Any SQLite database: which one it is shows only inside. */
bool frag_nsys_is_like(const unsigned char *bytes, size_t count);

/* Takes memory in proportion to the events of memory, and to the file where it is compressed or a
 * pipe. FRAG_E_INPUT names table, row and column; what is left out is counted in findings. On
 * failure *recording is empty. */
bool frag_nsys_read(frag_input *input, frag_device_log_view view, frag_recording *recording,
                    frag_findings *findings, frag_error *error);

#endif
