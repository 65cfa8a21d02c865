#include "sim/replay/timeline.h"

#include "base/memory.h"
#include "sim/replay/series.h"

#define LEVELS 4u

struct frag_timeline {
    frag_series *series;
    frag_sample *samples;
};

frag_timeline *frag_timeline_create(uint64_t event_count, uint64_t sample_max)
{
    frag_timeline *timeline = frag_alloc(1, sizeof *timeline);
    timeline->series =
        frag_series_create(&(frag_series_shape){LEVELS, LEVELS, event_count, sample_max});
    return timeline;
}

void frag_timeline_add(frag_timeline *timeline, uint64_t event, const frag_level *level)
{
    const uint64_t figures[LEVELS] = {level->requested_bytes, level->allocated_bytes,
                                      level->active_bytes, level->reserved_bytes};
    frag_series_observe(timeline->series, event, figures);
}

void frag_timeline_observe(void *timeline, const frag_replay *replay, uint64_t event,
                           const frag_level *level)
{
    (void)replay;
    frag_timeline_add(timeline, event, level);
}

const frag_sample *frag_timeline_finish(frag_timeline *timeline, size_t *count)
{
    *count = frag_series_finish(timeline->series);
    timeline->samples = frag_alloc(*count, sizeof *timeline->samples);
    for (size_t i = 0; i < *count; i++) {
        const uint64_t *figures = frag_series_figures(timeline->series, i);
        timeline->samples[i] = (frag_sample){frag_series_event(timeline->series, i),
                                             {figures[0], figures[1], figures[2], figures[3]}};
    }
    return timeline->samples;
}

void frag_timeline_destroy(frag_timeline *timeline)
{
    if (timeline == NULL)
        return;
    frag_series_destroy(timeline->series);
    frag_free(timeline->samples);
    frag_free(timeline);
}
