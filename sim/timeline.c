#include "sim/timeline.h"

#include <stdlib.h>

#include "sim/base/memory.h"

/* Lowest and highest of each of the four levels. */
#define EXTREMES 8u

struct frag_timeline {
    uint64_t event_count;
    uint64_t bucket_events;
    uint64_t bucket; /* being filled */
    frag_sample extremes[EXTREMES];
    frag_sample last;
    bool is_filling;
    uint64_t sample_max;
    frag_sample *samples;
    size_t count;
    size_t capacity;
};

frag_timeline *frag_timeline_create(uint64_t event_count, uint64_t sample_max)
{
    FRAG_ASSERT(sample_max >= FRAG_TIMELINE_SAMPLES_MIN);
    frag_timeline *timeline = frag_alloc(1, sizeof *timeline);
    uint64_t bucket_count = (sample_max - 2) / EXTREMES;
    timeline->event_count = event_count;
    timeline->sample_max = sample_max;
    timeline->bucket_events = 1;
    if (event_count > sample_max)
        timeline->bucket_events = (event_count - 1) / bucket_count + 1;
    return timeline;
}

static void keep(frag_timeline *timeline, const frag_sample *sample)
{
    if (timeline->count > 0 && timeline->samples[timeline->count - 1].event >= sample->event)
        return;
    FRAG_ASSERT(timeline->count < timeline->sample_max);
    timeline->samples = frag_grow(timeline->samples, &timeline->capacity, timeline->count + 1,
                                  sizeof *timeline->samples);
    timeline->samples[timeline->count++] = *sample;
}

/* Keeps the extremes in the order of their events; one event may be several of them. */
static void close_bucket(frag_timeline *timeline)
{
    frag_sample *extremes = timeline->extremes;
    for (uint32_t i = 1; i < EXTREMES; i++)
        for (uint32_t j = i; j > 0 && extremes[j].event < extremes[j - 1].event; j--) {
            frag_sample swapped = extremes[j];
            extremes[j] = extremes[j - 1];
            extremes[j - 1] = swapped;
        }
    for (uint32_t i = 0; i < EXTREMES; i++)
        keep(timeline, &extremes[i]);
    timeline->is_filling = false;
}

static void compare(frag_sample extremes[2], const frag_sample *sample, uint64_t lowest,
                    uint64_t highest, uint64_t value)
{
    if (value < lowest)
        extremes[0] = *sample;
    if (value > highest)
        extremes[1] = *sample;
}

void frag_timeline_observe(void *context, uint64_t event, const frag_level *level)
{
    frag_timeline *timeline = context;
    FRAG_ASSERT(event < timeline->event_count);
    const frag_sample sample = {event, *level};
    uint64_t bucket = event / timeline->bucket_events;
    if (timeline->is_filling && bucket != timeline->bucket)
        close_bucket(timeline);
    if (timeline->count == 0 && !timeline->is_filling)
        keep(timeline, &sample);
    timeline->last = sample;
    if (!timeline->is_filling) {
        timeline->is_filling = true;
        timeline->bucket = bucket;
        for (uint32_t i = 0; i < EXTREMES; i++)
            timeline->extremes[i] = sample;
        return;
    }
    frag_sample *at = timeline->extremes;
    compare(at, &sample, at[0].level.requested_bytes, at[1].level.requested_bytes,
            level->requested_bytes);
    compare(at + 2, &sample, at[2].level.allocated_bytes, at[3].level.allocated_bytes,
            level->allocated_bytes);
    compare(at + 4, &sample, at[4].level.active_bytes, at[5].level.active_bytes,
            level->active_bytes);
    compare(at + 6, &sample, at[6].level.reserved_bytes, at[7].level.reserved_bytes,
            level->reserved_bytes);
}

const frag_sample *frag_timeline_finish(frag_timeline *timeline, size_t *count)
{
    if (timeline->is_filling) {
        close_bucket(timeline);
        keep(timeline, &timeline->last);
    }
    *count = timeline->count;
    return timeline->samples;
}

void frag_timeline_destroy(frag_timeline *timeline)
{
    if (timeline == NULL)
        return;
    free(timeline->samples);
    free(timeline);
}
