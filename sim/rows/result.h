/* Result rows: everything needed to cite and to repeat one run. sim/rows/row_fields.c has the table
 * of their fields.
 *
 * A row is a list of fields named by paths ("peak.reserved_bytes"). JSON Lines is the contract;
 * CSV, Markdown and the table are views of the same fields. */
#ifndef FRAG_ROWS_RESULT_H
#define FRAG_ROWS_RESULT_H

#include <stdio.h>

#include "base/json.h"
#include "base/text_table.h"
#include "sim/rows/row.h"

typedef enum frag_result_format {
    FRAG_RESULT_TABLE,
    FRAG_RESULT_JSONL,
    FRAG_RESULT_CSV,
    FRAG_RESULT_MARKDOWN,
    FRAG_RESULT_FORMAT_COUNT
} frag_result_format;

bool frag_result_format_find(const char *name, frag_result_format *format);

/* Before the first row: the CSV header. */
void frag_result_begin(frag_result_format format, FILE *stream);
void frag_result_write(frag_result_format format, FILE *stream, const frag_row *row);
/* Adds policy.options, every option of the policy with its value, to a row that is being made. */
void frag_result_add_options(frag_json *json, const frag_policy_ops *ops,
                             const frag_option_value *values);

/* CSV rows with a column for each statistic that any of them has: what the columns are is known
 * only once all rows are, so they are kept as text until then. */
typedef struct frag_stats_columns frag_stats_columns;
frag_stats_columns *frag_stats_columns_create(void);
void frag_stats_columns_add(frag_stats_columns *columns, const frag_row *row);
/* Prints header and rows, and frees them. */
void frag_stats_columns_write(frag_stats_columns *columns, FILE *stream);

/* One trace and policy on two devices: where they differ. JSON Lines only; CSV has no such row. */
void frag_result_write_comparison(frag_result_format format, FILE *stream, const frag_row *sim,
                                  const frag_row *gpu);
/* Is it a row of that kind? Who reads rows passes it over: it repeats what two others say. */
bool frag_result_is_comparison(const frag_json *row);
/* Where they differ, for people: one line for each pair, all of one trace. */
void frag_result_compare_table(frag_result_format format, FILE *stream, const frag_row *sim,
                               const frag_row *gpu, size_t count);

/* The table and Markdown views show rows of one trace and device together, and below them the
 * summaries of their statistics. */
void frag_result_table(frag_result_format format, FILE *stream, const frag_row *rows, size_t count);

/* ---- parts of that table, for tables of other commands about one trace */

/* What the rows have in common, above the table: of the row only what it says of trace and device
 * is read. capacity: what is said where the table of runs says what memory the device has. */
void frag_result_table_head(frag_result_format format, FILE *stream, const frag_row *row,
                            const char *capacity);
/* The last lines: the bounds of the row's trace, bytes in the second column, over the first bound
 * in the third. beside_bytes is added to each: what a device must have besides, in tables of
 * capacities. */
void frag_result_table_bounds(frag_text_table *table, const frag_row *row, uint64_t beside_bytes);
/* What the first bound is: "peak requested", or that with a request that failed when recorded. */
const char *frag_result_bound_name(const frag_trace *trace);
/* "event 9,443 (needs 20.00 MiB, largest hole 12.00 MiB)" */
void frag_result_oom_text(frag_text *text, const frag_oom *oom);

#endif
