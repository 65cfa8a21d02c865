/* Giving cached memory back to the device: all of it, oversize blocks, old ones. */
#include "allocators/pytorch/pytorch_state.h"
#include "base/bytes.h"

static bool is_whole_segment(const frag_pytorch_block *at)
{
    return at->prev == FRAG_PYTORCH_NONE && at->next == FRAG_PYTORCH_NONE;
}

static bool is_expandable(const frag_pytorch_block *at)
{
    return (at->list & FRAG_PYTORCH_EXPANDABLE) != 0;
}

/* Gives a free whole segment back to the device. */
static void release_segment(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    FRAG_ASSERT(is_whole_segment(at) && (at->list & FRAG_PYTORCH_IN_USE) == 0);
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    frag_pytorch_remove_free(policy, id);
    frag_pytorch_call_for(policy, list);
    frag_device_free(policy->device, at->address, at->bytes);
    policy->reserved_bytes -= at->bytes;
    frag_pytorch_pool *pool = frag_pytorch_pool_at(policy, list);
    if (pool != NULL)
        pool->device_count--;
    if (policy->stats != NULL)
        frag_pytorch_count_device(policy, list, -(int64_t)at->bytes, true);
    frag_pytorch_give_record(policy, id);
}

/* ---- releasing, in the library's order: size, then tie */

typedef struct release_count {
    frag_policy *policy;
    uint32_t count;
} release_count;

static void gather(void *context, uint32_t id)
{
    release_count *all = context;
    all->policy->scratch[all->count++] = id;
}

/* The free blocks of a list in order, in policy->scratch, so that they can be given back one by
 * one. */
static uint32_t gather_free(frag_policy *policy, const frag_pytorch_list *list)
{
    release_count all = {policy, 0};
    frag_free_index_visit(&policy->store, frag_pytorch_index_of(policy, list), gather, &all);
    return all.count;
}

/* The i-th list of a pool, streams in the library's order. */
static const frag_pytorch_list *list_in_order(const frag_policy *policy, uint32_t pool,
                                              bool is_small, uint32_t i)
{
    return &policy->lists[frag_pytorch_list_of(policy, pool, is_small, policy->stream_order[i])];
}

static void release_whole_segments(frag_policy *policy, const frag_pytorch_list *list)
{
    uint32_t count = gather_free(policy, list);
    for (uint32_t i = 0; i < count; i++) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, policy->scratch[i]);
        if (!is_expandable(at) && is_whole_segment(at))
            release_segment(policy, policy->scratch[i]);
    }
}

static void unmap_free_blocks(frag_policy *policy, const frag_pytorch_list *list)
{
    uint32_t count = gather_free(policy, list);
    for (uint32_t i = 0; i < count; i++)
        if (is_expandable(frag_pytorch_at(policy, policy->scratch[i])))
            frag_pytorch_unmap(policy, policy->scratch[i]);
}

/* One pool: whole segments of all streams first, then the pages of free blocks. */
static void release_pool(frag_policy *policy, uint32_t pool, bool is_small)
{
    for (uint32_t i = 0; i < policy->stream_count; i++)
        release_whole_segments(policy, list_in_order(policy, pool, is_small, i));
    if (policy->range_count <= 1)
        return;
    for (uint32_t i = 0; i < policy->stream_count; i++)
        unmap_free_blocks(policy, list_in_order(policy, pool, is_small, i));
}

static void release_freeable(frag_policy *policy, uint32_t pool)
{
    release_pool(policy, pool, true);
    release_pool(policy, pool, false);
    frag_pytorch_pool_forget(policy, pool);
}

void frag_pytorch_release_cached(frag_policy *policy)
{
    if (!frag_pytorch_is_busy(policy)) {
        frag_pytorch_wait_for_events(policy, 0);
        release_pool(policy, 0, false);
        release_pool(policy, 0, true);
    }
    /* Pools are forgotten on the way, which moves the entries of the table: the list is made first.
     */
    uint32_t count = 0;
    for (uint32_t slot = frag_ordered_next(&policy->freeable, 0); slot != FRAG_ORDERED_END;
         slot = frag_ordered_next(&policy->freeable, slot + 1))
        policy->pool_scratch[count++] = policy->freeable.entries[slot].value;
    for (uint32_t i = 0; i < count; i++)
        release_freeable(policy, policy->pool_scratch[i]);
}

void frag_pytorch_release_private(frag_policy *policy, uint32_t pool)
{
    if (!frag_ordered_has(&policy->freeable, frag_pytorch_pool_key(policy, pool), pool))
        return;
    frag_pytorch_wait_for_events(policy, pool);
    release_freeable(policy, pool);
}

/* With a split limit: one cached oversize block that is large enough, or several that add up. */
bool frag_pytorch_release_oversize(frag_policy *policy, const frag_pytorch_list *list,
                                   uint64_t bytes)
{
    uint64_t limit = policy->settings.max_split_bytes;
    if (limit == FRAG_UNLIMITED)
        return false;
    /* On which side of the limit each block lies decides all that follows. */
    uint32_t count = gather_free(policy, list);
    for (uint32_t i = 0; i < count; i++)
        frag_pytorch_is_below_split(policy, frag_pytorch_at(policy, policy->scratch[i])->bytes);
    uint64_t wanted = bytes > limit ? bytes : limit;
    uint32_t id = FRAG_PYTORCH_NONE;
    if (frag_free_index_best(&policy->store, frag_pytorch_index_of(policy, list), wanted, &id) &&
        !is_expandable(frag_pytorch_at(policy, id))) {
        if (!is_whole_segment(frag_pytorch_at(policy, id)))
            return false;
        release_segment(policy, id);
        return true;
    }
    uint64_t released = 0;
    while (count > 0 && released < wanted) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, policy->scratch[--count]);
        /* of those that are large enough, the smallest has been looked at */
        if (at->bytes >= wanted || is_expandable(at))
            continue;
        if (at->bytes < limit || !is_whole_segment(at))
            break;
        released += at->bytes;
        release_segment(policy, policy->scratch[count]);
    }
    return released >= wanted;
}

typedef struct collection {
    double age_sum;
    uint64_t count;
} collection;

static uint32_t age_of(const frag_policy *policy, uint32_t id)
{
    return policy->large_searches - policy->ages[id];
}

/* Are more bytes held than collection allows? */
static bool is_over_mark(frag_policy *policy)
{
    bool is_over = policy->reserved_bytes > policy->gc_mark_bytes;
    if (is_over)
        frag_pytorch_note_least(&policy->met.over_mark_min, policy->reserved_bytes);
    else
        frag_pytorch_note_most(&policy->met.below_mark_max, policy->reserved_bytes);
    if (policy->limit_share > 0)
        frag_device_note_need(policy->device,
                              frag_pytorch_share_capacity(&policy->settings, policy->limit_share,
                                                          policy->settings.gc_threshold,
                                                          policy->reserved_bytes),
                              is_over);
    return is_over;
}

/* Passes over the unsplit blocks of the default large pool, each giving back all of at least
 * average age, until enough came back or a pass found none. */
void frag_pytorch_collect_garbage(frag_policy *policy)
{
    if (!is_over_mark(policy))
        return;
    collection all = {0, 0};
    for (uint32_t stream = 0; stream < policy->stream_count; stream++) {
        uint32_t count = gather_free(policy, list_in_order(policy, 0, false, stream));
        for (uint32_t i = 0; i < count; i++) {
            const frag_pytorch_block *at = frag_pytorch_at(policy, policy->scratch[i]);
            /* An expandable range that is mapped whole and free counts, though it stays. */
            if (is_whole_segment(at)) {
                all.age_sum += age_of(policy, policy->scratch[i]);
                all.count++;
            }
        }
    }
    bool is_freeing = true;
    while (is_freeing && all.count > 0 && is_over_mark(policy)) {
        double average = all.age_sum / (double)all.count;
        is_freeing = false;
        for (uint32_t stream = 0; stream < policy->stream_count; stream++) {
            uint32_t count = gather_free(policy, list_in_order(policy, 0, false, stream));
            for (uint32_t i = 0; i < count; i++) {
                const frag_pytorch_block *at = frag_pytorch_at(policy, policy->scratch[i]);
                if (is_expandable(at) || !is_whole_segment(at) ||
                    age_of(policy, policy->scratch[i]) < average)
                    continue;
                is_freeing = true;
                all.age_sum -= age_of(policy, policy->scratch[i]);
                all.count--;
                release_segment(policy, policy->scratch[i]);
            }
        }
    }
    policy->has_kept_old |= !is_freeing;
}
