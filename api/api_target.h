/* Where a call of the library writes: to a file that takes its place when it is whole, or to memory
 * that becomes the caller's. */
#ifndef FRAG_API_API_TARGET_H
#define FRAG_API_API_TARGET_H

#include <stdio.h>

#include "api/api_call.h"

typedef struct frag_target {
    const char *path; /* NULL: to memory */
    bool may_overwrite;
    char *bytes; /* filled: of the caller */
    size_t count;
} frag_target;

/* Writes it all; errors of the stream are found by who asked. false: nothing of it stays. */
typedef bool frag_target_writer(void *state, FILE *stream, frag_error *error);

/* To be the last thing that the work of a call does. */
bool frag_target_write(frag_target *target, frag_target_writer *write, void *state,
                       frag_error *error);

#endif
