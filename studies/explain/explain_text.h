/* What `fraglab explain` says about a message, for a person. */
#ifndef FRAG_EXPLAIN_EXPLAIN_TEXT_H
#define FRAG_EXPLAIN_EXPLAIN_TEXT_H

#include <stdio.h>

#include "studies/explain/explain_json.h"

void frag_explain_print_text(FILE *stream, const frag_explained *explained);

/* Reads the messages of a text and prints what is concluded of them, by one of both printers. */
void frag_explain_message(FILE *stream, const char *text, size_t length,
                          void (*print)(FILE *stream, const frag_explained *explained));

/* Parts that the explanation of a recording shares. is_simulated: of a device of some size, not of
 * what happened on a GPU. */
void frag_explain_print_verdict(FILE *stream, const frag_diagnosis *diagnosis, bool is_simulated);
void frag_explain_print_steps(FILE *stream, const frag_advice *advice);

#endif
