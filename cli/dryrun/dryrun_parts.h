/* Finds what a dry run puts into the script's processes. */
#ifndef FRAG_DRYRUN_DRYRUN_PARTS_H
#define FRAG_DRYRUN_DRYRUN_PARTS_H

#include "base/error.h"
#include "base/text.h"

/* Where the parts of fraglab are that a dry run puts into the script's processes. */
typedef struct frag_dryrun_parts {
    char *site;         /* the folder for PYTHONPATH */
    char *tools;        /* for PATH: nvidia-smi */
    char *probe;        /* probe.py */
    char *environments; /* environments.py, of fraglab bisect */
    frag_text preload;  /* the CUDA libraries, with colons between them */
    frag_text driver;   /* the folder of libcuda.so.1, for Triton */
    frag_text foreign;  /* their folder, if they were built from other sources than this fraglab */
} frag_dryrun_parts;

/* What is no library; the libraries follow when the release is known. */
bool frag_dryrun_parts_find(frag_dryrun_parts *parts, frag_error *error);
/* The libraries that stand for CUDA `major`; folder: where they are, with their list `preload`, or
 * NULL: those of this fraglab. */
bool frag_dryrun_parts_find_libraries(frag_dryrun_parts *parts, uint64_t major, const char *folder,
                                      frag_error *error);
void frag_dryrun_parts_destroy(frag_dryrun_parts *parts);

#endif
