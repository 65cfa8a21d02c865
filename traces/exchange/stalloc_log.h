/* Traces that STAlloc records (mem_log_devN.txt): a line for each request, "1 POINTER BYTES
 * STREAM", and each release, "0 POINTER BYTES STREAM"; between them lines that mark phases of the
 * training. Sizes are those that the program asked for. There are no times: lines are in order.
 * Source: infinigence/STAlloc, what its recorder writes and its trace parser reads; the wordings of
 * its markers are not fixed, so any line that begins with a letter is one.
 *
 * A file is one trace, of device 0, as only its name says of which device it is. */
#ifndef FRAG_EXCHANGE_STALLOC_LOG_H
#define FRAG_EXCHANGE_STALLOC_LOG_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/formats.h"

/* Is the first line that is no known marker a request or release? */
bool frag_stalloc_is_like(const unsigned char *bytes, size_t count);

/* Takes memory in proportion to the file. FRAG_E_INPUT with line and column for a line that is
 * neither; what does not fit together is counted in findings. On failure *recording is empty. */
bool frag_stalloc_read(frag_input *input, frag_recording *recording, frag_findings *findings,
                       frag_error *error);

#endif
