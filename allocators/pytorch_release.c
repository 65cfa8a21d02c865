/* Giving cached memory back to the device: all of it, oversize blocks, old ones. */
#include "allocators/pytorch_state.h"
#include "sim/base/bytes.h"

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
    const frag_pytorch_block *at = &policy->blocks[id];
    FRAG_ASSERT(is_whole_segment(at) && (at->list & FRAG_PYTORCH_IN_USE) == 0);
    frag_pytorch_remove_free(policy, id);
    frag_device_free(policy->device, at->address, at->bytes);
    policy->reserved_bytes -= at->bytes;
    frag_pytorch_give_record(policy, id);
}

/* ---- releasing, in the library's order: size, then tie */

typedef struct gathering {
    frag_policy *policy;
    uint32_t count;
} gathering;

static void gather(void *context, const frag_free_entry *entry)
{
    gathering *all = context;
    all->policy->scratch[all->count++] = entry->id;
}

static bool comes_before(const frag_policy *policy, uint32_t left, uint32_t right)
{
    const frag_pytorch_block *a = &policy->blocks[left];
    const frag_pytorch_block *b = &policy->blocks[right];
    return a->bytes != b->bytes ? a->bytes < b->bytes
                                : frag_pytorch_tie_of(policy, a) < frag_pytorch_tie_of(policy, b);
}

static void sift_down(const frag_policy *policy, uint32_t *ids, uint32_t at, uint32_t count)
{
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && comes_before(policy, ids[child], ids[child + 1]))
            child++;
        if (!comes_before(policy, ids[at], ids[child]))
            return;
        uint32_t moved = ids[at];
        ids[at] = ids[child];
        ids[child] = moved;
        at = child;
    }
}

/* The free blocks of a list in order, in policy->scratch; qsort has no context argument, so a heap
 * sort. */
uint32_t frag_pytorch_sort_free(frag_policy *policy, const frag_pytorch_list *list)
{
    gathering all = {policy, 0};
    frag_free_index_visit(&list->index, gather, &all);
    uint32_t *ids = policy->scratch;
    for (uint32_t i = all.count / 2; i-- > 0;)
        sift_down(policy, ids, i, all.count);
    for (uint32_t end = all.count; end > 1;) {
        end--;
        uint32_t moved = ids[0];
        ids[0] = ids[end];
        ids[end] = moved;
        sift_down(policy, ids, 0, end);
    }
    return all.count;
}

static void release_whole_segments(frag_policy *policy, const frag_pytorch_list *list)
{
    uint32_t count = frag_pytorch_sort_free(policy, list);
    for (uint32_t i = 0; i < count; i++) {
        const frag_pytorch_block *at = &policy->blocks[policy->scratch[i]];
        if (!is_expandable(at) && is_whole_segment(at))
            release_segment(policy, policy->scratch[i]);
    }
}

static void unmap_free_blocks(frag_policy *policy, const frag_pytorch_list *list)
{
    uint32_t count = frag_pytorch_sort_free(policy, list);
    for (uint32_t i = 0; i < count; i++)
        if (is_expandable(&policy->blocks[policy->scratch[i]]))
            frag_pytorch_unmap(policy, policy->scratch[i]);
}

void frag_pytorch_release_pool(frag_policy *policy, uint32_t pool, bool is_small)
{
    for (uint32_t stream = 0; stream < policy->stream_count; stream++)
        release_whole_segments(
            policy, &policy->lists[frag_pytorch_list_of(policy, pool, is_small, stream)]);
    if (policy->range_count <= 1)
        return;
    for (uint32_t stream = 0; stream < policy->stream_count; stream++)
        unmap_free_blocks(policy,
                          &policy->lists[frag_pytorch_list_of(policy, pool, is_small, stream)]);
}

/* Everything cached: the default pool's large then small segments, then private pools nobody owns.
 */
void frag_pytorch_release_cached(frag_policy *policy)
{
    frag_device_synchronize(policy->device);
    frag_pytorch_release_pool(policy, 0, false);
    frag_pytorch_release_pool(policy, 0, true);
    for (uint32_t pool = 1; pool < policy->pool_count; pool++)
        if (policy->is_pool_freeable[pool]) {
            frag_pytorch_release_pool(policy, pool, true);
            frag_pytorch_release_pool(policy, pool, false);
        }
}

/* With a split limit: one cached oversize block that is large enough, or several that add up. */
bool frag_pytorch_release_oversize(frag_policy *policy, const frag_pytorch_list *list,
                                   uint64_t bytes)
{
    uint64_t limit = policy->settings.max_split_bytes;
    if (limit == FRAG_UNLIMITED)
        return false;
    uint64_t wanted = bytes > limit ? bytes : limit;
    uint32_t id = FRAG_PYTORCH_NONE;
    if (frag_free_index_best(&list->index, wanted, &id) && !is_expandable(&policy->blocks[id])) {
        if (!is_whole_segment(&policy->blocks[id]))
            return false;
        release_segment(policy, id);
        return true;
    }
    uint32_t count = frag_pytorch_sort_free(policy, list);
    while (count > 0 && policy->blocks[policy->scratch[count - 1]].bytes >= wanted)
        count--;
    uint64_t released = 0;
    while (count > 0 && released < wanted) {
        const frag_pytorch_block *at = &policy->blocks[policy->scratch[--count]];
        if (at->bytes < limit)
            break;
        if (is_expandable(at))
            continue;
        if (!is_whole_segment(at))
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
    return policy->large_searches[0] - policy->ages[id];
}

/* Passes over the unsplit blocks of the default large pool, each giving back all of at least
 * average age, until enough came back or a pass found none. */
void frag_pytorch_collect_garbage(frag_policy *policy)
{
    if (policy->reserved_bytes <= policy->gc_mark_bytes)
        return;
    uint64_t target = policy->reserved_bytes - policy->gc_mark_bytes;
    uint64_t released = 0;
    collection all = {0, 0};
    for (uint32_t stream = 0; stream < policy->stream_count; stream++) {
        uint32_t count = frag_pytorch_sort_free(
            policy, &policy->lists[frag_pytorch_list_of(policy, 0, false, stream)]);
        for (uint32_t i = 0; i < count; i++) {
            const frag_pytorch_block *at = &policy->blocks[policy->scratch[i]];
            if (!is_expandable(at) && is_whole_segment(at)) {
                all.age_sum += age_of(policy, policy->scratch[i]);
                all.count++;
            }
        }
    }
    bool is_freeing = true;
    while (released < target && is_freeing && all.count > 0) {
        double average = all.age_sum / (double)all.count;
        is_freeing = false;
        for (uint32_t stream = 0; stream < policy->stream_count; stream++) {
            uint32_t count = frag_pytorch_sort_free(
                policy, &policy->lists[frag_pytorch_list_of(policy, 0, false, stream)]);
            for (uint32_t i = 0; i < count; i++) {
                const frag_pytorch_block *at = &policy->blocks[policy->scratch[i]];
                if (is_expandable(at) || !is_whole_segment(at) ||
                    age_of(policy, policy->scratch[i]) < average)
                    continue;
                is_freeing = true;
                released += at->bytes;
                all.age_sum -= age_of(policy, policy->scratch[i]);
                all.count--;
                release_segment(policy, policy->scratch[i]);
            }
        }
    }
}
