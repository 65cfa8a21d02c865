/* Buddies. A request is rounded up to one of the system's sizes; the smallest, then lowest, free
 * block that is large enough is split in two until it fits; on release a block is coalesced with
 * its buddy as long as that is wholly free. Sources: buddy_sizes.h. Bound: Robson, JACM 21(3),
 * 1974, on any policy with powers of two. Ours works in one range of addresses whose low end is
 * mapped as far as blocks reach, and takes the smaller part only where no new page is needed. */
#include "allocators/classic/buddy_sizes.h"
#include "allocators/index/block_space.h"
#include "allocators/index/free_index.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

enum { OPTION_MIN_BLOCK, OPTION_GROW, OPTION_SIZES };

/* What an unlimited device is asked for: more than any of today, and far from the end of addresses.
 */
#define RANGE_BYTES_MAX ((uint64_t)1 << 43)

static const frag_option buddy_options[] = {
    {"min_block", FRAG_OPTION_BYTES, "512", .min = 1, .max = FRAG_GIB,
     .help = "smallest block, a power of two"},
    {"grow", FRAG_OPTION_BYTES, "2MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "the mapped part of the range grows in steps of this, where there is room"},
    {"sizes", FRAG_OPTION_ENUM, "binary", .choices = "binary|weighted|fibonacci",
     .help =
         "times min_block: 1, 2, 4, 8; weighted: 1, 2, 3, 4, 6, 8, 12; fibonacci: 1, 2, 3, 5, 8"},
    {.key = NULL},
};

struct frag_policy {
    frag_block_space space; /* all of the range, mapped or not */
    frag_free_index index;
    uint64_t min_block;
    uint64_t grow_bytes;
    frag_buddy_sizes sizes;
    uint64_t base;
    uint64_t range_bytes;
    uint64_t mapped_bytes; /* from base on */
    frag_free_index_store store;
};

/* Each busy block has at most as many free buddies as splits made it. */
static uint32_t record_max(const frag_policy_limits *limits, const frag_option_value *values)
{
    uint64_t depth = values[OPTION_SIZES].number == FRAG_BUDDY_BINARY ? 48 : FRAG_BUDDY_DEPTH_MAX;
    uint64_t count = ((uint64_t)limits->live_count_max + 1) * depth + 64;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

static size_t buddy_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    uint32_t count = record_max(limits, values);
    return sizeof(frag_policy) + 128 + frag_free_records_bytes(count) +
           frag_free_index_store_bytes(count, 1);
}

static uint64_t rounded(const frag_policy *policy, uint64_t bytes)
{
    if (bytes <= policy->min_block)
        return policy->min_block;
    if (policy->sizes == FRAG_BUDDY_BINARY)
        return frag_power_of_two_up(bytes);
    uint64_t shift = frag_bit_low(policy->min_block);
    uint64_t units = (bytes + policy->min_block - 1) >> shift;
    return frag_buddy_size_up(policy->sizes, units) << shift;
}

/* The least size that holds everything the requests can ever take side by side, whatever the device
 * can hold: the range never decides what fits. */
static uint64_t range_for(const frag_policy *policy, const frag_policy_setup *setup)
{
    uint64_t min_block = policy->min_block;
    uint64_t wanted = RANGE_BYTES_MAX;
    uint64_t least = 0;
    if (frag_multiply(setup->limits.request_count, min_block, &least) &&
        frag_add(least, setup->limits.requested_bytes_total, &least) && least < RANGE_BYTES_MAX / 4)
        wanted = least * 4;
    uint64_t unit = min_block > setup->device->page_bytes ? min_block : setup->device->page_bytes;
    return rounded(policy, wanted < unit ? unit : wanted);
}

static frag_policy *buddy_create(const frag_policy_setup *setup, frag_error *error)
{
    uint64_t min_block = setup->values[OPTION_MIN_BLOCK].number;
    if (!frag_is_power_of_two(min_block)) {
        frag_fail(error, FRAG_E_USAGE, "min_block=%s is not a power of two",
                  setup->values[OPTION_MIN_BLOCK].text);
        return NULL;
    }
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->min_block = min_block;
    policy->grow_bytes = setup->values[OPTION_GROW].number;
    policy->sizes = (frag_buddy_sizes)setup->values[OPTION_SIZES].number;
    policy->range_bytes = range_for(policy, setup);
    uint64_t asked = frag_round_up(policy->range_bytes, setup->device->page_bytes);
    if (frag_device_reserve(setup->device, asked, &policy->base) != FRAG_DEVICE_OK) {
        frag_fail(error, FRAG_E_SYSTEM, "the device refused %llu bytes of address space %s",
                  (unsigned long long)asked, setup->device->failure);
        return NULL;
    }
    frag_block_space_create_bare(&policy->space, setup, record_max(&setup->limits, setup->values));
    frag_free_index_store_create(&policy->store, setup->arena, policy->space.blocks,
                                 policy->space.record_max, 1, false);
    uint32_t header =
        frag_block_space_add_segment(&policy->space, policy->base, policy->range_bytes);
    uint32_t whole =
        frag_block_space_append_hole(&policy->space, header, policy->base, policy->range_bytes);
    frag_free_index_insert(&policy->store, &policy->index, whole);
    return policy;
}

/* Maps the range up to end, by whole steps, or by single pages when there is no room for a step. */
static bool map_up_to(frag_policy *policy, uint64_t end)
{
    uint64_t has = policy->mapped_bytes;
    if (end - policy->base <= has)
        return true;
    uint64_t page = policy->space.device->page_bytes;
    uint64_t least = frag_round_up(end - policy->base - has, page);
    uint64_t limit = frag_round_up(policy->range_bytes, page) - has;
    uint64_t step = frag_round_up(frag_round_up(least, policy->grow_bytes), page);
    uint64_t mapped = step < limit ? step : limit;
    frag_device_for_all(policy->space.device);
    if (frag_device_map(policy->space.device, policy->base + has, mapped) != FRAG_DEVICE_OK) {
        if (mapped == least ||
            frag_device_map(policy->space.device, policy->base + has, least) != FRAG_DEVICE_OK)
            return false;
        mapped = least;
    }
    policy->mapped_bytes += mapped;
    return true;
}

/* Gives back the pages above the last busy block. */
static void trim(frag_policy *policy)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t header = policy->space.first_header;
    uint32_t last = blocks[header].previous;
    while (blocks[last].state == FRAG_BLOCK_HOLE)
        last = blocks[last].previous;
    uint64_t used = last == header ? 0 : blocks[last].address + blocks[last].bytes - policy->base;
    uint64_t keep = frag_round_up(used, policy->space.device->page_bytes);
    if (keep >= policy->mapped_bytes)
        return;
    uint64_t bytes = policy->mapped_bytes - keep;
    frag_device_for_all(policy->space.device);
    if (frag_device_unmap(policy->space.device, policy->base + keep, bytes) == FRAG_DEVICE_OK)
        policy->mapped_bytes = keep;
}

typedef struct mapped_search {
    const frag_policy *policy;
    uint64_t bytes;
    uint64_t size; /* of the best found */
    uint32_t id;
} mapped_search;

/* Buddies come in order of size and address, so that the first of a size is the lowest. */
static void consider_mapped(void *context, uint32_t id)
{
    mapped_search *best = context;
    const frag_block *block = &best->policy->space.blocks[id];
    if (block->bytes < best->bytes ||
        block->address + best->bytes > best->policy->base + best->policy->mapped_bytes)
        return;
    if (block->bytes < best->size) {
        best->size = block->bytes;
        best->id = id;
    }
}

/* The smallest buddy that fits and needs no page that is not mapped: the last resort of a full
 * device. */
static bool find_mapped(const frag_policy *policy, uint64_t bytes, uint32_t *hole)
{
    mapped_search best = {
        .policy = policy, .bytes = bytes, .size = UINT64_MAX, .id = FRAG_BLOCK_NONE};
    frag_free_index_visit(&policy->store, &policy->index, consider_mapped, &best);
    *hole = best.id;
    return best.id != FRAG_BLOCK_NONE;
}

static inline uint64_t low_part(const frag_policy *policy, uint64_t bytes)
{
    if (policy->sizes == FRAG_BUDDY_BINARY)
        return bytes / 2;
    uint64_t shift = frag_bit_low(policy->min_block);
    return frag_buddy_low_part(policy->sizes, bytes >> shift) << shift;
}

/* Cuts a free record that is in no index in two; the lower part keeps it. Returns the upper one. */
static uint32_t cut(frag_policy *policy, uint32_t id)
{
    frag_block_space *space = &policy->space;
    uint32_t upper = frag_block_take_record(space);
    frag_block *block = &space->blocks[id];
    uint64_t low = low_part(policy, block->bytes);
    space->blocks[upper] = (frag_block){.address = block->address + low,
                                        .bytes = block->bytes - low,
                                        .previous = id,
                                        .next = block->next,
                                        .state = FRAG_BLOCK_HOLE};
    space->blocks[block->next].previous = upper;
    block->next = upper;
    block->bytes = low;
    return upper;
}

/* Cuts a free record that is in no index until it is of this size; returns what is left of it. */
static uint32_t cut_down(frag_policy *policy, uint32_t id, uint64_t bytes)
{
    const frag_block *blocks = policy->space.blocks;
    while (blocks[id].bytes > bytes) {
        uint32_t free = cut(policy, id);
        uint64_t end = blocks[free].address + bytes;
        if (blocks[free].bytes < blocks[id].bytes && blocks[free].bytes >= bytes &&
            end <= policy->base + policy->mapped_bytes) {
            uint32_t low = id;
            id = free;
            free = low;
        }
        frag_free_index_insert(&policy->store, &policy->index, free);
    }
    return id;
}

static bool buddy_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = rounded(policy, request->bytes);
    uint32_t hole = 0;
    if (!frag_free_index_best(&policy->store, &policy->index, bytes, &hole))
        return false;
    frag_block *block = &policy->space.blocks[hole];
    if (FRAG_UNLIKELY(!map_up_to(policy, block->address + bytes))) {
        if (!find_mapped(policy, bytes, &hole)) {
            trim(policy);
            return false;
        }
        block = &policy->space.blocks[hole];
    }
    frag_free_index_remove(&policy->store, &policy->index, hole);
    hole = cut_down(policy, hole, bytes);
    block = &policy->space.blocks[hole];
    block->state = FRAG_BLOCK_BUSY;
    *grant = (frag_grant){.address = block->address, .block_bytes = bytes, .handle = hole};
    return true;
}

/* A block and all blocks that it was split from, the whole range first, by offsets. */
typedef struct ancestry {
    uint64_t offsets[FRAG_BUDDY_DEPTH_MAX];
    uint64_t bytes[FRAG_BUDDY_DEPTH_MAX];
    uint32_t depth;
} ancestry;

/* false: no sequence of splits makes such a block. */
static bool find_ancestry(const frag_policy *policy, const frag_block *block, ancestry *line)
{
    uint64_t wanted = block->address - policy->base;
    uint64_t offset = 0;
    uint64_t bytes = policy->range_bytes;
    line->depth = 0;
    while (line->depth < FRAG_BUDDY_DEPTH_MAX) {
        line->offsets[line->depth] = offset;
        line->bytes[line->depth++] = bytes;
        if (offset == wanted && bytes == block->bytes)
            return true;
        if (bytes <= block->bytes)
            return false;
        uint64_t low = low_part(policy, bytes);
        bool is_upper = wanted >= offset + low;
        offset += is_upper ? low : 0;
        bytes = is_upper ? bytes - low : low;
    }
    return false;
}

/* Joins a free record that is in no index with its buddy, if that is free whole. */
static bool join(frag_policy *policy, uint32_t *hole, bool is_lower, uint64_t buddy_bytes)
{
    frag_block_space *space = &policy->space;
    uint32_t buddy = is_lower ? space->blocks[*hole].next : space->blocks[*hole].previous;
    if (space->blocks[buddy].state != FRAG_BLOCK_HOLE || space->blocks[buddy].bytes != buddy_bytes)
        return false;
    frag_free_index_remove(&policy->store, &policy->index, buddy);
    uint32_t upper = is_lower ? buddy : *hole;
    *hole = is_lower ? *hole : buddy;
    space->blocks[*hole].bytes += space->blocks[upper].bytes;
    frag_block_unlink(space, upper);
    return true;
}

static uint32_t merge_binary(frag_policy *policy, uint32_t hole)
{
    for (;;) {
        const frag_block *block = &policy->space.blocks[hole];
        bool is_lower = ((block->address - policy->base) & block->bytes) == 0;
        if (!join(policy, &hole, is_lower, block->bytes))
            return hole;
    }
}

static uint32_t merge_by_ancestry(frag_policy *policy, uint32_t hole)
{
    ancestry line;
    bool is_known = find_ancestry(policy, &policy->space.blocks[hole], &line);
    FRAG_ASSERT(is_known);
    for (uint32_t at = line.depth - 1; at > 0; at--)
        if (!join(policy, &hole, line.offsets[at] == line.offsets[at - 1],
                  line.bytes[at - 1] - line.bytes[at]))
            break;
    return hole;
}

static void buddy_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    frag_block_space *space = &policy->space;
    FRAG_ASSERT(handle < space->record_count && space->blocks[handle].state == FRAG_BLOCK_BUSY);
    uint32_t hole = policy->sizes == FRAG_BUDDY_BINARY ? merge_binary(policy, handle)
                                                       : merge_by_ancestry(policy, handle);
    space->blocks[hole].state = FRAG_BLOCK_HOLE;
    frag_free_index_insert(&policy->store, &policy->index, hole);
}

static void buddy_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    trim(policy);
}

/* Holes end where the mapping does. */
static void buddy_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    if (policy->mapped_bytes == 0)
        return;
    frag_span span = {.kind = FRAG_SPAN_SEGMENT,
                      .address = policy->base,
                      .bytes = policy->mapped_bytes,
                      .is_growing = true};
    visit(context, &span);
    const frag_block *blocks = policy->space.blocks;
    uint32_t header = policy->space.first_header;
    uint64_t end = policy->base + policy->mapped_bytes;
    uint64_t at = policy->base;
    for (uint32_t id = blocks[header].next; id != header && blocks[id].address < end;
         id = blocks[id].next) {
        bool is_hole = blocks[id].state == FRAG_BLOCK_HOLE;
        uint64_t room = end - blocks[id].address;
        span = (frag_span){.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK,
                           .address = blocks[id].address,
                           .bytes = blocks[id].bytes < room ? blocks[id].bytes : room,
                           .handle = is_hole ? 0 : id};
        visit(context, &span);
        at = span.address + span.bytes;
    }
    /* Pages can reach beyond the range when a page is no power of two. */
    if (at < end) {
        span = (frag_span){.kind = FRAG_SPAN_HOLE, .address = at, .bytes = end - at};
        visit(context, &span);
    }
}

static void count_entry(void *context, uint32_t id)
{
    (void)id;
    ++*(uint64_t *)context;
}

static bool check_buddies(const frag_policy *policy, frag_error *error)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t header = policy->space.first_header;
    ancestry line;
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next) {
        if (!find_ancestry(policy, &blocks[id], &line))
            return frag_fail(error, FRAG_E_INPUT, "block %u is no buddy", id);
        const frag_block *next = &blocks[blocks[id].next];
        uint32_t last = line.depth - 1;
        if (blocks[id].state == FRAG_BLOCK_HOLE && next->state == FRAG_BLOCK_HOLE && last > 0 &&
            line.offsets[last] == line.offsets[last - 1] &&
            next->bytes == line.bytes[last - 1] - line.bytes[last])
            return frag_fail(error, FRAG_E_INPUT, "block %u was not merged with its buddy", id);
        if (blocks[id].state == FRAG_BLOCK_BUSY &&
            blocks[id].address + blocks[id].bytes > policy->base + policy->mapped_bytes)
            return frag_fail(error, FRAG_E_INPUT, "block %u lies on pages that are not mapped", id);
    }
    return true;
}

static bool buddy_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t indexed_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error) ||
        !frag_free_index_check(&policy->store, &policy->index, error) ||
        !check_buddies(policy, error))
        return false;
    frag_free_index_visit(&policy->store, &policy->index, count_entry, &indexed_count);
    return indexed_count == hole_count ||
           frag_fail(error, FRAG_E_INPUT, "a free buddy is not in the index");
}

static const frag_policy_rules buddy_rules = {
    .rounding = "to one of the sizes: min_block times powers of two, or as sizes= says",
    .takes = "the smallest free block that is large enough, of equal ones the lowest; where the "
             "device has no room for its pages, the smallest that lies on mapped ones",
    .cuts = "in two until a part has the size: the lower part is used, or the upper one if that is "
            "smaller, large enough and mapped",
    .joins = "with its buddy, the other part of the block it was split from, if that is wholly "
             "free; then again, one level up",
    .grows = "one address range, mapped as far as blocks reach, in steps of grow, or by just the "
             "pages needed if the device has no room for a step. Free memory at its end goes back "
             "on empty_cache and before a request fails",
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_buddy = {
    .name = "buddy",
    .summary =
        "buddies: blocks of few sizes, cut in two and merged again; ignores streams and pools",
    .source = "Knowlton, CACM 8(10), 1965; weighted: Shen and Peterson, CACM 17(10), 1974; "
              "fibonacci: Hirschberg, CACM 16(10), 1973",
    .rules = &buddy_rules,
    .bound = "in one range, requests of 1, 2, 4 to n units, at most M in use: every policy has a "
             "worst case of at least M (1 + log2(n) / 2) - n + 1 (Robson, JACM 21(3), 1974)",
    .options = buddy_options,
    .arena_bytes = buddy_arena_bytes,
    .create = buddy_create,
    .alloc = buddy_alloc,
    .free = buddy_free,
    .empty_cache = buddy_empty_cache,
    .rounded = rounded,
    .walk = buddy_walk,
    .check = buddy_check,
};
