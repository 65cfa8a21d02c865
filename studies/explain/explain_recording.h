/* The explanation of a recording: for a person, or as one JSON object for each of its devices. */
#ifndef FRAG_EXPLAIN_EXPLAIN_RECORDING_H
#define FRAG_EXPLAIN_EXPLAIN_RECORDING_H

#include <stdio.h>

#include "studies/explain/explain_trace.h"

/* Prints the explanation of every device of the recording that ran out, or would with that
 * capacity. false: the first error of a device, the others are printed all the same; or
 * FRAG_E_USAGE, there is nothing to explain. After the context was cancelled what was printed is of
 * no use. */
bool frag_explain_recording(const frag_context *context, const frag_recording *recording,
                            const frag_explain_options *options, FILE *stream, bool is_json,
                            frag_error *error);

/* ---- what it is made of: one device */

/* explain_recording_text.c */
void frag_explain_print_trace(FILE *stream, const frag_trace_explanation *explanation);
/* explain_recording_json.c */
void frag_explain_print_trace_json(FILE *stream, const frag_trace_explanation *explanation);
/* explain_failure.c: a failure on a device of unknown size. What the log says by itself: how much
 * was asked for, how much was live, the most that was. failed is the event of the request. */
void frag_explain_failure(const frag_recording *recording, const frag_trace *trace, uint64_t failed,
                          FILE *stream, bool is_json);

#endif
