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
#include "sim/device/gpu_module.h"
#include "sim/replay/memory_stats.h"
#include "sim/run.h"

typedef enum frag_result_format {
    FRAG_RESULT_TABLE,
    FRAG_RESULT_JSONL,
    FRAG_RESULT_CSV,
    FRAG_RESULT_MARKDOWN,
    FRAG_RESULT_FORMAT_COUNT
} frag_result_format;

bool frag_result_format_find(const char *name, frag_result_format *format);

/* The policy's own statistics at one point of the run. */
typedef struct frag_row_stats {
    frag_stats values;   /* none: the policy keeps none, or the run ended before the point */
    uint64_t event;      /* they stand as right after this event; FRAG_UNLIMITED: there are none */
    const char *point;   /* as the user named it: "peak" */
    const char *problem; /* why the run ended before the point; "" */
} frag_row_stats;

/* The card of a run on a real one. */
typedef struct frag_row_gpu {
    uint32_t ordinal;
    frag_gpu_facts facts;
    frag_gpu_report report;
    const char *limit; /* what refuses: "card", "budget" or "ballast" */
    bool is_touched;
} frag_row_gpu;

/* The best packing of a trace that was found: what a policy that knows the future needs. */
typedef struct frag_row_packing {
    uint64_t bytes;
    bool is_proved; /* no packing is lower */
} frag_row_packing;

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
    const frag_row_gpu *gpu; /* NULL: the simulated device */
    const frag_run_result *result;
    bool has_timing; /* false: wall time is left out, so that equal commands print equal bytes */
    const frag_row_packing *packing; /* NULL: not asked for */
    const frag_row_stats *stats;     /* NULL: not asked for; the row has no fields for them */
    /* Of a row that was read from a file; NULL: of a fresh one. */
    const frag_json *stored;  /* says every field; the parts above only what runs keep */
    const char *options_text; /* the policy's options, "key=value;key=value" */
} frag_row;

/* ---- the two figures that rows, tables and pages show of a run; docs/metrics.md has the rule */

/* Peak reserved over the bound of the trace, less 1. false: there is none, because a request was
 * not served or nothing is requested. */
bool frag_row_over_bound(const frag_row *row, double *ratio);
/* Peak allocated over peak reserved, of what was served. false: nothing was reserved. */
bool frag_row_utilisation(const frag_row *row, double *ratio);

/* Before the first row: the CSV header. */
void frag_result_begin(frag_result_format format, FILE *stream);
void frag_result_write(frag_result_format format, FILE *stream, const frag_row *row);

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
