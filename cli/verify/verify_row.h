/* What the JSON rows of `fraglab verify` have in common. */
#ifndef FRAG_VERIFY_VERIFY_ROW_H
#define FRAG_VERIFY_VERIFY_ROW_H

#include "allocators/registry.h"
#include "base/json.h"
#include "sim/trace/trace.h"

/* Schema, trace and policy: the first members of a row. All is copied. */
void frag_verify_row_head(frag_json *json, const frag_recording *recording, const frag_trace *trace,
                          const frag_policy_spec *policy);

#endif
