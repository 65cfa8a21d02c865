/* Logs of RMM's logging_resource_adaptor: CSV with the columns Thread, Time, Action, Pointer, Size,
 * Stream, one row for each request, release or request that failed. Sizes are those that the
 * program asked for, pointers and streams are hexadecimal.
 * Source: rapidsai/rmm, cpp/src/mr/detail/logging_resource_adaptor_impl.cpp.
 *
 * Also its text log (RMM_DEBUG_LOG_FILE, by default rmm_log.txt), where RMM was built with level
 * TRACE: a line for each request that was served, and for each release; failures are in it at every
 * level.
 *
 * A log is one trace, of device 0, as it does not say of which device it is. Rows are put in the
 * order of their times; docs/exchange.md tells what else is done with what logs are known to have.
 */
#ifndef FRAG_EXCHANGE_RMM_LOG_H
#define FRAG_EXCHANGE_RMM_LOG_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/formats.h"

#define FRAG_RMM_LOG_HEADER "Thread,Time,Action,Pointer,Size,Stream"

/* Is the first line the header of a log? 64 bytes are enough to see it. */
bool frag_rmm_log_is_like(const unsigned char *bytes, size_t count);

/* Does a text log begin here that has requests in it? */
bool frag_rmm_text_log_is_like(const unsigned char *bytes, size_t count);
/* Does one that has none, but perhaps failures? */
bool frag_rmm_text_log_is_failures(const unsigned char *bytes, size_t count);

/* Takes memory in proportion to the file. FRAG_E_INPUT with line and column for a row that is none;
 * what does not fit together is counted in findings. On failure *recording is empty. */
bool frag_rmm_log_read(frag_input *input, frag_recording *recording, frag_findings *findings,
                       frag_error *error);

#endif
