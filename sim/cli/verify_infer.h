/* Settings a recording does not hold, concluded from what it shows. */
#ifndef FRAG_CLI_VERIFY_INFER_H
#define FRAG_CLI_VERIFY_INFER_H

#include "allocators/registry.h"
#include "sim/verify.h"

typedef struct frag_inferred {
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: not needed */
    uint64_t limit_bytes;    /* memory limit; FRAG_UNLIMITED: none */
} frag_inferred;

/* Looks for the capacity or the memory limit under which the pytorch policy does what was recorded.
 * true: result is identical, with what inferred says. A snapshot holds neither, though expandable
 * segments depend on the one and garbage collection on the other. */
bool frag_verify_infer(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *spec, frag_verify_result *result,
                       frag_inferred *inferred);

#endif
