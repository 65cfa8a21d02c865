/* What `fraglab explain` says of recordings against what happened: programs were dry-run (real
 * PyTorch, software CUDA) under other settings on devices of the same size. */
#ifndef FRAG_STUDIES_EXPLAIN_TRUTH_H
#define FRAG_STUDIES_EXPLAIN_TRUTH_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "tests/studies/predictions.h"

typedef struct frag_explain_truth {
    size_t explained;   /* recordings or rows that were explained */
    size_t reproduced;  /* of recordings that ran out: at the same request */
    size_t fits_right;  /* said to fit, and did */
    size_t fails_right; /* said to fail, and did */
    size_t wrong;       /* said one and did the other */
    size_t past_fits;   /* said to get past the failure, and went on to fit */
    size_t past_fails;  /* said to get past the failure, and failed later: no claim was made */
} frag_explain_truth;

/* Every row of the table whose settings explain tries: with its capacity, does it fit? Says to
 * stream what was wrong. false: a recording cannot be explained. */
bool frag_explain_predictions(const char *folder, const frag_predictions *predictions, FILE *stream,
                              frag_explain_truth *truth, frag_error *error);

/* Every run of a folder (its form: tests/data/predictions/README.md) that ran out of memory: alone,
 * and with the rest from a run of the same program that did not. */
bool frag_explain_folder(const char *folder, FILE *stream, frag_explain_truth *truth,
                         frag_error *error);

#endif
