/* GMLake: PyTorch's caching allocator whose large blocks are made of chunks of 2 MiB. A request
 * that finds no free block gets a range into which chunks of several free blocks are mapped a
 * second time, before or after new memory is tried, and such ranges are kept for requests of their
 * size. Source: Guo and others, ASPLOS 2024; antgroup/glake, GMLake. Ours reserves a range before
 * it creates the chunks for it, and goes on where GMLake's behaviour is undefined. */
#include "allocators/frameworks/gmlake_state.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define NONE FRAG_LAKE_NONE
#define SMALL_UNIT ((uint64_t)512)
#define SMALL_MAX FRAG_MIB
#define SMALL_SEGMENT (2 * FRAG_MIB)
#define SHARED_MAX (10 * FRAG_MIB) /* requests below share segments of the next size */
#define SHARED_SEGMENT (20 * FRAG_MIB)

enum { OPTION_LIMIT, OPTION_REUSE, OPTION_LEVEL, OPTION_COLLECT };

static const frag_option gmlake_options[] = {
    [OPTION_LIMIT] = {"fragLimit", FRAG_OPTION_BYTES, "512MiB", .max = FRAG_UNLIMITED,
                      .help = "smaller requests are never stitched"},
    [OPTION_REUSE] = {"reuseLimit", FRAG_OPTION_RATIO, "10", .ratio_min = 1, .ratio_max = 1e6,
                      .help = "a stitched range serves requests down to its size divided by this"},
    [OPTION_LEVEL] = {"defragLevel", FRAG_OPTION_COUNT, "0", .max = 2,
                      .help = "0: stitch before asking for new memory; 1: after that failed; 2: "
                              "after cached memory was given back as well"},
    [OPTION_COLLECT] = {"autoGC", FRAG_OPTION_COUNT, "1000", .max = INT32_MAX,
                        .help = "GiB; ranges that nobody has are taken apart when more than that "
                                "was stitched together"},
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
           (size_t)records * sizeof(frag_lake_side) + (size_t)records * sizeof(frag_lake_doomed) +
           (size_t)run_max(limits) * sizeof(frag_lake_run) + indexes * sizeof(frag_free_index) +
           limits->stream_count *
               (2 * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(frag_lake_entries)) +
           frag_free_index_store_bytes(records, indexes) + (size_t)12 * 64;
}

/* In order of the raw handles, as GMLake's sets of free blocks have them. */
static void order_streams(frag_policy *policy, const uint64_t *handles)
{
    for (uint32_t i = 0; i < policy->stream_count; i++) {
        uint32_t at = i;
        while (handles != NULL && at > 0 && handles[policy->streams[at - 1]] > handles[i]) {
            policy->streams[at] = policy->streams[at - 1];
            at--;
        }
        policy->streams[at] = i;
    }
}

static frag_policy *gmlake_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    uint32_t records = record_max(&setup->limits);
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->values = setup->values;
    policy->limit_bytes = FRAG_UNLIMITED;
    policy->stream_count = setup->limits.stream_count;
    policy->index_count = 3 * policy->stream_count;
    policy->chunk_bytes = frag_round_up(FRAG_DEVICE_PAGE_BYTES, setup->device->page_bytes);
    frag_device_set_map_unit(setup->device, policy->chunk_bytes);
    frag_block_space_create_bare(&policy->space, setup, records);
    policy->sides = frag_arena_take(setup->arena, records, sizeof *policy->sides);
    frag_free_index_store_create(&policy->store, setup->arena, policy->space.blocks, records,
                                 policy->index_count, false);
    policy->indexes = frag_arena_take(setup->arena, policy->index_count, sizeof *policy->indexes);
    policy->free_bytes =
        frag_arena_take(setup->arena, policy->stream_count, sizeof *policy->free_bytes);
    policy->freed = frag_arena_take(setup->arena, policy->stream_count, sizeof *policy->freed);
    policy->entries = frag_arena_take(setup->arena, policy->stream_count, sizeof *policy->entries);
    policy->streams = frag_arena_take(setup->arena, policy->stream_count, sizeof *policy->streams);
    order_streams(policy, setup->stream_handles);
    policy->doomed = frag_arena_take(setup->arena, records, sizeof *policy->doomed);
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

static bool is_over_limit(const frag_policy *policy, uint64_t bytes)
{
    return bytes > policy->limit_bytes || policy->held_bytes > policy->limit_bytes - bytes;
}

static bool add_small(frag_policy *policy, uint32_t stream)
{
    uint64_t address = 0;
    frag_device_for(policy->space.device, stream, policy->space.device->for_pool);
    if (is_over_limit(policy, SMALL_SEGMENT) ||
        frag_device_malloc(policy->space.device, SMALL_SEGMENT, &address) != FRAG_DEVICE_OK)
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
    if (is_over_limit(policy, taken))
        return false;
    frag_device_for(device, stream, device->for_pool);
    frag_device_result result = frag_device_reserve(device, taken, &address);
    if (result == FRAG_DEVICE_OK) {
        result = frag_device_map(device, address, taken);
        if (result != FRAG_DEVICE_OK)
            (void)frag_device_unreserve(device, address, taken);
    }
    if (result != FRAG_DEVICE_OK) {
        /* GMLake asks how much collecting would give back. */
        frag_lake_enter_both(policy, stream);
        return false;
    }
    (void)frag_lake_add(policy, address, taken, FRAG_LAKE_HOME, stream);
    policy->held_bytes += taken;
    return true;
}

/* Frees that wait for streams come first. */
static void release_all(frag_policy *policy)
{
    (void)frag_device_synchronize(policy->space.device);
    frag_lake_release(policy);
}

/* ---- requests */

static frag_free_index *index_of(const frag_policy *policy, uint32_t stream, frag_lake_kind kind)
{
    return &policy->indexes[3 * stream + (uint32_t)kind];
}

static bool take_piece(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    uint32_t hole = NONE;
    if (!frag_free_index_best(&policy->store, index_of(policy, stream, FRAG_LAKE_HOME), bytes,
                              &hole))
        return false;
    *id = frag_lake_cut(policy, hole, bytes);
    return true;
}

static void grant_range(frag_policy *policy, uint32_t header, uint64_t bytes, uint32_t *id)
{
    *id = policy->space.blocks[header].next;
    frag_lake_lend(policy, header, bytes);
}

static bool take_stitched(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    uint32_t whole = NONE;
    if (!frag_free_index_best(&policy->store, index_of(policy, stream, FRAG_LAKE_STITCHED), bytes,
                              &whole) ||
        (double)policy->space.blocks[whole].bytes >
            policy->values[OPTION_REUSE].ratio * (double)bytes)
        return false;
    grant_range(policy, policy->space.blocks[whole].link, bytes, id);
    return true;
}

/* Chooses the largest free pieces of the stream, of equal ones the highest, until they are enough;
 * links them. */
static uint32_t choose_pieces(frag_policy *policy, uint64_t bytes, uint32_t stream)
{
    const frag_free_index *index = index_of(policy, stream, FRAG_LAKE_HOME);
    uint32_t first = NONE;
    uint32_t last = NONE;
    uint32_t id = NONE;
    uint64_t sum = 0;
    while (sum < bytes && frag_free_index_last(&policy->store, index, &id)) {
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

static bool stitch(frag_policy *policy, uint64_t bytes, uint32_t stream, uint64_t stage,
                   uint32_t *id)
{
    const frag_option_value *values = policy->values;
    if (stage < values[OPTION_LEVEL].number || bytes < values[OPTION_LIMIT].number ||
        policy->free_bytes[stream] < bytes)
        return false;
    uint32_t first = choose_pieces(policy, bytes, stream);
    /* A single free block would do; GMLake stitches of two and more. */
    if (policy->sides[first].next_chosen == NONE)
        return false;
    uint32_t header = frag_lake_stitch(policy, first, bytes);
    if (header == NONE) {
        frag_lake_collect(policy);
        header = frag_lake_stitch(policy, first, bytes);
        if (header == NONE)
            return false;
    }
    grant_range(policy, header, bytes, id);
    if (policy->counted_bytes > values[OPTION_COLLECT].number * FRAG_GIB)
        frag_lake_collect(policy);
    return true;
}

static bool try_large(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    if (take_piece(policy, bytes, stream, id) || take_stitched(policy, bytes, stream, id) ||
        stitch(policy, bytes, stream, 0, id))
        return true;
    if (add_home(policy, bytes, stream))
        return take_piece(policy, bytes, stream, id);
    if (stitch(policy, bytes, stream, 1, id))
        return true;
    release_all(policy);
    if (add_home(policy, bytes, stream))
        return take_piece(policy, bytes, stream, id);
    return stitch(policy, bytes, stream, 2, id);
}

static bool try_small(frag_policy *policy, uint64_t bytes, uint32_t stream, uint32_t *id)
{
    const frag_free_index *index = index_of(policy, stream, FRAG_LAKE_SMALL);
    uint32_t hole = NONE;
    if (!frag_free_index_best(&policy->store, index, bytes, &hole)) {
        if (!add_small(policy, stream)) {
            release_all(policy);
            if (!add_small(policy, stream))
                return false;
        }
        (void)frag_free_index_best(&policy->store, index, bytes, &hole);
    }
    *id = frag_lake_cut(policy, hole, bytes);
    return true;
}

static bool gmlake_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = rounded(policy, request->bytes);
    uint32_t id = NONE;
    bool is_served = request->bytes <= SMALL_MAX ? try_small(policy, bytes, request->stream, &id)
                                                 : try_large(policy, bytes, request->stream, &id);
    if (!is_served)
        return false;
    *grant = (frag_grant){
        .address = policy->space.blocks[id].address, .block_bytes = bytes, .handle = id};
    return true;
}

static void gmlake_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    FRAG_ASSERT(handle < policy->space.record_count &&
                policy->space.blocks[handle].state == FRAG_BLOCK_BUSY &&
                !policy->sides[handle].is_lent);
    uint32_t header = policy->space.blocks[handle].link;
    if (policy->sides[header].kind == FRAG_LAKE_STITCHED)
        frag_lake_free_stitched(policy, header);
    else
        frag_lake_put(policy, handle, ++policy->freed[policy->sides[header].stream]);
}

static void gmlake_set_limit(frag_policy *policy, uint64_t limit_bytes)
{
    policy->limit_bytes = limit_bytes;
}

static void gmlake_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    release_all(policy);
    frag_lake_collect(policy);
}

static const frag_policy_rules gmlake_rules = {
    .rounding = "to multiples of 512, above 1 MiB of 2 MiB",
    .takes = "the smallest free block of its stream and size kind, the lowest of equal ones; "
             "then the smallest stitched range that is free with all its pieces, up to "
             "reuseLimit times the request, whose low end is handed out; then, for requests of "
             "fragLimit or more, two or more free blocks, the largest first and of equal ones "
             "the highest: their chunks are mapped side by side a second time, of the last "
             "block only the low end",
    .cuts = "always, above 1 MiB in chunks of 2 MiB; the low end is handed out",
    .joins = FRAG_RULE_OF_ITS_SEGMENT,
    .grows = "device mallocs of 2 MiB for small requests; mapped ranges of 20 MiB for requests "
             "below 10 MiB, of the request's size above. Stitching is tried before that, after "
             "it, or last of all (defragLevel). Segments that are free as a whole go back when "
             "the device refuses, with the ranges stitched of them; on empty_cache all "
             "stitched ranges that are free go back too",
    .streams = "a block stays with the stream that its memory was taken for",
};

const frag_policy_ops frag_policy_gmlake = {
    .name = "gmlake",
    .summary = "GMLake: PyTorch's rules, and large requests stitched of free blocks' chunks",
    .source = "GMLake over PyTorch 2.0, antgroup/glake fb24ee8; Guo and others, ASPLOS 2024",
    .rules = &gmlake_rules,
    .bound = "",
    .checked = "the library's own logs, request by request (tests/data/golden-peers/gmlake-*)",
    .options = gmlake_options,
    .arena_bytes = gmlake_arena_bytes,
    .create = gmlake_create,
    .alloc = gmlake_alloc,
    .free = gmlake_free,
    .empty_cache = gmlake_empty_cache,
    .set_limit = gmlake_set_limit,
    .rounded = rounded,
    .walk = frag_lake_walk,
    .check = frag_lake_check,
};
