/* The tables of fields as a JSON Schema, which `fraglab help --schema` prints. */
#ifndef FRAG_ROWS_RESULT_SCHEMA_H
#define FRAG_ROWS_RESULT_SCHEMA_H

#include <stdio.h>

/* The JSON Schema (draft 2020-12) of all rows of run, sweep and min-capacity. */
void frag_row_schema_write(FILE *stream);

#endif
