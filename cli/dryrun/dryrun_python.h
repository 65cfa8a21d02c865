/* Which Python a command runs, and which PyTorch that would import. */
#ifndef FRAG_DRYRUN_DRYRUN_PYTHON_H
#define FRAG_DRYRUN_DRYRUN_PYTHON_H

#include "base/error.h"
#include "base/text.h"

typedef struct frag_dryrun_python {
    char program[512];
    char version[32]; /* of Python */
    char torch[64];   /* "2.9.1+cu128" */
    char cuda[16];    /* "12.8" */
    uint64_t major;   /* of CUDA: 12 or 13 */
} frag_dryrun_python;

/* Asks the Python of the command (ends with NULL), which is the word named python in it ("uv run
 * python train.py"), that of the script's first line, or python3 of PATH; given: another one, or
 * NULL. It is run once, without importing torch. false: there is no Python, it has no PyTorch, or
 * one that a dry run cannot run. */
bool frag_dryrun_find_python(char *const *command, const char *given, const char *probe,
                             frag_dryrun_python *python, frag_error *error);

/* Runs a script of ours by the Python of the command, or by the given one, with further arguments
 * (they end with NULL), and reads what it prints; its messages go where ours do. *code is that of
 * its end. false: there is no Python. */
bool frag_dryrun_ask_python(char *const *command, const char *given, char *const *script,
                            frag_text *text, int *code, frag_error *error);

/* A command that starts Python with -I, -E or -S, which leave PYTHONPATH or site out: a dry run
 * cannot get in. false: an error says so. */
bool frag_dryrun_check_options(char *const *command, frag_error *error);

/* Is it "python", "python3.11", "/x/bin/python"? */
bool frag_dryrun_is_python(const char *word);

#endif
