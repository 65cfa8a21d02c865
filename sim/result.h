/* Result rows: everything needed to cite and to repeat one run. docs/result-format.md lists the
 * fields.
 *
 * A row is a list of fields named by paths ("peak.reserved_bytes"). JSON Lines is the contract;
 * CSV, Markdown and the table are views of the same fields. */
#ifndef FRAG_SIM_RESULT_H
#define FRAG_SIM_RESULT_H

#include <stdio.h>

#include "sim/run.h"

typedef enum frag_result_format {
    FRAG_RESULT_TABLE,
    FRAG_RESULT_JSONL,
    FRAG_RESULT_CSV,
    FRAG_RESULT_MARKDOWN,
    FRAG_RESULT_FORMAT_COUNT
} frag_result_format;

bool frag_result_format_find(const char *name, frag_result_format *format);

/* What a row says besides what the run gave. Texts are borrowed for the life of the row. */
typedef struct frag_row {
    const char *tool_version;
    const char *tool_commit;
    const char *trace_name;
    const frag_trace *trace;
    const char *recorded_by; /* "torch 2.9", NULL when unknown */
    const frag_policy_ops *ops;
    const frag_option_value *values;
    const char *label;
    const frag_device_spec *device;
    const frag_run_result *result;
    bool has_timing; /* false: wall time is left out, so that equal commands print equal bytes */
} frag_row;

/* Before the first row: the CSV header. */
void frag_result_begin(frag_result_format format, FILE *stream);
void frag_result_write(frag_result_format format, FILE *stream, const frag_row *row);

/* The table and Markdown views show rows of one trace together. */
void frag_result_table(frag_result_format format, FILE *stream, const frag_row *rows, size_t count);

#endif
