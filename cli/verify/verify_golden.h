/* `fraglab verify --against golden`: a policy against logs of allocator libraries themselves. */
#ifndef FRAG_VERIFY_VERIFY_GOLDEN_H
#define FRAG_VERIFY_VERIFY_GOLDEN_H

#include "cli/inputs.h"

/* The operands are logs, or folders of them. Prints a line that sums up, then one for each log when
 * there are several, and each log's first difference; with is_json one object for each log instead.
 * Returns the exit code. */
int frag_verify_golden(const frag_arguments *arguments, const frag_policy_spec *spec, bool is_json,
                       uint32_t threads);

#endif
