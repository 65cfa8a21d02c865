/* Policies behind their handle. */
#ifndef FRAG_API_API_POLICY_H
#define FRAG_API_API_POLICY_H

#include "allocators/registry.h"
#include "api/api_call.h"
#include "studies/policy_settings.h"

struct fraglab_policy {
    frag_scope *scope; /* all of it lives there */
    frag_policy_spec spec;
};

/* Copies of the caller's policies; what they take from the environment must be there. */
bool frag_call_policies(const frag_context *below, const fraglab_policy *const *given, size_t count,
                        frag_policy_list *policies, frag_error *error);

#endif
