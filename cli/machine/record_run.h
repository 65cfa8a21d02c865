/* Running somebody's program under a recorder. */
#ifndef FRAG_MACHINE_RECORD_RUN_H
#define FRAG_MACHINE_RECORD_RUN_H

#include "base/error.h"

typedef struct frag_record_choice {
    bool is_cupti;
    char library[8192]; /* of the recorder */
    const char *reason; /* why this one: goes behind "as" */
} frag_record_choice;

/* by: "preload", "cupti", or NULL: what is there decides. FRAG_E_SYSTEM: the recorder asked for was
 * not built. */
bool frag_record_choose(const char *by, frag_record_choice *choice, frag_error *error);

/* Runs the command (ends with NULL) with logs going to the folder, and waits for it. *code becomes
 * its exit code, 128 + N when signal N ended it; 127 or 126, with the error filled, when it could
 * not be started. Signals that only this process gets are passed on to it. false: this process
 * could not make another one. */
bool frag_record_run(const frag_record_choice *choice, const char *folder, char *const *command,
                     int *code, frag_error *error);

#endif
