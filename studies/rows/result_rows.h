/* Result rows read back from a file of JSON Lines, as `fraglab run` and `fraglab sweep` write them:
 * for every view that a fresh row has. */
#ifndef FRAG_ROWS_RESULT_ROWS_H
#define FRAG_ROWS_RESULT_ROWS_H

#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "sim/device/device_description.h"
#include "sim/rows/result.h"

/* Rows of one trace on one device, which a table shows together. */
typedef struct frag_row_group {
    frag_trace trace; /* what the rows say of it; it has no events */
    frag_device_spec device;
    frag_device_description gpu;
    frag_row_gpu card;
} frag_row_group;

typedef struct frag_stored_row {
    frag_json *json;
    char *line; /* as it was read */
    frag_row_group *group;
    frag_run_result result; /* as far as a row tells */
    frag_row_packing packing;
    frag_policy_ops ops; /* no more than its name */
    frag_row row;
} frag_stored_row;

typedef struct frag_stored_rows {
    frag_stored_row **items; /* in order of the file */
    size_t count;
    size_t capacity;
    frag_row_group **groups; /* in order of their first row */
    size_t group_count;
    size_t group_capacity;
} frag_stored_rows;

/* Does the input begin with a row? It can be read from its start afterwards. */
bool frag_stored_rows_detect(frag_input *input, bool *is_one, frag_error *error);
/* Appends the rows of a file. Rows of other commands are refused. false: FRAG_E_INPUT with the
 * line; the input's name is left to the caller. */
bool frag_stored_rows_read(frag_input *input, frag_stored_rows *rows, frag_error *error);
void frag_stored_rows_destroy(frag_stored_rows *rows);

/* As the command that computed the rows prints them. */
void frag_stored_rows_print(const frag_stored_rows *rows, frag_result_format format, FILE *stream);

#endif
