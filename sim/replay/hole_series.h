/* The free memory of a run over its events: how much, its largest hole, and what share of it lies
 * in holes too small for a request.
 *
 * A hole is what the policy's walk says: a maximal free range inside a segment. The unusable share
 * for a size is the bytes of the holes smaller than that, over the bytes of all holes (the Linux
 * kernel's unusable free space index, after Gorman, "An investigation into the theoretical
 * foundations and implementation of the Linux virtual memory manager", 2003, without its powers of
 * two). Policies that move pages or stitch holes together can use what is counted as unusable. */
#ifndef FRAG_REPLAY_HOLE_SERIES_H
#define FRAG_REPLAY_HOLE_SERIES_H

#include "sim/replay/replay.h"

#define FRAG_HOLE_SIZES_MAX 8u

typedef struct frag_hole_series frag_hole_series;

typedef struct frag_hole_options {
    const frag_trace *trace;
    uint64_t sizes[FRAG_HOLE_SIZES_MAX]; /* ascending; shares are kept for each */
    uint32_t size_count;
    uint64_t sample_max; /* at least frag_hole_sample_min */
    uint64_t every;      /* the holes are looked at after every so many events; 1: after each */
    /* Of the grid: columns of equal width over positions, and a row for each power of two from
     * 2^log_min to 2^log_max. */
    uint32_t column_count;
    uint32_t log_min;
    uint32_t log_max;
    const uint64_t *positions; /* of each event, never going back; NULL: the event itself */
    uint64_t start;            /* the first event of the grid */
    uint64_t end;              /* the last */
} frag_hole_options;

typedef struct frag_hole_sample {
    uint64_t event;
    frag_level level; /* after the event */
    uint64_t free_bytes;
    uint64_t largest_hole_bytes;
    uint64_t hole_count;
    uint64_t small_bytes[FRAG_HOLE_SIZES_MAX]; /* of holes smaller than each size */
} frag_hole_sample;

uint64_t frag_hole_sample_min(uint32_t size_count);

/* What the options point to outlives the series. */
frag_hole_series *frag_hole_series_create(const frag_hole_options *options);

/* A frag_replay_observer; context is the series. */
void frag_hole_series_observe(void *context, const frag_replay *replay, uint64_t event,
                              const frag_level *level);

/* Call once, behind the last event: how many samples there are. No extreme of reserved bytes, free
 * bytes, the largest hole, utilisation (allocated over reserved) or of a share is lost. */
size_t frag_hole_series_finish(frag_hole_series *series);
frag_hole_sample frag_hole_series_sample(const frag_hole_series *series, size_t index);

/* The mean over a column of the share of free bytes in holes smaller than 2^log, weighted by how
 * long each layout lasted. Negative: nothing was free then. */
double frag_hole_series_mean(const frag_hole_series *series, uint32_t column, uint32_t log);

void frag_hole_series_destroy(frag_hole_series *series);

#endif
