/* What memory is for, as far as the call site that asked for it tells: weights, state of the
 * optimizer, what the backward pass needs, activations. */
#ifndef FRAG_EXPLAIN_EXPLAIN_PURPOSE_H
#define FRAG_EXPLAIN_EXPLAIN_PURPOSE_H

#include "sim/trace/trace.h"

/* X(enumerator, name in JSON, for people) */
#define FRAG_PURPOSES(X)                                                                           \
    X(UNKNOWN, "unknown", "call sites that do not tell")                                           \
    X(WEIGHTS, "weights", "weights")                                                               \
    X(OPTIMIZER, "optimizer", "the optimizer: its state and what its step needs")                  \
    X(BACKWARD, "backward", "the backward pass: gradients and what they need")                     \
    X(ACTIVATIONS, "activations", "activations")                                                   \
    X(CACHE, "cache", "a cache of keys and values")                                                \
    X(COMMUNICATION, "communication", "communication between devices")

typedef enum frag_purpose {
#define FRAG_PURPOSE_ENUM(name, text, person) FRAG_PURPOSE_##name,
    FRAG_PURPOSES(FRAG_PURPOSE_ENUM)
#undef FRAG_PURPOSE_ENUM
        FRAG_PURPOSE_COUNT
} frag_purpose;

const char *frag_purpose_name(frag_purpose purpose);
const char *frag_purpose_title(frag_purpose purpose);

/* By the innermost frame of the stack that shows it, but for the backward pass of torch.compile. */
frag_purpose frag_purpose_of_site(const frag_recording *recording, uint32_t site);

/* The same of all call sites, by number, at least one; each frame is looked at once. The caller
 * frees. */
frag_purpose *frag_purposes_of_sites(const frag_recording *recording);

#endif
