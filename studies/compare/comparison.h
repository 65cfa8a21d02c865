/* Result rows before and after a change, metric by metric.
 *
 * Rows of two files belong together when trace, device ordinal, policy label and device agree; they
 * can be compared when the trace's content and the device's parameters agree too. A run is a
 * function of its inputs, so equal programs give equal rows and every difference has a cause in the
 * program. What cannot be compared is a result of its own, never left out. Which direction is
 * better is said by the tables of sim/rows/row_fields.c; a field that they do not have is no
 * metric. */
#ifndef FRAG_COMPARE_COMPARISON_H
#define FRAG_COMPARE_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "sim/rows/row_fields.h"

/* A metric is worse when it moved the wrong way by more than both. */
typedef struct frag_threshold {
    const char *pattern; /* of metrics: a path, or its beginning before a final '*' */
    double ratio;        /* of the base's value; 0.01 is 1 % */
    double amount;       /* in the metric's own unit */
} frag_threshold;

/* Did a figure grow by more than both the ratio and the amount? */
static inline bool frag_threshold_is_exceeded(const frag_threshold *allowed, uint64_t before,
                                              uint64_t after)
{
    double more = (double)after - (double)before;
    return after > before && more > allowed->amount && more > allowed->ratio * (double)before;
}

typedef enum frag_verdict {
    FRAG_VERDICT_SAME,    /* equal */
    FRAG_VERDICT_WITHIN,  /* not more than the threshold */
    FRAG_VERDICT_BETTER,  /* beyond it */
    FRAG_VERDICT_WORSE,   /* beyond it */
    FRAG_VERDICT_UNKNOWN, /* one of the two does not say */
    FRAG_VERDICT_COUNT
} frag_verdict;
const char *frag_verdict_name(frag_verdict verdict);

typedef struct frag_compared_metric {
    char path[96];
    frag_direction direction;
    bool has_base;
    bool has_now;
    double base;
    double now;
    double change_ratio; /* (now - base) / base; 0 when either is unknown, INFINITY from 0 */
    frag_verdict verdict;
    frag_threshold threshold; /* that was applied */
} frag_compared_metric;

/* A row of the base, one of the new results, or both. Texts belong to the comparison. */
typedef struct frag_compared_row {
    const char *trace; /* name, with the device behind it where it is not 0 */
    const char *policy;
    const char *device;
    const char *problem; /* why it cannot be compared; NULL: it was */
    const char *note;    /* what else differs; NULL: nothing */
    bool is_missing;     /* only in the base */
    bool is_new;         /* only in the new results */
    frag_compared_metric *metrics;
    size_t metric_count;
    uint64_t verdicts[FRAG_VERDICT_COUNT];
} frag_compared_row;

typedef struct frag_comparison {
    frag_compared_row *rows; /* in the base's order, then those that are new */
    size_t row_count;
    uint64_t compared; /* rows */
    uint64_t problems; /* rows of the base that could not be, the missing ones included */
    uint64_t fresh;    /* rows that are new */
    uint64_t verdicts[FRAG_VERDICT_COUNT]; /* metrics */
    void *kept;                            /* what the texts live in */
} frag_comparison;

typedef struct frag_comparison_options {
    frag_threshold general;
    const frag_threshold *thresholds; /* the last that matches counts */
    size_t threshold_count;
    const char *const *metrics; /* patterns; none: every metric */
    size_t metric_count;
} frag_comparison_options;

/* Reads two files of result rows (JSON Lines; "-" is stdin) and compares them. false: FRAG_E_INPUT
 * with file and line. The caller destroys. */
bool frag_comparison_read(const char *base_path, const char *now_path,
                          const frag_comparison_options *options, frag_comparison *comparison,
                          frag_error *error);
/* As read, of inputs that are open, and stay so. */
bool frag_comparison_read_inputs(frag_input *base, frag_input *now,
                                 const frag_comparison_options *options,
                                 frag_comparison *comparison, frag_error *error);
void frag_comparison_destroy(frag_comparison *comparison);

/* Is something worse, or are there rows of the base that could not be compared, where that is a
 * fault? */
bool frag_comparison_has_finding(const frag_comparison *comparison, bool is_missing_a_fault);

/* Does the path match the pattern? */
bool frag_metric_matches(const char *pattern, const char *path);

#endif
