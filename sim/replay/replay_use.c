/* Blocks that other streams use too: their frees wait until those streams have got there.
 *
 * A policy that takes uses does the waiting itself, by the device's events, as its framework does.
 * For the others a freed block waits here until every stream that used it has been synchronised
 * since, and only then reaches the policy. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/replay/replay_state.h"

#define NONE UINT32_MAX

typedef struct used_slot {
    uint64_t surplus_bytes;
    uint32_t first; /* node: streams that use it, where the engine does the waiting */
    bool is_used;
} used_slot;

/* A stream of a used slot, or a waiting block of a stream. */
typedef struct use_node {
    uint32_t value; /* stream, or index of a held record */
    uint32_t next;
} use_node;

struct frag_use_keeper {
    used_slot *slots; /* by slot */
    use_node *nodes;
    size_t node_count;
    size_t node_capacity;
    uint32_t spare_node;
    frag_held *held;
    size_t held_count;
    size_t held_capacity;
    uint32_t spare_held;
    uint32_t *held_of; /* by handle: index of a held record, or NONE */
    size_t handle_count;
    uint32_t *waiting; /* by stream: nodes of blocks that wait for it */
    uint32_t stream_count;
};

static frag_use_keeper *create_keeper(const frag_trace *trace)
{
    frag_use_keeper *uses = frag_alloc(1, sizeof *uses);
    uses->slots = frag_alloc((size_t)trace->slot_count + 1, sizeof *uses->slots);
    uses->stream_count = trace->stream_count > 0 ? trace->stream_count : 1;
    uses->waiting = frag_alloc(uses->stream_count, sizeof *uses->waiting);
    memset(uses->waiting, 0xff, uses->stream_count * sizeof *uses->waiting);
    uses->spare_node = NONE;
    uses->spare_held = NONE;
    return uses;
}

void frag_use_destroy(frag_use_keeper *uses)
{
    if (uses == NULL)
        return;
    frag_free(uses->slots);
    frag_free(uses->nodes);
    frag_free(uses->held);
    frag_free(uses->held_of);
    frag_free(uses->waiting);
    frag_free(uses);
}

/* ---- checkpoints */

void frag_use_keep(const frag_replay *replay, frag_image *image)
{
    const frag_use_keeper *uses = replay->uses;
    frag_image_add(image, uses, sizeof *uses);
    frag_image_add(image, uses->slots,
                   ((size_t)replay->trace->slot_count + 1) * sizeof *uses->slots);
    frag_image_add(image, uses->nodes, uses->node_count * sizeof *uses->nodes);
    frag_image_add(image, uses->held, uses->held_count * sizeof *uses->held);
    frag_image_add(image, uses->held_of, uses->handle_count * sizeof *uses->held_of);
    frag_image_add(image, uses->waiting, uses->stream_count * sizeof *uses->waiting);
}

void frag_use_return(frag_replay *replay, frag_image *image)
{
    frag_use_keeper *uses = replay->uses;
    frag_use_keeper now = *uses;
    frag_image_take(image, uses, sizeof *uses);
    uses->slots = now.slots;
    frag_image_take(image, uses->slots,
                    ((size_t)replay->trace->slot_count + 1) * sizeof *uses->slots);
    uses->nodes = now.nodes;
    uses->node_capacity = now.node_capacity;
    frag_image_take(image, uses->nodes, uses->node_count * sizeof *uses->nodes);
    uses->held = now.held;
    uses->held_capacity = now.held_capacity;
    frag_image_take(image, uses->held, uses->held_count * sizeof *uses->held);
    uses->held_of = now.held_of;
    frag_image_take(image, uses->held_of, uses->handle_count * sizeof *uses->held_of);
    for (size_t i = uses->handle_count; i < now.handle_count; i++)
        uses->held_of[i] = NONE; /* it has grown since */
    uses->handle_count = now.handle_count;
    uses->waiting = now.waiting;
    frag_image_take(image, uses->waiting, uses->stream_count * sizeof *uses->waiting);
}

/* ---- records */

static uint32_t take_node(frag_use_keeper *uses, uint32_t value, uint32_t next)
{
    uint32_t node = uses->spare_node;
    if (node != NONE) {
        uses->spare_node = uses->nodes[node].next;
    } else {
        uses->nodes =
            frag_grow(uses->nodes, &uses->node_capacity, uses->node_count + 1, sizeof *uses->nodes);
        node = (uint32_t)uses->node_count++;
    }
    uses->nodes[node] = (use_node){value, next};
    return node;
}

/* Returns the node behind. */
static uint32_t give_node(frag_use_keeper *uses, uint32_t node)
{
    uint32_t next = uses->nodes[node].next;
    uses->nodes[node].next = uses->spare_node;
    uses->spare_node = node;
    return next;
}

static uint32_t take_held(frag_use_keeper *uses, frag_held record)
{
    uint32_t index = uses->spare_held;
    if (index != NONE) {
        uses->spare_held = uses->held[index].next;
    } else {
        uses->held =
            frag_grow(uses->held, &uses->held_capacity, uses->held_count + 1, sizeof *uses->held);
        index = (uint32_t)uses->held_count++;
    }
    uses->held[index] = record;
    size_t old = uses->handle_count;
    if (record.handle >= old) {
        FRAG_ASSERT(record.handle < FRAG_HANDLE_LIMIT);
        uses->held_of = frag_grow(uses->held_of, &uses->handle_count, (size_t)record.handle + 1,
                                  sizeof *uses->held_of);
        memset(uses->held_of + old, 0xff, (uses->handle_count - old) * sizeof *uses->held_of);
    }
    uses->held_of[record.handle] = index;
    return index;
}

/* The block of a record waits no more. */
static void give_held(frag_replay *replay, uint32_t index)
{
    frag_use_keeper *uses = replay->uses;
    frag_held *held = &uses->held[index];
    replay->waiting_bytes -= held->block_bytes;
    replay->level.active_bytes -= held->block_bytes;
    uses->held_of[held->handle] = NONE;
    held->handle = FRAG_HANDLE_NONE;
    held->next = uses->spare_held;
    uses->spare_held = index;
}

const frag_held *frag_use_held(const frag_replay *replay, uint32_t handle)
{
    const frag_use_keeper *uses = replay->uses;
    if (uses == NULL || handle >= uses->handle_count || uses->held_of[handle] == NONE)
        return NULL;
    return &uses->held[uses->held_of[handle]];
}

uint32_t frag_use_handle_max(const frag_replay *replay)
{
    return replay->uses != NULL ? (uint32_t)replay->uses->handle_count : 0;
}

/* ---- events */

bool frag_use_has(const frag_replay *replay, uint32_t number)
{
    return replay->uses != NULL && replay->uses->slots[number].is_used;
}

uint64_t frag_use_surplus(const frag_replay *replay, uint32_t number)
{
    return replay->uses->slots[number].surplus_bytes;
}

static bool is_known(const frag_use_keeper *uses, const used_slot *used, uint32_t stream)
{
    for (uint32_t node = used->first; node != NONE; node = uses->nodes[node].next)
        if (uses->nodes[node].value == stream)
            return true;
    return false;
}

void frag_use_add(frag_replay *replay, uint32_t number, uint32_t stream)
{
    if (replay->ops->use != NULL &&
        !replay->ops->use(replay->policy, replay->slots[number].handle, stream))
        return;
    if (replay->uses == NULL)
        replay->uses = create_keeper(replay->trace);
    frag_use_keeper *uses = replay->uses;
    used_slot *used = &uses->slots[number];
    if (!used->is_used) {
        *used = (used_slot){frag_slot_surplus(replay, number), NONE, true};
        if (replay->slots[number].surplus_bytes == FRAG_SURPLUS_ELSEWHERE)
            frag_slot_forget_large(replay, number);
        replay->slots[number].surplus_bytes = FRAG_SURPLUS_ELSEWHERE;
    }
    if (replay->ops->use == NULL && !is_known(uses, used, stream))
        used->first = take_node(uses, stream, used->first);
}

void frag_use_free(frag_replay *replay, uint32_t number, uint32_t stream)
{
    frag_use_keeper *uses = replay->uses;
    used_slot *used = &uses->slots[number];
    frag_slot *at = &replay->slots[number];
    frag_held record = {.requested_bytes = at->requested_bytes,
                        .block_bytes = at->requested_bytes + used->surplus_bytes,
                        .handle = at->handle,
                        .stream = stream};
    uint32_t index = take_held(uses, record);
    replay->waiting_bytes += record.block_bytes;
    at->handle = FRAG_HANDLE_NONE;
    used->is_used = false;
    if (replay->notes != NULL)
        frag_note_requested(replay, record.handle);
    if (replay->ops->use != NULL) {
        replay->ops->free(replay->policy, record.handle, stream);
        return;
    }
    for (uint32_t node = used->first; node != NONE; node = give_node(uses, node)) {
        uint32_t user = uses->nodes[node].value;
        uses->waiting[user] = take_node(uses, index, uses->waiting[user]);
        uses->held[index].waits++;
    }
}

void frag_use_complete(void *context, frag_handle handle)
{
    frag_replay *replay = context;
    FRAG_ASSERT(frag_use_held(replay, handle) != NULL);
    give_held(replay, replay->uses->held_of[handle]);
    if (replay->notes != NULL)
        frag_note_completed(replay, handle);
}

static void sync_one(frag_replay *replay, uint32_t stream)
{
    if (replay->ops->use != NULL)
        frag_device_stream_done(replay->device, stream);
    frag_use_keeper *uses = replay->uses;
    if (uses == NULL)
        return;
    uint32_t node = uses->waiting[stream];
    uses->waiting[stream] = NONE;
    for (; node != NONE; node = give_node(uses, node)) {
        uint32_t index = uses->nodes[node].value;
        frag_held held = uses->held[index];
        if (--uses->held[index].waits > 0)
            continue;
        give_held(replay, index);
        frag_replay_give_back(replay, held.handle, held.stream);
    }
}

void frag_use_sync(frag_replay *replay, uint32_t stream)
{
    uint32_t count = replay->trace->stream_count > 0 ? replay->trace->stream_count : 1;
    if (stream != FRAG_STREAM_ALL)
        sync_one(replay, stream);
    for (uint32_t i = 0; stream == FRAG_STREAM_ALL && i < count; i++)
        sync_one(replay, i);
}
