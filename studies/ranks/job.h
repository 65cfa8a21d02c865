/* The ranks of one job, measured from its recordings as people name them: files, folders, or one
 * recording of several devices. */
#ifndef FRAG_RANKS_JOB_H
#define FRAG_RANKS_JOB_H

#include "studies/ranks/world_rank.h"
#include "traces/load.h"

/* Paths of the files in a folder that have .pickle, .pkl or .fgt in their names, by the numbers of
 * their ranks. The caller destroys with frag_folder_names_destroy. NULL: a folder that cannot be
 * read or holds none. */
char **frag_job_folder(const char *folder, size_t *count, frag_error *error);

typedef struct frag_job_sources {
    const char *const *operands; /* files and folders */
    size_t operand_count;
    frag_trace_format format;                /* of the files */
    const frag_recording *const *recordings; /* open, with call sites: ranks in their order, */
    size_t recording_count;                  /* numbered behind those of the files */
    uint32_t threads;                        /* that load and replay files */
} frag_job_sources;

typedef struct frag_job {
    frag_world_rank *ranks; /* in the order of the sources */
    size_t count;           /* 2 or more, once measured */
} frag_job;

/* Of a folder those files are ranks that have .pickle, .pkl or .fgt in their names; of one
 * recording alone every device that requests something. false: a folder that cannot be read or
 * holds none, a file that cannot be read, fewer than two ranks, a cancelled context. The caller
 * destroys, either way. */
bool frag_job_measure(const frag_job_sources *sources, const frag_world_options *options,
                      frag_job *job, frag_error *error);
void frag_job_destroy(frag_job *job);

#endif
