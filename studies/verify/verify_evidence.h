/* What a recording shows of the settings it was made with, before any replay. */
#ifndef FRAG_VERIFY_VERIFY_EVIDENCE_H
#define FRAG_VERIFY_VERIFY_EVIDENCE_H

#include <stdbool.h>

#include "sim/trace/trace.h"

/* The capacity inferred from the first recorded OOM: what was held, in whole pages, and what was
 * free. 0: there is none. */
uint64_t frag_evidence_capacity(const frag_trace *trace);

/* The distance of the nearest two reserved ranges: a driver places reservations side by side, and
 * their size is a share of the capacity. 0: there is only one. */
uint64_t frag_evidence_range_distance(const frag_trace *trace);

#define FRAG_EVIDENCE_SIZES_MAX 8u

/* Sizes in MiB that large_segment_size_mb may have had, other than its default: of segments that
 * were taken for requests of 1 to 10 MiB, where no rounding explains them, and what all large
 * mappings are multiples of. The count of those in sizes. */
uint32_t frag_evidence_segment_sizes(const frag_trace *trace,
                                     uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX]);

/* What all observed sizes are multiples of; 0: there are none. */
uint64_t frag_evidence_unit(const frag_trace *trace);

/* The first limit that was set as a share of the capacity, 0 to 1. 0: none was. */
double frag_evidence_limit_ratio(const frag_trace *trace);

/* Was memory given back for the request of that event as garbage collection does it: large segments
 * alone, while less was held than at other times? *held_bytes: how much was. */
bool frag_evidence_collects(const frag_trace *trace, uint64_t event, uint64_t *held_bytes);

/* The event at which memory of the default pool was mapped first after segments were taken for it
 * (*is_on), or the other way round: expandable_segments was switched. 0: it was not. */
uint64_t frag_evidence_switch(const frag_trace *trace, bool *is_on);

#endif
