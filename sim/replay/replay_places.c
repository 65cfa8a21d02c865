/* Requests that name their place (FRAG_EVENT_PLACED). A recording has the address that the place
 * had in it; where that is in this run, an earlier request of the same address tells. */
#include <stdlib.h>

#include "base/memory.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_state.h"

typedef struct place {
    uint64_t recorded;
    uint64_t address; /* in this run; 0: no request of it was served */
} place;

struct frag_place_keeper {
    size_t count;
    uint64_t recorded_end; /* of the last request that named its place */
    uint64_t end;          /* in this run; 0: there was none */
    place places[];        /* of all requests that name one, by recorded address */
};

static int compare_places(const void *a, const void *b)
{
    const place *left = a;
    const place *right = b;
    return (left->recorded > right->recorded) - (left->recorded < right->recorded);
}

static bool is_placed(const frag_event *event)
{
    return event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_PLACED) != 0;
}

void frag_places_create(frag_replay *replay)
{
    const frag_trace *trace = replay->trace;
    size_t count = 0;
    if (frag_policy_engine_of(replay->ops)->place == NULL || trace->addresses == NULL)
        return;
    for (uint64_t i = 0; i < trace->event_count; i++)
        count += is_placed(&trace->events[i]) ? 1 : 0;
    if (count == 0)
        return;
    frag_place_keeper *keeper = frag_alloc(1, sizeof *keeper + count * sizeof(place));
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (is_placed(&trace->events[i]))
            keeper->places[keeper->count++] = (place){.recorded = trace->addresses[i]};
    qsort(keeper->places, count, sizeof(place), compare_places);
    keeper->count = 1;
    for (size_t i = 1; i < count; i++)
        if (keeper->places[i].recorded != keeper->places[i - 1].recorded)
            keeper->places[keeper->count++] = keeper->places[i];
    replay->places = keeper;
}

static place *find_place(const frag_replay *replay)
{
    frag_place_keeper *keeper = replay->places;
    place wanted = {.recorded = replay->trace->addresses[frag_replay_event(replay)]};
    return bsearch(&wanted, keeper->places, keeper->count, sizeof wanted, compare_places);
}

/* Segments may touch in the recording and not here, so that what lies behind the last place is the
 * second choice. What was there before the recording is where it was. */
void frag_places_tell(frag_replay *replay)
{
    const frag_place_keeper *keeper = replay->places;
    const place *at = find_place(replay);
    uint64_t address = at->address;
    if (address == 0)
        address =
            at->recorded == keeper->recorded_end && keeper->end != 0 ? keeper->end : at->recorded;
    frag_policy_engine_of(replay->ops)->place(replay->policy, address);
}

void frag_places_note(frag_replay *replay, uint64_t address)
{
    place *at = find_place(replay);
    if (at != NULL)
        at->address = address;
    if (!is_placed(replay->now))
        return;
    replay->places->recorded_end = at->recorded + replay->now->bytes;
    replay->places->end = address + replay->now->bytes;
}

void frag_places_keep(const frag_replay *replay, frag_image *image)
{
    const frag_place_keeper *keeper = replay->places;
    frag_image_add(image, keeper, sizeof *keeper + keeper->count * sizeof(place));
}

void frag_places_return(frag_replay *replay, frag_image *image)
{
    frag_place_keeper *keeper = replay->places;
    frag_image_take(image, keeper, sizeof *keeper + keeper->count * sizeof(place));
}
