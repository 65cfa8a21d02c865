/* The driver's stream-ordered pool (cudaMallocAsync), best fit in chunks of device memory. A free
 * block belongs to the stream that freed it until that is seen to have got there. A request tries
 * blocks of its own stream, of streams it waited for, of streams seen to be done, new memory, and
 * last a block that it has to wait for. Source: CUDA programming guide, stream-ordered memory
 * allocator. Which block is best and which chunk goes first is ours, for the driver does not say;
 * ours records an event for each free where there are several streams, which the driver need not.
 */
#include "allocators/index/block_space.h"
#include "allocators/index/free_index.h"
#include "allocators/index/index_audit.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define NONE FRAG_BLOCK_NONE
#define BLOCK_BYTES 512u

enum {
    OPTION_THRESHOLD,
    OPTION_EVENTS,
    OPTION_OPPORTUNISTIC,
    OPTION_INTERNAL,
    OPTION_GROW,
    OPTION_MAXIMUM,
    OPTION_RETRY
};

static const frag_option cuda_async_options[] = {
    [OPTION_THRESHOLD] = {"release_threshold", FRAG_OPTION_BYTES, "0", .max = FRAG_UNLIMITED,
                          .help = "what the pool may hold when the program synchronises; whole "
                                  "free chunks above it go back then"},
    [OPTION_EVENTS] = {"follow_events", FRAG_OPTION_FLAG, "true",
                       .help = "a stream takes what another freed before a point it waited for"},
    [OPTION_OPPORTUNISTIC] = {"opportunistic", FRAG_OPTION_FLAG, "true",
                              .help =
                                  "a stream takes what another freed and is seen to be done with"},
    [OPTION_INTERNAL] = {"internal_waits", FRAG_OPTION_FLAG, "true",
                         .help = "when there is no new memory a stream waits for another's free"},
    [OPTION_GROW] = {"grow", FRAG_OPTION_BYTES, "32MiB", .min = 1, .max = 1024 * FRAG_GIB,
                     .help = "chunks are multiples of this, or of pages where there is no room"},
    [OPTION_MAXIMUM] = {"max_size", FRAG_OPTION_BYTES, "unlimited", .max = FRAG_UNLIMITED,
                        .help = "what the pool may hold at most"},
    [OPTION_RETRY] = {"retry_after_sync", FRAG_OPTION_FLAG, "false",
                      .help = "a program that synchronises on a failure and asks once more"},
    {.key = NULL},
};

/* What a block needs beside its record. */
typedef struct block_side {
    uint64_t mark;  /* free: the event behind its free, on its owner */
    uint32_t owner; /* busy: the stream that asked; free: the one that freed it, or idle */
    uint32_t users; /* busy: list of the other streams that use it */
} block_side;

typedef struct stream_mark {
    uint64_t mark;
    uint32_t stream;
    uint32_t next;
} stream_mark;

struct frag_policy {
    frag_block_space space;
    frag_free_index_store store;
    frag_free_index *indexes; /* by owner */
    block_side *sides;        /* by record */
    uint32_t idle;            /* the owner of what every stream may use: behind all streams */
    uint32_t *waited; /* by stream: list of what it waited for, at most one for each other */
    stream_mark *nodes;
    uint32_t node_count;
    uint32_t spare_node;
    const frag_option_value *values;
    uint64_t held_bytes;
    void (*on_complete)(void *context, frag_handle handle);
    void *on_complete_context;
};

/* A request splits off at most one block and makes at most one chunk, with its header and its hole;
 * free blocks of two streams side by side stay apart. */
static uint32_t record_max(const frag_policy_limits *limits)
{
    uint64_t count = 3 * limits->request_count + 16;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

/* A use takes one node while the block is live, and one for the wait it leads to; a request takes
 * one for its wait. */
static uint32_t node_max(const frag_policy_limits *limits)
{
    uint64_t count = 2 * limits->use_count + limits->request_count + 16;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

static size_t cuda_async_arena_bytes(const frag_policy_limits *limits,
                                     const frag_option_value *values)
{
    (void)values;
    uint32_t records = record_max(limits);
    size_t owners = (size_t)limits->stream_count + 1;
    return sizeof(frag_policy) + frag_free_records_bytes(records) + records * sizeof(block_side) +
           owners * (sizeof(frag_free_index) + sizeof(uint32_t)) +
           (size_t)node_max(limits) * sizeof(stream_mark) +
           frag_free_index_store_bytes(records, owners) + (size_t)6 * 64;
}

static frag_policy *cuda_async_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    uint32_t records = record_max(&setup->limits);
    uint32_t owners = setup->limits.stream_count + 1;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->values = setup->values;
    policy->idle = owners - 1;
    policy->on_complete = setup->on_complete;
    policy->on_complete_context = setup->on_complete_context;
    frag_block_space_create_bare(&policy->space, setup, records);
    policy->sides = frag_arena_take(setup->arena, records, sizeof *policy->sides);
    policy->indexes = frag_arena_take(setup->arena, owners, sizeof *policy->indexes);
    frag_free_index_store_create(&policy->store, setup->arena, policy->space.blocks, records,
                                 owners, false);
    policy->waited = frag_arena_take(setup->arena, owners, sizeof *policy->waited);
    for (uint32_t i = 0; i < owners; i++)
        policy->waited[i] = NONE;
    policy->nodes = frag_arena_take(setup->arena, node_max(&setup->limits), sizeof *policy->nodes);
    policy->spare_node = NONE;
    return policy;
}

static uint64_t rounded(const frag_policy *policy, uint64_t bytes)
{
    (void)policy;
    return frag_align_up(bytes, BLOCK_BYTES);
}

/* ---- what streams know of each other */

static uint32_t take_node(frag_policy *policy, stream_mark node)
{
    uint32_t id = policy->spare_node;
    if (id != NONE)
        policy->spare_node = policy->nodes[id].next;
    else
        id = policy->node_count++;
    policy->nodes[id] = node;
    return id;
}

static stream_mark *find_node(const frag_policy *policy, uint32_t first, uint32_t stream)
{
    for (uint32_t id = first; id != NONE; id = policy->nodes[id].next)
        if (policy->nodes[id].stream == stream)
            return &policy->nodes[id];
    return NULL;
}

/* The stream's later work comes after the other's up to the mark. */
static void await(frag_policy *policy, uint32_t stream, uint32_t other, uint64_t mark)
{
    frag_device_event_await(policy->space.device, stream, other, mark);
    stream_mark *known = find_node(policy, policy->waited[stream], other);
    if (known == NULL)
        policy->waited[stream] =
            take_node(policy, (stream_mark){mark, other, policy->waited[stream]});
    else if (known->mark < mark)
        known->mark = mark;
}

/* ---- free blocks */

static inline frag_free_index *index_of(const frag_policy *policy, uint32_t hole)
{
    return &policy->indexes[policy->sides[hole].owner];
}

static inline void take_out(frag_policy *policy, uint32_t hole)
{
    frag_free_index_remove(&policy->store, index_of(policy, hole), hole);
}

/* What every stream may use joins what one stream may use when that is freed beside it. */
static bool may_join(const frag_policy *policy, uint32_t id, uint32_t owner)
{
    return policy->space.blocks[id].state == FRAG_BLOCK_HOLE &&
           (policy->sides[id].owner == owner || policy->sides[id].owner == policy->idle);
}

/* Frees a block that is in no index, and coalesces it with its neighbours. */
static void put(frag_policy *policy, uint32_t id, uint32_t owner, uint64_t mark)
{
    frag_block_space *space = &policy->space;
    uint32_t next = space->blocks[id].next;
    for (; may_join(policy, next, owner); next = space->blocks[id].next) {
        take_out(policy, next);
        space->blocks[id].bytes += space->blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    uint32_t low = space->blocks[id].previous;
    for (; may_join(policy, low, owner); low = space->blocks[id].previous) {
        take_out(policy, low);
        space->blocks[low].bytes += space->blocks[id].bytes;
        frag_block_unlink(space, id);
        id = low;
    }
    space->blocks[id].state = FRAG_BLOCK_HOLE;
    policy->sides[id] = (block_side){mark, owner, NONE};
    frag_free_index_insert(&policy->store, &policy->indexes[owner], id);
}

/* The stream is known to have done all its frees so far. */
static void settle(frag_policy *policy, uint32_t stream)
{
    uint32_t id = 0;
    while (frag_free_index_best(&policy->store, &policy->indexes[stream], 1, &id)) {
        take_out(policy, id);
        put(policy, id, policy->idle, 0);
    }
}

static void settle_all(frag_policy *policy)
{
    for (uint32_t stream = 0; stream < policy->idle; stream++)
        settle(policy, stream);
}

/* ---- chunks */

/* Gives back chunks without a block or a free that waits, oldest first, as long as keep bytes are
 * left. */
static void trim(frag_policy *policy, uint64_t keep)
{
    frag_block_space *space = &policy->space;
    bool has_gone = false;
    frag_device_for_all(space->device);
    for (uint32_t id = space->first_header; id != NONE; id = space->blocks[id].link) {
        frag_block *header = &space->blocks[id];
        uint32_t only = header->next;
        bool is_idle = space->blocks[only].state == FRAG_BLOCK_HOLE &&
                       space->blocks[only].next == id && policy->sides[only].owner == policy->idle;
        if (!is_idle || policy->held_bytes < keep || policy->held_bytes - keep < header->bytes ||
            frag_device_free(space->device, header->address, header->bytes) != FRAG_DEVICE_OK)
            continue;
        take_out(policy, only);
        frag_block_give_record(space, only);
        policy->held_bytes -= header->bytes;
        header->state = FRAG_BLOCK_UNUSED;
        has_gone = true;
    }
    if (has_gone)
        frag_block_space_sweep(space);
}

static bool add_chunk(frag_policy *policy, uint64_t bytes)
{
    uint64_t address = 0;
    uint64_t maximum = policy->values[OPTION_MAXIMUM].number;
    if (policy->held_bytes > maximum || bytes > maximum - policy->held_bytes)
        return false;
    frag_device_for_all(policy->space.device);
    if (frag_device_malloc(policy->space.device, bytes, &address) != FRAG_DEVICE_OK)
        return false;
    uint32_t header = frag_block_space_add_segment(&policy->space, address, bytes);
    uint32_t hole = frag_block_space_append_hole(&policy->space, header, address, bytes);
    policy->held_bytes += bytes;
    policy->sides[hole] = (block_side){0, policy->idle, NONE};
    frag_free_index_insert(&policy->store, &policy->indexes[policy->idle], hole);
    return true;
}

static bool grow(frag_policy *policy, uint64_t bytes)
{
    uint64_t page = policy->space.device->page_bytes;
    page = page > BLOCK_BYTES ? page : BLOCK_BYTES;
    uint64_t exact = frag_round_up(bytes, page);
    uint64_t large = frag_round_up(frag_round_up(bytes, policy->values[OPTION_GROW].number), page);
    if (add_chunk(policy, large) || (large != exact && add_chunk(policy, exact)))
        return true;
    trim(policy, 0);
    return add_chunk(policy, exact);
}

/* ---- requests */

static bool is_better(const frag_policy *policy, uint32_t hole, uint32_t than)
{
    const frag_block *block = &policy->space.blocks[hole];
    const frag_block *other = than == NONE ? NULL : &policy->space.blocks[than];
    return other == NULL || block->bytes < other->bytes ||
           (block->bytes == other->bytes && block->address < other->address);
}

/* What the stream may use without polling other streams. */
static bool find_own(const frag_policy *policy, uint32_t stream, uint64_t bytes, uint32_t *hole)
{
    uint32_t own = NONE;
    uint32_t idle = NONE;
    (void)frag_free_index_best(&policy->store, &policy->indexes[stream], bytes, &own);
    (void)frag_free_index_best(&policy->store, &policy->indexes[policy->idle], bytes, &idle);
    *hole = idle == NONE || (own != NONE && is_better(policy, own, idle)) ? own : idle;
    return *hole != NONE;
}

/* The best block of another stream that was freed before a point this one waited for. */
static bool find_by_events(const frag_policy *policy, uint32_t stream, uint64_t bytes,
                           uint32_t *hole)
{
    uint32_t best = NONE;
    for (uint32_t at = policy->waited[stream]; at != NONE; at = policy->nodes[at].next) {
        const stream_mark *known = &policy->nodes[at];
        const frag_free_index *index = &policy->indexes[known->stream];
        uint32_t id = NONE;
        bool has = frag_free_index_best(&policy->store, index, bytes, &id);
        while (has && policy->sides[id].mark > known->mark)
            has = frag_free_index_after(&policy->store, index, id, &id);
        if (has && is_better(policy, id, best))
            best = id;
    }
    *hole = best;
    return best != NONE;
}

/* The best block of other streams; of each stream only its best is looked at. must_be_done: the
 * driver is asked whether its stream has got there. */
static bool find_of_others(const frag_policy *policy, uint32_t stream, uint64_t bytes,
                           bool must_be_done, uint32_t *hole)
{
    uint32_t best = NONE;
    for (uint32_t other = 0; other < policy->idle; other++) {
        uint32_t id = NONE;
        if (other == stream ||
            !frag_free_index_best(&policy->store, &policy->indexes[other], bytes, &id))
            continue;
        if (is_better(policy, id, best) &&
            (!must_be_done ||
             frag_device_event_is_done(policy->space.device, other, policy->sides[id].mark)))
            best = id;
    }
    *hole = best;
    return best != NONE;
}

static void take(frag_policy *policy, uint32_t hole, uint64_t bytes, uint32_t stream,
                 frag_grant *grant)
{
    frag_block_space *space = &policy->space;
    uint64_t held = space->blocks[hole].bytes;
    uint32_t granted = hole;
    if (held > bytes) {
        granted = frag_block_cut(space, hole, bytes);
        frag_free_index_change(&policy->store, index_of(policy, hole), hole);
    } else {
        take_out(policy, hole);
        space->blocks[hole].state = FRAG_BLOCK_BUSY;
    }
    policy->sides[granted] = (block_side){0, stream, NONE};
    *grant = (frag_grant){
        .address = space->blocks[granted].address, .block_bytes = bytes, .handle = granted};
}

static bool serve(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *hole)
{
    const frag_option_value *values = policy->values;
    if (find_own(policy, stream, bytes, hole) ||
        (values[OPTION_EVENTS].number != 0 && find_by_events(policy, stream, bytes, hole)) ||
        (values[OPTION_OPPORTUNISTIC].number != 0 &&
         find_of_others(policy, stream, bytes, true, hole)))
        return true;
    if (grow(policy, bytes))
        return find_own(policy, stream, bytes, hole);
    if (values[OPTION_INTERNAL].number == 0 || !find_of_others(policy, stream, bytes, false, hole))
        return false;
    await(policy, stream, policy->sides[*hole].owner, policy->sides[*hole].mark);
    return true;
}

static void cuda_async_sync(frag_policy *policy, uint32_t stream)
{
    uint64_t threshold = policy->values[OPTION_THRESHOLD].number;
    if (stream == FRAG_STREAM_EVERY)
        settle_all(policy);
    else
        settle(policy, stream);
    if (policy->held_bytes > threshold)
        trim(policy, threshold);
}

static bool cuda_async_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = rounded(policy, request->bytes);
    uint32_t hole = NONE;
    if (!serve(policy, bytes, request->stream, &hole)) {
        if (policy->values[OPTION_RETRY].number == 0)
            return false;
        (void)frag_device_synchronize(policy->space.device);
        cuda_async_sync(policy, FRAG_STREAM_EVERY);
        if (!serve(policy, bytes, request->stream, &hole))
            return false;
    }
    take(policy, hole, bytes, request->stream, grant);
    return true;
}

static bool cuda_async_use(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    block_side *side = &policy->sides[handle];
    if (side->owner == stream)
        return false;
    if (find_node(policy, side->users, stream) == NULL)
        side->users = take_node(policy, (stream_mark){0, stream, side->users});
    return true;
}

/* The freeing stream waits for those that use the block: from there on the block is its own. */
static void await_users(frag_policy *policy, uint32_t handle, uint32_t stream)
{
    for (uint32_t at = policy->sides[handle].users; at != NONE;) {
        uint32_t next = policy->nodes[at].next;
        uint32_t user = policy->nodes[at].stream;
        policy->nodes[at].next = policy->spare_node;
        policy->spare_node = at;
        if (user != stream)
            await(policy, stream, user, frag_device_event_record(policy->space.device, user));
        at = next;
    }
}

static void cuda_async_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    FRAG_ASSERT(handle < policy->space.record_count &&
                policy->space.blocks[handle].state == FRAG_BLOCK_BUSY);
    bool is_shared = policy->sides[handle].users != NONE;
    await_users(policy, handle, stream);
    /* A program with one stream has nobody to keep the block from. */
    if (policy->idle == 1)
        put(policy, handle, policy->idle, 0);
    else
        put(policy, handle, stream, frag_device_event_record(policy->space.device, stream));
    if (is_shared)
        policy->on_complete(policy->on_complete_context, handle);
}

static void cuda_async_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    (void)frag_device_synchronize(policy->space.device);
    settle_all(policy);
    trim(policy, 0);
}

/* ---- walking and checking */

static void cuda_async_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_block_space_walk(&policy->space, visit, context);
}

static bool is_of_owner(const void *context, uint32_t id, uint32_t owner)
{
    const frag_policy *policy = context;
    return policy->sides[id].owner == owner;
}

static bool check_chunks(const frag_policy *policy, frag_error *error)
{
    const frag_block *blocks = policy->space.blocks;
    uint64_t sum = 0;
    for (uint32_t header = policy->space.first_header; header != NONE;
         header = blocks[header].link) {
        sum += blocks[header].bytes;
        for (uint32_t id = blocks[header].next; id != header; id = blocks[id].next)
            if (blocks[id].state == FRAG_BLOCK_HOLE &&
                blocks[blocks[id].next].state == FRAG_BLOCK_HOLE &&
                policy->sides[id].owner == policy->sides[blocks[id].next].owner)
                return frag_fail(error, FRAG_E_INPUT, "free blocks %u and %u were not joined", id,
                                 blocks[id].next);
    }
    return sum == policy->held_bytes ||
           frag_fail(error, FRAG_E_INPUT, "the pool does not know what it holds");
}

static bool cuda_async_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error) || !check_chunks(policy, error))
        return false;
    frag_index_audit audit = {.blocks = policy->space.blocks,
                              .state = FRAG_BLOCK_HOLE,
                              .belongs = is_of_owner,
                              .context = policy};
    for (uint32_t owner = 0; owner <= policy->idle; owner++)
        if (!frag_index_audit_take(&audit, &policy->store, &policy->indexes[owner], owner, error))
            return false;
    return (!audit.is_wrong && audit.count == hole_count) ||
           frag_fail(error, FRAG_E_INPUT, "the indexes and the %llu free blocks differ",
                     (unsigned long long)hole_count);
}

static const frag_policy_rules cuda_async_rules = {
    .rounding = "to multiples of 512",
    .takes = "the smallest block that fits, the lowest of equal ones: first of those that its "
             "stream freed or that every stream may use; then of those that other streams "
             "freed before it waited for them (follow_events); then the smallest of each other "
             "stream, if its work is observed to be done (opportunistic); after the device "
             "refused memory, one that it must wait for (internal_waits)",
    .cuts = FRAG_RULE_LOW_END,
    .joins = "with free neighbours of its chunk that the same stream freed or all may use",
    .grows = "device mallocs in multiples of grow, or of the request where that is refused, up to "
             "max_size. Free chunks that no stream may still use go back, the oldest first: above "
             "release_threshold when the program synchronises, all on empty_cache and when the "
             "device refuses, which is then asked again",
    .streams = "a free block belongs to the stream that freed it until the program synchronises "
               "with that stream; where only one stream exists, to all",
};

const frag_policy_ops frag_policy_cuda_async = {
    .name = "cuda-async",
    .summary = "the driver's stream-ordered pool: streams reuse their own frees, and each other's "
               "by rules",
    .source =
        "CUDA 12 and 13, cudaMallocAsync: CUDA programming guide, stream-ordered memory allocator",
    .rules = &cuda_async_rules,
    .bound = "",
    .options = cuda_async_options,
    .arena_bytes = cuda_async_arena_bytes,
    .create = cuda_async_create,
    .alloc = cuda_async_alloc,
    .free = cuda_async_free,
    .use = cuda_async_use,
    .sync = cuda_async_sync,
    .empty_cache = cuda_async_empty_cache,
    .rounded = rounded,
    .walk = cuda_async_walk,
    .check = cuda_async_check,
};
