/* Calls of empty_cache that an importer supposed.
 *
 * A snapshot does not record them, and that a request did not need what was given back before it
 * proves one only for known settings: with others the allocator itself may have done it. */
#ifndef FRAG_VERIFY_VERIFY_SUPPOSED_H
#define FRAG_VERIFY_VERIFY_SUPPOSED_H

#include <stdbool.h>

#include "sim/trace/trace.h"

/* Makes *copy the trace without the supposed calls before requests that made the allocator take
 * memory; with is_large_only only those that gave back large segments alone, as garbage collection
 * does it. The count of those left out. The copy lends all but its events, which
 * frag_supposed_destroy frees. */
uint64_t frag_supposed_leave_out(const frag_trace *trace, bool is_large_only, frag_trace *copy);
void frag_supposed_destroy(frag_trace *copy);

#endif
