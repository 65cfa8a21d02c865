/* Policies behind their handle. */
#ifndef FRAG_API_API_POLICY_H
#define FRAG_API_API_POLICY_H

#include "allocators/registry.h"
#include "api/api_call.h"

struct fraglab_policy {
    frag_scope *scope; /* all of it lives there */
    frag_policy_spec spec;
};

#endif
