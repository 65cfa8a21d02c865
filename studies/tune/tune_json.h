/* What was found for a policy, as one JSON object: the fields of docs/tune.md. */
#ifndef FRAG_TUNE_TUNE_JSON_H
#define FRAG_TUNE_TUNE_JSON_H

#include <stdio.h>

#include "studies/tune/tune.h"

void frag_tune_print_json(FILE *stream, const frag_tuned *tuned);

#endif
