/* Two traces for speed figures that need no recording. They are made of whole numbers and a
 * generator of their own, so that they are the same on every machine. */
#ifndef FRAG_BENCHMARKS_BENCH_TRACES_H
#define FRAG_BENCHMARKS_BENCH_TRACES_H

#include "sim/trace/trace.h"

#define BENCH_TRACE_EVENTS 1000000u

/* Training: parameters that stay; steps of jittered length that keep activations on the way
 * forward, give them back in reverse order on the way back, and free their gradients together. One
 * stream. */
bool bench_trace_training(uint64_t event_count, frag_recording *recording, frag_error *error);

/* Serving: thousands of live blocks of power-law sizes on four streams, freed in random order,
 * their number swinging up and down. */
bool bench_trace_serving(uint64_t event_count, frag_recording *recording, frag_error *error);

#endif
