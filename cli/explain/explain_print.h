/* What `fraglab explain` says about a message: for a person, or as one JSON object. */
#ifndef FRAG_EXPLAIN_EXPLAIN_PRINT_H
#define FRAG_EXPLAIN_EXPLAIN_PRINT_H

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

void frag_explain_print_text(FILE *stream, const frag_explained *explained);

/* The fields of docs/explain.md, "Fields". */
void frag_explain_print_json(FILE *stream, const frag_explained *explained);

/* Parts that the explanation of a recording shares. */
void frag_explain_print_verdict(FILE *stream, const frag_diagnosis *diagnosis);
void frag_explain_print_steps(FILE *stream, const frag_advice *advice);
/* Begins an object with schema, tool, verdict, confidence and why. */
frag_json *frag_explain_begin_json(const char *kind, const frag_diagnosis *diagnosis);
void frag_explain_add_advice(frag_json *json, const frag_advice *advice);
/* Text broken into lines of at most 96 columns; those after the first are indented. */
void frag_explain_wrap(FILE *stream, const char *text, unsigned indent);

#endif
