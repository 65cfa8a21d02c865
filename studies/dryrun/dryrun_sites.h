/* Who holds the memory at one event of a recording with call stacks, in words that another release
 * of the program's libraries shares: functions and files without lines or folders. */
#ifndef FRAG_DRYRUN_DRYRUN_SITES_H
#define FRAG_DRYRUN_DRYRUN_SITES_H

#include "sim/trace/trace.h"

typedef struct frag_dryrun_site {
    char *caller; /* the frame that names the stack, mostly the script's: "step (train.py)" */
    char *inner;  /* the innermost: "forward (torch/nn/modules/linear.py)" */
    uint64_t bytes;
    uint64_t count; /* of blocks */
} frag_dryrun_site;

typedef struct frag_dryrun_sites {
    frag_dryrun_site *items; /* by caller, then inner */
    size_t count;
} frag_dryrun_sites;

/* What is live when the event is over. The caller destroys it. */
void frag_dryrun_sites_look(const frag_recording *recording, const frag_trace *trace,
                            uint64_t event, frag_dryrun_sites *sites);
void frag_dryrun_sites_destroy(frag_dryrun_sites *sites);

/* Of one call site, or of a caller with all of its inner ones. */
typedef struct frag_dryrun_site_change {
    const char *caller;
    const char *inner; /* NULL: all of the caller's */
    uint64_t bytes_before;
    uint64_t bytes_after;
    uint64_t count_before;
    uint64_t count_after;
} frag_dryrun_site_change;

/* Callers that hold more or less than before, the largest change first, each followed by its call
 * sites that do; both sites outlive the changes. The caller frees *changes. Returns how many. */
size_t frag_dryrun_sites_compare(const frag_dryrun_sites *before, const frag_dryrun_sites *after,
                                 frag_dryrun_site_change **changes);

/* The event after which most is live: with sizes as requested, or rounded as PyTorch rounds them.
 */
uint64_t frag_dryrun_peak_event(const frag_trace *trace, bool is_rounded);

#endif
