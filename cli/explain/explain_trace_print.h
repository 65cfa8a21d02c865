/* The explanation of a recording: for a person, or as one JSON object for each of its devices. */
#ifndef FRAG_EXPLAIN_EXPLAIN_TRACE_PRINT_H
#define FRAG_EXPLAIN_EXPLAIN_TRACE_PRINT_H

#include <stdio.h>

#include "studies/explain/explain_trace.h"

/* Prints the explanation of every device of the recording that ran out, or would with that
 * capacity; what fails goes to stderr. Returns an exit code. */
int frag_explain_recording(const frag_context *context, const frag_recording *recording,
                           const frag_explain_options *options, FILE *stream, bool is_json);

/* ---- a failure on a device of unknown size (explain_failure.c) */
/* What the log says by itself: how much was asked for, how much was live, the most that was. failed
 * is the event of the request. */
void frag_explain_failure(const frag_recording *recording, const frag_trace *trace, uint64_t failed,
                          FILE *stream, bool is_json);

#endif
