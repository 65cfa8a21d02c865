/* What is concluded of a message, as one JSON object: the fields of docs/explain.md, "Fields". */
#ifndef FRAG_EXPLAIN_EXPLAIN_JSON_H
#define FRAG_EXPLAIN_EXPLAIN_JSON_H

#include <stdio.h>

#include "base/json.h"
#include "studies/explain/advice.h"

/* Everything is borrowed. best is one of messages, or NULL. */
typedef struct frag_explained {
    const frag_messages *messages;
    const frag_message *best;
    const frag_diagnosis *diagnosis;
    const frag_advice *advice;
} frag_explained;

void frag_explain_print_json(FILE *stream, const frag_explained *explained);

/* ---- parts that the explanation of a recording shares */

/* Begins an object with schema, tool, verdict, confidence and why. */
frag_json *frag_explain_begin_json(const char *kind, const frag_diagnosis *diagnosis);
void frag_explain_add_advice(frag_json *json, const frag_advice *advice);

#endif
