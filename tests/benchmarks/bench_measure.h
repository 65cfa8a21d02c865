/* Clock, spread, and what the machine is: the parts of a speed figure that have nothing to do with
 * fraglab. */
#ifndef FRAG_BENCHMARKS_BENCH_MEASURE_H
#define FRAG_BENCHMARKS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

#define BENCH_REPETITIONS_MAX 99u

/* Samples of one figure; an even count has the mean of the middle two as its median. */
typedef struct bench_samples {
    double values[BENCH_REPETITIONS_MAX];
    uint32_t count;
} bench_samples;

typedef struct bench_spread {
    double median;
    double min;
    double max;
} bench_spread;

void bench_samples_add(bench_samples *samples, double value);
bench_spread bench_samples_spread(const bench_samples *samples);

/* Time this thread has spent on a core, in ns: what other programs do to the machine counts less
 * than it does in wall time, and nothing measured here waits. */
uint64_t bench_clock_ns(void);

/* Writes PATH.median, PATH.min, PATH.max. */
void bench_spread_json(frag_json *json, const char *path, bench_spread spread);

/* The processor as /proc/cpuinfo names it; "unknown" where there is none. */
void bench_processor(char *name, size_t name_bytes);

/* Largest resident size of this process, from /proc/self/status; 0 where there is none. */
uint64_t bench_resident_peak_bytes(void);

#endif
