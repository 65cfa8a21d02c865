/* PyTorch's native CUDA caching allocator. Requests are rounded to 512 bytes;
 * best fit among the free blocks of the same stream in a small or a large pool; large remainders
 * are split off; neighbours merge on free; a failing cudaMalloc releases cached segments and is
 * tried again. Source: c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15. Bound: none proved.
 * Ours differs in nothing that a trace can see; host memory and locks are not modelled. */
#include "allocators/pytorch/pytorch_conf.h"
#include "allocators/pytorch/pytorch_options.h"
#include "allocators/pytorch/pytorch_state.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"

/* Programs have some dozens; each list takes memory, and its number must leave bits free. */
#define LIST_COUNT_MAX (1u << 21)

static uint32_t add_segment(frag_policy *policy, uint64_t address, uint64_t bytes, uint32_t list)
{
    uint32_t id = frag_pytorch_take_record(policy);
    *frag_pytorch_at(policy, id) = (frag_pytorch_block){.address = address,
                                                        .bytes = bytes,
                                                        .list = list,
                                                        .number = frag_pytorch_next_number(policy)};
    policy->reserved_bytes += bytes;
    frag_pytorch_note_most(&policy->met.segment_max, bytes);
    frag_pytorch_pool *pool = frag_pytorch_pool_at(policy, &policy->lists[list]);
    if (pool != NULL)
        pool->device_count++;
    if (policy->stats != NULL)
        frag_pytorch_count_device(policy, &policy->lists[list], (int64_t)bytes, true);
    return id;
}

/* ---- allocating */

uint64_t frag_pytorch_segment_bytes(const frag_policy *policy, uint64_t rounded)
{
    if (rounded <= FRAG_PYTORCH_SMALL_MAX)
        return FRAG_PYTORCH_SMALL_SEGMENT;
    if (rounded < FRAG_PYTORCH_LARGE_MIN)
        return policy->settings.large_segment_bytes;
    return frag_align_up(rounded, FRAG_PYTORCH_SEGMENT_ROUND);
}

/* With a split limit: is the block on the other side of it, or far larger than an oversize request?
 */
static bool is_unfit(frag_policy *policy, uint64_t rounded, uint64_t bytes)
{
    if (frag_pytorch_is_below_split(policy, rounded))
        return !frag_pytorch_is_below_split(policy, bytes);
    bool is_over = bytes >= rounded + policy->settings.non_split_rounding_bytes;
    if (is_over)
        frag_pytorch_note_least(&policy->met.over_slack_min, bytes - rounded);
    else
        frag_pytorch_note_most(&policy->met.within_slack_max, bytes - rounded);
    return is_over;
}

uint32_t frag_pytorch_find(frag_policy *policy, const frag_pytorch_list *list, uint64_t rounded,
                           bool may_grow)
{
    uint32_t id = FRAG_PYTORCH_NONE;
    if (!frag_free_index_best(&policy->store, frag_pytorch_index_of(policy, list), rounded, &id))
        return FRAG_PYTORCH_NONE;
    if (FRAG_UNLIKELY((frag_pytorch_at(policy, id)->list & FRAG_PYTORCH_EXPANDABLE) != 0)) {
        id = may_grow && policy->settings.is_expandable
                 ? frag_pytorch_least_reach(policy, list, id)
                 : frag_pytorch_skip_expandable(policy, list, id);
        if (id == FRAG_PYTORCH_NONE)
            return FRAG_PYTORCH_NONE;
    }
    uint64_t limit = policy->settings.max_split_bytes;
    if (FRAG_UNLIKELY(limit != FRAG_UNLIMITED) &&
        is_unfit(policy, rounded, frag_pytorch_at(policy, id)->bytes))
        return FRAG_PYTORCH_NONE;
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

static bool is_over_limit(frag_policy *policy, uint64_t bytes)
{
    uint64_t wanted = policy->reserved_bytes + bytes;
    bool is = is_over(policy->limit_bytes, policy, bytes);
    if (is)
        frag_pytorch_note_least(&policy->met.over_limit_min, wanted);
    else
        frag_pytorch_note_most(&policy->met.within_limit_max, wanted);
    if (policy->limit_share > 0)
        frag_device_note_need(
            policy->device,
            frag_pytorch_share_capacity(&policy->settings, policy->limit_share, 1, wanted), is);
    return is;
}

/* New memory from the device: bytes for a segment, or pages for the rounded request. */
static uint32_t grow(frag_policy *policy, uint32_t list, uint64_t bytes, uint64_t rounded)
{
    if (is_over_limit(policy, bytes))
        return FRAG_PYTORCH_NONE;
    if (is_over(policy->throw_bytes, policy, bytes)) {
        policy->is_rejected = true;
        frag_pytorch_note_event(policy, FRAG_PYTORCH_REJECTION);
        return FRAG_PYTORCH_NONE;
    }
    frag_pytorch_call_for(policy, &policy->lists[list]);
    if (is_growing(policy, list)) {
        uint32_t id = frag_pytorch_expand(policy, list, rounded);
        frag_pytorch_pool *pool = frag_pytorch_pool_at(policy, &policy->lists[list]);
        if (id != FRAG_PYTORCH_NONE && pool != NULL)
            pool->device_count++;
        return id;
    }
    uint64_t address = 0;
    if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK)
        return FRAG_PYTORCH_NONE;
    return add_segment(policy, address, bytes, list);
}

/* Is a scope open that keeps cached memory from being given back? A snapshot does not say where
 * scopes and captures begin and end, but its requests name the private pool that served them: such
 * a request was made in a scope. From 2.13 on only captures count, whose pools are named {n, 0}.
 * Where scopes and captures are recorded nothing is guessed. */
static bool is_cache_kept(const frag_policy *policy, uint32_t named_pool)
{
    return frag_pytorch_is_busy(policy) ||
           (named_pool != 0 && !policy->knows_captures &&
            (policy->settings.version < 213 || policy->pool_ids[named_pool].high != 0));
}

/* The slow path: a segment from the device, after giving back more and more of what is cached.
 * named_pool: that the request itself named. *is_listed: the block is still in its free list. */
static FRAG_NOINLINE uint32_t get_segment(frag_policy *policy, uint32_t number, uint64_t rounded,
                                          uint32_t named_pool, bool *is_listed)
{
    const frag_pytorch_list *list = &policy->lists[number];
    uint32_t version = policy->settings.version;
    uint64_t bytes = frag_pytorch_segment_bytes(policy, rounded);
    /* is_split_off asks this too, of whatever comes back. */
    if (policy->settings.max_split_bytes != FRAG_UNLIMITED)
        frag_pytorch_is_below_split(policy, rounded);
    frag_pytorch_note_most(&policy->met.asked_max, policy->reserved_bytes);
    if (policy->is_gc_armed)
        frag_pytorch_collect_garbage(policy);
    policy->is_rejected = false;
    *is_listed = false;
    uint32_t id = grow(policy, number, bytes, rounded);
    if (policy->is_rejected) {
        policy->met.has_failed = true;
        return FRAG_PYTORCH_NONE;
    }
    if (id == FRAG_PYTORCH_NONE && version >= 211) {
        id = frag_pytorch_fall_back(policy, list, rounded);
        *is_listed = id != FRAG_PYTORCH_NONE;
    }
    if (id == FRAG_PYTORCH_NONE && frag_pytorch_release_oversize(policy, list, rounded))
        id = grow(policy, number, bytes, rounded);
    if (id == FRAG_PYTORCH_NONE && !is_cache_kept(policy, named_pool)) {
        frag_pytorch_release_cached(policy);
        frag_pytorch_note_event(policy, FRAG_PYTORCH_RETRY);
        id = grow(policy, number, bytes, rounded);
    }
    if (id == FRAG_PYTORCH_NONE && version < 211) {
        id = frag_pytorch_fall_back(policy, list, rounded);
        *is_listed = id != FRAG_PYTORCH_NONE;
    }
    if (id == FRAG_PYTORCH_NONE && !policy->is_rejected)
        frag_pytorch_note_event(policy, FRAG_PYTORCH_OOM);
    policy->met.has_failed |= id == FRAG_PYTORCH_NONE;
    return id;
}

/* Is what a block has more than it needs to be split off? Without branches, since nobody can guess
 * the answer. */
static inline bool is_split_off(const frag_policy *policy, uint64_t rounded, uint64_t rest,
                                bool is_fine)
{
    uint64_t least = is_fine ? FRAG_PYTORCH_ROUND : FRAG_PYTORCH_SMALL_MAX + 1;
    bool may_split = is_fine | (rounded < policy->settings.max_split_bytes);
    return may_split & (rest >= least);
}

/* The same for a block that did not simply come out of its own list. */
static bool is_rarely_split_off(const frag_policy *policy, uint32_t id, uint32_t number,
                                uint64_t rounded, uint64_t rest)
{
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, frag_pytorch_at(policy, id));
    const frag_pytorch_pool *pool = frag_pytorch_pool_at(policy, list);
    if (pool != NULL && pool->is_unsplit)
        return false;
    bool is_own = list == &policy->lists[number];
    bool is_expanding =
        policy->settings.is_expandable && (is_own || policy->settings.version < 210);
    return is_split_off(policy, rounded, rest, list->is_small || is_expanding);
}

/* Cuts the front off and puts what is left (back) into its list. */
static inline uint32_t split(frag_policy *policy, uint32_t id, uint64_t rounded, bool is_listed)
{
    uint64_t bytes = frag_pytorch_at(policy, id)->bytes;
    bool is_kept = is_listed && policy->place_bits != 0;
    if (FRAG_UNLIKELY(is_kept))
        frag_pytorch_remove_place(policy, id);
    uint32_t front = frag_pytorch_cut_front(policy, id, rounded);
    if (FRAG_UNLIKELY(!is_listed)) {
        frag_pytorch_insert_free(policy, id);
        return front;
    }
    if (FRAG_UNLIKELY(is_kept))
        frag_pytorch_add_place(policy, id);
    if (policy->tracks_ages)
        policy->ages[id] = policy->large_searches;
    frag_free_index *index = frag_pytorch_index_at(policy, frag_pytorch_at(policy, id));
    frag_free_table_change(&policy->store, index->heads, id, bytes - rounded);
    return front;
}

FRAG_INLINE void hand_out(frag_policy *policy, uint32_t id, const frag_request *request,
                          bool is_split, frag_grant *grant)
{
    frag_pytorch_block *block = frag_pytorch_at(policy, id);
    block->list |= FRAG_PYTORCH_IN_USE;
    *grant = (frag_grant){.address = block->address, .block_bytes = block->bytes, .handle = id};
    if (policy->stats != NULL)
        frag_pytorch_count_alloc(policy, id, request->bytes, is_split);
}

/* What bringing a pool back to a checkpoint does (setCheckpointPoolState): blocks have the place
 * and the size that they had then, whatever the settings are now. */
static bool alloc_placed(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = frag_align_up(request->bytes, FRAG_PYTORCH_ROUND);
    uint32_t id = frag_pytorch_find_place(policy, request->pool, policy->placed_address, bytes);
    policy->placed_address = 0;
    if (id == FRAG_PYTORCH_NONE)
        return false;
    bool is_split = frag_pytorch_at(policy, id)->bytes > bytes;
    if (is_split)
        id = split(policy, id, bytes, true);
    else
        frag_pytorch_remove_free(policy, id);
    hand_out(policy, id, request, is_split, grant);
    return true;
}

static void pytorch_place(frag_policy *policy, uint64_t address)
{
    policy->placed_address = address;
    frag_pytorch_keep_places(policy);
    policy->is_plain = false;
}

static FRAG_NOINLINE bool alloc_generally(frag_policy *policy, const frag_request *request,
                                          frag_grant *grant)
{
    if (policy->placed_address != 0 && alloc_placed(policy, request, grant))
        return true;
    if (policy->wait_count > 0 && !frag_pytorch_is_busy(policy))
        frag_pytorch_process_events(policy);
    uint64_t rounded = frag_pytorch_round(&policy->settings, request->bytes);
    bool is_small = rounded <= FRAG_PYTORCH_SMALL_MAX;
    uint32_t pool = request->pool;
    if (pool != 0)
        frag_pytorch_pool_ensure(policy, pool);
    else if (policy->scope_count > 0)
        pool = frag_pytorch_route(policy, request->stream);
    uint32_t number = frag_pytorch_list_of(policy, pool, is_small, request->stream);
    const frag_pytorch_list *list = &policy->lists[number];
    if (policy->is_gc_armed && !is_small && pool == 0)
        policy->large_searches++;
    uint32_t id = frag_pytorch_find(policy, list, rounded, true);
    bool is_listed = id != FRAG_PYTORCH_NONE;
    if (FRAG_UNLIKELY(!is_listed)) {
        id = get_segment(policy, number, rounded, request->pool, &is_listed);
        if (id == FRAG_PYTORCH_NONE)
            return false;
    }
    uint64_t rest = frag_pytorch_at(policy, id)->bytes - rounded;
    bool is_own = (frag_pytorch_at(policy, id)->list & FRAG_PYTORCH_LIST_MASK) == number;
    bool is_split =
        FRAG_UNLIKELY(pool != 0 || !is_own)
            ? is_rarely_split_off(policy, id, number, rounded, rest)
            : is_split_off(policy, rounded, rest, is_small | policy->settings.is_expandable);
    if (is_split)
        id = split(policy, id, rounded, is_listed);
    else if (is_listed)
        frag_pytorch_remove_free(policy, id);
    hand_out(policy, id, request, is_split, grant);
    return true;
}

/* The short way of most requests: nothing is out of the ordinary (see frag_pytorch_settle), and a
 * free block is there. false: there is none, and nothing has changed. */
FRAG_INLINE bool alloc_plainly(frag_policy *policy, uint64_t bytes, uint32_t stream,
                               frag_grant *grant)
{
    uint64_t rounded = frag_align_up(bytes, FRAG_PYTORCH_ROUND);
    bool is_small = rounded <= FRAG_PYTORCH_SMALL_MAX;
    frag_free_index *index = &policy->indexes[frag_pytorch_list_of(policy, 0, is_small, stream)];
    uint32_t id = FRAG_PYTORCH_NONE;
    if (FRAG_UNLIKELY(!frag_free_index_best(&policy->store, index, rounded, &id)))
        return false;
    frag_pytorch_block *block = frag_pytorch_at(policy, id);
    /* One that could grow need not be the one that the library takes. */
    if (FRAG_UNLIKELY((block->list & FRAG_PYTORCH_EXPANDABLE) != 0) &&
        (frag_pytorch_at(policy, block->next)->list & FRAG_PYTORCH_UNMAPPED) != 0)
        return false;
    uint64_t held = block->bytes;
    if (held - rounded >= policy->least_rest[is_small]) {
        uint32_t front = frag_pytorch_cut_front(policy, id, rounded);
        frag_free_table_change(&policy->store, index->heads, id, held - rounded);
        id = front;
        held = rounded;
    } else {
        frag_free_index_remove(&policy->store, index, id);
    }
    block = frag_pytorch_at(policy, id);
    block->list |= FRAG_PYTORCH_IN_USE;
    grant->address = block->address;
    grant->block_bytes = held;
    grant->handle = id;
    return true;
}

FRAG_INLINE bool pytorch_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    if (FRAG_LIKELY(policy->is_plain && request->pool == 0) &&
        FRAG_LIKELY(alloc_plainly(policy, request->bytes, request->stream, grant)))
        return true;
    /* Copies, field by field, so that the caller's need not lie in memory. */
    const frag_request asked = {request->bytes, request->stream, request->pool};
    frag_grant given = {0};
    bool is_granted = alloc_generally(policy, &asked, &given);
    grant->address = given.address;
    grant->block_bytes = given.block_bytes;
    grant->handle = given.handle;
    return is_granted;
}

/* Where a block that could grow is found, the library takes another one of the same list. */
bool frag_pytorch_alloc_cached(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint32_t id = FRAG_PYTORCH_NONE;
    uint64_t rounded = frag_align_up(request->bytes, FRAG_PYTORCH_ROUND);
    bool is_small = rounded <= FRAG_PYTORCH_SMALL_MAX;
    uint32_t number = frag_pytorch_list_of(policy, 0, is_small, request->stream);
    return alloc_plainly(policy, request->bytes, request->stream, grant) ||
           (frag_free_index_best(&policy->store, &policy->indexes[number], rounded, &id) &&
            alloc_generally(policy, request, grant));
}

/* A block that is in no list takes its free neighbours in and becomes free. All blocks of a segment
 * belong to one list. */
FRAG_INLINE void merge_into_free(frag_policy *policy, uint32_t id)
{
    frag_pytorch_block *blocks = policy->store.records;
    frag_pytorch_block *freed = &blocks[id];
    frag_free_index *index = frag_pytorch_index_at(policy, freed);
    uint32_t list = freed->list;
    uint64_t bytes = freed->bytes;
    uint32_t prev = freed->prev;
    uint32_t next = freed->next;
    if (blocks[prev].list == list) {
        (void)frag_free_table_take_out(&policy->store, index->heads, prev);
        freed->address = blocks[prev].address;
        bytes += blocks[prev].bytes;
        freed->prev = blocks[prev].prev;
        blocks[freed->prev].next = id;
        frag_pytorch_give_record(policy, prev);
    }
    if (blocks[next].list == list) {
        (void)frag_free_table_take_out(&policy->store, index->heads, next);
        bytes += blocks[next].bytes;
        freed->next = blocks[next].next;
        blocks[freed->next].prev = id;
        frag_pytorch_give_record(policy, next);
    }
    freed->bytes = bytes;
    if (FRAG_UNLIKELY(policy->tracks_ages))
        policy->ages[id] = policy->large_searches;
    frag_free_table_insert(&policy->store, frag_free_index_heads(&policy->store, index), id, bytes);
}

/* The same, and what is kept of places follows. */
static void merge_and_keep(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *freed = frag_pytorch_at(policy, id);
    if (policy->place_bits == 0) {
        merge_into_free(policy, id);
        return;
    }
    if (frag_pytorch_at(policy, freed->prev)->list == freed->list)
        frag_pytorch_remove_place(policy, freed->prev);
    if (frag_pytorch_at(policy, freed->next)->list == freed->list)
        frag_pytorch_remove_place(policy, freed->next);
    merge_into_free(policy, id);
    frag_pytorch_add_place(policy, id);
}

void frag_pytorch_complete(frag_policy *policy, uint32_t id)
{
    if (policy->stats != NULL)
        frag_pytorch_count_complete(policy, id);
    frag_pytorch_at(policy, id)->list &=
        ~(FRAG_PYTORCH_IN_USE | FRAG_PYTORCH_SHARED | FRAG_PYTORCH_WAITING);
    merge_and_keep(policy, id);
}

/* Frees that are not over when they come: of blocks that other streams use, or that were put off.
 */
static void free_slowly(frag_policy *policy, frag_handle handle)
{
    const frag_pytorch_block *freed = frag_pytorch_at(policy, handle);
    if (policy->stats != NULL && (freed->list & FRAG_PYTORCH_WAITING) == 0)
        frag_pytorch_count_free(policy, handle);
    if ((freed->list & FRAG_PYTORCH_SHARED) != 0)
        frag_pytorch_free_shared(policy, handle);
    else
        frag_pytorch_complete(policy, handle);
}

FRAG_INLINE void pytorch_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    enum { BUSY = FRAG_PYTORCH_SHARED | FRAG_PYTORCH_WAITING };
    frag_pytorch_block *freed = frag_pytorch_at(policy, handle);
    FRAG_ASSERT((freed->list & FRAG_PYTORCH_IN_USE) != 0);
    if (FRAG_UNLIKELY((freed->list & BUSY) != 0 || policy->is_watched)) {
        free_slowly(policy, handle);
        return;
    }
    freed->list &= ~FRAG_PYTORCH_IN_USE;
    merge_into_free(policy, handle);
}

/* In the library's terms, blocks that wait for a stream are no longer allocated. */
static void pytorch_defer(frag_policy *policy, frag_handle handle)
{
    if (policy->stats != NULL)
        frag_pytorch_count_free(policy, handle);
    frag_pytorch_at(policy, handle)->list |= FRAG_PYTORCH_WAITING;
}

static void pytorch_empty_cache(frag_policy *policy, uint32_t pool)
{
    if (pool == FRAG_POOL_ALL || pool == 0)
        frag_pytorch_release_cached(policy);
    else
        frag_pytorch_release_private(policy, pool);
}

/* Garbage collection needs a limit to be a share of. */
static void arm_collection(frag_policy *policy)
{
    policy->is_gc_armed =
        policy->limit_bytes != FRAG_UNLIMITED && policy->settings.gc_threshold > 0;
    policy->gc_mark_bytes =
        policy->is_gc_armed
            ? (uint64_t)(policy->settings.gc_threshold * (double)policy->limit_bytes)
            : 0;
    if (policy->settings.gc_threshold > 0 && !policy->tracks_ages) {
        /* No search was counted before collection was on. */
        policy->tracks_ages = true;
        for (uint32_t id = 1; id < policy->block_count; id++)
            if (frag_pytorch_is_free(frag_pytorch_at(policy, id)))
                policy->ages[id] = 0;
    }
    frag_pytorch_settle(policy);
}

static void pytorch_set_limit(frag_policy *policy, uint64_t limit_bytes)
{
    /* From 2.10 on a fraction of 1 lifts the limit; before, the whole card is one. */
    bool is_whole = frag_device_is_filled_by(policy->device, limit_bytes);
    policy->limit_bytes =
        is_whole && policy->settings.version >= 210 ? FRAG_UNLIMITED : limit_bytes;
    policy->limit_share = 0;
    policy->met.has_changed = true;
    arm_collection(policy);
}

static void pytorch_set_share(frag_policy *policy, double share)
{
    uint64_t capacity = frag_device_range_capacity(policy->device);
    policy->limit_bytes = frag_pytorch_share_bytes(&policy->settings, share, capacity);
    policy->limit_share = policy->limit_bytes == FRAG_UNLIMITED ? 0 : share;
    policy->met.has_changed = true;
    arm_collection(policy);
}

/* With throw_on_cudamalloc_oom: the share of the settings, not of a limit set by a call. */
static void set_throw(frag_policy *policy)
{
    policy->throw_bytes = FRAG_UNLIMITED;
    if (!policy->settings.throws_on_oom)
        return;
    uint64_t capacity = frag_device_capacity(policy->device);
    if (capacity != FRAG_UNLIMITED)
        policy->throw_bytes = (uint64_t)(policy->settings.key_fraction * (double)capacity);
}

static bool pytorch_configure(frag_policy *policy, const char *text, frag_error *error)
{
    frag_pytorch_settings settings = policy->settings;
    if (!frag_pytorch_conf_parse(&settings, text, error))
        return false;
    policy->settings = settings;
    policy->met.has_changed = true;
    arm_collection(policy);
    set_throw(policy);
    return true;
}

static void pytorch_capture(frag_policy *policy, bool begins)
{
    policy->knows_captures = true;
    if (begins)
        policy->capture_count++;
    else if (policy->capture_count > 0)
        policy->capture_count--;
}

/* The front of a block as a block of its own, in use or free; the whole when bytes is all of it. */
static uint32_t carve(frag_policy *policy, uint32_t whole, uint64_t bytes, bool is_in_use)
{
    uint32_t id = bytes < frag_pytorch_at(policy, whole)->bytes
                      ? frag_pytorch_cut_front(policy, whole, bytes)
                      : whole;
    if (is_in_use) {
        frag_pytorch_at(policy, id)->list |= FRAG_PYTORCH_IN_USE;
    } else {
        frag_pytorch_insert_free(policy, id);
        if (policy->stats != NULL)
            frag_pytorch_count_adopted_hole(policy, id);
    }
    return id;
}

/* Stretches of one range that touch are one: the free block that ends the first joins the free
 * block that begins the second. */
static void join_next(frag_policy *policy, uint32_t id)
{
    if (!frag_pytorch_is_free(frag_pytorch_at(policy, frag_pytorch_at(policy, id)->next)))
        return;
    frag_pytorch_remove_free(policy, id);
    merge_and_keep(policy, id);
}

static bool pytorch_adopts_ranges(const frag_policy *policy)
{
    return policy->settings.is_expandable;
}

static bool pytorch_adopt(frag_policy *policy, const frag_span *segment, frag_adopted_block *blocks,
                          uint32_t block_count)
{
    if (frag_device_adopt(policy->device, segment->address, segment->bytes, segment->is_growing) !=
        FRAG_DEVICE_OK) {
        policy->met.has_failed = true;
        return false;
    }
    uint32_t list =
        frag_pytorch_list_of(policy, segment->pool, segment->is_small_pool, segment->stream);
    uint32_t whole = FRAG_PYTORCH_NONE;
    if (segment->pool != 0)
        frag_pytorch_pool_ensure(policy, segment->pool);
    if (segment->is_growing) {
        whole = frag_pytorch_adopt_range(policy, list, segment->address, segment->bytes);
        policy->reserved_bytes += segment->bytes;
        if (policy->stats != NULL)
            frag_pytorch_count_device(policy, &policy->lists[list], (int64_t)segment->bytes, false);
    } else {
        frag_pytorch_end_ranges(policy, segment->address);
        whole = add_segment(policy, segment->address, segment->bytes, list);
    }
    uint32_t before = frag_pytorch_at(policy, whole)->prev;
    uint64_t at = segment->address;
    uint64_t end = segment->address + segment->bytes;
    for (uint32_t i = 0; i < block_count; i++) {
        if (blocks[i].address > at)
            carve(policy, whole, blocks[i].address - at, false);
        blocks[i].handle = carve(policy, whole, blocks[i].block_bytes, true);
        if (policy->stats != NULL)
            frag_pytorch_count_grant(policy, blocks[i].handle, blocks[i].requested_bytes);
        at = blocks[i].address + blocks[i].block_bytes;
    }
    if (at < end)
        carve(policy, whole, end - at, false);
    if (frag_pytorch_is_free(frag_pytorch_at(policy, before)))
        join_next(policy, before);
    return true;
}

static uint64_t pytorch_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_pytorch_round(&policy->settings, bytes);
}

/* ---- creating */

/* A live block is at most followed by one free and one unmapped one; segments and mapped stretches
 * without a live block are at most one for each alloc. */
static uint32_t block_count_max(const frag_policy_limits *limits)
{
    uint64_t segments = limits->request_count + 2 * (uint64_t)limits->initial_segment_count;
    /* Blocks that were used by other streams may stay after their frees. */
    uint64_t live = (uint64_t)limits->live_count_max + limits->use_count;
    uint64_t blocks = 3 * (live + segments) + 16;
    return blocks < FRAG_PYTORCH_LIST_MASK ? (uint32_t)blocks : FRAG_PYTORCH_LIST_MASK;
}

/* One for each segment, which are at most a third of these. */
static uint32_t range_count_max(uint32_t blocks)
{
    return blocks / 3 + 16;
}

/* Every use needs a record until its event is done; the trace says how many there can be. */
static uint32_t use_count_max(const frag_policy_limits *limits)
{
    return limits->use_count < UINT32_MAX - 1 ? (uint32_t)limits->use_count + 1 : UINT32_MAX;
}

/* Small and large, of each pool and stream. */
static uint64_t list_count_of(const frag_policy_limits *limits)
{
    return (uint64_t)limits->pool_count * 2 * limits->stream_count;
}

static size_t pytorch_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    /* More of them are refused when the policy is created. */
    uint64_t lists =
        list_count_of(limits) < LIST_COUNT_MAX ? list_count_of(limits) : LIST_COUNT_MAX;
    uint32_t blocks = block_count_max(limits);
    size_t of_block = 6 * sizeof(uint32_t) + sizeof(uint64_t);
    size_t of_pool = sizeof(frag_pytorch_pool) + sizeof(frag_pytorch_scope) + sizeof(uint32_t);
    return sizeof(frag_policy) + blocks * of_block +
           (size_t)frag_power_of_two_up(blocks) * sizeof(uint32_t) +
           (size_t)range_count_max(blocks) * sizeof(frag_pytorch_range) +
           (size_t)lists * (sizeof(frag_pytorch_list) + sizeof(frag_free_index)) +
           limits->pool_count * of_pool + use_count_max(limits) * sizeof(frag_pytorch_use) +
           limits->stream_count * 4 * sizeof(uint32_t) +
           2 * frag_ordered_table_bytes(limits->pool_count) +
           2 * frag_ordered_table_bytes(limits->stream_count) +
           frag_pytorch_stats_bytes(limits->pool_count) + 32 * 64 +
           frag_free_index_store_bytes(blocks, lists) + frag_free_records_bytes(blocks);
}

static void create_lists(frag_policy *policy, const frag_policy_setup *setup)
{
    const frag_policy_limits *limits = &setup->limits;
    policy->stream_count = limits->stream_count;
    policy->pool_count = limits->pool_count;
    policy->list_count = (uint32_t)list_count_of(limits);
    policy->lists = frag_arena_take(setup->arena, policy->list_count, sizeof *policy->lists);
    policy->indexes = frag_arena_take(setup->arena, policy->list_count, sizeof *policy->indexes);
    frag_free_index_store_create(&policy->store, setup->arena,
                                 frag_free_records_take(setup->arena, policy->block_max),
                                 policy->block_max, policy->list_count, true);
    frag_pytorch_at(policy, FRAG_PYTORCH_NONE)->list = FRAG_PYTORCH_IN_USE;
    for (uint32_t i = 0; i < policy->list_count; i++)
        policy->lists[i] = (frag_pytorch_list){
            .stream = i % limits->stream_count,
            .pool = i / limits->stream_count / 2,
            .is_small = i / limits->stream_count % 2 == 0,
        };
}

/* Streams in the order of their handles, as the library sorts them; there are few. */
static void create_streams(frag_policy *policy, const frag_policy_setup *setup)
{
    uint32_t count = policy->stream_count;
    policy->handles = setup->stream_handles;
    policy->stream_order = frag_arena_take(setup->arena, count, sizeof *policy->stream_order);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && policy->handles[policy->stream_order[at - 1]] > policy->handles[i]; at--)
            policy->stream_order[at] = policy->stream_order[at - 1];
        policy->stream_order[at] = i;
    }
    uint32_t uses = use_count_max(&setup->limits);
    policy->uses = frag_arena_take(setup->arena, uses, sizeof *policy->uses);
    policy->use_count = 1;
    policy->first_uses = frag_arena_take(setup->arena, policy->block_max, sizeof(uint32_t));
    policy->event_counts = frag_arena_take(setup->arena, policy->block_max, sizeof(uint32_t));
    policy->deferred = frag_arena_take(setup->arena, policy->block_max, sizeof(uint32_t));
    policy->queue_heads = frag_arena_take(setup->arena, count, sizeof(uint32_t));
    policy->queue_tails = frag_arena_take(setup->arena, count, sizeof(uint32_t));
    policy->stream_scratch = frag_arena_take(setup->arena, count, sizeof(uint32_t));
    frag_ordered_table_create(&policy->queues, setup->arena, count);
    frag_ordered_table_create(&policy->set, setup->arena, count);
    policy->on_complete = setup->on_complete;
    policy->on_complete_context = setup->on_complete_context;
}

static void create_pools(frag_policy *policy, const frag_policy_setup *setup)
{
    policy->pool_ids = setup->pool_ids;
    policy->pools = frag_arena_take(setup->arena, policy->pool_count, sizeof *policy->pools);
    policy->scopes = frag_arena_take(setup->arena, policy->pool_count, sizeof *policy->scopes);
    policy->pool_scratch = frag_arena_take(setup->arena, policy->pool_count, sizeof(uint32_t));
    policy->place_chains = frag_arena_take(
        setup->arena, (size_t)frag_power_of_two_up(policy->block_max), sizeof(uint32_t));
    policy->place_next = frag_arena_take(setup->arena, policy->block_max, sizeof(uint32_t));
    frag_ordered_table_create(&policy->freeable, setup->arena, policy->pool_count);
    frag_ordered_table_create(&policy->on_oom, setup->arena, policy->pool_count);
}

static frag_policy *pytorch_create(const frag_policy_setup *setup, frag_error *error)
{
    uint64_t lists = list_count_of(&setup->limits);
    if (lists > LIST_COUNT_MAX) {
        frag_fail(error, FRAG_E_INPUT,
                  "the trace has %u streams and %u pools, which would need %llu free lists; "
                  "expected at most %u",
                  setup->limits.stream_count, setup->limits.pool_count, (unsigned long long)lists,
                  LIST_COUNT_MAX);
        return NULL;
    }
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    if (!frag_pytorch_settings_create(&policy->settings, setup->values, setup->recorded_version,
                                      error))
        return NULL;
    policy->device = setup->device;
    policy->met = (frag_pytorch_met){.over_split_min = FRAG_UNLIMITED,
                                     .over_slack_min = FRAG_UNLIMITED,
                                     .over_mark_min = FRAG_UNLIMITED,
                                     .over_limit_min = FRAG_UNLIMITED};
    policy->block_max = block_count_max(&setup->limits);
    policy->block_count = 1;
    create_lists(policy, setup);
    policy->ages = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->ages);
    policy->scratch = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->scratch);
    policy->requested = frag_arena_take(setup->arena, policy->block_max, sizeof(uint64_t));
    policy->stats_room =
        frag_arena_take(setup->arena, 1, frag_pytorch_stats_bytes(setup->limits.pool_count));
    policy->range_max = range_count_max(policy->block_max);
    policy->range_count = 1;
    policy->ranges = frag_arena_take(setup->arena, policy->range_max, sizeof *policy->ranges);
    uint64_t peak = setup->limits.peak_requested_bytes;
    uint64_t filled = peak < FRAG_PYTORCH_RANGE_MAX / 4 ? peak : FRAG_PYTORCH_RANGE_MAX / 4;
    policy->unlimited_range_bytes = filled > 128 * FRAG_GIB ? 4 * filled : 512 * FRAG_GIB;
    create_streams(policy, setup);
    create_pools(policy, setup);
    policy->limit_bytes = FRAG_UNLIMITED;
    set_throw(policy);
    arm_collection(policy);
    if (policy->settings.has_fraction) {
        if (setup->device->capacity_bytes == FRAG_UNLIMITED) {
            frag_fail(error, FRAG_E_USAGE,
                      "per_process_memory_fraction=%g needs a capacity to be a share of; add "
                      "--capacity SIZE",
                      policy->settings.memory_fraction);
            return NULL;
        }
        pytorch_set_share(policy, policy->settings.memory_fraction);
        policy->met.has_changed = false;
    }
    return policy;
}

static void pytorch_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, pytorch_alloc, pytorch_free);
}

static const frag_policy_rules pytorch_rules = {
    .rounding = "to multiples of 512, or to a share of a power of two (roundup_power2_divisions)",
    .takes = "the smallest of its stream, pool and size class (up to 1 MiB, or above); of equal "
             "ones the lowest, from 2.12 on that whose record was made first, from 2.13 on that in "
             "the oldest segment. Oversize blocks (max_split_size_mb) only for oversize requests, "
             "with a surplus of at most max_non_split_rounding_mb",
    .cuts = "if the remainder has at least 512 bytes (small or expandable blocks) or more than 1 "
            "MiB (others); the low end is handed out. Oversize blocks never",
    .joins = "with free neighbours of its segment, once every stream that used it is done",
    .grows =
        "device mallocs of 2 MiB for small requests, of large_segment_size_mb for those below 10 "
        "MiB, else of the request in multiples of 2 MiB; or pages mapped where expandable_segments "
        "end. Above garbage_collection_threshold old cached segments go back first; when the "
        "device refuses, oversize ones that are large enough, then all, and it is asked again",
    .streams = "a block stays with the stream that its segment was taken for",
};

static const frag_policy_repeats pytorch_repeats = {
    .terms = frag_pytorch_terms,
    .met = frag_pytorch_tell_met,
    .proves = frag_pytorch_repeats,
};

static const frag_policy_statistics pytorch_statistics = {
    .keep = frag_pytorch_keep_stats,
    .visit = frag_pytorch_stats_visit,
    .reset = frag_pytorch_reset_stats,
};

static bool pytorch_shows_all(const frag_policy *policy)
{
    return policy->stats == NULL && !policy->has_kept_old;
}

/* The age of free blocks, and which record was made first. */
static void visit_memories(const frag_policy *policy, frag_memory_visitor *visit, void *context)
{
    bool has_ranks = policy->settings.tie == FRAG_PYTORCH_TIE_BLOCK_NUMBER;
    if (!has_ranks && !policy->tracks_ages)
        return;
    for (uint32_t id = 1; id < policy->block_count; id++) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, id);
        frag_policy_memory memory = {
            .address = at->address,
            .rank = has_ranks ? at->number : 0,
            .time = frag_pytorch_is_free(at) && policy->tracks_ages ? policy->ages[id]
                                                                    : policy->large_searches,
        };
        if (at->list != FRAG_PYTORCH_UNUSED)
            visit(context, &memory);
    }
}

static uint64_t memory_clock(const frag_policy *policy)
{
    return policy->large_searches;
}

static void pass_memories(frag_policy *policy, uint64_t since, uint64_t by)
{
    policy->large_searches += (uint32_t)by;
    for (uint32_t id = 1; id < policy->block_count; id++)
        if (frag_pytorch_is_free(frag_pytorch_at(policy, id)) && policy->ages[id] >= since)
            policy->ages[id] += (uint32_t)by;
}

static const frag_policy_memories pytorch_memories = {
    .visit = visit_memories, .clock = memory_clock, .pass = pass_memories};

static const frag_policy_engine pytorch_engine = {
    .repeats = &pytorch_repeats,
    .statistics = &pytorch_statistics,
    .place = pytorch_place,
    .replay = pytorch_replay,
    .shows_all = pytorch_shows_all,
    .memories = &pytorch_memories,
    .small = &frag_pytorch_small,
};

extern const frag_policy_ops frag_policy_pytorch;
const frag_policy_ops frag_policy_pytorch = {
    .name = "pytorch",
    .summary = "PyTorch's native caching allocator, with all its settings",
    .source = "c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15",
    .rules = &pytorch_rules,
    .checked = "the library's own logs, 2.1 to 2.15, request by request (tests/data/golden)",
    .bound = "",
    .options = frag_pytorch_options,
    .conf_option = "conf",
    .fraction_option = "per_process_memory_fraction",
    .arena_bytes = pytorch_arena_bytes,
    .create = pytorch_create,
    .alloc = pytorch_alloc,
    .free = pytorch_free,
    .empty_cache = pytorch_empty_cache,
    .set_limit = pytorch_set_limit,
    .set_share = pytorch_set_share,
    .use = frag_pytorch_use_block,
    .defer = pytorch_defer,
    .pool_change = frag_pytorch_pool_change,
    .capture = pytorch_capture,
    .configure = pytorch_configure,
    .describe_oom = frag_pytorch_describe_oom,
    .adopt = pytorch_adopt,
    .adopts_ranges = pytorch_adopts_ranges,
    .rounded = pytorch_rounded,
    .walk = frag_pytorch_walk,
    .check = frag_pytorch_check,
    .engine = &pytorch_engine,
};
