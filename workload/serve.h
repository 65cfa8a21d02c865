/* A server of a language model: requests arrive, each with a prompt of its own length, and are
 * answered token by token, several at a time, until all are done. */
#ifndef FRAG_WORKLOAD_SERVE_H
#define FRAG_WORKLOAD_SERVE_H

#include "workload/families/family.h"

void frag_serve(frag_tape *tape, const frag_family *family, const frag_model *model);

#endif
