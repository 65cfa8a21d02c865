#include "allocators/frameworks/composed_policy.h"

const frag_policy_engine frag_composed_policy_engine = {.replay = frag_composed_replay};

size_t frag_composed_policy_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    frag_composed_scale scale = frag_composed_scale_of(limits);
    return sizeof(frag_policy) + 64 + frag_composed_bytes(&scale);
}

frag_policy *frag_composed_policy_create(const frag_policy_setup *setup,
                                         const frag_composition *rules,
                                         const frag_growth_state *growth)
{
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    frag_composed_scale scale = frag_composed_scale_of(&setup->limits);
    frag_composed_create(&policy->core, setup, &scale, rules, growth, &policy->events);
    return policy;
}

bool frag_composed_policy_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return frag_composed_alloc(&policy->core, request, grant);
}

void frag_composed_policy_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    frag_composed_free(&policy->core, handle, stream);
}

/* These libraries have no private pools. */
void frag_composed_policy_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    frag_composed_give_back(&policy->core);
}

uint64_t frag_composed_policy_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_composed_rounded(&policy->core, bytes);
}

void frag_composed_policy_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_composed_walk(&policy->core, visit, context);
}

bool frag_composed_policy_check(const frag_policy *policy, frag_error *error)
{
    return frag_composed_check(&policy->core, error);
}
