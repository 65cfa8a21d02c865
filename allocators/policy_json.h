/* What is said of policies in JSON, and the parts of it that their pages show too. */
#ifndef FRAG_ALLOCATORS_POLICY_JSON_H
#define FRAG_ALLOCATORS_POLICY_JSON_H

#include <stdio.h>

#include "base/text.h"
#include "sim/policy.h"

/* What may be written: "1 to 64", "best|first". */
void frag_option_add_range(frag_text *text, const frag_option *option);

/* The choices in the order of the struct, under the names that pages and rows give them. */
typedef struct frag_named_rule {
    const char *name;
    const char *text;
    const char *label; /* for people */
} frag_named_rule;

enum { FRAG_POLICY_RULE_COUNT = 6 };

void frag_policy_name_rules(const frag_policy_rules *rules,
                            frag_named_rule named[FRAG_POLICY_RULE_COUNT]);

/* One object on a line: name, source, rules, options with defaults and ranges. */
void frag_policy_write_json(const frag_policy_ops *policy, FILE *stream);

#endif
