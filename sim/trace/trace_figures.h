/* What a trace holds, beside its stats: requests by size, stream and pool, how long blocks live,
 * and marks. */
#ifndef FRAG_TRACE_TRACE_FIGURES_H
#define FRAG_TRACE_TRACE_FIGURES_H

#include "sim/trace/trace.h"

#define FRAG_SIZE_CLASSES 56 /* of FRAG_REQUEST_BYTES_MAX */

typedef struct frag_share {
    uint64_t count;
    uint64_t bytes;
} frag_share;

/* Marks of one name; those that end something do not count. */
typedef struct frag_mark_share {
    uint32_t name; /* a string of the recording */
    uint64_t count;
    uint64_t first_event;
} frag_mark_share;

/* In events, from the alloc to the free. */
typedef enum frag_lifetime_quantile {
    FRAG_LIFETIME_MEDIAN,
    FRAG_LIFETIME_P90,
    FRAG_LIFETIME_P99,
    FRAG_LIFETIME_MAX,
    FRAG_LIFETIME_QUANTILES
} frag_lifetime_quantile;

/* One piece of memory, with what its pointers point to. */
typedef struct frag_trace_figures {
    frag_share sizes[FRAG_SIZE_CLASSES];         /* requests of 2^i to 2^(i+1) - 1 bytes */
    uint64_t lifetimes[FRAG_LIFETIME_QUANTILES]; /* of requests that were freed; 0: none was */
    uint64_t freed_count;
    uint64_t unfreed_count;
    uint64_t inferred_count; /* events that the importer put in */
    uint64_t guessed_count;  /* blocks at the start whose size it guessed */
    frag_share *streams;
    frag_share *pools;
    uint32_t stream_count;
    uint32_t pool_count;
    frag_mark_share *marks; /* in order of their first */
    uint32_t mark_count;
} frag_trace_figures;

/* Goes over all events; the caller frees what it gets. */
frag_trace_figures *frag_trace_figures_find(const frag_recording *recording,
                                            const frag_trace *trace);
frag_trace_figures *frag_trace_figures_create(uint32_t stream_count, uint32_t pool_count,
                                              uint32_t mark_count);

/* Can these be the figures of a trace of this size with these stats? NULL, or what is wrong. */
const char *frag_trace_figures_doubt(const frag_trace_figures *figures,
                                     const frag_recording *recording, const frag_trace *trace);

#endif
