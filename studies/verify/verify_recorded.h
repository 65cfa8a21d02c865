/* A recording held against a policy, as `fraglab verify` does it: with the settings that the
 * recording holds, and where they do not do what was recorded, with those that can be concluded
 * from it. */
#ifndef FRAG_VERIFY_VERIFY_RECORDED_H
#define FRAG_VERIFY_VERIFY_RECORDED_H

#include "studies/verify/verify_infer.h"

/* What a comparison came to. Nothing was compared where a recording holds neither a request nor a
 * call of its allocator: as it is with a snapshot without history. */
typedef enum frag_outcome {
    FRAG_IDENTICAL,
    FRAG_DIFFERENT,
    FRAG_NOTHING_COMPARED,
    FRAG_OUTCOME_COUNT
} frag_outcome;

typedef struct frag_verification {
    frag_policy_spec spec; /* what was compared */
    frag_verify_result result;
    frag_inferred inferred;
} frag_verification;

/* Requests alone say nothing about an allocator: no policy could be held against them.
 * FRAG_E_INPUT. */
bool frag_verify_check_observed(const frag_recording *recording, frag_error *error);

/* policy NULL: the one that the recording names, with its settings, else PyTorch's defaults.
 * capacity_bytes FRAG_UNLIMITED: what the recording says. The recording has its columns. false: the
 * policy cannot be made for it, or the context is cancelled (error stays as it is); nothing is to
 * be destroyed. */
bool frag_verify_recorded(const frag_context *context, const frag_recording *recording,
                          const frag_trace *trace, const frag_policy_spec *policy,
                          uint64_t capacity_bytes, bool goes_on, frag_verification *found,
                          frag_error *error);
frag_outcome frag_verification_outcome(const frag_verification *found);
void frag_verification_destroy(frag_verification *found);

#endif
