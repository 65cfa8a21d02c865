#include "allocators/frameworks/composed.h"

#include <stdlib.h>

#include "allocators/index/index_audit.h"
#include "base/bits.h"
#include "sim/replay/replay_loop.h"

/* ---- creating */

frag_composed_scale frag_composed_scale_of(const frag_policy_limits *limits)
{
    return (frag_composed_scale){limits->request_count, limits->stream_count + 1};
}

/* A request splits off at most one block and makes at most one segment, with its header and its
 * free block; neighbouring free blocks of two streams stay apart, so that frees may coalesce
 * nothing. */
uint32_t frag_composed_records(const frag_composed_scale *scale)
{
    uint64_t count = 3 * scale->request_count + 16;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

static uint32_t list_count_max(const frag_composed_scale *scale)
{
    return scale->stream_count > 2 ? scale->stream_count : 2;
}

size_t frag_composed_bytes(const frag_composed_scale *scale)
{
    uint32_t records = frag_composed_records(scale);
    uint32_t lists = list_count_max(scale);
    return frag_free_records_bytes(records) + (size_t)records * sizeof(frag_idle_segment) +
           (size_t)lists * sizeof(frag_free_index) + frag_free_index_store_bytes(records, lists) +
           frag_exact_lists_bytes(records) + frag_stream_lists_bytes(scale->stream_count) + 4 * 64;
}

void frag_composed_create(frag_composed *composed, const frag_policy_setup *setup,
                          const frag_composed_scale *scale, const frag_composition *rules,
                          const frag_growth_state *growth, frag_event_counter *counter)
{
    uint32_t records = frag_composed_records(scale);
    uint32_t lists = list_count_max(scale);
    *composed = (frag_composed){
        .rules = *rules,
        .growth = *growth,
        .list_count = lists,
        .first_segment = FRAG_BLOCK_NONE,
    };
    frag_block_space_create_bare(&composed->space, setup, records);
    composed->idle = frag_arena_take(setup->arena, records, sizeof *composed->idle);
    composed->lists = frag_arena_take(setup->arena, lists, sizeof *composed->lists);
    frag_free_index_store_create(&composed->store, setup->arena, composed->space.blocks, records,
                                 lists, false);
    FRAG_ASSERT(rules->pick == FRAG_PICK_EXACT || rules->gives_back <= FRAG_GIVE_BACK_BY_ADDRESS);
    if (rules->pick == FRAG_PICK_EXACT) {
        FRAG_ASSERT(rules->lists == FRAG_LISTS_ONE && rules->split == FRAG_SPLIT_NEVER &&
                    rules->merge == FRAG_MERGE_NEVER);
        frag_exact_lists_create(&composed->exact, setup->arena, records);
    }
    if (rules->lists == FRAG_LISTS_SHARED)
        frag_stream_lists_create(&composed->streams, setup->arena, setup->device, counter,
                                 scale->stream_count);
}

/* ---- choices */

static inline uint64_t up_to_multiple(uint64_t bytes, uint64_t unit)
{
    return frag_is_power_of_two(unit) ? frag_align_up(bytes, unit) : frag_round_up(bytes, unit);
}

static inline uint64_t round_request(const frag_composition *rules, uint64_t bytes)
{
    switch (rules->rounding) {
    case FRAG_ROUND_MULTIPLE:
        return frag_align_up(bytes, rules->unit);
    case FRAG_ROUND_LEAST:
        return bytes < rules->unit ? rules->unit : bytes;
    case FRAG_ROUND_STEPPED:
        bytes = up_to_multiple(bytes, rules->unit);
        return bytes > rules->linear ? up_to_multiple(bytes, rules->linear) : bytes;
    case FRAG_ROUND_POWER:
        if (bytes > rules->linear)
            return frag_align_up(bytes, rules->linear);
        return bytes < rules->unit ? rules->unit : frag_power_of_two_up(bytes);
    }
    return bytes;
}

uint64_t frag_composed_rounded(const frag_composed *composed, uint64_t bytes)
{
    return round_request(&composed->rules, bytes);
}

static inline uint32_t list_of(const frag_composition *rules, uint32_t stream, uint64_t bytes)
{
    switch (rules->lists) {
    case FRAG_LISTS_ONE:
        return 0;
    case FRAG_LISTS_BY_SIZE:
        return bytes <= rules->small_bytes;
    case FRAG_LISTS_BY_STREAM:
    case FRAG_LISTS_SHARED:
        break;
    }
    return stream;
}

static inline bool is_cut(const frag_composition *rules, uint64_t held, uint64_t bytes)
{
    switch (rules->split) {
    case FRAG_SPLIT_LOW:
    case FRAG_SPLIT_HIGH:
        return held > bytes;
    case FRAG_SPLIT_TWICE:
        return held > bytes && (held >= 2 * bytes || held - bytes >= rules->surplus_max);
    case FRAG_SPLIT_NEVER:
        break;
    }
    return false;
}

/* ---- free blocks */

static inline void insert(frag_composed *composed, uint32_t hole)
{
    const frag_block *block = &composed->space.blocks[hole];
    if (FRAG_UNLIKELY(composed->rules.pick == FRAG_PICK_EXACT))
        frag_exact_insert(&composed->exact, hole, block->bytes);
    else
        frag_free_index_insert(&composed->store, &composed->lists[block->link], hole);
}

static inline void take_out(frag_composed *composed, uint32_t hole)
{
    const frag_block *block = &composed->space.blocks[hole];
    if (FRAG_UNLIKELY(composed->rules.pick == FRAG_PICK_EXACT))
        frag_exact_remove(&composed->exact, hole, block->bytes);
    else
        frag_free_index_remove(&composed->store, &composed->lists[block->link], hole);
}

/* A free block that is in the index gets another start and size. */
static inline void resize(frag_composed *composed, uint32_t hole, uint64_t address, uint64_t bytes)
{
    frag_block *block = &composed->space.blocks[hole];
    block->address = address;
    block->bytes = bytes;
    frag_free_index_change(&composed->store, &composed->lists[block->link], hole);
}

/* Makes a block that is in no index a free one of the list, coalesced with its neighbours there.
 * Returns the record of the whole. */
static inline uint32_t put(frag_composed *composed, uint32_t id, uint32_t list)
{
    frag_block_space *space = &composed->space;
    frag_block *block = &space->blocks[id];
    const frag_block *previous = &space->blocks[block->previous];
    const frag_block *next = &space->blocks[block->next];
    bool may_join = composed->rules.merge != FRAG_MERGE_NEVER;
    bool joins_next = may_join && next->state == FRAG_BLOCK_HOLE && next->link == list;
    if (may_join && previous->state == FRAG_BLOCK_HOLE && previous->link == list) {
        uint32_t hole = block->previous;
        uint32_t after = block->next;
        uint64_t bytes = previous->bytes + block->bytes;
        frag_block_unlink(space, id);
        if (joins_next) {
            bytes += next->bytes;
            take_out(composed, after);
            frag_block_unlink(space, after);
        }
        resize(composed, hole, previous->address, bytes);
        return hole;
    }
    if (joins_next) {
        uint32_t hole = block->next;
        uint64_t address = block->address;
        uint64_t bytes = next->bytes + block->bytes;
        frag_block_unlink(space, id);
        resize(composed, hole, address, bytes);
        return hole;
    }
    block->state = FRAG_BLOCK_HOLE;
    block->link = list;
    insert(composed, id);
    return id;
}

/* ---- segments */

/* The segment that ends where a new one begins. Looked for only when there is a new one. */
static uint32_t segment_before(const frag_composed *composed, uint64_t address)
{
    const frag_block *blocks = composed->space.blocks;
    for (uint32_t id = composed->space.first_header; id != FRAG_BLOCK_NONE; id = blocks[id].link)
        if (blocks[id].address + blocks[id].bytes == address)
            return id;
    return FRAG_BLOCK_NONE;
}

uint32_t frag_composed_add(frag_composed *composed, uint32_t list, uint64_t address, uint64_t asked,
                           uint64_t usable)
{
    frag_block_space *space = &composed->space;
    uint32_t header = composed->rules.merge == FRAG_MERGE_TOUCHING
                          ? segment_before(composed, address)
                          : FRAG_BLOCK_NONE;
    if (header == FRAG_BLOCK_NONE)
        header = frag_block_space_add_segment(space, address, asked);
    else
        space->blocks[header].bytes += asked;
    if (composed->first_segment == FRAG_BLOCK_NONE)
        composed->first_segment = header;
    composed->held_bytes += asked;
    uint32_t hole = frag_block_space_append_hole(space, header, address, usable);
    if (composed->rules.pick != FRAG_PICK_EXACT)
        return put(composed, hole, list);
    space->blocks[hole].state = FRAG_BLOCK_HOLE;
    space->blocks[hole].link = list;
    frag_exact_insert_fresh(&composed->exact, hole, usable);
    return hole;
}

/* Has a segment no busy block? Its free ones are one block, or several side by side if not all
 * coalesce. */
static bool is_idle(const frag_composed *composed, uint32_t header)
{
    const frag_block *blocks = composed->space.blocks;
    uint32_t at = blocks[header].next;
    while (blocks[at].state == FRAG_BLOCK_HOLE)
        at = blocks[at].next;
    return at == header && !(composed->rules.keeps_first && header == composed->first_segment);
}

uint64_t frag_composed_idle_bytes(const frag_composed *composed)
{
    const frag_block *blocks = composed->space.blocks;
    uint64_t bytes = 0;
    for (uint32_t id = composed->space.first_header; id != FRAG_BLOCK_NONE; id = blocks[id].link)
        bytes += is_idle(composed, id) ? blocks[id].bytes : 0;
    return bytes;
}

static int compare_addresses(const void *left, const void *right)
{
    const frag_idle_segment *a = left, *b = right;
    return frag_compare(a->address, b->address);
}

/* Gives one idle segment back. Its header stays in the list of segments, as an unused record. */
static void release(frag_composed *composed, uint32_t header)
{
    frag_block_space *space = &composed->space;
    frag_block *segment = &space->blocks[header];
    if (frag_device_free(space->device, segment->address, segment->bytes) != FRAG_DEVICE_OK)
        return;
    composed->held_bytes -= segment->bytes;
    while (segment->next != header) {
        take_out(composed, segment->next);
        frag_block_unlink(space, segment->next);
    }
    segment->state = FRAG_BLOCK_UNUSED;
}

static void add_idle(frag_composed *composed, uint32_t header)
{
    const frag_block *segment = &composed->space.blocks[header];
    composed->idle[composed->idle_count++] = (frag_idle_segment){segment->address, header};
}

/* A free block that is never split is all of its segment. */
static void add_idle_block(void *context, uint32_t block)
{
    frag_composed *composed = context;
    add_idle(composed, composed->space.blocks[block].next);
}

static void find_idle(frag_composed *composed)
{
    const frag_block_space *space = &composed->space;
    frag_give_back_order order = composed->rules.gives_back;
    composed->idle_count = 0;
    if (order == FRAG_GIVE_BACK_BY_SIZE || order == FRAG_GIVE_BACK_BY_TABLE) {
        frag_exact_visit_all(&composed->exact, order == FRAG_GIVE_BACK_BY_SIZE, add_idle_block,
                             composed);
        return;
    }
    for (uint32_t id = space->first_header; id != FRAG_BLOCK_NONE; id = space->blocks[id].link)
        if (is_idle(composed, id))
            add_idle(composed, id);
    if (order == FRAG_GIVE_BACK_BY_ADDRESS && composed->idle_count > 1)
        qsort(composed->idle, composed->idle_count, sizeof *composed->idle, compare_addresses);
}

void frag_composed_give_back(frag_composed *composed)
{
    find_idle(composed);
    if (composed->idle_count == 0)
        return;
    for (size_t i = 0; i < composed->idle_count; i++)
        release(composed, composed->idle[i].header);
    frag_block_space_sweep(&composed->space);
}

/* ---- requests */

typedef struct list_search {
    frag_composed *composed;
    uint64_t bytes;
    uint32_t hole;
} list_search;

/* Among blocks of one size another than the lowest is wanted: is it one of them? */
static void take_preferred(const frag_composed *composed, const frag_free_index *index,
                           uint32_t *hole)
{
    const frag_block *blocks = composed->space.blocks;
    uint64_t bytes = blocks[*hole].bytes;
    uint32_t other = *hole;
    do {
        if (blocks[other].address == composed->preferred)
            *hole = other;
    } while (frag_free_index_after(&composed->store, index, other, &other) &&
             blocks[other].bytes == bytes);
}

static inline bool find(const frag_composed *composed, uint32_t list, uint64_t bytes,
                        uint32_t *hole)
{
    if (FRAG_UNLIKELY(composed->rules.pick == FRAG_PICK_EXACT))
        return frag_exact_newest(&composed->exact, bytes, hole);
    const frag_free_index *index = &composed->lists[list];
    if (!frag_free_index_best(&composed->store, index, bytes, hole))
        return false;
    if (FRAG_UNLIKELY(composed->preferred != 0))
        take_preferred(composed, index, hole);
    return true;
}

static bool find_in_list(void *context, uint32_t list)
{
    list_search *search = context;
    return find(search->composed, list, search->bytes, &search->hole);
}

static void merge_lists(void *context, uint32_t from, uint32_t to)
{
    frag_composed *composed = ((list_search *)context)->composed;
    uint32_t hole = 0;
    while (frag_free_index_best(&composed->store, &composed->lists[from], 1, &hole)) {
        take_out(composed, hole);
        (void)put(composed, hole, to);
    }
}

/* No block of the request's own list will do. */
static bool find_elsewhere(frag_composed *composed, uint32_t list, uint64_t bytes, uint32_t *hole)
{
    list_search search = {.composed = composed, .bytes = bytes};
    uint32_t found = 0;
    if (composed->rules.lists == FRAG_LISTS_SHARED &&
        frag_stream_lists_search(&composed->streams, list, find_in_list, merge_lists, &search,
                                 &found)) {
        *hole = search.hole;
        return true;
    }
    frag_shortage shortage = {.bytes = bytes, .list = list};
    return composed->rules.grow(composed, &shortage, hole);
}

/* Cuts the high end of a free block off as a busy one; the low end keeps its record. */
static inline uint32_t cut_high(frag_block_space *space, uint32_t hole, uint64_t bytes)
{
    uint32_t id = frag_block_take_record(space);
    frag_block *rest = &space->blocks[hole];
    frag_block *block = &space->blocks[id];
    rest->bytes -= bytes;
    block->address = rest->address + rest->bytes;
    block->bytes = bytes;
    block->previous = hole;
    block->next = rest->next;
    block->state = FRAG_BLOCK_BUSY;
    space->blocks[rest->next].previous = id;
    rest->next = id;
    return id;
}

FRAG_INLINE bool serve(frag_composed *composed, const frag_request *request, frag_grant *grant)
{
    const frag_composition *rules = &composed->rules;
    frag_block_space *space = &composed->space;
    if (FRAG_UNLIKELY(composed->has_failed))
        return false;
    uint64_t bytes = round_request(rules, request->bytes);
    uint32_t list = list_of(rules, request->stream, bytes);
    uint32_t hole = 0;
    if (rules->lists == FRAG_LISTS_SHARED)
        frag_stream_list_open(&composed->streams, list);
    bool is_found =
        find(composed, list, bytes, &hole) || find_elsewhere(composed, list, bytes, &hole);
    composed->preferred = 0;
    if (FRAG_UNLIKELY(!is_found))
        return false;
    uint64_t held = space->blocks[hole].bytes;
    uint32_t granted = hole;
    if (is_cut(rules, held, bytes)) {
        bool is_high = rules->split == FRAG_SPLIT_HIGH;
        granted = is_high ? cut_high(space, hole, bytes) : frag_block_cut(space, hole, bytes);
        const frag_block *rest = &space->blocks[hole];
        space->blocks[granted].link = rest->link;
        frag_free_index_change(&composed->store, &composed->lists[rest->link], hole);
    } else {
        take_out(composed, hole);
        space->blocks[hole].state = FRAG_BLOCK_BUSY;
    }
    const frag_block *block = &space->blocks[granted];
    *grant =
        (frag_grant){.address = block->address, .block_bytes = block->bytes, .handle = granted};
    return true;
}

bool frag_composed_alloc(frag_composed *composed, const frag_request *request, frag_grant *grant)
{
    return serve(composed, request, grant);
}

FRAG_INLINE void take_back(frag_composed *composed, frag_handle handle, uint32_t stream)
{
    frag_block_space *space = &composed->space;
    FRAG_ASSERT(handle < space->record_count && space->blocks[handle].state == FRAG_BLOCK_BUSY);
    uint32_t list = space->blocks[handle].link;
    if (composed->rules.lists == FRAG_LISTS_SHARED) {
        frag_stream_list_open(&composed->streams, stream);
        (void)frag_device_event_record(space->device, stream);
        list = stream;
    }
    uint32_t hole = put(composed, handle, list);
    if (FRAG_UNLIKELY(composed->rules.gives_back_at_once)) {
        uint32_t header = space->blocks[hole].next;
        if (space->blocks[header].state == FRAG_BLOCK_HEADER && is_idle(composed, header)) {
            release(composed, header);
            frag_block_space_sweep(space);
        }
    }
}

void frag_composed_free(frag_composed *composed, frag_handle handle, uint32_t stream)
{
    take_back(composed, handle, stream);
}

/* Such a policy begins with its allocator. */
FRAG_INLINE bool policy_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return serve((frag_composed *)(void *)policy, request, grant);
}

FRAG_INLINE void policy_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    take_back((frag_composed *)(void *)policy, handle, stream);
}

void frag_composed_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, policy_alloc, policy_free);
}

/* ---- walking and checking */

void frag_composed_walk(const frag_composed *composed, frag_span_visitor *visit, void *context)
{
    frag_block_space_walk(&composed->space, visit, context);
}

typedef struct exact_check {
    const frag_block *blocks;
    uint64_t count;
    bool is_wrong;
} exact_check;

static void check_exact(void *context, uint32_t id, uint64_t bytes)
{
    exact_check *check = context;
    const frag_block *block = &check->blocks[id];
    check->is_wrong = check->is_wrong || block->state != FRAG_BLOCK_HOLE || block->bytes != bytes;
    check->count++;
}

static bool is_of_list(const void *context, uint32_t id, uint32_t list)
{
    const frag_composed *composed = context;
    return composed->space.blocks[id].link == list;
}

static bool check_neighbours(const frag_composed *composed, frag_error *error)
{
    const frag_block *blocks = composed->space.blocks;
    if (composed->rules.merge == FRAG_MERGE_NEVER)
        return true;
    for (uint32_t id = 1; id < composed->space.record_count; id++) {
        const frag_block *next = &blocks[blocks[id].next];
        if (blocks[id].state == FRAG_BLOCK_HOLE && next->state == FRAG_BLOCK_HOLE &&
            blocks[id].link == next->link)
            return frag_fail(error, FRAG_E_INPUT, "free blocks %u and %u were not joined", id,
                             blocks[id].next);
    }
    return true;
}

static bool check_held(const frag_composed *composed, frag_error *error)
{
    const frag_block *blocks = composed->space.blocks;
    uint64_t held = 0;
    for (uint32_t id = composed->space.first_header; id != FRAG_BLOCK_NONE; id = blocks[id].link)
        held += blocks[id].bytes;
    return held == composed->held_bytes ||
           frag_fail(error, FRAG_E_INPUT, "the segments have %llu bytes; %llu were counted",
                     (unsigned long long)held, (unsigned long long)composed->held_bytes);
}

bool frag_composed_check(const frag_composed *composed, frag_error *error)
{
    uint64_t hole_count = 0;
    if (!frag_block_space_check(&composed->space, &hole_count, error) ||
        !check_neighbours(composed, error) || !check_held(composed, error))
        return false;
    const frag_block *blocks = composed->space.blocks;
    frag_index_audit audit = {
        .blocks = blocks, .state = FRAG_BLOCK_HOLE, .belongs = is_of_list, .context = composed};
    exact_check exact = {.blocks = blocks};
    for (uint32_t list = 0; list < composed->list_count; list++)
        if (!frag_index_audit_take(&audit, &composed->store, &composed->lists[list], list, error))
            return false;
    if (composed->rules.pick == FRAG_PICK_EXACT)
        frag_exact_visit(&composed->exact, check_exact, &exact);
    return (!audit.is_wrong && !exact.is_wrong && audit.count + exact.count == hole_count) ||
           frag_fail(error, FRAG_E_INPUT, "the lists and the %llu free blocks differ",
                     (unsigned long long)hole_count);
}
