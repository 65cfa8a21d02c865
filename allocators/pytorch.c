/* PyTorch's native CUDA caching allocator on cudaMalloc'ed segments. Requests are rounded to 512 bytes;
 * best fit among the free blocks of the same stream in a small or a large pool; large remainders are split
 * off; neighbours merge on free; a failing cudaMalloc releases cached segments and is tried again.
 * Source: c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15. Bound: none proved.
 * Ours differs in nothing that a trace can see; host memory and locks are not modelled. */
#include <stdlib.h>
#include <string.h>

#include "allocators/free_index.h"
#include "allocators/pytorch_settings.h"
#include "sim/base/bits.h"
#include "sim/base/bytes.h"
#include "sim/policy.h"

#define NONE 0u
#define IN_USE 0x80000000u /* bit of block.list */

/* Addresses are below 2^49 and multiples of 512: the tie of 2.13 has 40 bits of them, 24 of the segment. */
#define SEGMENT_NUMBER_MAX (((uint64_t)1 << 24) - 1)

typedef struct block {
    uint64_t address;
    uint64_t bytes;
    uint32_t prev; /* neighbours in the segment */
    uint32_t next;
    uint32_t list;   /* the free list it belongs to; IN_USE */
    uint32_t number; /* of the block (2.12) or its segment (2.13), for ties */
    uint32_t age;    /* the pool's count of searches when it became free (garbage collection) */
} block;

typedef struct free_list {
    frag_free_index index;
    uint32_t stream;
    uint32_t pool;
    bool is_small;
} free_list;

struct frag_policy {
    frag_pytorch_settings settings;
    frag_device *device;
    uint64_t limit_bytes; /* FRAG_UNLIMITED: none */
    uint64_t reserved_bytes;
    uint64_t gc_mark_bytes; /* 0: garbage collection is not armed */
    block *blocks;
    uint32_t block_count; /* records ever used, [0] included */
    uint32_t block_max;
    uint32_t spare;       /* recycled records, linked by next */
    uint32_t next_number;
    free_list *lists; /* [(pool x 2 + is_large) x streams + stream] */
    uint32_t list_count;
    uint32_t stream_count;
    uint32_t pool_count;
    bool *is_pool_freeable; /* private pools whose owner is gone */
    uint32_t *large_searches; /* per pool: searches of its large lists while collection is armed */
    frag_free_index_store store;
    uint32_t *scratch; /* block ids, for sorted walks of a free list */
};

static uint32_t list_of(const frag_policy *policy, uint32_t pool, bool is_small, uint32_t stream)
{
    return (pool * 2 + (is_small ? 0 : 1)) * policy->stream_count + stream;
}

static uint32_t take_record(frag_policy *policy)
{
    uint32_t id = policy->spare;
    if (id != NONE) {
        policy->spare = policy->blocks[id].next;
        return id;
    }
    FRAG_ASSERT(policy->block_count < policy->block_max);
    return policy->block_count++;
}

static void give_record(frag_policy *policy, uint32_t id)
{
    policy->blocks[id].next = policy->spare;
    policy->blocks[id].list = UINT32_MAX;
    policy->spare = id;
}

static uint64_t tie_of(const frag_policy *policy, const block *at)
{
    switch (policy->settings.tie) {
    case FRAG_PYTORCH_TIE_BLOCK_NUMBER:
        return at->number;
    case FRAG_PYTORCH_TIE_SEGMENT_NUMBER:
        return (uint64_t)at->number << 40 | at->address >> 9;
    case FRAG_PYTORCH_TIE_ADDRESS:
    default:
        return at->address;
    }
}

static void insert_free(frag_policy *policy, uint32_t id)
{
    block *at = &policy->blocks[id];
    free_list *list = &policy->lists[at->list];
    at->age = list->is_small ? 0 : policy->large_searches[list->pool];
    frag_free_index_insert(&list->index, id, at->bytes, tie_of(policy, at));
}

static void remove_free(frag_policy *policy, uint32_t id)
{
    const block *at = &policy->blocks[id];
    frag_free_index_remove(&policy->lists[at->list].index, id, at->bytes);
}

static bool is_whole_segment(const block *at)
{
    return at->prev == NONE && at->next == NONE;
}

static uint32_t add_segment(frag_policy *policy, uint64_t address, uint64_t bytes, uint32_t list)
{
    uint32_t id = take_record(policy);
    FRAG_ASSERT(policy->next_number < SEGMENT_NUMBER_MAX ||
                policy->settings.tie != FRAG_PYTORCH_TIE_SEGMENT_NUMBER);
    policy->blocks[id] = (block){.address = address, .bytes = bytes, .list = list, .number = policy->next_number++};
    policy->reserved_bytes += bytes;
    return id;
}

/* Gives a free whole segment back to the device. */
static void release_segment(frag_policy *policy, uint32_t id)
{
    const block *at = &policy->blocks[id];
    FRAG_ASSERT(is_whole_segment(at) && (at->list & IN_USE) == 0);
    remove_free(policy, id);
    frag_device_free(policy->device, at->address, at->bytes);
    policy->reserved_bytes -= at->bytes;
    give_record(policy, id);
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
    const block *a = &policy->blocks[left];
    const block *b = &policy->blocks[right];
    return a->bytes != b->bytes ? a->bytes < b->bytes : tie_of(policy, a) < tie_of(policy, b);
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

/* The free blocks of a list in order, in policy->scratch; qsort has no context argument, so a heap sort. */
static uint32_t sorted_blocks(frag_policy *policy, const free_list *list)
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

static void release_list(frag_policy *policy, const free_list *list)
{
    uint32_t count = sorted_blocks(policy, list);
    for (uint32_t i = 0; i < count; i++)
        if (is_whole_segment(&policy->blocks[policy->scratch[i]]))
            release_segment(policy, policy->scratch[i]);
}

static void release_pool(frag_policy *policy, uint32_t pool, bool is_small)
{
    for (uint32_t stream = 0; stream < policy->stream_count; stream++)
        release_list(policy, &policy->lists[list_of(policy, pool, is_small, stream)]);
}

/* Everything cached: the default pool's large then small segments, then private pools nobody owns. */
static void release_cached(frag_policy *policy)
{
    frag_device_synchronize(policy->device);
    release_pool(policy, 0, false);
    release_pool(policy, 0, true);
    for (uint32_t pool = 1; pool < policy->pool_count; pool++)
        if (policy->is_pool_freeable[pool]) {
            release_pool(policy, pool, true);
            release_pool(policy, pool, false);
        }
}

/* With a split limit: one cached oversize block that is large enough, or several that add up. */
static bool release_oversize(frag_policy *policy, const free_list *list, uint64_t bytes)
{
    uint64_t limit = policy->settings.max_split_bytes;
    if (limit == FRAG_UNLIMITED)
        return false;
    uint64_t wanted = bytes > limit ? bytes : limit;
    uint32_t id = NONE;
    if (frag_free_index_best(&list->index, wanted, &id)) {
        if (!is_whole_segment(&policy->blocks[id]))
            return false;
        release_segment(policy, id);
        return true;
    }
    uint32_t count = sorted_blocks(policy, list);
    uint64_t released = 0;
    while (count > 0 && released < wanted) {
        const block *at = &policy->blocks[policy->scratch[--count]];
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

static uint32_t age_of(const frag_policy *policy, const block *at)
{
    return policy->large_searches[0] - at->age;
}

/* Passes over the unsplit blocks of the default large pool, each giving back all of at least average
 * age, until enough came back or a pass found none. */
static void collect_garbage(frag_policy *policy)
{
    if (policy->reserved_bytes <= policy->gc_mark_bytes)
        return;
    uint64_t target = policy->reserved_bytes - policy->gc_mark_bytes;
    uint64_t released = 0;
    collection all = {0, 0};
    for (uint32_t stream = 0; stream < policy->stream_count; stream++) {
        uint32_t count = sorted_blocks(policy, &policy->lists[list_of(policy, 0, false, stream)]);
        for (uint32_t i = 0; i < count; i++) {
            const block *at = &policy->blocks[policy->scratch[i]];
            if (is_whole_segment(at)) {
                all.age_sum += age_of(policy, at);
                all.count++;
            }
        }
    }
    bool is_freeing = true;
    while (released < target && is_freeing && all.count > 0) {
        double average = all.age_sum / (double)all.count;
        is_freeing = false;
        for (uint32_t stream = 0; stream < policy->stream_count; stream++) {
            uint32_t count = sorted_blocks(policy, &policy->lists[list_of(policy, 0, false, stream)]);
            for (uint32_t i = 0; i < count; i++) {
                const block *at = &policy->blocks[policy->scratch[i]];
                if (!is_whole_segment(at) || age_of(policy, at) < average)
                    continue;
                is_freeing = true;
                released += at->bytes;
                all.age_sum -= age_of(policy, at);
                all.count--;
                release_segment(policy, policy->scratch[i]);
            }
        }
    }
}

/* ---- allocating */

static uint64_t segment_bytes(const frag_policy *policy, uint64_t rounded)
{
    if (rounded <= FRAG_PYTORCH_SMALL_MAX)
        return FRAG_PYTORCH_SMALL_SEGMENT;
    if (rounded < FRAG_PYTORCH_LARGE_MIN)
        return policy->settings.large_segment_bytes;
    return frag_align_up(rounded, FRAG_PYTORCH_SEGMENT_ROUND);
}

/* Best fit; with a split limit, blocks on the other side of it and far larger ones will not do. */
static uint32_t find_free(const frag_policy *policy, const free_list *list, uint64_t rounded)
{
    uint32_t id = NONE;
    if (!frag_free_index_best(&list->index, rounded, &id))
        return NONE;
    uint64_t limit = policy->settings.max_split_bytes;
    if (FRAG_UNLIKELY(limit != FRAG_UNLIMITED)) {
        uint64_t bytes = policy->blocks[id].bytes;
        if (rounded < limit ? bytes >= limit : bytes >= rounded + policy->settings.non_split_rounding_bytes)
            return NONE;
    }
    return id;
}

static uint32_t grow(frag_policy *policy, uint32_t list, uint64_t bytes)
{
    if (policy->limit_bytes != FRAG_UNLIMITED && policy->reserved_bytes + bytes > policy->limit_bytes)
        return NONE;
    uint64_t address = 0;
    if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK)
        return NONE;
    return add_segment(policy, address, bytes, list);
}

/* Is the request refused at once, before the device is asked? */
static bool is_rejected(frag_policy *policy, uint64_t bytes)
{
    return policy->settings.throws_on_oom && policy->limit_bytes != FRAG_UNLIMITED &&
           policy->reserved_bytes + bytes > policy->limit_bytes;
}

/* The slow path: a segment from the device, after giving back more and more of what is cached. */
static uint32_t get_segment(frag_policy *policy, uint32_t list, uint64_t rounded)
{
    uint64_t bytes = segment_bytes(policy, rounded);
    if (policy->gc_mark_bytes != 0)
        collect_garbage(policy);
    if (is_rejected(policy, bytes))
        return NONE;
    uint32_t id = grow(policy, list, bytes);
    if (id == NONE && release_oversize(policy, &policy->lists[list], rounded))
        id = grow(policy, list, bytes);
    if (id == NONE) {
        release_cached(policy);
        id = grow(policy, list, bytes);
    }
    return id;
}

/* Cuts the front of a block off for the request; the record keeps the remainder and its number. */
static uint32_t split_front(frag_policy *policy, uint32_t id, uint64_t bytes)
{
    uint32_t front = take_record(policy);
    block *rest = &policy->blocks[id];
    policy->blocks[front] = (block){
        .address = rest->address,
        .bytes = bytes,
        .prev = rest->prev,
        .next = id,
        .list = rest->list,
        .number = policy->settings.tie == FRAG_PYTORCH_TIE_BLOCK_NUMBER ? policy->next_number++ : rest->number,
    };
    if (rest->prev != NONE)
        policy->blocks[rest->prev].next = front;
    rest->prev = front;
    rest->address += bytes;
    rest->bytes -= bytes;
    return front;
}

static bool pytorch_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t rounded = frag_pytorch_round(&policy->settings, request->bytes);
    bool is_small = rounded <= FRAG_PYTORCH_SMALL_MAX;
    uint32_t number = list_of(policy, request->pool, is_small, request->stream);
    free_list *list = &policy->lists[number];
    if (FRAG_UNLIKELY(policy->gc_mark_bytes != 0) && !is_small)
        policy->large_searches[request->pool]++;
    uint32_t id = find_free(policy, list, rounded);
    bool is_listed = id != NONE;
    if (FRAG_UNLIKELY(!is_listed)) {
        id = get_segment(policy, number, rounded);
        if (id == NONE)
            return false;
    }
    uint64_t bytes = policy->blocks[id].bytes;
    uint64_t rest = bytes - rounded;
    bool is_split = is_small ? rest >= FRAG_PYTORCH_ROUND
                             : rounded < policy->settings.max_split_bytes && rest > FRAG_PYTORCH_SMALL_MAX;
    if (is_split) {
        uint32_t front = split_front(policy, id, rounded);
        block *remainder = &policy->blocks[id];
        if (is_listed) {
            if (!is_small)
                remainder->age = policy->large_searches[request->pool];
            frag_free_index_change(&list->index, id, bytes, rest, tie_of(policy, remainder));
        } else {
            insert_free(policy, id);
        }
        id = front;
    } else if (is_listed) {
        frag_free_index_remove(&list->index, id, bytes);
    }
    block *granted = &policy->blocks[id];
    granted->list |= IN_USE;
    *grant = (frag_grant){.address = granted->address, .block_bytes = granted->bytes, .handle = id};
    return true;
}

static void pytorch_free(frag_policy *policy, frag_handle handle)
{
    block *freed = &policy->blocks[handle];
    FRAG_ASSERT((freed->list & IN_USE) != 0);
    freed->list &= ~IN_USE;
    uint32_t prev = freed->prev;
    if (prev != NONE && (policy->blocks[prev].list & IN_USE) == 0) {
        const block *before = &policy->blocks[prev];
        remove_free(policy, prev);
        freed->address = before->address;
        freed->bytes += before->bytes;
        freed->prev = before->prev;
        if (freed->prev != NONE)
            policy->blocks[freed->prev].next = handle;
        give_record(policy, prev);
    }
    uint32_t next = freed->next;
    if (next != NONE && (policy->blocks[next].list & IN_USE) == 0) {
        const block *after = &policy->blocks[next];
        remove_free(policy, next);
        freed->bytes += after->bytes;
        freed->next = after->next;
        if (freed->next != NONE)
            policy->blocks[freed->next].prev = handle;
        give_record(policy, next);
    }
    insert_free(policy, handle);
}

static void pytorch_empty_cache(frag_policy *policy, uint32_t pool)
{
    if (pool == FRAG_POOL_ALL) {
        release_cached(policy);
    } else if (pool < policy->pool_count && (pool == 0 || policy->is_pool_freeable[pool])) {
        frag_device_synchronize(policy->device);
        release_pool(policy, pool, true);
        release_pool(policy, pool, false);
    }
}

static void pytorch_set_limit(frag_policy *policy, uint64_t limit_bytes)
{
    policy->limit_bytes = limit_bytes;
    policy->gc_mark_bytes = 0;
    if (limit_bytes != FRAG_UNLIMITED && policy->settings.gc_threshold > 0) {
        double mark = policy->settings.gc_threshold * (double)limit_bytes;
        policy->gc_mark_bytes = mark < 1 ? 1 : (uint64_t)mark;
    }
}

/* The owner of a private pool is gone: its cached segments may be given back from now on. */
static void pytorch_pool_release(frag_policy *policy, uint32_t pool)
{
    if (pool == 0 || pool >= policy->pool_count)
        return;
    policy->is_pool_freeable[pool] = true;
    pytorch_empty_cache(policy, pool);
}

static uint32_t add_after(frag_policy *policy, uint32_t last, uint64_t address, uint64_t bytes, uint32_t list,
                          uint32_t number)
{
    uint32_t id = take_record(policy);
    policy->blocks[id] = (block){.address = address, .bytes = bytes, .prev = last, .list = list, .number = number};
    if (last != NONE)
        policy->blocks[last].next = id;
    return id;
}

static bool pytorch_adopt(frag_policy *policy, const frag_span *segment, frag_adopted_block *blocks,
                          uint32_t block_count)
{
    if (frag_device_adopt(policy->device, segment->address, segment->bytes, segment->is_growing) != FRAG_DEVICE_OK)
        return false;
    policy->reserved_bytes += segment->bytes;
    uint32_t list = list_of(policy, segment->pool, segment->is_small_pool, segment->stream);
    uint32_t number = policy->next_number++;
    uint64_t at = segment->address;
    uint64_t end = segment->address + segment->bytes;
    uint32_t last = NONE;
    for (uint32_t i = 0; i <= block_count; i++) {
        uint64_t start = i < block_count ? blocks[i].address : end;
        if (start > at) {
            last = add_after(policy, last, at, start - at, list, number);
            insert_free(policy, last);
        }
        if (i < block_count) {
            last = add_after(policy, last, start, blocks[i].block_bytes, list | IN_USE, number);
            blocks[i].handle = last;
            at = start + blocks[i].block_bytes;
        }
    }
    return true;
}

static uint64_t pytorch_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_pytorch_round(&policy->settings, bytes);
}

/* ---- looking */

static bool is_record_used(const frag_policy *policy, uint32_t id)
{
    return policy->blocks[id].list != UINT32_MAX;
}

static void pytorch_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t head = 1; head < policy->block_count; head++) {
        if (!is_record_used(policy, head) || policy->blocks[head].prev != NONE)
            continue;
        const free_list *list = &policy->lists[policy->blocks[head].list & ~IN_USE];
        frag_span span = {
            .kind = FRAG_SPAN_SEGMENT,
            .address = policy->blocks[head].address,
            .stream = list->stream,
            .pool = list->pool,
            .is_small_pool = list->is_small,
        };
        for (uint32_t id = head; id != NONE; id = policy->blocks[id].next)
            span.bytes += policy->blocks[id].bytes;
        visit(context, &span);
        for (uint32_t id = head; id != NONE; id = policy->blocks[id].next) {
            const block *at = &policy->blocks[id];
            span.kind = (at->list & IN_USE) != 0 ? FRAG_SPAN_BLOCK : FRAG_SPAN_HOLE;
            span.address = at->address;
            span.bytes = at->bytes;
            span.handle = id;
            visit(context, &span);
        }
    }
}

static bool pytorch_check(const frag_policy *policy, frag_error *error)
{
    uint64_t reserved = 0;
    uint64_t free_blocks = 0;
    for (uint32_t id = 1; id < policy->block_count; id++) {
        if (!is_record_used(policy, id))
            continue;
        const block *at = &policy->blocks[id];
        reserved += at->bytes;
        bool is_free = (at->list & IN_USE) == 0;
        free_blocks += is_free ? 1 : 0;
        if (at->bytes == 0)
            return frag_fail(error, FRAG_E_INPUT, "block %u is empty", id);
        if (at->next == NONE)
            continue;
        const block *after = &policy->blocks[at->next];
        if (after->prev != id || after->address != at->address + at->bytes)
            return frag_fail(error, FRAG_E_INPUT, "block %u and its next do not touch", id);
        if ((after->list & ~IN_USE) != (at->list & ~IN_USE))
            return frag_fail(error, FRAG_E_INPUT, "block %u and its next are in different lists", id);
        if (is_free && (after->list & IN_USE) == 0)
            return frag_fail(error, FRAG_E_INPUT, "blocks %u and %u are free side by side", id, at->next);
    }
    if (reserved != policy->reserved_bytes)
        return frag_fail(error, FRAG_E_INPUT, "blocks add up to %llu bytes; reserved are %llu",
                         (unsigned long long)reserved, (unsigned long long)policy->reserved_bytes);
    for (uint32_t i = 0; i < policy->list_count; i++) {
        if (!frag_free_index_check(&policy->lists[i].index, error))
            return false;
        free_blocks -= frag_free_index_count(&policy->lists[i].index);
    }
    if (free_blocks != 0)
        return frag_fail(error, FRAG_E_INPUT, "%llu free blocks are in no list", (unsigned long long)free_blocks);
    return true;
}

/* ---- creating */

/* A live block is at most followed by one free one, and there is at most one more per segment; segments
 * without a live block are whole free ones, at most one for each alloc. */
static uint32_t block_count_max(const frag_policy_limits *limits)
{
    uint64_t segments = limits->request_count + limits->initial_segment_count;
    uint64_t blocks = 2 * (uint64_t)limits->live_count_max + segments + limits->initial_segment_count + 16;
    return blocks < IN_USE ? (uint32_t)blocks : IN_USE - 1;
}

static size_t pytorch_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    uint64_t lists = (uint64_t)limits->pool_count * 2 * limits->stream_count;
    uint32_t blocks = block_count_max(limits);
    return sizeof(frag_policy) + (size_t)blocks * (sizeof(block) + sizeof(uint32_t)) +
           (size_t)lists * sizeof(free_list) + limits->pool_count * (sizeof(bool) + sizeof(uint32_t)) + 8 * 64 +
           frag_free_index_store_bytes(blocks, lists, false);
}

static frag_policy *pytorch_create(const frag_policy_setup *setup, frag_error *error)
{
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    if (!frag_pytorch_settings_create(&policy->settings, setup->values, setup->recorded_version, error))
        return NULL;
    const frag_policy_limits *limits = &setup->limits;
    policy->device = setup->device;
    policy->block_max = block_count_max(limits);
    policy->block_count = 1;
    policy->blocks = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->blocks);
    policy->scratch = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->scratch);
    policy->stream_count = limits->stream_count;
    policy->pool_count = limits->pool_count;
    policy->list_count = limits->pool_count * 2 * limits->stream_count;
    policy->lists = frag_arena_take(setup->arena, policy->list_count, sizeof *policy->lists);
    policy->is_pool_freeable = frag_arena_take(setup->arena, limits->pool_count, sizeof *policy->is_pool_freeable);
    policy->large_searches = frag_arena_take(setup->arena, limits->pool_count, sizeof *policy->large_searches);
    frag_free_index_store_create(&policy->store, setup->arena, policy->block_max, false);
    for (uint32_t i = 0; i < policy->list_count; i++)
        policy->lists[i] = (free_list){
            .index = {.store = &policy->store},
            .stream = i % limits->stream_count,
            .pool = i / limits->stream_count / 2,
            .is_small = i / limits->stream_count % 2 == 0,
        };
    policy->limit_bytes = FRAG_UNLIMITED;
    if (policy->settings.has_fraction) {
        uint64_t capacity = frag_device_capacity(setup->device);
        if (capacity == FRAG_UNLIMITED) {
            frag_fail(error, FRAG_E_USAGE,
                      "per_process_memory_fraction=%g needs a capacity to be a share of; add --capacity SIZE",
                      policy->settings.memory_fraction);
            return NULL;
        }
        pytorch_set_limit(policy, (uint64_t)(policy->settings.memory_fraction * (double)capacity));
    }
    return policy;
}

extern const frag_policy_ops frag_policy_pytorch;
const frag_policy_ops frag_policy_pytorch = {
    .name = "pytorch",
    .summary = "PyTorch's native caching allocator on cudaMalloc'ed segments",
    .source = "c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15",
    .bound = "",
    .options = frag_pytorch_options,
    .arena_bytes = pytorch_arena_bytes,
    .create = pytorch_create,
    .alloc = pytorch_alloc,
    .free = pytorch_free,
    .empty_cache = pytorch_empty_cache,
    .set_limit = pytorch_set_limit,
    .pool_release = pytorch_pool_release,
    .adopt = pytorch_adopt,
    .rounded = pytorch_rounded,
    .walk = pytorch_walk,
    .check = pytorch_check,
};
