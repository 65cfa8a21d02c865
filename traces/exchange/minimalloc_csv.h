/* Packing problems and packings in MiniMalloc's CSV: one buffer a line, in columns that a header
 * names: id (or buffer, buffer_id), lower (or start, begin), upper (or end), size, and if wanted
 * alignment, hint, gaps, offset. A buffer is live in [lower, upper); a column named end holds the
 * last time instead of the one after it.
 * Source: google/minimalloc, src/converter.cc.
 *
 * A problem is read as a recording with metadata "problem": at each time releases come before
 * requests, each in the order of the lines; every alloc has its time and a note
 * (sim/replay/lifetimes.h). Offsets are kept as addresses from FRAG_MINIMALLOC_BASE on. Hints say
 * where to look first and are not needed; buffers with gaps are refused. */
#ifndef FRAG_EXCHANGE_MINIMALLOC_CSV_H
#define FRAG_EXCHANGE_MINIMALLOC_CSV_H

#include <stdio.h>

#include "base/error.h"
#include "base/file.h"
#include "sim/policy_engine.h"
#include "sim/replay/lifetimes.h"
#include "sim/trace/trace.h"

#define FRAG_MINIMALLOC_BASE ((uint64_t)1 << 46)
/* No time, and no end of a buffer, is beyond this. */
#define FRAG_MINIMALLOC_MAX ((uint64_t)1 << 46)

/* The lifetimes of a trace as a problem, one line each in order of the requests; with a column of
 * offsets unless that is NULL. Names and alignments are those of the problem that the trace was
 * read from; else numbers, and `alignment`. Requests that failed when recorded are left out. false:
 * writing failed. */
bool frag_minimalloc_write(const frag_recording *recording, const frag_trace *trace,
                           const frag_lifetime *lifetimes, uint64_t count, uint64_t alignment,
                           const uint64_t *offsets, FILE *stream, frag_error *error);

#endif
