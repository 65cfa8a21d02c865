/* The JSON rows of `fraglab verify`. */
#ifndef FRAG_VERIFY_VERIFY_JSON_H
#define FRAG_VERIFY_VERIFY_JSON_H

#include <stdio.h>

#include "allocators/registry.h"
#include "base/json.h"
#include "sim/trace/trace.h"
#include "studies/verify/verify_recorded.h"

/* Schema, trace and policy: the first members of a row. All is copied. */
void frag_verify_row_head(frag_json *json, const frag_recording *recording, const frag_trace *trace,
                          const frag_policy_spec *policy);

/* The row of a comparison with a recording. Errors of writing stay with the stream. */
void frag_verification_print_json(FILE *stream, const frag_recording *recording,
                                  const frag_trace *trace, const frag_verification *found);

#endif
