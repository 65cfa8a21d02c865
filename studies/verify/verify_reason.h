/* What most often explains a difference between a policy and a recording. */
#ifndef FRAG_VERIFY_VERIFY_REASON_H
#define FRAG_VERIFY_VERIFY_REASON_H

#include "allocators/registry.h"
#include "base/text.h"
#include "studies/verify/verify.h"

/* Adds one sentence, without an end of line: what the recording shows of settings that the policy
 * does not have, else what is known of the recording. */
void frag_verify_add_reason(frag_text *out, const frag_recording *recording,
                            const frag_trace *trace, const frag_policy_spec *spec,
                            const frag_verify_result *result);

#endif
