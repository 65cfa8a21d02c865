/* The statistics that a policy keeps itself, at one point of a run: `fraglab run --stats-at`. */
#ifndef FRAG_RUN_RUN_STATS_H
#define FRAG_RUN_RUN_STATS_H

#include "sim/rows/row.h"
#include "studies/run/run_point.h"

typedef struct frag_run_stats {
    frag_run_point point;
    const char *text; /* the point as the user named it; NULL: no statistics are asked for */
} frag_run_stats;

/* Has the trace an event of that number, where the point is one? The same for every policy, so that
 * it has not is no result of a run but FRAG_E_USAGE. */
bool frag_run_stats_check(const frag_run_stats *wanted, const frag_trace *trace, frag_error *error);

/* Replays once more, up to the point, with the policy keeping its statistics. run: the options of
 * the run that gave first, its plan included. That a run does not get to the point is a result:
 * problem says why, and lives as long as stats. false: the replay failed, or was cancelled. The
 * caller destroys the values of stats. */
bool frag_run_stats_take(const frag_run_stats *wanted, const frag_run_setup *setup,
                         const frag_run_options *run, const frag_run_result *first,
                         frag_error *problem, frag_row_stats *stats, frag_error *error);

#endif
