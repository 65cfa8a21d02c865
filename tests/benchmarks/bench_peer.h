/* For scale: best fit as one writes it from the C library's parts, replayed on the same events.
 *
 * Free blocks are in the red-black tree of tsearch(3), by size and address; neighbours are linked
 * and merge on free; the range is endless, so there are no segments, no streams, no counts of bytes
 * by kind. It does less than any policy here, the way most prototypes do it. */
#ifndef FRAG_BENCHMARKS_BENCH_PEER_H
#define FRAG_BENCHMARKS_BENCH_PEER_H

#include "sim/trace/trace.h"

typedef struct bench_peer bench_peer;

bench_peer *bench_peer_create(const frag_trace *trace);
/* Replays all allocs and frees, once. Returns the highest address that was in use. */
uint64_t bench_peer_run(bench_peer *peer);
void bench_peer_destroy(bench_peer *peer);

#endif
