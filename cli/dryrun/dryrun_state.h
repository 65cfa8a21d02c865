/* One call of `fraglab dryrun`: what its files share. */
#ifndef FRAG_DRYRUN_DRYRUN_STATE_H
#define FRAG_DRYRUN_DRYRUN_STATE_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/dryrun/dryrun_print.h"
#include "cli/dryrun/dryrun_python.h"
#include "cli/dryrun/dryrun_ranks.h"

typedef struct frag_dryrun {
    const frag_arguments *arguments;
    const frag_context *context;
    frag_dryrun_gpu gpu;
    frag_dryrun_python python;
    frag_dryrun_parts parts;
    frag_text settings; /* of the software CUDA, without its report */
    char **command;     /* ends with NULL */
    size_t command_length;
    uint64_t timeout_ns;
    frag_dryrun_ranks ranks;
    bool has_stacks;
    bool has_low_workspaces;
    const char *environment; /* the folder of a virtual environment to run in; NULL: as it is */
    FILE *log;               /* where the script's output goes; NULL: where ours does */
} frag_dryrun;

/* Finds everything that a run needs, before anything runs. command: count words, which are copied;
 * python: one to take instead of that of the command, or NULL. The caller destroys it, whatever is
 * returned. */
bool frag_dryrun_prepare(frag_dryrun *dryrun, char *const *command, size_t count,
                         const char *python, frag_error *error);
void frag_dryrun_destroy(frag_dryrun *dryrun);

/* The words of a command, which end with NULL. */
char **frag_dryrun_copy_operands(const frag_arguments *arguments);
void frag_dryrun_free_words(char **words);

/* Runs a command once and reads what it left. The folder of that is removed, but recordings that
 * are wanted later: *folder (NULL: remove it) becomes its path, for the caller to remove. */
bool frag_dryrun_once(const frag_dryrun *dryrun, char *const *command, frag_dryrun_result *result,
                      char **folder, frag_error *error);
void frag_dryrun_remove(char *folder);

/* --max (dryrun_max.c): runs with one value after the other; returns the exit code. */
int frag_dryrun_max(const frag_dryrun *dryrun, const char *pattern, FILE *stream);

/* --compare, --policy, --matrix (dryrun_others.c): replays of the recording. false: a policy cannot
 * be used. */
bool frag_dryrun_print_others(const frag_dryrun *dryrun, const frag_dryrun_process *process,
                              FILE *stream, frag_error *error);

/* --baseline (dryrun_others.c): is any peak above that of the file by more than --fail-above? */
bool frag_dryrun_check_baseline(const frag_dryrun *dryrun, const frag_dryrun_result *result,
                                FILE *stream, bool *is_above, frag_error *error);

#endif
