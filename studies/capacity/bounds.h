/* Bounds of a trace that need a plan: the offline packing. */
#ifndef FRAG_CAPACITY_BOUNDS_H
#define FRAG_CAPACITY_BOUNDS_H

#include "base/context.h"
#include "sim/rows/result.h"
#include "sim/replay/lifetimes.h"

/* The best packing found with the planner's usual budget. Requests take their own bytes, at the
 * alignments of a packing problem, else anywhere. false: as frag_lifetimes_find. */
bool frag_bounds_find(const frag_context *context, const frag_recording *recording,
                      const frag_trace *trace, frag_row_packing *packing, frag_error *error);

#endif
