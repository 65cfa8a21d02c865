/* Groups of requests, with names that another run of the program, other releases of its libraries
 * and moved lines share: functions and files without lines or folders. */
#ifndef FRAG_DIFF_USE_GROUPS_H
#define FRAG_DIFF_USE_GROUPS_H

#include "sim/trace/trace.h"

typedef enum frag_use_grouping {
    FRAG_USES_BY_SITE,    /* the frame that names the stack, and the innermost */
    FRAG_USES_BY_STACK,   /* the whole stack */
    FRAG_USES_BY_PURPOSE, /* what the memory is for, as far as the stack tells */
    FRAG_USES_BY_SIZE     /* requested bytes */
} frag_use_grouping;

typedef struct frag_use_name {
    /* By site: the frame that names it, mostly the script's: "step (train.py)". Else the group:
     * "a (x.py);b (y.py)" from the outermost frame inwards, "weights", "blocks of 1.50 MiB". */
    char *caller;
    char *inner; /* by site the innermost frame: "forward (torch/nn/modules/linear.py)"; else "" */
    uint32_t site; /* one of the group's; 0 by size */
    /* By site and by stack: as of frag_site_has_place, of one of the group's; else true. */
    bool has_place;
} frag_use_name;

typedef struct frag_use_groups {
    const frag_trace *trace;
    frag_use_name *names; /* by caller, then inner */
    size_t count;
    uint32_t *of_site; /* NULL: by size */
    uint64_t *sizes;   /* by size: each once, rising */
    uint32_t *of_size; /* the group of each of them */
} frag_use_groups;

/* The recording and its trace outlive the groups, which the caller destroys. */
void frag_use_groups_create(const frag_recording *recording, const frag_trace *trace,
                            frag_use_grouping grouping, frag_use_groups *groups);
void frag_use_groups_destroy(frag_use_groups *groups);

/* Can requests of the trace be told by their call stacks? */
bool frag_use_has_stacks(const frag_recording *recording, const frag_trace *trace);

/* Is the event a request that was served? */
bool frag_use_is_served(const frag_event *event);
/* The group of such an event. */
uint32_t frag_use_group(const frag_use_groups *groups, uint64_t event);

#endif
