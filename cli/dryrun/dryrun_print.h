/* The answer of a dry run: for a person, or as one JSON object for each process. */
#ifndef FRAG_DRYRUN_DRYRUN_PRINT_H
#define FRAG_DRYRUN_DRYRUN_PRINT_H

#include <stdio.h>

#include "cli/dryrun/dryrun_result.h"

typedef struct frag_dryrun_shown {
    const frag_context *context;
    const frag_dryrun_gpu *gpu;
    const frag_dryrun_result *result;
    const char *conf;    /* NULL: not given */
    const char *command; /* as typed, for the commands to type next */
    bool keeps_recording;
} frag_dryrun_shown;

void frag_dryrun_print_text(FILE *stream, const frag_dryrun_shown *shown);
/* Of the card, beside context and peak reserved, and beside other processes on it. */
uint64_t frag_dryrun_left(const frag_dryrun_gpu *gpu, const frag_dryrun_process *process);
/* Memory ran out because other processes held so much of the card: alone it would have fitted, and
 * no setting of this process helps. */
bool frag_dryrun_is_crowded(const frag_dryrun_process *process);
/* The fields of docs/dry-run.md, "Fields". */
void frag_dryrun_print_json(FILE *stream, const frag_dryrun_shown *shown);

#endif
