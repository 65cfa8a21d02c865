/* `fraglab verify --against golden` of one log: reads it, compares, says what was found. */
#ifndef FRAG_VERIFY_GOLDEN_CHECK_H
#define FRAG_VERIFY_GOLDEN_CHECK_H

#include <stdio.h>

#include "studies/verify/golden_compare.h"

/* Filled by frag_golden_check; start from {0}. */
typedef struct frag_golden_check_result {
    frag_golden_result result;
    char torch[16];        /* "": a log of another framework's pool */
    char *library;         /* of such a log; else "" */
    char *conf;            /* the settings of the log */
    frag_policy_spec spec; /* what was compared */
} frag_golden_check_result;

/* spec: pytorch:recorded takes the policy and settings that the log names, whatever framework it is
 * of. name: of the log, for what is printed. false: the log is wrong, the policy refuses its
 * settings, or an audit failed. The caller destroys the result, in either case. */
bool frag_golden_check(frag_input *input, const char *name, const frag_policy_spec *spec,
                       const frag_golden_options *options, frag_golden_check_result *checked,
                       frag_error *error);
void frag_golden_check_destroy(frag_golden_check_result *checked);

/* What a log is called, by its path: without folders, "stdin" for "-". */
const char *frag_golden_check_name(const char *path);

/* The object of `fraglab verify --against golden --format jsonl`, with a newline. */
void frag_golden_check_print_json(FILE *stream, const char *name,
                                  const frag_golden_check_result *checked);

#endif
