/* Free lists of streams that take from one another, as RMM's stream-ordered resources keep them.
 *
 * Each stream has an event from when it is first named, and a list from when it first allocates or
 * frees. A list is looked at in the order of the events' handles. A stream whose own list will not
 * do first takes one block from another's list, then makes whole lists its own, one after the
 * other, and each time waits for the other's event. What a list holds and how it is searched is the
 * owner's affair. Source: RMM 25.10, rmm/mr/detail/stream_ordered_memory_resource.hpp. */
#ifndef FRAG_INDEX_STREAM_LISTS_H
#define FRAG_INDEX_STREAM_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "sim/device.h"

/* Numbers events from 0 in order of creation; all lists of a program share one. */
typedef struct frag_event_counter {
    uint64_t count;
    bool is_descending; /* a newer event has a lower handle */
} frag_event_counter;

typedef struct frag_stream_lists {
    frag_device *device;
    frag_event_counter *counter;
    uint64_t *events;  /* by stream: the number of its event + 1; 0: it has none yet */
    bool *is_listed;   /* by stream */
    uint32_t *ordered; /* the streams with a list, in order of their events' handles */
    uint32_t count;
    uint32_t stream_count;
} frag_stream_lists;

/* Does the list of a stream hold what is looked for? */
typedef bool frag_stream_list_search(void *context, uint32_t stream);
/* Puts everything that the first list holds into the second. */
typedef void frag_stream_list_merge(void *context, uint32_t from, uint32_t to);

size_t frag_stream_lists_bytes(uint32_t stream_count);
void frag_stream_lists_create(frag_stream_lists *lists, frag_arena *arena, frag_device *device,
                              frag_event_counter *counter, uint32_t stream_count);

/* The slow half of frag_stream_list_open. */
void frag_stream_list_make(frag_stream_lists *lists, uint32_t stream);

/* Names a stream: it has an event from now on. */
static inline void frag_stream_name(frag_stream_lists *lists, uint32_t stream)
{
    if (lists->events[stream] == 0)
        lists->events[stream] = ++lists->counter->count;
}

/* The stream has a list from now on, empty though it may be. */
static inline void frag_stream_list_open(frag_stream_lists *lists, uint32_t stream)
{
    if (!lists->is_listed[stream])
        frag_stream_list_make(lists, stream);
}

/* For a stream whose own list, which it has, will not do: *found is the stream whose list has what
 * is looked for now. false: none has, and all lists have become the stream's own. */
bool frag_stream_lists_search(frag_stream_lists *lists, uint32_t stream,
                              frag_stream_list_search *search, frag_stream_list_merge *merge,
                              void *context, uint32_t *found);

#endif
