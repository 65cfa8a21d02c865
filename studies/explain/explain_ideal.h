/* What allocators would need that no setting turns PyTorch into: a bound for what settings and
 * other policies can gain, beside which a larger device or less data remain. */
#ifndef FRAG_EXPLAIN_EXPLAIN_IDEAL_H
#define FRAG_EXPLAIN_EXPLAIN_IDEAL_H

#include "base/context.h"
#include "sim/policy_engine.h"
#include "sim/trace/repeats.h"
#include "sim/trace/trace.h"

enum { FRAG_IDEAL_COUNT = 3 };

typedef struct frag_ideal {
    const char *policy; /* its name, literal */
    const char *spec;   /* and its options, literal */
    const char *means;  /* what makes it ideal, literal */
    bool is_known;      /* false: it cannot replay this, or was interrupted */
    bool fits;          /* on a device of the capacity */
    uint64_t needs_bytes;
} frag_ideal;

typedef struct frag_ideals {
    frag_ideal items[FRAG_IDEAL_COUNT];
    uint64_t capacity_bytes;
    uint64_t live_bytes; /* most bytes live at once: no allocator needs less; 0: not known */
} frag_ideals;

/* The search for them: one job for each, on any threads. Replays the trace, with a failed request
 * at its end served, on a device of capacity_bytes and, where that is too small, without a limit.
 */
typedef struct frag_ideal_search {
    const frag_context *context;
    const frag_recording *recording;
    frag_trace trace;          /* with its last request served */
    frag_event *served_events; /* of it; NULL: borrowed */
    frag_repeats repeats;      /* of it */
    uint64_t demand_bytes;     /* most bytes asked for at once: whoever has less fails */
    frag_lifetime *lifetimes;  /* of its requests; NULL: the state at the start does not fit */
    uint64_t lifetime_count;
    frag_ideals *ideals;
    uint64_t live_bytes[FRAG_IDEAL_COUNT];
} frag_ideal_search;

void frag_ideals_begin(frag_ideal_search *search, const frag_context *context,
                       const frag_recording *recording, const frag_trace *trace,
                       uint64_t capacity_bytes, frag_ideals *ideals);
void frag_ideals_find_one(frag_ideal_search *search, size_t index);
void frag_ideals_end(frag_ideal_search *search);

#endif
