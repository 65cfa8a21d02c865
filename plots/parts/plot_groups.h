/* How figures group requests: by call site, purpose, stream, pool or size. */
#ifndef FRAG_PARTS_PLOT_GROUPS_H
#define FRAG_PARTS_PLOT_GROUPS_H

#include "sim/trace/trace.h"

typedef enum frag_grouping {
    FRAG_GROUP_SITE,
    FRAG_GROUP_PURPOSE, /* as far as the call stack tells it */
    FRAG_GROUP_STREAM,
    FRAG_GROUP_POOL,
    FRAG_GROUP_SIZE_CLASS /* powers of two */
} frag_grouping;

typedef struct frag_groups {
    frag_grouping grouping;
    const frag_recording *recording; /* outlives the groups */
    const frag_trace *trace;
    uint32_t count;    /* keys are below this */
    uint32_t *of_site; /* by call site: its frame, or its purpose; NULL for others */
} frag_groups;

void frag_groups_create(frag_groups *groups, frag_grouping grouping,
                        const frag_recording *recording, const frag_trace *trace);
void frag_groups_destroy(frag_groups *groups);

/* Of a request: the key of its group. */
uint32_t frag_groups_of_event(const frag_groups *groups, uint64_t alloc_event);
/* Of a call site, where sites or purposes are the groups. */
uint32_t frag_groups_of_site(const frag_groups *groups, uint32_t site);

/* "forward (model.py:10)", "weights", "stream 0x0", "pool 1:0", "≤ 2 MiB"; at most so many
 * characters. */
void frag_groups_text(const frag_groups *groups, uint32_t key, size_t characters, frag_text *text);

#endif
