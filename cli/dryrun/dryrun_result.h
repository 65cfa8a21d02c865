/* What the processes of a dry run left, read and judged. */
#ifndef FRAG_DRYRUN_DRYRUN_RESULT_H
#define FRAG_DRYRUN_DRYRUN_RESULT_H

#include "cli/dryrun/dryrun_start.h"
#include "studies/dryrun/dryrun_replay.h"

typedef enum frag_dryrun_fits {
    FRAG_DRYRUN_FITS,
    FRAG_DRYRUN_FITS_NOT,
    FRAG_DRYRUN_FITS_UNKNOWN
} frag_dryrun_fits;

/* One that used CUDA: a rank, or the only one. */
typedef struct frag_dryrun_process {
    frag_dryrun_facts facts;
    frag_recording recording;
    bool has_recording;
    char *path;                  /* of the recording: in the folder, later where -o put it */
    frag_dryrun_answer *answers; /* one for each trace of the recording */
    const frag_trace *main; /* the device with the greatest peak; NULL: nothing was requested */
    const frag_dryrun_answer *answer; /* of that device */
    frag_dryrun_fits fits;            /* on all its devices */
} frag_dryrun_process;

typedef struct frag_dryrun_result {
    frag_dryrun_process *processes; /* by rank, then those with most requests first */
    size_t count;
    frag_dryrun_end end;
    frag_dryrun_fits fits;
    /* A second run, with the uncertain sizes at their lower end. */
    bool is_low_run;
    frag_dryrun_fits low_fits;
    uint64_t low_reserved_bytes;
} frag_dryrun_result;

/* Reads the folder. A recording that cannot be read is an error; none at all is not. */
bool frag_dryrun_collect(const frag_context *context, const char *folder,
                         const frag_dryrun_gpu *gpu, frag_dryrun_result *result, frag_error *error);
/* The card, or what the script let PyTorch have of it when memory ran out. */
frag_dryrun_card frag_dryrun_limited(const frag_dryrun_gpu *gpu, const frag_dryrun_facts *facts);
void frag_dryrun_result_destroy(frag_dryrun_result *result);

#endif
