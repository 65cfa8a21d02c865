#include "traces/exchange/size_pairs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

static void note(frag_size_pairs *pairs, const frag_live_call *call, const char *kind,
                 const char *meaning)
{
    frag_findings_add(pairs->findings, kind, meaning, false, pairs->device, call->entry,
                      "%s of %" PRIu64 " bytes", call->text, call->bytes);
}

static frag_size_queue *queue_of(frag_size_pairs *pairs, uint64_t bytes, uint8_t group)
{
    uint64_t index = 0;
    uint64_t key = bytes * FRAG_SIZE_GROUPS + group;
    if (!frag_number_map_get(&pairs->by_size, key, &index)) {
        index = pairs->queue_count++;
        pairs->queues = frag_grow(pairs->queues, &pairs->queue_capacity, pairs->queue_count,
                                  sizeof *pairs->queues);
        pairs->queues[index] = (frag_size_queue){FRAG_SLOT_NONE, FRAG_SLOT_NONE};
        frag_number_map_set(&pairs->by_size, key, index);
    }
    return &pairs->queues[index];
}

static void add_last(frag_size_pairs *pairs, frag_size_queue *queue, uint32_t slot)
{
    pairs->next[slot] = FRAG_SLOT_NONE;
    if (queue->first == FRAG_SLOT_NONE)
        queue->first = slot;
    else
        pairs->next[queue->last] = slot;
    queue->last = slot;
}

/* The queue of another group that has something of this size, or that of the group itself. */
static frag_size_queue *fullest_of(frag_size_pairs *pairs, uint64_t bytes, uint8_t group)
{
    uint64_t index = 0;
    if (queue_of(pairs, bytes, group)->first != FRAG_SLOT_NONE)
        return queue_of(pairs, bytes, group);
    for (uint8_t i = 0; i < FRAG_SIZE_GROUPS; i++)
        if (frag_number_map_get(&pairs->by_size, bytes * FRAG_SIZE_GROUPS + i, &index) &&
            pairs->queues[index].first != FRAG_SLOT_NONE)
            return &pairs->queues[index];
    return queue_of(pairs, bytes, group);
}

void frag_size_pairs_alloc(frag_size_pairs *pairs, const frag_live_call *call)
{
    uint32_t slot = frag_builder_slot_take(pairs->builder);
    pairs->next =
        frag_grow(pairs->next, &pairs->next_capacity, (size_t)slot + 1, sizeof *pairs->next);
    add_last(pairs, queue_of(pairs, call->bytes, call->group), slot);
    frag_build_event event = {
        .op = FRAG_OP_ALLOC,
        .slot = slot,
        .bytes = call->bytes,
        .time_ns = call->time_ns,
        .site = call->site,
    };
    frag_builder_add(pairs->builder, &event);
}

void frag_size_pairs_move(frag_size_pairs *pairs, uint64_t bytes, uint8_t from, uint8_t to)
{
    frag_size_queue *queue = queue_of(pairs, bytes, from);
    uint32_t slot = queue->first;
    if (slot == FRAG_SLOT_NONE || from == to)
        return;
    queue->first = pairs->next[slot];
    add_last(pairs, queue_of(pairs, bytes, to), slot);
}

void frag_size_pairs_free(frag_size_pairs *pairs, const frag_live_call *call)
{
    frag_size_queue *queue = fullest_of(pairs, call->bytes, call->group);
    if (queue->first == FRAG_SLOT_NONE) {
        note(pairs, call, "free-of-unknown-size",
             "nothing of that size was in use: the memory came from before the recording; its free "
             "was left out");
        return;
    }
    if (queue->first != queue->last)
        note(pairs, call, "release-paired-by-size",
             "the recording has no addresses: of several requests of this size, the oldest was "
             "taken as the one that ends here, which is a guess");
    frag_build_event event = {.op = FRAG_OP_FREE, .slot = queue->first, .time_ns = call->time_ns};
    queue->first = pairs->next[event.slot];
    frag_builder_add(pairs->builder, &event);
    frag_builder_slot_give(pairs->builder, event.slot);
}

void frag_size_pairs_destroy(frag_size_pairs *pairs)
{
    frag_number_map_destroy(&pairs->by_size);
    frag_free(pairs->queues);
    frag_free(pairs->next);
}
