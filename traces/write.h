/* Recordings in the formats that fraglab writes: one function for `fraglab trace` and the library.
 */
#ifndef FRAG_TRACES_WRITE_H
#define FRAG_TRACES_WRITE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/trace/trace.h"

/* "fgt", "text", "minimalloc". FRAG_E_USAGE: no such format, or a packing problem was asked of a
 * recording of several devices. Errors of the stream are for whoever closes it. */
bool frag_recording_write(const frag_recording *recording, const char *format, FILE *stream,
                          frag_error *error);

/* Where the buffers of a packing problem were placed, in order of their allocs; the caller frees.
 * NULL: it came without a placement. */
uint64_t *frag_problem_offsets(const frag_recording *recording, const frag_trace *trace,
                               uint64_t count);

#endif
