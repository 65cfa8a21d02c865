/* Where in a run something is looked at: the word given to --snapshot-at and its like. */
#ifndef FRAG_RUN_RUN_POINT_H
#define FRAG_RUN_RUN_POINT_H

#include "sim/run.h"

typedef enum frag_run_point_kind {
    FRAG_RUN_POINT_END,
    FRAG_RUN_POINT_PEAK, /* the first event after which reserved bytes have their peak */
    FRAG_RUN_POINT_OOM,  /* the first request that could not be served */
    FRAG_RUN_POINT_EVENT /* after that event of the trace */
} frag_run_point_kind;

typedef struct frag_run_point {
    frag_run_point_kind kind;
    uint64_t event; /* EVENT */
} frag_run_point;

/* "peak", "oom", "end" or the number of an event. FRAG_E_USAGE; the caller names the option. */
bool frag_run_point_parse(const char *text, frag_run_point *point, frag_error *error);

/* Sets where a second run ends, from the result of the first: fills stop_after and is_attempt_kept,
 * and leaves the rest of the options alone. FRAG_E_USAGE when the run has no such point. Then see
 * frag_run_look. */
bool frag_run_point_find(const frag_run_point *point, const frag_trace *trace,
                         const frag_replay_result *first, frag_replay_options *options,
                         frag_error *error);

#endif
