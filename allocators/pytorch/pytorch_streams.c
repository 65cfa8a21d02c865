/* Blocks used by several streams: freed only when the others have got there.
 *
 * At its free a block records an event on every stream that used it, in the order of the library's
 * hash table; events wait in one queue per stream, and the queues are looked at, oldest first, at
 * the start of every request. While a scope is open (from 2.13 on: a capture) such frees are put
 * off. Source: insert_events, process_events, synchronize_and_free_events in
 * c10/cuda/CUDACachingAllocator.cpp. */
#include "allocators/pytorch/pytorch_state.h"

/* The hash of the library's stream objects: type of device, device, stream. */
static uint64_t key_of(const frag_policy *policy, uint32_t stream)
{
    return (uint64_t)1 << 56 | (uint64_t)policy->device->ordinal << 48 | policy->handles[stream];
}

static uint32_t take_use(frag_policy *policy)
{
    uint32_t id = policy->spare_use;
    if (id == 0)
        return policy->use_count++;
    policy->spare_use = policy->uses[id].next;
    return id;
}

static void give_use(frag_policy *policy, uint32_t id)
{
    policy->uses[id].next = policy->spare_use;
    policy->spare_use = id;
}

bool frag_pytorch_use_block(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    frag_pytorch_block *at = frag_pytorch_at(policy, handle);
    if (stream == frag_pytorch_list_at(policy, at)->stream)
        return false;
    if ((at->list & FRAG_PYTORCH_SHARED) == 0)
        policy->first_uses[handle] = 0;
    at->list |= FRAG_PYTORCH_SHARED;
    bool is_captured = frag_pytorch_is_busy(policy);
    uint32_t *link = &policy->first_uses[handle];
    for (; *link != 0; link = &policy->uses[*link].next)
        if (policy->uses[*link].stream == stream) {
            /* One from before is forgotten with that of the capture. */
            policy->uses[*link].is_captured |= is_captured;
            return true;
        }
    uint32_t use = take_use(policy);
    policy->uses[use] =
        (frag_pytorch_use){.block = handle, .stream = stream, .is_captured = is_captured};
    *link = use;
    return true;
}

static void complete(frag_policy *policy, uint32_t block)
{
    policy->wait_count--;
    frag_pytorch_settle(policy);
    policy->on_complete(policy->on_complete_context, block);
    frag_pytorch_complete(policy, block);
}

static void enqueue(frag_policy *policy, uint32_t use)
{
    frag_pytorch_use *at = &policy->uses[use];
    uint32_t stream = at->stream;
    uint64_t key = key_of(policy, stream);
    at->next = 0;
    at->event = frag_device_event_record(policy->device, stream);
    policy->event_counts[at->block]++;
    if (frag_ordered_has(&policy->queues, key, stream)) {
        policy->uses[policy->queue_tails[stream]].next = use;
    } else {
        frag_ordered_insert(&policy->queues, key, stream);
        policy->queue_heads[stream] = use;
    }
    policy->queue_tails[stream] = use;
}

/* Records the events of a freed block; drops_captured: not of streams that used it in a capture. */
static void record_events(frag_policy *policy, uint32_t block, bool drops_captured)
{
    policy->event_counts[block] = 0;
    frag_ordered_reset(&policy->set);
    for (uint32_t use = policy->first_uses[block]; use != 0; use = policy->uses[use].next)
        frag_ordered_insert(&policy->set, key_of(policy, policy->uses[use].stream), use);
    for (uint32_t use = policy->first_uses[block]; use != 0;) {
        uint32_t next = policy->uses[use].next;
        if (drops_captured && policy->uses[use].is_captured) {
            frag_ordered_erase(&policy->set, key_of(policy, policy->uses[use].stream), use);
            give_use(policy, use);
        }
        use = next;
    }
    for (uint32_t slot = frag_ordered_next(&policy->set, 0); slot != FRAG_ORDERED_END;
         slot = frag_ordered_next(&policy->set, slot + 1))
        enqueue(policy, policy->set.entries[slot].value);
}

void frag_pytorch_free_shared(frag_policy *policy, uint32_t id)
{
    frag_pytorch_at(policy, id)->list |= FRAG_PYTORCH_WAITING;
    policy->wait_count++;
    frag_pytorch_settle(policy);
    if (frag_pytorch_is_busy(policy))
        policy->deferred[policy->deferred_count++] = id;
    else
        record_events(policy, id, false);
}

/* A block whose free was put off waits for its events, or is over where there are none. */
static void record_one(frag_policy *policy, uint32_t block)
{
    record_events(policy, block, policy->settings.version >= 204);
    if (policy->event_counts[block] == 0)
        complete(policy, block);
}

static void record_deferred(frag_policy *policy)
{
    uint32_t count = policy->deferred_count;
    policy->deferred_count = 0;
    for (uint32_t i = 0; i < count; i++)
        record_one(policy, policy->deferred[i]);
}

void frag_pytorch_end_deferred(frag_policy *policy, uint32_t pool)
{
    if (!policy->settings.reuses_at_end || policy->settings.version < 212)
        return;
    uint32_t kept = 0;
    uint32_t count = policy->deferred_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t block = policy->deferred[i];
        if (frag_pytorch_list_at(policy, frag_pytorch_at(policy, block))->pool == pool)
            record_one(policy, block);
        else
            policy->deferred[kept++] = block;
    }
    policy->deferred_count = kept;
}

/* The oldest event of a queue is done. */
static void finish_head(frag_policy *policy, uint32_t stream)
{
    uint32_t use = policy->queue_heads[stream];
    uint32_t block = policy->uses[use].block;
    policy->queue_heads[stream] = policy->uses[use].next;
    give_use(policy, use);
    if (--policy->event_counts[block] == 0)
        complete(policy, block);
}

void frag_pytorch_process_events(frag_policy *policy)
{
    record_deferred(policy);
    uint32_t slot = frag_ordered_next(&policy->queues, 0);
    while (slot != FRAG_ORDERED_END) {
        uint32_t stream = policy->queues.entries[slot].value;
        while (policy->queue_heads[stream] != 0 &&
               frag_device_event_is_done(policy->device, stream,
                                         policy->uses[policy->queue_heads[stream]].event))
            finish_head(policy, stream);
        if (policy->queue_heads[stream] == 0)
            frag_ordered_erase_at(&policy->queues, slot);
        else
            slot++;
        slot = frag_ordered_next(&policy->queues, slot);
    }
}

/* Waits for the events of one queue; those of other pools than the wanted one stay in order. */
static void drain_queue(frag_policy *policy, uint32_t stream, uint32_t pool)
{
    uint32_t kept_head = 0;
    uint32_t kept_tail = 0;
    while (policy->queue_heads[stream] != 0) {
        uint32_t use = policy->queue_heads[stream];
        const frag_pytorch_use *at = &policy->uses[use];
        if (pool == 0 ||
            frag_pytorch_list_at(policy, frag_pytorch_at(policy, at->block))->pool == pool) {
            frag_device_event_wait(policy->device, stream, at->event);
            finish_head(policy, stream);
            continue;
        }
        policy->queue_heads[stream] = at->next;
        policy->uses[use].next = 0;
        if (kept_head == 0)
            kept_head = use;
        else
            policy->uses[kept_tail].next = use;
        kept_tail = use;
    }
    policy->queue_heads[stream] = kept_head;
    policy->queue_tails[stream] = kept_tail;
}

void frag_pytorch_wait_for_events(frag_policy *policy, uint32_t pool)
{
    frag_pytorch_note_event(policy, FRAG_PYTORCH_SYNC_ALL);
    if (pool == 0)
        frag_device_synchronize(policy->device);
    if (policy->wait_count == 0)
        return;
    record_deferred(policy);
    uint32_t count = 0;
    for (uint32_t slot = frag_ordered_next(&policy->queues, 0); slot != FRAG_ORDERED_END;
         slot = frag_ordered_next(&policy->queues, slot + 1)) {
        uint32_t stream = policy->queues.entries[slot].value;
        drain_queue(policy, stream, pool);
        if (policy->queue_heads[stream] != 0)
            policy->stream_scratch[count++] = stream;
    }
    frag_ordered_clear(&policy->queues);
    for (uint32_t i = 0; i < count; i++)
        frag_ordered_insert(&policy->queues, key_of(policy, policy->stream_scratch[i]),
                            policy->stream_scratch[i]);
}
