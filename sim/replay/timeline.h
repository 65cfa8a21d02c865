/* The levels of a run over its events, thinned to a few samples that lose no peak of requested,
 * allocated, active or reserved bytes (sim/replay/series.h). */
#ifndef FRAG_REPLAY_TIMELINE_H
#define FRAG_REPLAY_TIMELINE_H

#include "sim/replay/replay.h"

typedef struct frag_sample {
    uint64_t event;
    frag_level level; /* after the event */
} frag_sample;

typedef struct frag_timeline frag_timeline;

#define FRAG_TIMELINE_SAMPLES_DEFAULT 4000u
#define FRAG_TIMELINE_SAMPLES_MIN 10u /* one bucket, and the ends */

/* At most sample_max samples (FRAG_TIMELINE_SAMPLES_MIN or more) of the events below event_count;
 * all of them when there are no more. */
frag_timeline *frag_timeline_create(uint64_t event_count, uint64_t sample_max);

/* A frag_replay_observer; context is the timeline. Events ascend and are below event_count. */
void frag_timeline_observe(void *timeline, const frag_replay *replay, uint64_t event,
                           const frag_level *level);
/* The same for levels that come from elsewhere. */
void frag_timeline_add(frag_timeline *timeline, uint64_t event, const frag_level *level);

/* Call once, behind the last event. The samples ascend by event and live as long as the timeline.
 */
const frag_sample *frag_timeline_finish(frag_timeline *timeline, size_t *count);

void frag_timeline_destroy(frag_timeline *timeline); /* NULL is allowed */

#endif
