/* What-if predictions against what happened: a program was dry-run (real PyTorch, software CUDA)
 * under several settings and capacities; one of its recordings, replayed under the settings of
 * another, must end as that one did. */
#ifndef FRAG_STUDIES_PREDICTIONS_H
#define FRAG_STUDIES_PREDICTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "sim/trace/trace.h"

#define FRAG_PREDICTION_NONE UINT64_MAX /* did not happen, or is not known */

typedef enum frag_outcome_field {
    FRAG_OUTCOME_REQUESTS,  /* served, before an OOM or all */
    FRAG_OUTCOME_OOM_BYTES, /* of the request that ended the run, rounded up to 512 */
    FRAG_OUTCOME_OOM_FREE,  /* free bytes of the device then */
    FRAG_OUTCOME_MALLOCS,   /* segments asked for, in vain or not */
    FRAG_OUTCOME_FREES,     /* segments given back */
    FRAG_OUTCOME_REFUSED,   /* mallocs and maps in vain */
    /* statistics that PyTorch keeps, by their names there */
    FRAG_OUTCOME_PEAK_ALLOCATED,
    FRAG_OUTCOME_PEAK_RESERVED,
    FRAG_OUTCOME_PEAK_ACTIVE,
    FRAG_OUTCOME_PEAK_REQUESTED,
    FRAG_OUTCOME_PEAK_SPLIT,
    FRAG_OUTCOME_RESERVED_SUM,
    FRAG_OUTCOME_SEGMENTS,
    FRAG_OUTCOME_OVERSIZE,
    FRAG_OUTCOME_RETRIES,
    FRAG_OUTCOME_OOMS,
    FRAG_OUTCOME_FIELDS,
    FRAG_OUTCOME_FIRST_STAT = FRAG_OUTCOME_PEAK_ALLOCATED
} frag_outcome_field;

/* Columns of the table. */
extern const char *const frag_outcome_names[FRAG_OUTCOME_FIELDS];

/* One dry run, and the recording of another run of that program that is to predict it. */
typedef struct frag_prediction {
    char *recording; /* file, relative to the table */
    char *settings;  /* PYTORCH_CUDA_ALLOC_CONF of that run */
    char *version;   /* its release: 2.9 */
    char *fraction;  /* set_per_process_memory_fraction; "" where it was not called */
    uint64_t capacity_bytes;
    uint32_t device;
    uint64_t outcome[FRAG_OUTCOME_FIELDS];
} frag_prediction;

typedef struct frag_predictions {
    frag_prediction *items;
    size_t count;
    size_t capacity;
    size_t left_out; /* runs that no recording of a folder predicts */
} frag_predictions;

/* The table, a CSV with a header. FRAG_E_INPUT with the line when it is not as written. */
bool frag_predictions_read(const char *path, frag_predictions *predictions, frag_error *error);
void frag_predictions_write(FILE *stream, const frag_predictions *predictions);

/* The runs of a folder: NAME.result.json beside NAME.pickle.zst, NAME being
 * PROGRAM__SETTINGS__CAPACITY__torchVERSION (tests/data/predictions/README.md). The recording that
 * predicts is the one with default settings on the largest device. */
bool frag_predictions_from_folder(const char *folder, frag_predictions *predictions,
                                  frag_error *error);

/* Replays each and prints a line to stream for every field that is not as it was. Returns how many
 * predictions have one; SIZE_MAX and the error when a recording cannot be read or replayed. */
size_t frag_predictions_check(const char *folder, const frag_predictions *predictions, FILE *stream,
                              frag_error *error);

void frag_predictions_destroy(frag_predictions *predictions);

#endif
