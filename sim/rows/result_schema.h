/* The fields of every kind of result row in one table: type, unit, meaning. `fraglab help --schema`
 * prints it as a JSON Schema; rows are checked against it while they are written. */
#ifndef FRAG_ROWS_RESULT_SCHEMA_H
#define FRAG_ROWS_RESULT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define FRAG_SCHEMA_RUN "fraglab.run/1"
#define FRAG_SCHEMA_COMPARISON "fraglab.comparison/1"
#define FRAG_SCHEMA_MIN_CAPACITY "fraglab.min-capacity/1"
#define FRAG_SCHEMA_REFUSED "fraglab.refused/1"

typedef enum frag_row_type {
    FRAG_ROW_TEXT,
    FRAG_ROW_COUNT,
    FRAG_ROW_BYTES,
    FRAG_ROW_NS,
    FRAG_ROW_SIGNED,       /* a count that may be below zero */
    FRAG_ROW_SIGNED_BYTES, /* bytes, likewise */
    FRAG_ROW_RATIO,
    FRAG_ROW_FLAG,
    FRAG_ROW_NULL /* reserved: always null */
} frag_row_type;

typedef struct frag_row_field {
    const char *path; /* "peak.reserved_bytes": at most one object deep */
    frag_row_type type;
    bool is_nullable;
    const char *meaning;
} frag_row_field;

/* The field at this place of a row of a run, options of the policy not counted. NULL: the row ends
 * before it. */
const frag_row_field *frag_row_field_at(size_t index);

/* The JSON Schema (draft 2020-12) of all rows of run, sweep and min-capacity. */
void frag_row_schema_write(FILE *stream);

#endif
