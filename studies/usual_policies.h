/* The policies of a command that was given none. */
#ifndef FRAG_STUDIES_USUAL_POLICIES_H
#define FRAG_STUDIES_USUAL_POLICIES_H

#include "studies/policy_settings.h"

/* Those that a reader compares first: the recorded settings, expandable segments, and two other
 * allocators. A setting that the recorded release does not have is left out. The list is destroyed
 * with frag_policy_list_destroy. */
void frag_usual_policies(const frag_recording *recording, frag_policy_list *policies);

/* As frag_policy_resolve, of the policy that was given, or of the first of the usual ones (NULL).
 */
bool frag_usual_policy_resolve(const frag_context *context, const frag_policy_spec *given,
                               const frag_recording *recording, frag_policy_spec *resolved,
                               frag_error *error);

#endif
