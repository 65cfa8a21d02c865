/* What a result row says of one run: its inputs, its results, and what was asked for besides. */
#ifndef FRAG_ROWS_ROW_H
#define FRAG_ROWS_ROW_H

#include "base/json.h"
#include "sim/device/gpu_module.h"
#include "sim/replay/memory_stats.h"
#include "sim/run.h"

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

#endif
