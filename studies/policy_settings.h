/* Lists of policies, and policies made complete for one recording: pytorch:recorded takes the
 * settings that the recording holds, pytorch:env those of the environment. */
#ifndef FRAG_STUDIES_POLICY_SETTINGS_H
#define FRAG_STUDIES_POLICY_SETTINGS_H

#include "allocators/registry.h"
#include "base/context.h"
#include "sim/trace/trace.h"

typedef struct frag_policy_list {
    frag_policy_spec *specs;
    size_t count;
} frag_policy_list;

void frag_policy_list_destroy(frag_policy_list *policies);

/* false: the policy wants the settings of the environment, and no release would find any there. */
bool frag_policy_check_environment(const frag_context *context, const frag_policy_spec *spec,
                                   frag_error *error);

/* The policy as it is for one recording: with its settings when it asked for them. The copy is the
 * caller's. */
bool frag_policy_resolve(const frag_context *context, const frag_policy_spec *spec,
                         const frag_recording *recording, frag_policy_spec *resolved,
                         frag_error *error);

#endif
