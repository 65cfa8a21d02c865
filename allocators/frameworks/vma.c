/* The Vulkan Memory Allocator for the buffers of a device: memory blocks, each one device malloc
 * with lists as in vma_lists.h. Blocks are searched from the one with the least free bytes on, as
 * far as they are sorted: every call swaps one pair. The first blocks are an eighth, a quarter and
 * a half of the preferred size; what is larger than half of it gets memory of its own. One empty
 * block is kept. Source: Vulkan Memory Allocator 3.4.0 (e386068), VmaAllocator_T and
 * VmaBlockVector, with one memory type that the host does not see. */
#include <string.h>

#include "allocators/frameworks/vma_lists.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"

#define HEAP_MAX ((uint64_t)1 << 56)
#define SMALL_HEAP FRAG_GIB
#define BLOCK_MAX (256 * FRAG_GIB)
#define SMALLER_BLOCKS 3u       /* at most so many times half of the preferred size */
#define FETCH_AFTER 30u         /* operations, until the driver is asked for its budget again */
#define DEDICATED UINT32_MAX    /* as the memory block of a block that has a segment of its own */
#define COUNT_MAX 0xffffffffull /* that drivers report */

enum {
    OPTION_PREFERRED,
    OPTION_STRATEGY,
    OPTION_DEDICATED,
    OPTION_ALIGN,
    OPTION_HEAP,
    OPTION_LIMIT,
    OPTION_BUDGET,
    OPTION_WITHIN_BUDGET,
    OPTION_COUNT,
    OPTION_POOL,
    OPTION_MIN_BLOCKS,
    OPTION_MAX_BLOCKS
};

enum { DEDICATED_LARGE, DEDICATED_PREFERRED, DEDICATED_ALWAYS };

static const frag_option vma_options[] = {
    {"preferred_block_size", FRAG_OPTION_BYTES, "256MiB", .min = 1, .max = BLOCK_MAX,
     .help = "preferredLargeHeapBlockSize; of a heap of up to 1 GiB an eighth of it instead"},
    {"strategy", FRAG_OPTION_ENUM, "default", .choices = FRAG_VMA_STRATEGIES,
     .help = "VMA_ALLOCATION_CREATE_STRATEGY_* of every request"},
    {"dedicated", FRAG_OPTION_ENUM, "large", .choices = "large|preferred|always",
     .help = "what gets memory of its own: above half of the preferred size; all, as the driver "
             "prefers; all, as the program says"},
    {"align", FRAG_OPTION_BYTES, "256", .min = 1, .max = FRAG_GIB,
     .help = "alignment that the driver asks for buffers, whose sizes it rounds up to it; a power "
             "of two"},
    {"heap_size", FRAG_OPTION_BYTES, "unlimited", .min = 1, .max = FRAG_UNLIMITED,
     .help = "size of the memory heap that the driver reports; unlimited: what the device has"},
    {"heap_size_limit", FRAG_OPTION_BYTES, "unlimited", .min = 1, .max = FRAG_UNLIMITED,
     .help = "pHeapSizeLimit: most bytes of all segments"},
    {"memory_budget", FRAG_OPTION_FLAG, "false",
     .help = "VK_EXT_memory_budget: the driver says how much may be used; else 80 % of the heap"},
    {"within_budget", FRAG_OPTION_FLAG, "false",
     .help = "VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT: with dedicated=always what exceeds the "
             "budget fails; the library does not heed it elsewhere"},
    {"max_memory_allocation_count", FRAG_OPTION_COUNT, "4096", .min = 1, .max = COUNT_MAX,
     .help = "most segments at once, as the driver reports"},
    {"pool_block_size", FRAG_OPTION_BYTES, "0", .min = 0, .max = BLOCK_MAX,
     .help = "blockSize of a custom pool: all blocks have it, nothing gets memory of its own; 0: "
             "as without one"},
    {"min_block_count", FRAG_OPTION_COUNT, "0", .min = 0, .max = 4096,
     .help = "minBlockCount of a custom pool: blocks made at the start and kept"},
    {"max_block_count", FRAG_OPTION_COUNT, "unlimited", .min = 1, .max = FRAG_UNLIMITED,
     .help = "maxBlockCount of a custom pool"},
    {.key = NULL}};

typedef struct memory_block {
    frag_vma_lists lists;
    uint64_t bytes;
    uint32_t at; /* in the order; of blocks that are not held: the next such one */
    bool is_held;
} memory_block;

typedef struct ordered_block {
    uint64_t free_bytes;
    uint32_t id;
} ordered_block;

/* Usage and budget of the heap when the driver was last asked. */
typedef struct heap_budget {
    uint64_t usage_bytes;
    uint64_t budget_bytes;
    uint64_t segment_bytes; /* held then */
    uint32_t operations;    /* since */
} heap_budget;

struct frag_policy {
    frag_block_space space;
    frag_free_link *links;
    uint32_t first_head;
    uint32_t list_count; /* of every memory block */
    memory_block *blocks;
    uint32_t block_max;
    uint32_t block_count; /* ever used */
    uint32_t unused;
    ordered_block *order; /* those held; nearly by free bytes */
    uint32_t held_count;
    uint32_t empty_count;
    uint64_t align;
    frag_vma_strategy strategy;
    uint32_t dedicated;
    uint64_t heap_bytes;
    uint64_t preferred_bytes;
    uint64_t held_min;
    uint64_t held_max;
    uint64_t segment_max;
    uint64_t segment_count;
    uint64_t segment_bytes;
    bool has_limit;
    bool has_own_size; /* that of a custom pool */
    bool asks_budget;
    bool stays_within_budget;
    heap_budget budget;
};

/* Of the largest memory block there may be: the preferred size of a small heap is at most an eighth
 * of 1 GiB. */
static uint32_t list_count_max(const frag_option_value *values)
{
    uint64_t bytes = SMALL_HEAP / 8;
    if (values[OPTION_PREFERRED].number > bytes)
        bytes = values[OPTION_PREFERRED].number;
    if (values[OPTION_POOL].number > bytes)
        bytes = values[OPTION_POOL].number;
    return frag_vma_list_count(bytes + 32, false);
}

static uint32_t block_count_max(const frag_policy_limits *limits, const frag_option_value *values)
{
    /* Every block but one has a request in it, or is of those that are kept; one more is being
     * made. */
    uint64_t count = (uint64_t)limits->live_count_max + 2 + values[OPTION_MIN_BLOCKS].number;
    uint64_t most = values[OPTION_COUNT].number;
    count = count < most ? count : most;
    /* The heads of all their lists have numbers of 32 bits. */
    most = UINT32_MAX / 2 / list_count_max(values);
    return (uint32_t)(count < most ? count : most);
}

/* Of all segments: busy blocks, holes below them and at ends, headers. */
static uint32_t record_count_max(const frag_policy_limits *limits, const frag_option_value *values)
{
    uint64_t count = 3 * (uint64_t)limits->live_count_max + 3;
    count += 2 * (uint64_t)block_count_max(limits, values);
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

static size_t vma_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    size_t blocks = block_count_max(limits, values);
    size_t records = record_count_max(limits, values);
    return sizeof(frag_policy) + 512 + frag_free_records_bytes((uint32_t)records) +
           blocks * (sizeof(memory_block) + sizeof(ordered_block)) +
           (records + blocks * list_count_max(values)) * sizeof(frag_free_link);
}

/* ---- the heap */

static void fetch_budget(frag_policy *policy)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    (void)frag_device_memory_info(policy->space.device, &free_bytes, &total_bytes);
    heap_budget *budget = &policy->budget;
    uint64_t usage = policy->segment_bytes;
    if (total_bytes != FRAG_UNLIMITED && total_bytes - free_bytes != 0)
        usage = total_bytes - free_bytes;
    *budget = (heap_budget){
        .usage_bytes = usage,
        .budget_bytes = total_bytes < policy->heap_bytes ? total_bytes : policy->heap_bytes,
        .segment_bytes = policy->segment_bytes,
    };
}

/* Bytes that may be had before the budget is used up. */
static uint64_t bytes_left(frag_policy *policy)
{
    heap_budget *budget = &policy->budget;
    uint64_t most = policy->heap_bytes * 8 / 10;
    uint64_t usage = policy->segment_bytes;
    if (policy->asks_budget) {
        if (budget->operations >= FETCH_AFTER)
            fetch_budget(policy);
        most = budget->budget_bytes;
        usage += budget->usage_bytes;
        usage = usage > budget->segment_bytes ? usage - budget->segment_bytes : 0;
    }
    return usage < most ? most - usage : 0;
}

/* A segment, if the library does not refuse it before the driver is asked. */
static bool take_segment(frag_policy *policy, uint64_t bytes, uint32_t *header)
{
    uint64_t address = 0;
    if (bytes > policy->heap_bytes || policy->segment_count >= policy->segment_max ||
        (policy->has_limit && bytes > policy->heap_bytes - policy->segment_bytes))
        return false;
    frag_device_for_all(policy->space.device);
    if (frag_device_malloc(policy->space.device, bytes, &address) != FRAG_DEVICE_OK)
        return false;
    *header = frag_block_space_add_segment(&policy->space, address, bytes);
    policy->segment_count++;
    policy->segment_bytes += bytes;
    policy->budget.operations++;
    return true;
}

/* The segment has one block left, or one hole, which goes with it. */
static void give_segment(frag_policy *policy, uint32_t header)
{
    frag_block_space *space = &policy->space;
    const frag_block *segment = &space->blocks[header];
    FRAG_ASSERT(space->blocks[segment->next].next == header);
    frag_device_for_all(space->device);
    (void)frag_device_free(space->device, segment->address, segment->bytes);
    policy->segment_count--;
    policy->segment_bytes -= segment->bytes;
    frag_block_unlink(space, segment->next);
    space->blocks[header].state = FRAG_BLOCK_UNUSED;
    frag_block_space_sweep(space);
}

/* ---- memory blocks */

static bool is_empty(const frag_policy *policy, uint32_t at)
{
    const ordered_block *ordered = &policy->order[at];
    return ordered->free_bytes == policy->blocks[ordered->id].bytes;
}

static bool add_block(frag_policy *policy, uint64_t bytes)
{
    uint32_t header = 0;
    uint32_t id = policy->unused;
    if ((id == UINT32_MAX && policy->block_count == policy->block_max) ||
        !take_segment(policy, bytes, &header))
        return false;
    if (id == UINT32_MAX)
        id = policy->block_count++;
    else
        policy->unused = policy->blocks[id].at;
    memory_block *block = &policy->blocks[id];
    uint32_t first_head = policy->first_head + id * policy->list_count;
    block->bytes = bytes;
    block->is_held = true;
    block->at = policy->held_count++;
    policy->order[block->at] = (ordered_block){bytes, id};
    policy->empty_count++;
    frag_vma_lists_create(&block->lists, &policy->space, policy->links, first_head, header, false);
    memset(&policy->links[first_head], 0, policy->list_count * sizeof *policy->links);
    (void)frag_block_space_append_hole(&policy->space, header, policy->space.blocks[header].address,
                                       bytes);
    return true;
}

/* Takes a block out of the order; its segment goes back later. Returns the block. */
static const memory_block *drop_block(frag_policy *policy, uint32_t at)
{
    uint32_t id = policy->order[at].id;
    policy->held_count--;
    policy->empty_count--;
    for (uint32_t i = at; i < policy->held_count; i++) {
        policy->order[i] = policy->order[i + 1];
        policy->blocks[policy->order[i].id].at = i;
    }
    policy->blocks[id].is_held = false;
    policy->blocks[id].at = policy->unused;
    policy->unused = id;
    return &policy->blocks[id];
}

/* The first pair that is out of order changes places. */
static void sort_a_little(frag_policy *policy)
{
    ordered_block *order = policy->order;
    for (uint32_t at = 1; at < policy->held_count; at++) {
        ordered_block before = order[at - 1];
        if (before.free_bytes > order[at].free_bytes) {
            order[at - 1] = order[at];
            order[at] = before;
            policy->blocks[order[at - 1].id].at = at - 1;
            policy->blocks[before.id].at = at;
            return;
        }
    }
}

static bool take_from(frag_policy *policy, uint32_t at, uint64_t bytes, uint32_t *granted)
{
    ordered_block *ordered = &policy->order[at];
    memory_block *block = &policy->blocks[ordered->id];
    /* Sizes and offsets are multiples of the alignment, so that nothing needs to be aligned. */
    frag_vma_want want = {bytes, 1, policy->strategy};
    uint32_t hole = 0;
    if (!frag_vma_find(&block->lists, &want, &hole) &&
        !frag_vma_search_after_end(&block->lists, &want, &hole))
        return false;
    policy->empty_count -= is_empty(policy, at);
    *granted = frag_vma_take(&block->lists, hole, &want);
    policy->space.blocks[*granted].link = ordered->id;
    ordered->free_bytes -= bytes;
    policy->budget.operations++;
    sort_a_little(policy);
    return true;
}

static bool take_from_held(frag_policy *policy, uint64_t bytes, uint32_t *granted)
{
    bool goes_backward = policy->strategy == FRAG_VMA_MIN_TIME;
    for (uint32_t i = 0; i < policy->held_count; i++) {
        uint32_t at = goes_backward ? policy->held_count - 1 - i : i;
        if (bytes <= policy->order[at].free_bytes && take_from(policy, at, bytes, granted))
            return true;
    }
    return false;
}

static uint64_t largest_block(const frag_policy *policy)
{
    uint64_t bytes = 0;
    for (uint32_t at = 0; at < policy->held_count; at++)
        if (policy->blocks[policy->order[at].id].bytes > bytes)
            bytes = policy->blocks[policy->order[at].id].bytes;
    return bytes;
}

/* A new block for a request: smaller than preferred while all that there are are smaller still, and
 * when the device refuses. */
static bool grow(frag_policy *policy, uint64_t request_bytes, uint64_t left)
{
    uint64_t bytes = policy->preferred_bytes;
    uint32_t halved = 0;
    if (policy->has_own_size)
        return add_block(policy, bytes);
    uint64_t largest = largest_block(policy);
    while (halved < SMALLER_BLOCKS && bytes / 2 > largest && bytes / 2 >= request_bytes * 2) {
        bytes /= 2;
        halved++;
    }
    while (bytes > left || !add_block(policy, bytes)) {
        if (halved == SMALLER_BLOCKS || bytes / 2 < request_bytes)
            return false;
        bytes /= 2;
        halved++;
    }
    return true;
}

static bool take_from_blocks(frag_policy *policy, uint64_t bytes, uint32_t *granted)
{
    uint64_t left = bytes_left(policy);
    if (bytes > policy->preferred_bytes)
        return false;
    if (take_from_held(policy, bytes, granted))
        return true;
    return policy->held_count < policy->held_max && (left >= bytes || policy->has_own_size) &&
           grow(policy, bytes, left) && take_from(policy, policy->held_count - 1, bytes, granted);
}

/* ---- memory of a request's own */

static bool take_own(frag_policy *policy, uint64_t bytes, uint32_t *granted)
{
    uint32_t header = 0;
    if (!take_segment(policy, bytes, &header))
        return false;
    frag_block_space *space = &policy->space;
    *granted = frag_block_space_append_hole(space, header, space->blocks[header].address, bytes);
    space->blocks[*granted].state = FRAG_BLOCK_BUSY;
    space->blocks[*granted].link = DEDICATED;
    policy->budget.operations++;
    return true;
}

static bool wants_own(const frag_policy *policy, uint64_t bytes)
{
    /* Near the most segments that the driver allows blocks come first. */
    if (policy->segment_max < UINT32_MAX / 4 && policy->segment_count > policy->segment_max * 3 / 4)
        return false;
    return policy->dedicated == DEDICATED_PREFERRED || bytes > policy->preferred_bytes / 2;
}

static bool serve(frag_policy *policy, uint64_t bytes, uint32_t *granted)
{
    if (policy->dedicated == DEDICATED_ALWAYS)
        return (!policy->stays_within_budget || bytes <= bytes_left(policy)) &&
               take_own(policy, bytes, granted);
    if (policy->has_own_size)
        return take_from_blocks(policy, bytes, granted);
    bool comes_first = wants_own(policy, bytes);
    return (comes_first && take_own(policy, bytes, granted)) ||
           take_from_blocks(policy, bytes, granted) ||
           (!comes_first && take_own(policy, bytes, granted));
}

/* ---- the policy */

static void find_sizes(frag_policy *policy, const frag_policy_setup *setup)
{
    const frag_option_value *values = setup->values;
    uint64_t heap = values[OPTION_HEAP].number;
    uint64_t limit = values[OPTION_LIMIT].number;
    if (heap == FRAG_UNLIMITED)
        heap = frag_device_capacity(setup->device);
    policy->has_limit = limit != FRAG_UNLIMITED;
    heap = limit < heap ? limit : heap;
    policy->heap_bytes = heap < HEAP_MAX ? heap : HEAP_MAX;
    uint64_t preferred = heap <= SMALL_HEAP ? heap / 8 : values[OPTION_PREFERRED].number;
    preferred = preferred != 0 ? preferred : 1; /* of a heap below 8 bytes */
    policy->has_own_size = values[OPTION_POOL].number != 0;
    policy->preferred_bytes =
        policy->has_own_size ? values[OPTION_POOL].number : frag_align_up(preferred, 32);
}

static bool check_values(const frag_option_value *values, frag_error *error)
{
    if (!frag_is_power_of_two(values[OPTION_ALIGN].number))
        return frag_fail(error, FRAG_E_USAGE, "align=%s is not a power of two",
                         values[OPTION_ALIGN].text);
    if (values[OPTION_MIN_BLOCKS].number > values[OPTION_MAX_BLOCKS].number)
        return frag_fail(error, FRAG_E_USAGE, "min_block_count=%s is more than max_block_count=%s",
                         values[OPTION_MIN_BLOCKS].text, values[OPTION_MAX_BLOCKS].text);
    return values[OPTION_POOL].number == 0 || values[OPTION_DEDICATED].number != DEDICATED_ALWAYS ||
           frag_fail(error, FRAG_E_USAGE,
                     "a pool with pool_block_size gives no request memory of its own; leave out "
                     "dedicated=always");
}

static frag_policy *vma_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    if (!check_values(values, error))
        return NULL;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->align = values[OPTION_ALIGN].number;
    policy->strategy = (frag_vma_strategy)values[OPTION_STRATEGY].number;
    policy->dedicated = (uint32_t)values[OPTION_DEDICATED].number;
    policy->held_min = values[OPTION_MIN_BLOCKS].number;
    policy->held_max = values[OPTION_MAX_BLOCKS].number;
    policy->segment_max = values[OPTION_COUNT].number;
    policy->asks_budget = values[OPTION_BUDGET].number != 0;
    policy->stays_within_budget = values[OPTION_WITHIN_BUDGET].number != 0;
    find_sizes(policy, setup);
    frag_block_space_create_bare(&policy->space, setup, record_count_max(&setup->limits, values));
    policy->space.may_adjoin = false;
    policy->block_max = block_count_max(&setup->limits, values);
    policy->blocks = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->blocks);
    policy->order = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->order);
    policy->unused = UINT32_MAX;
    policy->list_count = list_count_max(values);
    policy->first_head = policy->space.record_max;
    policy->links = frag_arena_take(
        setup->arena, policy->first_head + (size_t)policy->block_max * policy->list_count,
        sizeof *policy->links);
    if (policy->asks_budget)
        fetch_budget(policy);
    while (policy->held_count < policy->held_min)
        if (!add_block(policy, policy->preferred_bytes)) {
            frag_fail(error, FRAG_E_USAGE, "the device has no room for min_block_count=%s blocks",
                      values[OPTION_MIN_BLOCKS].text);
            return NULL;
        }
    return policy;
}

static uint64_t vma_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_align_up(bytes, policy->align);
}

FRAG_INLINE bool vma_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = vma_rounded(policy, request->bytes);
    uint32_t granted = 0;
    if (!serve(policy, bytes, &granted))
        return false;
    *grant = (frag_grant){
        .address = policy->space.blocks[granted].address, .block_bytes = bytes, .handle = granted};
    return true;
}

static void give_to_block(frag_policy *policy, uint32_t handle, uint32_t id)
{
    bool is_exceeded = bytes_left(policy) == 0;
    bool had_empty = policy->empty_count > 0;
    bool may_drop = policy->held_count > policy->held_min;
    memory_block *block = &policy->blocks[id];
    const memory_block *dropped = NULL;
    uint32_t at = block->at;
    uint32_t last = policy->held_count - 1;
    policy->order[at].free_bytes += policy->space.blocks[handle].bytes;
    frag_vma_give(&block->lists, handle);
    if (is_empty(policy, at)) {
        policy->empty_count++;
        if (may_drop && (had_empty || is_exceeded))
            dropped = drop_block(policy, at);
    } else if (may_drop && had_empty && is_empty(policy, last)) {
        dropped = drop_block(policy, last);
    }
    sort_a_little(policy);
    policy->budget.operations++;
    if (dropped != NULL)
        give_segment(policy, dropped->lists.header);
}

FRAG_INLINE void vma_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    const frag_block *block = &policy->space.blocks[handle];
    FRAG_ASSERT(handle < policy->space.record_count && block->state == FRAG_BLOCK_BUSY);
    if (block->link != DEDICATED) {
        give_to_block(policy, handle, block->link);
        return;
    }
    give_segment(policy, block->previous);
    policy->budget.operations++;
}

static void vma_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_block_space_walk(&policy->space, visit, context);
}

static bool check_block(const frag_policy *policy, uint32_t place, uint64_t *listed_count,
                        frag_error *error)
{
    uint32_t id = policy->order[place].id;
    const memory_block *block = &policy->blocks[id];
    const frag_block *blocks = policy->space.blocks;
    uint32_t header = block->lists.header;
    uint64_t free_bytes = 0;
    for (uint32_t at = blocks[header].next; at != header; at = blocks[at].next) {
        if (blocks[at].state == FRAG_BLOCK_HOLE)
            free_bytes += blocks[at].bytes;
        else if (blocks[at].link != id)
            return frag_fail(error, FRAG_E_INPUT, "block %u is not of memory block %u", at, id);
    }
    if (!block->is_held || block->at != place || block->bytes != blocks[header].bytes ||
        policy->order[place].free_bytes != free_bytes)
        return frag_fail(error, FRAG_E_INPUT, "memory block %u has other bytes", id);
    return frag_vma_lists_check(&block->lists, listed_count, error);
}

static bool vma_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t listed_count = 0;
    uint32_t empty_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error))
        return false;
    for (uint32_t at = 0; at < policy->held_count; at++) {
        if (!check_block(policy, at, &listed_count, error))
            return false;
        empty_count += is_empty(policy, at);
    }
    uint64_t segment_count = 0;
    uint64_t segment_bytes = 0;
    for (uint32_t id = policy->space.first_header; id != FRAG_BLOCK_NONE;
         id = policy->space.blocks[id].link) {
        segment_count++;
        segment_bytes += policy->space.blocks[id].bytes;
    }
    if (segment_count != policy->segment_count || segment_bytes != policy->segment_bytes ||
        empty_count != policy->empty_count)
        return frag_fail(error, FRAG_E_INPUT, "segments or empty blocks are not counted right");
    return listed_count == hole_count || frag_fail(error, FRAG_E_INPUT, "a hole is in no list");
}

static void vma_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, vma_alloc, vma_free);
}

static const frag_policy_rules vma_rules = {
    .rounding = FRAG_RULE_TO_ALIGN ", as the driver does for buffers",
    .takes = "in the first memory block that has room, as tlsf-vma does, with lists 64 bytes apart "
             "up to 256. Blocks come in the order of their free bytes, the fewest first, with "
             "min_time the most; but each call swaps only the first pair that is out of order",
    .cuts = FRAG_RULE_LOW_END,
    .joins = FRAG_RULE_OF_ITS_SEGMENT,
    .grows = "blocks of preferred_block_size (an eighth of a heap up to 1 GiB); the first ones of "
             "an eighth, a quarter, a half of it, if that is twice the request. Above half of it a "
             "device malloc of the request alone, and also when a block is refused or would use "
             "more than 80 % of the heap. One empty block is kept (none while more than that share "
             "is used); the block that a free made empty last goes back",
    .streams = FRAG_RULE_IGNORED,
};

static const frag_policy_engine vma_engine = {.replay = vma_replay};

const frag_policy_ops frag_policy_vma = {
    .name = "vma",
    .summary = "the Vulkan Memory Allocator: TLSF in blocks of 256 MiB, large requests apart; "
               "ignores streams and pools",
    .source = "Vulkan Memory Allocator 3.4.0 (e386068), VmaAllocator_T, VmaBlockVector",
    .rules = &vma_rules,
    .bound = "",
    .checked = "the library's own logs, request by request (tests/data/golden-peers/vma-buffers-*)",
    .options = vma_options,
    .arena_bytes = vma_arena_bytes,
    .create = vma_create,
    .alloc = vma_alloc,
    .free = vma_free,
    .rounded = vma_rounded,
    .walk = vma_walk,
    .check = vma_check,
    .engine = &vma_engine,
};
