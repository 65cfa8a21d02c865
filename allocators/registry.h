/* The table of policies, and policies as the user names them: "name:key=value,...". */
#ifndef FRAG_ALLOCATORS_REGISTRY_H
#define FRAG_ALLOCATORS_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/policy.h"

/* Every policy, in the order of lists and tables; ends with NULL. Adding one is one line. */
extern const frag_policy_ops *const frag_policy_table[];

const frag_policy_ops *frag_policy_find(const char *name);
/* As find; a name that ends in .so is loaded from that file. NULL: FRAG_E_USAGE with the nearest
 * name, or FRAG_E_INPUT when the file is no policy. */
const frag_policy_ops *frag_policy_find_or_load(const char *name, frag_error *error);
/* Is all in the table of a shared object that other code reads without a question? false:
 * FRAG_E_INPUT names what is missing. */
bool frag_policy_export_check(const frag_policy_export *export, frag_error *error);
uint32_t frag_policy_option_count(const frag_policy_ops *ops);
/* The place of an option in the table of the policy; their count: there is no such option. */
uint32_t frag_policy_option_find(const frag_policy_ops *ops, const char *key);

/* A policy with the value of every option. */
typedef struct frag_policy_spec {
    const frag_policy_ops *ops;
    frag_option_value *values; /* one per option, texts owned by the spec */
    uint32_t value_count;
    char *text;          /* as typed, or the label given by the user: names rows */
    bool wants_recorded; /* "NAME:recorded": take the recording's settings (frag_policy_spec_apply)
                          */
    bool wants_env;      /* "NAME:env": take those of the environment */
} frag_policy_spec;

/* Parses one policy. FRAG_E_USAGE with the nearest name when a name or key is unknown, a value does
 * not parse or is out of range. */
bool frag_policy_spec_parse(const char *text, frag_policy_spec *spec, frag_error *error);
bool frag_policy_spec_copy(const frag_policy_spec *from, frag_policy_spec *to);
void frag_policy_spec_destroy(frag_policy_spec *spec);
void frag_policy_spec_label(frag_policy_spec *spec, const char *label);

/* Sets options from "key=value,..." or "key:value,...". For a policy with a conf_option, what is
 * written with a colon is a literal settings string: it is kept whole in that option, and read when
 * the policy is created, as the release does. */
bool frag_policy_spec_apply(frag_policy_spec *spec, const char *options, frag_error *error);
bool frag_policy_spec_set(frag_policy_spec *spec, const char *key, const char *value,
                          frag_error *error);
/* The value of one option, and its text. NULL: there is no such option. */
const frag_option_value *frag_policy_spec_value(const frag_policy_spec *spec, const char *key);
const char *frag_policy_spec_text(const frag_policy_spec *spec, const char *key);
/* Takes a whole settings string that was found somewhere (a recording, the environment); what the
 * user wrote wins over it. The policy must have a conf_option. */
void frag_policy_spec_take(frag_policy_spec *spec, const char *conf);

/* Parses what --policy takes: one policy with options, or bare names joined by commas, or "all".
 * Appends to *specs. */
bool frag_policy_specs_parse(const char *text, frag_policy_spec **specs, size_t *count,
                             frag_error *error);
void frag_policy_specs_destroy(frag_policy_spec *specs, size_t count);

#endif
