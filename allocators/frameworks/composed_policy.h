/* A composed allocator as a policy by itself: what the presets share. */
#ifndef FRAG_FRAMEWORKS_COMPOSED_POLICY_H
#define FRAG_FRAMEWORKS_COMPOSED_POLICY_H

#include "allocators/frameworks/composed.h"
#include "allocators/frameworks/composed_growth.h"

struct frag_policy {
    frag_composed core; /* first: see frag_composed_replay */
    frag_event_counter events;
};

size_t frag_composed_policy_bytes(const frag_policy_limits *limits,
                                  const frag_option_value *values);
frag_policy *frag_composed_policy_create(const frag_policy_setup *setup,
                                         const frag_composition *rules,
                                         const frag_growth_state *growth);
bool frag_composed_policy_alloc(frag_policy *policy, const frag_request *request,
                                frag_grant *grant);
void frag_composed_policy_free(frag_policy *policy, frag_handle handle, uint32_t stream);
void frag_composed_policy_empty_cache(frag_policy *policy, uint32_t pool);
uint64_t frag_composed_policy_rounded(const frag_policy *policy, uint64_t bytes);
void frag_composed_policy_walk(const frag_policy *policy, frag_span_visitor *visit, void *context);
bool frag_composed_policy_check(const frag_policy *policy, frag_error *error);

/* The functions that all presets share; each preset adds its own, and this engine or its own. */
extern const frag_policy_engine frag_composed_policy_engine;

#define FRAG_COMPOSED_POLICY_OPS                                                                   \
    .bound = "", .arena_bytes = frag_composed_policy_bytes, .alloc = frag_composed_policy_alloc,   \
    .free = frag_composed_policy_free, .rounded = frag_composed_policy_rounded,                    \
    .walk = frag_composed_policy_walk, .check = frag_composed_policy_check

#endif
