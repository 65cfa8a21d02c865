/* Rows of figures over the events of a run, thinned to a few that lose no peak.
 *
 * Events are cut into buckets of equal width. Of each bucket the rows are kept at which each of the
 * tracked figures was lowest and highest (the first event that reached it), and the first and the
 * last row of the run. So every peak and every valley of a bucket is exact, at its own event, with
 * the other figures at that event beside it. */
#ifndef FRAG_REPLAY_SERIES_H
#define FRAG_REPLAY_SERIES_H

#include <stddef.h>
#include <stdint.h>

typedef struct frag_series frag_series;

typedef struct frag_series_shape {
    uint32_t figure_count;  /* of a row */
    uint32_t tracked_count; /* the first of them, whose extremes are kept; at least 1 */
    uint64_t event_count;
    uint64_t row_max; /* at least frag_series_row_min */
} frag_series_shape;

/* One bucket, and the ends. */
uint64_t frag_series_row_min(uint32_t tracked_count);

/* Keeps at most row_max rows; all of them when there are no more events. */
frag_series *frag_series_create(const frag_series_shape *shape);

/* Events ascend and are below event_count; figures are figure_count, and copied. */
void frag_series_observe(frag_series *series, uint64_t event, const uint64_t *figures);

/* Call once, behind the last event: how many rows there are. */
size_t frag_series_finish(frag_series *series);
/* They ascend by event, and live as long as the series. */
uint64_t frag_series_event(const frag_series *series, size_t row);
const uint64_t *frag_series_figures(const frag_series *series, size_t row);

void frag_series_destroy(frag_series *series);

#endif
