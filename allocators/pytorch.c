/* PyTorch's native CUDA caching allocator. Requests are rounded to 512 bytes;
 * best fit among the free blocks of the same stream in a small or a large pool; large remainders
 * are split off; neighbours merge on free; a failing cudaMalloc releases cached segments and is
 * tried again. Source: c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15. Bound: none proved.
 * Ours differs in nothing that a trace can see; host memory and locks are not modelled. */
#include "allocators/pytorch_state.h"
#include "sim/base/bits.h"
#include "sim/base/bytes.h"

static uint32_t add_segment(frag_policy *policy, uint64_t address, uint64_t bytes, uint32_t list)
{
    uint32_t id = frag_pytorch_take_record(policy);
    policy->blocks[id] = (frag_pytorch_block){.address = address,
                                              .bytes = bytes,
                                              .list = list,
                                              .number = frag_pytorch_next_number(policy)};
    policy->reserved_bytes += bytes;
    return id;
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
static uint32_t find_free(const frag_policy *policy, const frag_pytorch_list *list,
                          uint64_t rounded)
{
    uint32_t id = FRAG_PYTORCH_NONE;
    if (!frag_free_index_best(&list->index, rounded, &id))
        return FRAG_PYTORCH_NONE;
    if (FRAG_UNLIKELY((policy->blocks[id].list & FRAG_PYTORCH_EXPANDABLE) != 0)) {
        id = policy->settings.is_expandable ? frag_pytorch_least_reach(policy, list, id)
                                            : frag_pytorch_skip_expandable(policy, list, id);
        if (id == FRAG_PYTORCH_NONE)
            return FRAG_PYTORCH_NONE;
    }
    uint64_t limit = policy->settings.max_split_bytes;
    if (FRAG_UNLIKELY(limit != FRAG_UNLIMITED)) {
        uint64_t bytes = policy->blocks[id].bytes;
        if (rounded < limit ? bytes >= limit
                            : bytes >= rounded + policy->settings.non_split_rounding_bytes)
            return FRAG_PYTORCH_NONE;
    }
    return id;
}

/* Do requests of this pool go to expandable segments? Private pools do from 2.5 on. */
static bool is_growing(const frag_policy *policy, uint32_t list)
{
    return policy->settings.is_expandable &&
           (policy->lists[list].pool == 0 || policy->settings.version >= 205);
}

static bool is_over(uint64_t limit, const frag_policy *policy, uint64_t bytes)
{
    return limit != FRAG_UNLIMITED && policy->reserved_bytes + bytes > limit;
}

/* New memory from the device: bytes for a segment, or pages for the rounded request. */
static uint32_t grow(frag_policy *policy, uint32_t list, uint64_t bytes, uint64_t rounded)
{
    if (is_over(policy->limit_bytes, policy, bytes) || is_over(policy->throw_bytes, policy, bytes))
        return FRAG_PYTORCH_NONE;
    if (is_growing(policy, list))
        return frag_pytorch_expand(policy, list, rounded);
    uint64_t address = 0;
    if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK)
        return FRAG_PYTORCH_NONE;
    return add_segment(policy, address, bytes, list);
}

/* Is the request refused at once, before the device is asked? The memory limit is looked at first.
 */
static bool is_rejected(const frag_policy *policy, uint64_t bytes)
{
    return is_over(policy->throw_bytes, policy, bytes) &&
           !is_over(policy->limit_bytes, policy, bytes);
}

/* The slow path: a segment from the device, after giving back more and more of what is cached. */
static uint32_t get_segment(frag_policy *policy, uint32_t list, uint64_t rounded)
{
    uint64_t bytes = segment_bytes(policy, rounded);
    if (policy->gc_mark_bytes != 0)
        frag_pytorch_collect_garbage(policy);
    if (is_rejected(policy, bytes))
        return FRAG_PYTORCH_NONE;
    uint32_t id = grow(policy, list, bytes, rounded);
    if (id == FRAG_PYTORCH_NONE &&
        frag_pytorch_release_oversize(policy, &policy->lists[list], rounded))
        id = grow(policy, list, bytes, rounded);
    if (id == FRAG_PYTORCH_NONE) {
        frag_pytorch_release_cached(policy);
        id = grow(policy, list, bytes, rounded);
    }
    return id;
}

static bool pytorch_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t rounded = frag_pytorch_round(&policy->settings, request->bytes);
    bool is_small = rounded <= FRAG_PYTORCH_SMALL_MAX;
    uint32_t number = frag_pytorch_list_of(policy, request->pool, is_small, request->stream);
    frag_pytorch_list *list = &policy->lists[number];
    if (FRAG_UNLIKELY(policy->gc_mark_bytes != 0) && !is_small)
        policy->large_searches[request->pool]++;
    uint32_t id = find_free(policy, list, rounded);
    bool is_listed = id != FRAG_PYTORCH_NONE;
    if (FRAG_UNLIKELY(!is_listed)) {
        id = get_segment(policy, number, rounded);
        if (id == FRAG_PYTORCH_NONE)
            return false;
    }
    uint64_t bytes = policy->blocks[id].bytes;
    uint64_t rest = bytes - rounded;
    bool is_split =
        is_small || policy->settings.is_expandable
            ? rest >= FRAG_PYTORCH_ROUND
            : rounded < policy->settings.max_split_bytes && rest > FRAG_PYTORCH_SMALL_MAX;
    if (is_split) {
        uint32_t front = frag_pytorch_cut_front(policy, id, rounded);
        frag_pytorch_block *remainder = &policy->blocks[id];
        if (is_listed) {
            if (FRAG_UNLIKELY(policy->settings.gc_threshold > 0) && !is_small)
                policy->ages[id] = policy->large_searches[request->pool];
            frag_free_index_change(&list->index, id, bytes, rest,
                                   frag_pytorch_tie_of(policy, remainder));
        } else {
            frag_pytorch_insert_free(policy, id);
        }
        id = front;
    } else if (is_listed) {
        frag_free_index_remove(&list->index, id, bytes);
    }
    frag_pytorch_block *granted = &policy->blocks[id];
    granted->list |= FRAG_PYTORCH_IN_USE;
    *grant = (frag_grant){.address = granted->address, .block_bytes = granted->bytes, .handle = id};
    return true;
}

static void pytorch_free(frag_policy *policy, frag_handle handle)
{
    frag_pytorch_block *freed = &policy->blocks[handle];
    FRAG_ASSERT((freed->list & FRAG_PYTORCH_IN_USE) != 0);
    freed->list &= ~FRAG_PYTORCH_IN_USE;
    uint32_t prev = freed->prev;
    if (prev != FRAG_PYTORCH_NONE && frag_pytorch_is_free(&policy->blocks[prev])) {
        const frag_pytorch_block *before = &policy->blocks[prev];
        frag_pytorch_remove_free(policy, prev);
        freed->address = before->address;
        freed->bytes += before->bytes;
        freed->prev = before->prev;
        if (freed->prev != FRAG_PYTORCH_NONE)
            policy->blocks[freed->prev].next = handle;
        frag_pytorch_give_record(policy, prev);
    }
    uint32_t next = freed->next;
    if (next != FRAG_PYTORCH_NONE && frag_pytorch_is_free(&policy->blocks[next])) {
        const frag_pytorch_block *after = &policy->blocks[next];
        frag_pytorch_remove_free(policy, next);
        freed->bytes += after->bytes;
        freed->next = after->next;
        if (freed->next != FRAG_PYTORCH_NONE)
            policy->blocks[freed->next].prev = handle;
        frag_pytorch_give_record(policy, next);
    }
    frag_pytorch_insert_free(policy, handle);
}

static void pytorch_empty_cache(frag_policy *policy, uint32_t pool)
{
    if (pool == FRAG_POOL_ALL) {
        frag_pytorch_release_cached(policy);
    } else if (pool < policy->pool_count && (pool == 0 || policy->is_pool_freeable[pool])) {
        frag_device_synchronize(policy->device);
        frag_pytorch_release_pool(policy, pool, true);
        frag_pytorch_release_pool(policy, pool, false);
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
static void pytorch_pool_change(frag_policy *policy, frag_pool_change change, uint32_t pool,
                                uint32_t stream)
{
    (void)stream;
    if (change == FRAG_POOL_RELEASED && pool > 0 && pool < policy->pool_count)
        policy->is_pool_freeable[pool] = true;
}

/* The front of a block as a block of its own, in use or free; the whole when bytes is all of it. */
static uint32_t carve(frag_policy *policy, uint32_t whole, uint64_t bytes, bool is_in_use)
{
    uint32_t id =
        bytes < policy->blocks[whole].bytes ? frag_pytorch_cut_front(policy, whole, bytes) : whole;
    if (is_in_use)
        policy->blocks[id].list |= FRAG_PYTORCH_IN_USE;
    else
        frag_pytorch_insert_free(policy, id);
    return id;
}

static bool pytorch_adopts_ranges(const frag_policy *policy)
{
    return policy->settings.is_expandable;
}

static bool pytorch_adopt(frag_policy *policy, const frag_span *segment, frag_adopted_block *blocks,
                          uint32_t block_count)
{
    if (frag_device_adopt(policy->device, segment->address, segment->bytes, segment->is_growing) !=
        FRAG_DEVICE_OK)
        return false;
    uint32_t list =
        frag_pytorch_list_of(policy, segment->pool, segment->is_small_pool, segment->stream);
    uint32_t whole = FRAG_PYTORCH_NONE;
    if (segment->is_growing) {
        whole = frag_pytorch_adopt_range(policy, list, segment->address, segment->bytes);
        policy->reserved_bytes += segment->bytes;
    } else {
        whole = add_segment(policy, segment->address, segment->bytes, list);
    }
    uint64_t at = segment->address;
    uint64_t end = segment->address + segment->bytes;
    for (uint32_t i = 0; i < block_count; i++) {
        if (blocks[i].address > at)
            carve(policy, whole, blocks[i].address - at, false);
        blocks[i].handle = carve(policy, whole, blocks[i].block_bytes, true);
        at = blocks[i].address + blocks[i].block_bytes;
    }
    if (at < end)
        carve(policy, whole, end - at, false);
    return true;
}

static uint64_t pytorch_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_pytorch_round(&policy->settings, bytes);
}

/* ---- looking */

/* Is this the first block of a segment, or of a mapped stretch of an expandable one? */
static bool is_head(const frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = &policy->blocks[id];
    if (at->list == FRAG_PYTORCH_UNUSED || (at->list & FRAG_PYTORCH_UNMAPPED) != 0)
        return false;
    return at->prev == FRAG_PYTORCH_NONE ||
           (policy->blocks[at->prev].list & FRAG_PYTORCH_UNMAPPED) != 0;
}

static uint32_t next_mapped(const frag_policy *policy, uint32_t id)
{
    uint32_t next = policy->blocks[id].next;
    bool is_mapped =
        next != FRAG_PYTORCH_NONE && (policy->blocks[next].list & FRAG_PYTORCH_UNMAPPED) == 0;
    return is_mapped ? next : FRAG_PYTORCH_NONE;
}

static void pytorch_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t head = 1; head < policy->block_count; head++) {
        if (!is_head(policy, head))
            continue;
        const frag_pytorch_list *list = frag_pytorch_list_at(policy, &policy->blocks[head]);
        frag_span span = {
            .kind = FRAG_SPAN_SEGMENT,
            .address = policy->blocks[head].address,
            .stream = list->stream,
            .pool = list->pool,
            .is_growing = (policy->blocks[head].list & FRAG_PYTORCH_EXPANDABLE) != 0,
            .is_small_pool = list->is_small,
        };
        for (uint32_t id = head; id != FRAG_PYTORCH_NONE; id = next_mapped(policy, id))
            span.bytes += policy->blocks[id].bytes;
        visit(context, &span);
        for (uint32_t id = head; id != FRAG_PYTORCH_NONE; id = next_mapped(policy, id)) {
            const frag_pytorch_block *at = &policy->blocks[id];
            span.kind = (at->list & FRAG_PYTORCH_IN_USE) != 0 ? FRAG_SPAN_BLOCK : FRAG_SPAN_HOLE;
            span.address = at->address;
            span.bytes = at->bytes;
            span.handle = id;
            visit(context, &span);
        }
    }
}

static bool check_neighbours(const frag_policy *policy, uint32_t id, frag_error *error)
{
    const frag_pytorch_block *at = &policy->blocks[id];
    const frag_pytorch_block *after = &policy->blocks[at->next];
    if (after->prev != id || after->address != at->address + at->bytes)
        return frag_fail(error, FRAG_E_INPUT, "block %u and its next do not touch", id);
    uint32_t own = FRAG_PYTORCH_LIST_MASK | FRAG_PYTORCH_EXPANDABLE;
    if ((after->list & own) != (at->list & own))
        return frag_fail(error, FRAG_E_INPUT, "block %u and its next are in different lists", id);
    bool is_in_use = ((after->list | at->list) & FRAG_PYTORCH_IN_USE) != 0;
    if (!is_in_use && after->list == at->list)
        return frag_fail(error, FRAG_E_INPUT, "blocks %u and %u are free side by side", id,
                         at->next);
    return true;
}

static bool pytorch_check(const frag_policy *policy, frag_error *error)
{
    uint64_t reserved = 0;
    uint64_t free_blocks = 0;
    for (uint32_t id = 1; id < policy->block_count; id++) {
        const frag_pytorch_block *at = &policy->blocks[id];
        if (at->list == FRAG_PYTORCH_UNUSED)
            continue;
        if (at->bytes == 0)
            return frag_fail(error, FRAG_E_INPUT, "block %u is empty", id);
        reserved += (at->list & FRAG_PYTORCH_UNMAPPED) != 0 ? 0 : at->bytes;
        free_blocks += frag_pytorch_is_free(at) ? 1 : 0;
        if (at->next != FRAG_PYTORCH_NONE && !check_neighbours(policy, id, error))
            return false;
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
        return frag_fail(error, FRAG_E_INPUT, "%llu free blocks are in no list",
                         (unsigned long long)free_blocks);
    return frag_pytorch_check_ranges(policy, error);
}

/* ---- creating */

/* A live block is at most followed by one free and one unmapped one; segments and mapped stretches
 * without a live block are at most one for each alloc. */
static uint32_t block_count_max(const frag_policy_limits *limits)
{
    uint64_t segments = limits->request_count + 2 * (uint64_t)limits->initial_segment_count;
    uint64_t blocks = 3 * ((uint64_t)limits->live_count_max + segments) + 16;
    return blocks < FRAG_PYTORCH_LIST_MASK ? (uint32_t)blocks : FRAG_PYTORCH_LIST_MASK;
}

static size_t pytorch_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    uint64_t lists = (uint64_t)limits->pool_count * 2 * limits->stream_count;
    uint32_t blocks = block_count_max(limits);
    return sizeof(frag_policy) +
           (size_t)blocks *
               (sizeof(frag_pytorch_block) + sizeof(frag_pytorch_range) + 2 * sizeof(uint32_t)) +
           (size_t)lists * sizeof(frag_pytorch_list) +
           limits->pool_count * (sizeof(bool) + sizeof(uint32_t)) + 9 * 64 +
           frag_free_index_store_bytes(blocks, lists, false);
}

/* The address space of an expandable segment: 9/8 of the capacity or what the settings say, but no
 * more than the trace could ever fill: devices without a limit have no more address space than
 * others. */
static uint64_t range_bytes(const frag_policy *policy, const frag_policy_setup *setup)
{
    uint64_t capacity = setup->device->capacity_bytes;
    uint64_t peak = setup->limits.peak_requested_bytes;
    uint64_t most = peak > 128 * FRAG_GIB ? 4 * peak : 512 * FRAG_GIB;
    if (capacity / 8 > most / 9)
        return most;
    most = capacity + capacity / 8;
    const frag_pytorch_settings *settings = &policy->settings;
    if (settings->reserve_bytes == 0 && settings->reserve_ratio <= 0)
        return most;
    double wanted = (double)settings->reserve_bytes + settings->reserve_ratio * (double)capacity;
    return wanted < (double)most ? (uint64_t)wanted : most;
}

static frag_policy *pytorch_create(const frag_policy_setup *setup, frag_error *error)
{
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    if (!frag_pytorch_settings_create(&policy->settings, setup->values, setup->recorded_version,
                                      error))
        return NULL;
    const frag_policy_limits *limits = &setup->limits;
    policy->device = setup->device;
    policy->block_max = block_count_max(limits);
    policy->block_count = 1;
    policy->blocks = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->blocks);
    policy->ages = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->ages);
    policy->scratch = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->scratch);
    policy->range_max = policy->block_max;
    policy->range_count = 1;
    policy->ranges = frag_arena_take(setup->arena, policy->range_max, sizeof *policy->ranges);
    policy->range_bytes = range_bytes(policy, setup);
    policy->stream_count = limits->stream_count;
    policy->pool_count = limits->pool_count;
    policy->list_count = limits->pool_count * 2 * limits->stream_count;
    policy->lists = frag_arena_take(setup->arena, policy->list_count, sizeof *policy->lists);
    policy->is_pool_freeable =
        frag_arena_take(setup->arena, limits->pool_count, sizeof *policy->is_pool_freeable);
    policy->large_searches =
        frag_arena_take(setup->arena, limits->pool_count, sizeof *policy->large_searches);
    frag_free_index_store_create(&policy->store, setup->arena, policy->block_max, false);
    for (uint32_t i = 0; i < policy->list_count; i++)
        policy->lists[i] = (frag_pytorch_list){
            .index = {.store = &policy->store},
            .stream = i % limits->stream_count,
            .pool = i / limits->stream_count / 2,
            .is_small = i / limits->stream_count % 2 == 0,
        };
    policy->limit_bytes = FRAG_UNLIMITED;
    policy->throw_bytes = FRAG_UNLIMITED;
    if (policy->settings.throws_on_oom && setup->device->capacity_bytes != FRAG_UNLIMITED)
        policy->throw_bytes = (uint64_t)(policy->settings.memory_fraction *
                                         (double)frag_device_capacity(setup->device));
    if (policy->settings.has_fraction) {
        uint64_t capacity = frag_device_capacity(setup->device);
        if (capacity == FRAG_UNLIMITED) {
            frag_fail(error, FRAG_E_USAGE,
                      "per_process_memory_fraction=%g needs a capacity to be a share of; add "
                      "--capacity SIZE",
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
    .summary = "PyTorch's native caching allocator, with all its settings",
    .source = "c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15",
    .bound = "",
    .options = frag_pytorch_options,
    .arena_bytes = pytorch_arena_bytes,
    .create = pytorch_create,
    .alloc = pytorch_alloc,
    .free = pytorch_free,
    .empty_cache = pytorch_empty_cache,
    .set_limit = pytorch_set_limit,
    .pool_change = pytorch_pool_change,
    .adopt = pytorch_adopt,
    .adopts_ranges = pytorch_adopts_ranges,
    .rounded = pytorch_rounded,
    .walk = pytorch_walk,
    .check = pytorch_check,
};
