/* The policy of a result row, made again from what the row says. */
#ifndef FRAG_ROWS_ROW_POLICY_H
#define FRAG_ROWS_ROW_POLICY_H

#include "allocators/registry.h"
#include "base/json.h"

/* With every option as in the row, and its label. No file is loaded: the policy of a shared object
 * is refused, like one that this version does not know. */
bool frag_row_policy(const frag_json *row, frag_policy_spec *spec, frag_error *error);

/* The value of an option of a row as it would be typed, cut to size - 1 characters. */
void frag_row_policy_spell(const frag_json_value *value, char *text, size_t size);

#endif
