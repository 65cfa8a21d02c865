/* Work in a child process, for what may end a process or leave it broken: a CUDA context that one
 * bad call has poisoned serves nothing any more. */
#ifndef FRAG_CLI_CHILD_H
#define FRAG_CLI_CHILD_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* What it writes to stream comes back. It shares nothing else with its parent but open files. */
typedef void frag_child_work(void *context, FILE *stream);

/* Call it while no other thread runs. *bytes is the caller's to free. An interrupt is passed on,
 * and a child that does not heed it is killed. false: the child did not end by itself
 * (FRAG_E_SYSTEM, with how it ended). */
bool frag_child_run(frag_child_work *work, void *context, unsigned char **bytes, size_t *count,
                    frag_error *error);

#endif
