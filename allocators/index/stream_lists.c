#include "allocators/index/stream_lists.h"

#include <string.h>

size_t frag_stream_lists_bytes(uint32_t stream_count)
{
    return (size_t)stream_count * (sizeof(uint64_t) + sizeof(bool) + sizeof(uint32_t)) + 3 * 64;
}

void frag_stream_lists_create(frag_stream_lists *lists, frag_arena *arena, frag_device *device,
                              frag_event_counter *counter, uint32_t stream_count)
{
    *lists = (frag_stream_lists){
        .device = device,
        .counter = counter,
        .events = frag_arena_take(arena, stream_count, sizeof *lists->events),
        .is_listed = frag_arena_take(arena, stream_count, sizeof *lists->is_listed),
        .ordered = frag_arena_take(arena, stream_count, sizeof *lists->ordered),
        .stream_count = stream_count,
    };
}

static bool comes_before(const frag_stream_lists *lists, uint32_t stream, uint32_t other)
{
    return lists->counter->is_descending ? lists->events[stream] > lists->events[other]
                                         : lists->events[stream] < lists->events[other];
}

void frag_stream_list_make(frag_stream_lists *lists, uint32_t stream)
{
    frag_stream_name(lists, stream);
    uint32_t at = lists->count;
    for (; at > 0 && comes_before(lists, stream, lists->ordered[at - 1]); at--)
        lists->ordered[at] = lists->ordered[at - 1];
    lists->ordered[at] = stream;
    lists->count++;
    lists->is_listed[stream] = true;
}

static void await(const frag_stream_lists *lists, uint32_t stream, uint32_t other)
{
    frag_device_event_await(lists->device, stream, other, lists->events[other] - 1);
}

static bool search_others(const frag_stream_lists *lists, uint32_t stream,
                          frag_stream_list_search *search, void *context, uint32_t *found)
{
    for (uint32_t i = 0; i < lists->count; i++) {
        uint32_t other = lists->ordered[i];
        if (other == stream || !search(context, other))
            continue;
        await(lists, stream, other);
        *found = other;
        return true;
    }
    return false;
}

/* Takes the first of the other lists out of the order. */
static bool take_first(frag_stream_lists *lists, uint32_t stream, uint32_t *other)
{
    uint32_t at = lists->count > 0 && lists->ordered[0] == stream ? 1 : 0;
    if (at >= lists->count)
        return false;
    *other = lists->ordered[at];
    lists->is_listed[*other] = false;
    lists->count--;
    memmove(&lists->ordered[at], &lists->ordered[at + 1],
            (lists->count - at) * sizeof *lists->ordered);
    return true;
}

bool frag_stream_lists_search(frag_stream_lists *lists, uint32_t stream,
                              frag_stream_list_search *search, frag_stream_list_merge *merge,
                              void *context, uint32_t *found)
{
    if (search_others(lists, stream, search, context, found))
        return true;
    uint32_t other = 0;
    *found = stream;
    while (take_first(lists, stream, &other)) {
        await(lists, stream, other);
        merge(context, other, stream);
        if (search(context, stream))
            return true;
    }
    return false;
}
