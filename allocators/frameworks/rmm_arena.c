/* RMM's arena: one device malloc, split into superblocks of at least 1 MiB. Each stream keeps
 * superblocks of its own for small requests; those above 1 MiB are served by the global ones. First
 * fit by address throughout. A request that fails makes all streams give their superblocks back.
 * Source: RMM 25.10.00, arena_memory_resource and detail/arena.hpp. Ours differs in how the first
 * fit is found: by an index over the free blocks of a stream, not superblock by superblock. */
#include "allocators/frameworks/rmm.h"
#include "allocators/index/address_index.h"
#include "allocators/index/block_space.h"
#include "allocators/index/index_audit.h"
#include "base/bytes.h"

#define SUPERBLOCK_BYTES FRAG_MIB
#define NONE FRAG_BLOCK_NONE

enum { OPTION_SIZE, OPTION_CLASSES };

static const frag_option rmm_arena_options[] = {
    {"arena_size", FRAG_OPTION_BYTES, "0", .min = 0, .max = 1024 * FRAG_GIB,
     .help = "what is taken at construction; 0: half of what the device has free, or, on one "
             "without limit, twice the peak of requested bytes"},
    {"size_classes", FRAG_OPTION_FLAG, "false",
     .help =
         "requests are rounded to size classes, four to a power of two (a build option of RMM)"},
    {.key = NULL},
};

/* Of a superblock, by its header. */
typedef struct superblock {
    uint32_t before; /* by address; the header's link is the one behind */
    uint32_t owner;
} superblock;

struct frag_policy {
    frag_block_space space; /* one ring for each superblock; a block's link is its header */
    frag_address_index_store store;
    frag_address_index *indexes; /* by owner: streams, and behind them the global part */
    superblock *superblocks;
    uint32_t global; /* the owner behind all streams */
    bool has_classes;
    uint64_t held_bytes;
};

static uint32_t records_of(const frag_policy_limits *limits)
{
    frag_composed_scale scale = frag_composed_scale_of(limits);
    return frag_composed_records(&scale);
}

static size_t rmm_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    uint32_t records = records_of(limits);
    uint64_t owners = (uint64_t)limits->stream_count + 1;
    return sizeof(frag_policy) + records * (sizeof(frag_block) + sizeof(superblock)) +
           owners * sizeof(frag_address_index) + frag_address_index_store_bytes(records, owners) +
           5 * 64;
}

/* ---- sizes */

/* Up to 2 KiB by 256 bytes, then four classes to a power of two, but one is 54 KiB where 56 would
 * be expected. */
static uint64_t class_of(uint64_t bytes)
{
    if (bytes <= 2 * FRAG_KIB)
        return frag_align_up(bytes, FRAG_RMM_UNIT);
    if (bytes > 48 * FRAG_KIB && bytes <= 64 * FRAG_KIB)
        return bytes <= 54 * FRAG_KIB ? 54 * FRAG_KIB : 64 * FRAG_KIB;
    return frag_align_up(bytes, (uint64_t)1 << (frag_bit_high(bytes - 1) - 2));
}

static uint64_t rmm_arena_rounded(const frag_policy *policy, uint64_t bytes)
{
    return policy->has_classes ? class_of(bytes) : frag_align_up(bytes, FRAG_RMM_UNIT);
}

/* ---- superblocks */

static inline uint32_t owner_of(const frag_policy *policy, const frag_block *block)
{
    return policy->superblocks[block->link].owner;
}

static inline void insert(frag_policy *policy, uint32_t hole)
{
    const frag_block *block = &policy->space.blocks[hole];
    frag_address_index_insert(&policy->indexes[owner_of(policy, block)], hole);
}

/* The record of a hole has other bytes now. */
static inline void change(frag_policy *policy, uint32_t hole)
{
    const frag_block *block = &policy->space.blocks[hole];
    frag_address_index_change(&policy->indexes[owner_of(policy, block)], hole);
}

static inline void take_out(frag_policy *policy, uint32_t hole)
{
    const frag_block *block = &policy->space.blocks[hole];
    frag_address_index_remove(&policy->indexes[owner_of(policy, block)], hole);
}

/* A superblock without a busy block is one free block. */
static bool is_empty(const frag_policy *policy, uint32_t header)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t only = blocks[header].next;
    return blocks[only].state == FRAG_BLOCK_HOLE && blocks[only].next == header;
}

/* Makes a superblock behind another one by address, or the first: all one free block, in no index
 * yet. */
static uint32_t make_superblock(frag_policy *policy, uint32_t before, uint64_t address,
                                uint64_t bytes, uint32_t owner)
{
    frag_block_space *space = &policy->space;
    uint32_t header = frag_block_take_record(space);
    uint32_t after = before == NONE ? space->first_header : space->blocks[before].link;
    space->blocks[header] = (frag_block){.address = address,
                                         .bytes = bytes,
                                         .previous = header,
                                         .next = header,
                                         .state = FRAG_BLOCK_HEADER,
                                         .link = after};
    policy->superblocks[header] = (superblock){before, owner};
    if (before == NONE)
        space->first_header = header;
    else
        space->blocks[before].link = header;
    if (after != NONE)
        policy->superblocks[after].before = header;
    uint32_t hole = frag_block_space_append_hole(space, header, address, bytes);
    space->blocks[hole].link = header;
    return header;
}

static void give_to(frag_policy *policy, uint32_t header, uint32_t owner)
{
    const frag_block *blocks = policy->space.blocks;
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next)
        if (blocks[id].state == FRAG_BLOCK_HOLE)
            take_out(policy, id);
    policy->superblocks[header].owner = owner;
    for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next)
        if (blocks[id].state == FRAG_BLOCK_HOLE)
            insert(policy, id);
}

/* Two empty superblocks of the global part, side by side, become one. */
static void join_next(frag_policy *policy, uint32_t header)
{
    frag_block_space *space = &policy->space;
    frag_block *low = &space->blocks[header];
    uint32_t gone = low->link;
    const frag_block *high = &space->blocks[gone];
    uint32_t hole = low->next;
    take_out(policy, high->next);
    low->bytes += high->bytes;
    space->blocks[hole].bytes += high->bytes;
    low->link = high->link;
    if (high->link != NONE)
        policy->superblocks[high->link].before = header;
    frag_block_give_record(space, high->next);
    frag_block_give_record(space, gone);
    change(policy, hole);
}

static bool is_joinable(const frag_policy *policy, uint32_t header)
{
    return header != NONE && policy->superblocks[header].owner == policy->global &&
           is_empty(policy, header);
}

/* A superblock is back in the global part, or has become empty there. */
static void join_neighbours(frag_policy *policy, uint32_t header)
{
    if (!is_empty(policy, header))
        return;
    if (is_joinable(policy, policy->space.blocks[header].link))
        join_next(policy, header);
    uint32_t before = policy->superblocks[header].before;
    if (is_joinable(policy, before))
        join_next(policy, before);
}

/* ---- creating */

static bool find_size(const frag_policy_setup *setup, uint64_t *bytes)
{
    uint64_t total = 0;
    *bytes = setup->values[OPTION_SIZE].number;
    if (*bytes == 0) {
        uint64_t free_bytes = 0;
        if (frag_device_memory_info(setup->device, &free_bytes, &total) != FRAG_DEVICE_OK)
            return false;
        *bytes = total != FRAG_UNLIMITED
                     ? free_bytes / 2
                     : frag_power_of_two_up(2 * (setup->limits.peak_requested_bytes + FRAG_MIB));
    }
    *bytes = *bytes / FRAG_RMM_UNIT * FRAG_RMM_UNIT;
    return *bytes > 0;
}

static frag_policy *rmm_arena_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    uint32_t records = records_of(&setup->limits);
    uint32_t owners = setup->limits.stream_count + 1;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->global = owners - 1;
    policy->has_classes = setup->values[OPTION_CLASSES].number != 0;
    frag_block_space_create_bare(&policy->space, setup, records);
    policy->space.may_adjoin = false;
    policy->superblocks = frag_arena_take(setup->arena, records, sizeof *policy->superblocks);
    policy->indexes = frag_arena_take(setup->arena, owners, sizeof *policy->indexes);
    frag_address_index_store_create(&policy->store, setup->arena, policy->space.blocks, records,
                                    owners, FRAG_RMM_UNIT);
    for (uint32_t i = 0; i < owners; i++)
        policy->indexes[i] = (frag_address_index){&policy->store, FRAG_ADDRESS_NONE};
    uint64_t bytes = 0;
    uint64_t address = 0;
    /* An arena that gets no memory serves nothing. */
    if (find_size(setup, &bytes) &&
        frag_device_malloc(setup->device, bytes, &address) == FRAG_DEVICE_OK) {
        uint32_t header = make_superblock(policy, NONE, address, bytes, policy->global);
        insert(policy, policy->space.blocks[header].next);
        policy->held_bytes = bytes;
    }
    return policy;
}

/* ---- requests */

/* Cuts the low end of a free block off for a request. */
static void take_block(frag_policy *policy, uint32_t hole, bool is_indexed, uint64_t bytes,
                       frag_grant *grant)
{
    frag_block_space *space = &policy->space;
    uint32_t granted = hole;
    if (space->blocks[hole].bytes > bytes) {
        granted = frag_block_cut(space, hole, bytes);
        space->blocks[granted].link = space->blocks[hole].link;
        if (is_indexed)
            change(policy, hole);
        else
            insert(policy, hole);
    } else {
        if (is_indexed)
            take_out(policy, hole);
        space->blocks[hole].state = FRAG_BLOCK_BUSY;
    }
    const frag_block *block = &space->blocks[granted];
    *grant = (frag_grant){.address = block->address, .block_bytes = bytes, .handle = granted};
}

/* Gives the owner a superblock of the global part that a request is to be served from: as it is, or
 * cut off an empty one that is large enough for two. Returns the free block in it, which no index
 * knows yet if it was cut. */
static bool fit_superblock(frag_policy *policy, uint64_t bytes, uint32_t owner, uint32_t *hole,
                           bool *is_indexed)
{
    if (!frag_address_index_first(&policy->indexes[policy->global], bytes, hole))
        return false;
    frag_block_space *space = &policy->space;
    uint32_t header = space->blocks[*hole].link;
    frag_block *whole = &space->blocks[header];
    uint64_t least = bytes > SUPERBLOCK_BYTES ? bytes : SUPERBLOCK_BYTES;
    if (!is_empty(policy, header) || whole->bytes < least + SUPERBLOCK_BYTES) {
        if (owner != policy->global)
            give_to(policy, header, owner);
        return true;
    }
    uint32_t before = policy->superblocks[header].before;
    uint64_t address = whole->address;
    whole->address += least;
    whole->bytes -= least;
    space->blocks[*hole].address += least;
    space->blocks[*hole].bytes -= least;
    change(policy, *hole);
    uint32_t made = make_superblock(policy, before, address, least, owner);
    *hole = space->blocks[made].next;
    *is_indexed = false;
    return true;
}

static bool try_alloc(frag_policy *policy, uint64_t bytes, uint32_t stream, frag_grant *grant)
{
    uint32_t hole = 0;
    bool is_large = bytes > SUPERBLOCK_BYTES;
    bool is_indexed = true;
    uint32_t owner = is_large ? policy->global : stream;
    if ((is_large || !frag_address_index_first(&policy->indexes[stream], bytes, &hole)) &&
        !fit_superblock(policy, bytes, owner, &hole, &is_indexed))
        return false;
    take_block(policy, hole, is_indexed, bytes, grant);
    return true;
}

static void clean_out(frag_policy *policy)
{
    const frag_block *blocks = policy->space.blocks;
    for (uint32_t id = policy->space.first_header; id != NONE; id = blocks[id].link)
        if (policy->superblocks[id].owner != policy->global)
            give_to(policy, id, policy->global);
    for (uint32_t id = policy->space.first_header; id != NONE; id = blocks[id].link)
        while (is_empty(policy, id) && is_joinable(policy, blocks[id].link))
            join_next(policy, id);
}

static bool rmm_arena_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = rmm_arena_rounded(policy, request->bytes);
    if (FRAG_LIKELY(try_alloc(policy, bytes, request->stream, grant)))
        return true;
    if (policy->held_bytes == 0)
        return false;
    (void)frag_device_synchronize(policy->space.device);
    clean_out(policy);
    return try_alloc(policy, bytes, request->stream, grant);
}

/* Frees a block and coalesces it with its neighbours in the superblock. */
static void put(frag_policy *policy, uint32_t id)
{
    frag_block_space *space = &policy->space;
    frag_block *block = &space->blocks[id];
    uint32_t previous = block->previous;
    uint32_t next = block->next;
    if (space->blocks[next].state == FRAG_BLOCK_HOLE) {
        take_out(policy, next);
        block->bytes += space->blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    if (space->blocks[previous].state == FRAG_BLOCK_HOLE) {
        frag_block *low = &space->blocks[previous];
        low->bytes += block->bytes;
        frag_block_unlink(space, id);
        change(policy, previous);
        return;
    }
    block->state = FRAG_BLOCK_HOLE;
    insert(policy, id);
}

static void rmm_arena_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    frag_block_space *space = &policy->space;
    FRAG_ASSERT(handle < space->record_count && space->blocks[handle].state == FRAG_BLOCK_BUSY);
    uint32_t header = space->blocks[handle].link;
    uint32_t owner = policy->superblocks[header].owner;
    bool is_large = space->blocks[handle].bytes > SUPERBLOCK_BYTES;
    bool is_found = owner == stream;
    if (is_large) {
        frag_device_stream_wait(space->device, stream);
        is_found = is_found || owner == policy->global;
    }
    /* The stream's own superblocks do not have it: the others are searched. */
    if (!is_found)
        frag_device_stream_wait(space->device, stream);
    put(policy, handle);
    if (owner == policy->global)
        join_neighbours(policy, header);
}

/* ---- walking and checking */

static void rmm_arena_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t header = policy->space.first_header;
    if (header == NONE)
        return;
    frag_span span = {
        .kind = FRAG_SPAN_SEGMENT, .address = blocks[header].address, .bytes = policy->held_bytes};
    visit(context, &span);
    for (; header != NONE; header = blocks[header].link)
        for (uint32_t at = blocks[header].next; at != header; at = blocks[at].next) {
            bool is_hole = blocks[at].state == FRAG_BLOCK_HOLE;
            span = (frag_span){.kind = is_hole ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK,
                               .address = blocks[at].address,
                               .bytes = blocks[at].bytes,
                               .handle = is_hole ? 0 : at};
            visit(context, &span);
        }
}

static bool is_of_owner(const void *context, uint32_t id, uint32_t owner)
{
    const frag_policy *policy = context;
    return owner_of(policy, &policy->space.blocks[id]) == owner;
}

static bool check_superblocks(const frag_policy *policy, frag_error *error)
{
    const frag_block *blocks = policy->space.blocks;
    uint32_t before = NONE;
    uint32_t id = policy->space.first_header;
    uint64_t end = id != NONE ? blocks[id].address : 0;
    uint64_t sum = 0;
    for (; id != NONE; before = id, id = blocks[id].link) {
        if (policy->superblocks[id].before != before || blocks[id].address != end)
            return frag_fail(error, FRAG_E_INPUT, "superblock %u does not follow superblock %u", id,
                             before);
        if (before != NONE && is_joinable(policy, before) && is_joinable(policy, id))
            return frag_fail(error, FRAG_E_INPUT, "superblocks %u and %u were not joined", before,
                             id);
        for (uint32_t at = blocks[id].next; at != id; at = blocks[at].next)
            if (blocks[at].link != id)
                return frag_fail(error, FRAG_E_INPUT, "block %u does not know its superblock", at);
        end = blocks[id].address + blocks[id].bytes;
        sum += blocks[id].bytes;
    }
    return sum == policy->held_bytes ||
           frag_fail(error, FRAG_E_INPUT, "the superblocks do not fill the arena");
}

static bool rmm_arena_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error) ||
        !check_superblocks(policy, error))
        return false;
    frag_index_audit audit = {.blocks = policy->space.blocks,
                              .state = FRAG_BLOCK_HOLE,
                              .belongs = is_of_owner,
                              .context = policy};
    for (uint32_t owner = 0; owner <= policy->global; owner++)
        if (!frag_index_audit_take_by_address(&audit, &policy->indexes[owner], owner, error))
            return false;
    return (!audit.is_wrong && audit.count == hole_count) ||
           frag_fail(error, FRAG_E_INPUT, "the indexes and the %llu free blocks differ",
                     (unsigned long long)hole_count);
}

static const frag_policy_rules rmm_arena_rules = {
    .rounding = "to multiples of 256, or to four classes to a doubling (size_classes)",
    .takes = "the lowest of its stream's superblocks; for requests above 1 MiB, or if its own have "
             "none, of the global superblocks, which then belong to the stream",
    .cuts =
        "always; the low end is handed out. Superblocks of at least 1 MiB are split off empty ones",
    .joins = "with free neighbours of its superblock; superblocks that touch, when they come back "
             "empty to the global ones",
    .grows = "one device malloc of arena_size at construction, and never more; a request that "
             "fails makes all streams give their superblocks back, and is tried again",
    .streams = "superblocks belong to a stream until it gives them back",
};

const frag_policy_ops frag_policy_rmm_arena = {
    .name = "rmm-arena",
    .summary =
        "RMM's arena: one device malloc, first fit in superblocks of streams and global ones",
    .source = "RMM 25.10.00, rmm::mr::arena_memory_resource",
    .rules = &rmm_arena_rules,
    .bound = "",
    .checked = "the library's own logs, request by request (tests/data/golden-peers/rmm-arena-*)",
    .options = rmm_arena_options,
    .arena_bytes = rmm_arena_bytes,
    .create = rmm_arena_create,
    .alloc = rmm_arena_alloc,
    .free = rmm_arena_free,
    .rounded = rmm_arena_rounded,
    .walk = rmm_arena_walk,
    .check = rmm_arena_check,
};
