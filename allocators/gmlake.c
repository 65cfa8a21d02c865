/* GMLake: PyTorch's caching allocator whose large blocks are made of chunks of 2 MiB. A request
 * that finds no free block gets a range into which chunks of several free blocks are mapped, before
 * or after new memory is tried, and such ranges are kept for requests of their size. Source: Guo
 * and others, ASPLOS 2024; antgroup/glake, GMLake. Ours moves chunks where GMLake maps them a
 * second time: the same bytes are held at every event, with more unmaps, after a wait for the
 * stream. */
#include "allocators/gmlake_state.h"
#include "sim/base/bytes.h"

#define NONE FRAG_LAKE_NONE
#define SMALL_UNIT ((uint64_t)512)
#define SMALL_MAX FRAG_MIB
#define SMALL_SEGMENT (2 * FRAG_MIB)
#define SHARED_MAX (10 * FRAG_MIB) /* requests below share segments of the next size */
#define SHARED_SEGMENT (20 * FRAG_MIB)

enum { OPTION_LIMIT, OPTION_REUSE, OPTION_LEVEL, OPTION_COLLECT };

static const frag_option gmlake_options[] = {
    [OPTION_LIMIT] = {.key = "fragLimit",
                      .type = FRAG_OPTION_BYTES,
                      .default_text = "512MiB",
                      .max = FRAG_UNLIMITED,
                      .help = "smaller requests are never stitched"},
    [OPTION_REUSE] = {.key = "reuseLimit",
                      .type = FRAG_OPTION_RATIO,
                      .default_text = "10",
                      .ratio_min = 1,
                      .ratio_max = 1e6,
                      .help = "a stitched range serves requests down to its size divided by this"},
    [OPTION_LEVEL] = {.key = "defragLevel",
                      .type = FRAG_OPTION_COUNT,
                      .default_text = "0",
                      .max = 2,
                      .help = "0: stitch before asking for new memory; 1: after that failed; 2: "
                              "after cached memory was given back as well"},
    [OPTION_COLLECT] = {.key = "autoGC",
                        .type = FRAG_OPTION_BYTES,
                        .default_text = "1000GB",
                        .max = FRAG_UNLIMITED,
                        .help = "ranges that nobody has are taken apart when all together exceed "
                                "this"},
    {.key = NULL},
};

/* Records: a request makes one segment at most, with header and piece, and one stitched range, with
 * header and block. Between them they leave three new borders between pieces at most; the borders
 * of runs are borders that pieces had. */
static uint32_t record_max(const frag_policy_limits *limits)
{
    uint64_t count = 8 * limits->request_count + 64;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

/* More runs than this are not kept: address space for them is taken at the start. */
static uint32_t run_max(const frag_policy_limits *limits)
{
    uint64_t most = (uint64_t)1 << 24;
    uint64_t count = 64 * limits->request_count + 64;
    return (uint32_t)(count < most ? count : most);
}

static size_t gmlake_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    uint32_t records = record_max(limits);
    uint64_t indexes = 3 * (uint64_t)limits->stream_count;
    return sizeof(frag_policy) + frag_free_records_bytes(records) +
           (size_t)records * sizeof(frag_lake_side) +
           (size_t)run_max(limits) * sizeof(frag_lake_run) + indexes * sizeof(frag_free_index) +
           limits->stream_count * sizeof(uint64_t) + frag_free_index_store_bytes(records, indexes) +
           (size_t)8 * 64;
}

static frag_policy *gmlake_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    uint32_t records = record_max(&setup->limits);
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->values = setup->values;
    policy->index_count = 3 * setup->limits.stream_count;
    policy->chunk_bytes = frag_round_up(FRAG_DEVICE_PAGE_BYTES, setup->device->page_bytes);
    setup->device->map_unit_bytes = policy->chunk_bytes;
    frag_block_space_create_bare(&policy->space, setup, records);
    policy->sides = frag_arena_take(setup->arena, records, sizeof *policy->sides);
    frag_free_index_store_create(&policy->store, setup->arena, policy->space.blocks, records,
                                 policy->index_count);
    policy->indexes = frag_arena_take(setup->arena, policy->index_count, sizeof *policy->indexes);
    policy->free_bytes =
        frag_arena_take(setup->arena, setup->limits.stream_count, sizeof *policy->free_bytes);
    policy->run_max = run_max(&setup->limits);
    policy->runs = frag_arena_take(setup->arena, policy->run_max, sizeof *policy->runs);
    policy->spare_run = NONE;
    return policy;
}

static uint64_t rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_round_up(bytes, bytes <= SMALL_MAX ? SMALL_UNIT : policy->chunk_bytes);
}

/* ---- memory */

static bool add_small(frag_policy *policy, uint32_t stream)
{
    uint64_t address = 0;
    policy->space.device->for_stream = stream;
    if (frag_device_malloc(policy->space.device, SMALL_SEGMENT, &address) != FRAG_DEVICE_OK)
        return false;
    (void)frag_lake_add(policy, address, SMALL_SEGMENT, FRAG_LAKE_SMALL, stream);
    policy->held_bytes += SMALL_SEGMENT;
    return true;
}

static bool add_home(frag_policy *policy, uint64_t bytes, uint32_t stream)
{
    frag_device *device = policy->space.device;
    uint64_t taken =
        bytes < SHARED_MAX ? frag_round_up(SHARED_SEGMENT, policy->chunk_bytes) : bytes;
    uint64_t address = 0;
    device->for_stream = stream;
    if (frag_device_reserve(device, taken, &address) != FRAG_DEVICE_OK)
        return false;
    if (frag_device_map(device, address, taken) != FRAG_DEVICE_OK) {
        (void)frag_device_unreserve(device, address, taken);
        return false;
    }
    (void)frag_lake_add(policy, address, taken, FRAG_LAKE_HOME, stream);
    policy->held_bytes += taken;
    return true;
}

static void unstitch_all(frag_policy *policy)
{
    (void)frag_device_synchronize(policy->space.device);
    policy->has_waited = true;
    frag_lake_unstitch(policy);
}

static void release_all(frag_policy *policy)
{
    unstitch_all(policy);
    frag_lake_release(policy);
}

/* ---- requests */

/* LOST: chunks got lost in a move, and everything may have changed: try again. */
typedef enum outcome { OUTCOME_NONE, OUTCOME_FOUND, OUTCOME_LOST } outcome;

static frag_free_index *index_of(const frag_policy *policy, uint32_t stream, frag_lake_kind kind)
{
    return &policy->indexes[3 * stream + (uint32_t)kind];
}

static outcome take_piece(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    uint32_t hole = NONE;
    if (!frag_free_index_best(&policy->store, index_of(policy, stream, FRAG_LAKE_HOME), bytes,
                              &hole))
        return OUTCOME_NONE;
    if (!frag_lake_bring_home(policy, hole, bytes))
        return OUTCOME_LOST;
    *id = frag_lake_cut(policy, hole, bytes, FRAG_LAKE_GRANTED);
    return OUTCOME_FOUND;
}

static outcome grant_range(frag_policy *policy, uint32_t header, uint32_t *id)
{
    *id = policy->space.blocks[header].next;
    return frag_lake_grant_stitched(policy, header) ? OUTCOME_FOUND : OUTCOME_LOST;
}

static outcome take_stitched(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    uint32_t whole = NONE;
    if (!frag_free_index_best(&policy->store, index_of(policy, stream, FRAG_LAKE_STITCHED), bytes,
                              &whole) ||
        (double)policy->space.blocks[whole].bytes >
            policy->values[OPTION_REUSE].ratio * (double)bytes)
        return OUTCOME_NONE;
    return grant_range(policy, policy->space.blocks[whole].link, id);
}

/* Chooses the largest free pieces of the stream until they are enough; links them. */
static uint32_t choose_pieces(frag_policy *policy, uint64_t bytes, uint32_t stream)
{
    uint32_t first = NONE;
    uint32_t last = NONE;
    uint32_t id = NONE;
    uint64_t sum = 0;
    while (sum < bytes && frag_free_index_worst(&policy->store,
                                                index_of(policy, stream, FRAG_LAKE_HOME), 1, &id)) {
        frag_lake_take_out(policy, id);
        sum += policy->space.blocks[id].bytes;
        policy->sides[id].next_chosen = NONE;
        if (last == NONE)
            first = id;
        else
            policy->sides[last].next_chosen = id;
        last = id;
    }
    for (id = first; id != NONE; id = policy->sides[id].next_chosen)
        frag_lake_insert(policy, id);
    return first;
}

static outcome stitch(frag_policy *policy, uint64_t bytes, uint32_t stream, uint64_t stage,
                      uint32_t *id)
{
    const frag_option_value *values = policy->values;
    if (stage < values[OPTION_LEVEL].number || bytes < values[OPTION_LIMIT].number ||
        policy->free_bytes[stream] < bytes)
        return OUTCOME_NONE;
    uint32_t header = frag_lake_stitch(policy, choose_pieces(policy, bytes, stream), bytes);
    if (header == NONE) {
        unstitch_all(policy);
        if (policy->free_bytes[stream] < bytes)
            return OUTCOME_NONE;
        header = frag_lake_stitch(policy, choose_pieces(policy, bytes, stream), bytes);
        if (header == NONE)
            return OUTCOME_NONE;
    }
    outcome got = grant_range(policy, header, id);
    if (policy->stitched_bytes > values[OPTION_COLLECT].number)
        unstitch_all(policy);
    return got;
}

static outcome try_large(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    outcome got = take_piece(policy, bytes, stream, id);
    if (got == OUTCOME_NONE)
        got = take_stitched(policy, bytes, stream, id);
    if (got == OUTCOME_NONE)
        got = stitch(policy, bytes, stream, 0, id);
    if (got == OUTCOME_NONE && add_home(policy, bytes, stream))
        got = take_piece(policy, bytes, stream, id);
    if (got == OUTCOME_NONE)
        got = stitch(policy, bytes, stream, 1, id);
    if (got != OUTCOME_NONE)
        return got;
    release_all(policy);
    if (add_home(policy, bytes, stream))
        return take_piece(policy, bytes, stream, id);
    return stitch(policy, bytes, stream, 2, id);
}

static outcome try_small(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    const frag_free_index *index = index_of(policy, stream, FRAG_LAKE_SMALL);
    uint32_t hole = NONE;
    if (!frag_free_index_best(&policy->store, index, bytes, &hole)) {
        if (!add_small(policy, stream)) {
            release_all(policy);
            if (!add_small(policy, stream))
                return OUTCOME_NONE;
        }
        (void)frag_free_index_best(&policy->store, index, bytes, &hole);
    }
    *id = frag_lake_cut(policy, hole, bytes, FRAG_LAKE_GRANTED);
    return OUTCOME_FOUND;
}

static bool gmlake_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = rounded(policy, request->bytes);
    uint32_t id = NONE;
    outcome got = OUTCOME_LOST;
    policy->has_waited = false;
    while (got == OUTCOME_LOST)
        got = request->bytes <= SMALL_MAX ? try_small(policy, bytes, request->stream, &id)
                                          : try_large(policy, bytes, request->stream, &id);
    if (got == OUTCOME_NONE)
        return false;
    const frag_block *block = &policy->space.blocks[id];
    *grant = (frag_grant){.address = block->address, .block_bytes = block->bytes, .handle = id};
    return true;
}

static void gmlake_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    FRAG_ASSERT(handle < policy->space.record_count &&
                policy->space.blocks[handle].state == FRAG_BLOCK_BUSY &&
                policy->sides[handle].use == FRAG_LAKE_GRANTED);
    uint32_t header = policy->space.blocks[handle].link;
    if (policy->sides[header].kind == FRAG_LAKE_STITCHED)
        frag_lake_free_stitched(policy, header);
    else
        frag_lake_put(policy, handle);
}

static void gmlake_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    release_all(policy);
}

const frag_policy_ops frag_policy_gmlake = {
    .name = "gmlake",
    .summary = "GMLake: PyTorch's rules, and large requests stitched of free blocks' chunks",
    .source = "Guo and others: GMLake, ASPLOS 2024; antgroup/glake, over PyTorch 2.0",
    .bound = "",
    .options = gmlake_options,
    .arena_bytes = gmlake_arena_bytes,
    .create = gmlake_create,
    .alloc = gmlake_alloc,
    .free = gmlake_free,
    .empty_cache = gmlake_empty_cache,
    .rounded = rounded,
    .walk = frag_lake_walk,
    .check = frag_lake_check,
};
