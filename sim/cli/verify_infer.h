/* Settings a recording does not hold, concluded from what it shows. */
#ifndef FRAG_CLI_VERIFY_INFER_H
#define FRAG_CLI_VERIFY_INFER_H

#include "allocators/registry.h"
#include "sim/verify.h"

typedef struct frag_inferred {
    uint64_t capacity_bytes; /* FRAG_UNLIMITED: not needed */
    uint64_t limit_bytes;    /* memory limit; FRAG_UNLIMITED: none */
    char settings[160];      /* "version=2.6,max_split_size_mb=128"; "": none but those given */
} frag_inferred;

/* Looks for what a recording does not say and the pytorch policy needs to do what was recorded.
 * true: result is identical, with what inferred says. A snapshot holds neither the capacity, on
 * which expandable segments depend, nor the memory limit, on which garbage collection does; its
 * release is known to a range; and those of old releases hold no settings. What was given, in the
 * spec or as a capacity, stays. */
bool frag_verify_infer(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *spec, uint64_t capacity_bytes,
                       frag_verify_result *result, frag_inferred *inferred);

#endif
