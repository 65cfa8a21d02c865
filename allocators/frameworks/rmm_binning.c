/* RMM's resources of fixed-size blocks. Blocks of one size lie in a queue for each stream and are
 * used again in the order in which they were freed; a stream takes from others' queues, and then
 * whole queues, before a slab of new blocks is taken from the upstream. Binning keeps one such
 * resource for each power of two in a range, over a pool or the device, which serve larger requests
 * themselves. Source: RMM 25.10.00, fixed_size_memory_resource, fixed_size_free_list,
 * binning_memory_resource. */
#include "allocators/frameworks/composed_growth.h"
#include "allocators/frameworks/rmm.h"
#include "allocators/index/stream_lists.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define NONE UINT32_MAX
#define BIN_BLOCKS 128u
#define EXPONENT_MAX 40u
#define BLOCKS_MAX 65536u

/* One block of a slab, free in a queue or busy. */
typedef struct fixed_block {
    uint64_t address;
    uint32_t next; /* in its queue */
    uint16_t bin;
    bool is_busy;
} fixed_block;

typedef struct fixed_queue {
    uint32_t first;
    uint32_t last;
} fixed_queue;

typedef struct fixed_bin {
    uint64_t block_bytes;
    fixed_queue *queues; /* by stream */
    frag_stream_lists streams;
} fixed_bin;

/* What was taken from the upstream at once: blocks first to first + per_slab - 1. */
typedef struct fixed_slab {
    uint32_t first;
    uint32_t bin;
} fixed_slab;

struct frag_policy {
    frag_composed upstream;
    frag_event_counter events;
    fixed_bin *bins; /* by size */
    uint32_t bin_count;
    uint32_t min_exponent;
    uint32_t per_slab;
    bool passes_on; /* larger requests go to the upstream; else they fail */
    bool has_failed;
    frag_device *device;
    fixed_block *blocks;
    uint32_t block_count;
    uint32_t block_max;
    fixed_slab *slabs;
    uint32_t slab_count;
    uint32_t *slab_of;     /* by record of the upstream: slab + 1, or 0 */
    uint32_t first_handle; /* handles below it are the upstream's */
};

/* What the run may need at most. */
typedef struct fixed_scale {
    uint32_t bin_count;
    uint32_t per_slab;
    uint32_t block_max;
    uint32_t slab_max;
    frag_composed_scale upstream;
} fixed_scale;

/* A bin takes a slab only when all its blocks are busy. */
static fixed_scale scale_of(const frag_policy_limits *limits, uint32_t bin_count, uint32_t per_slab)
{
    uint64_t blocks = bin_count * ((uint64_t)limits->live_count_max + 2 * (uint64_t)per_slab);
    fixed_scale scale = {.bin_count = bin_count, .per_slab = per_slab};
    scale.block_max = blocks < UINT32_MAX / 2 ? (uint32_t)blocks : UINT32_MAX / 2;
    scale.slab_max = scale.block_max / per_slab + 1;
    scale.upstream = frag_composed_scale_of(limits);
    scale.upstream.request_count += scale.slab_max;
    return scale;
}

static size_t bytes_of(const fixed_scale *scale)
{
    uint32_t streams = scale->upstream.stream_count;
    return sizeof(frag_policy) + frag_composed_bytes(&scale->upstream) +
           scale->bin_count * (sizeof(fixed_bin) + streams * sizeof(fixed_queue) + 64 +
                               frag_stream_lists_bytes(streams)) +
           scale->block_max * sizeof(fixed_block) + scale->slab_max * sizeof(fixed_slab) +
           frag_composed_records(&scale->upstream) * sizeof(uint32_t) + 6 * 64;
}

/* ---- queues */

static void push(frag_policy *policy, fixed_queue *queue, uint32_t id)
{
    policy->blocks[id].next = NONE;
    if (queue->first == NONE)
        queue->first = id;
    else
        policy->blocks[queue->last].next = id;
    queue->last = id;
}

static uint32_t pop(const frag_policy *policy, fixed_queue *queue)
{
    uint32_t id = queue->first;
    queue->first = policy->blocks[id].next;
    return id;
}

static bool has_block(void *context, uint32_t stream)
{
    const fixed_bin *bin = context;
    return bin->queues[stream].first != NONE;
}

/* Any block will do: only queues without one are left to be joined. */
static void merge_queues(void *context, uint32_t from, uint32_t to)
{
    (void)context;
    (void)from;
    (void)to;
}

/* ---- slabs */

/* The stream's queue gets new blocks, in order of address. false: the upstream has none. */
static bool add_slab(frag_policy *policy, uint32_t number, uint32_t stream)
{
    fixed_bin *bin = &policy->bins[number];
    frag_request request = {.bytes = bin->block_bytes * policy->per_slab, .stream = stream};
    frag_grant grant = {0};
    if (!frag_composed_alloc(&policy->upstream, &request, &grant))
        return false;
    FRAG_ASSERT(policy->block_max - policy->block_count >= policy->per_slab);
    policy->slabs[policy->slab_count++] = (fixed_slab){policy->block_count, number};
    policy->slab_of[grant.handle] = policy->slab_count;
    frag_stream_list_open(&bin->streams, stream);
    for (uint32_t i = 0; i < policy->per_slab; i++) {
        uint32_t id = policy->block_count++;
        policy->blocks[id] =
            (fixed_block){.address = grant.address + i * bin->block_bytes, .bin = (uint16_t)number};
        push(policy, &bin->queues[stream], id);
    }
    return true;
}

static void make_bin(frag_policy *policy, const frag_policy_setup *setup, uint64_t block_bytes)
{
    uint32_t streams = frag_composed_scale_of(&setup->limits).stream_count;
    uint32_t number = policy->bin_count++;
    fixed_bin *bin = &policy->bins[number];
    bin->block_bytes = frag_align_up(block_bytes, FRAG_RMM_UNIT);
    bin->queues = frag_arena_take(setup->arena, streams, sizeof *bin->queues);
    for (uint32_t i = 0; i < streams; i++)
        bin->queues[i].first = NONE;
    frag_stream_lists_create(&bin->streams, setup->arena, setup->device, &policy->events, streams);
    policy->has_failed =
        policy->has_failed || !add_slab(policy, number, frag_rmm_default_stream(setup));
}

/* Everything but the upstream and the bins. */
static frag_policy *create(const frag_policy_setup *setup, const fixed_scale *scale,
                           bool is_descending)
{
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->device = setup->device;
    policy->events.is_descending = is_descending;
    policy->per_slab = scale->per_slab;
    policy->block_max = scale->block_max;
    policy->first_handle = frag_composed_records(&scale->upstream);
    policy->bins = frag_arena_take(setup->arena, scale->bin_count, sizeof *policy->bins);
    policy->blocks = frag_arena_take(setup->arena, scale->block_max, sizeof *policy->blocks);
    policy->slabs = frag_arena_take(setup->arena, scale->slab_max, sizeof *policy->slabs);
    policy->slab_of = frag_arena_take(setup->arena, policy->first_handle, sizeof *policy->slab_of);
    return policy;
}

/* Every request is a device malloc, every release a device free. */
static void stand_on_device(frag_policy *policy, const frag_policy_setup *setup,
                            const fixed_scale *scale)
{
    frag_composition rules = {
        .rounding = FRAG_ROUND_MULTIPLE,
        .unit = FRAG_RMM_ASK_UNIT,
        .split = FRAG_SPLIT_NEVER,
        .merge = FRAG_MERGE_NEVER,
        .grow = frag_grow_plain,
        .gives_back_at_once = true,
    };
    frag_growth_state growth = {.limit_bytes = FRAG_UNLIMITED};
    frag_composed_create(&policy->upstream, setup, &scale->upstream, &rules, &growth, NULL);
}

/* ---- requests */

static bool alloc_fixed(frag_policy *policy, uint32_t number, uint32_t stream, frag_grant *grant)
{
    fixed_bin *bin = &policy->bins[number];
    uint32_t found = stream;
    frag_stream_list_open(&bin->streams, stream);
    if (bin->queues[stream].first == NONE &&
        !frag_stream_lists_search(&bin->streams, stream, has_block, merge_queues, bin, &found) &&
        !add_slab(policy, number, stream))
        return false;
    uint32_t id = pop(policy, &bin->queues[found]);
    policy->blocks[id].is_busy = true;
    *grant = (frag_grant){.address = policy->blocks[id].address,
                          .block_bytes = bin->block_bytes,
                          .handle = policy->first_handle + id};
    return true;
}

static bool fixed_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    if (policy->has_failed)
        return false;
    uint64_t bytes = request->bytes;
    const fixed_bin *largest = &policy->bins[policy->bin_count - 1];
    if (bytes > largest->block_bytes) {
        if (policy->passes_on)
            return frag_composed_alloc(&policy->upstream, request, grant);
        frag_stream_name(&policy->bins[0].streams, request->stream);
        return false;
    }
    uint32_t number = 0;
    if (policy->bin_count > 1 && bytes > policy->bins[0].block_bytes)
        number = frag_bit_high(bytes - 1) + 1 - policy->min_exponent;
    return alloc_fixed(policy, number, request->stream, grant);
}

static void fixed_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    if (handle < policy->first_handle) {
        frag_composed_free(&policy->upstream, handle, stream);
        return;
    }
    uint32_t id = handle - policy->first_handle;
    FRAG_ASSERT(id < policy->block_count && policy->blocks[id].is_busy);
    fixed_bin *bin = &policy->bins[policy->blocks[id].bin];
    frag_stream_list_open(&bin->streams, stream);
    (void)frag_device_event_record(policy->device, stream);
    policy->blocks[id].is_busy = false;
    push(policy, &bin->queues[stream], id);
}

/* ---- walking and checking */

typedef struct slab_walk {
    const frag_policy *policy;
    frag_span_visitor *visit;
    void *context;
} slab_walk;

/* A block of the upstream that is a slab is reported as the blocks in it. */
static void visit_span(void *context, const frag_span *span)
{
    const slab_walk *walk = context;
    const frag_policy *policy = walk->policy;
    uint32_t slab = span->kind == FRAG_SPAN_BLOCK ? policy->slab_of[span->handle] : 0;
    if (slab == 0) {
        walk->visit(walk->context, span);
        return;
    }
    uint32_t first = policy->slabs[slab - 1].first;
    for (uint32_t id = first; id < first + policy->per_slab; id++) {
        const fixed_block *block = &policy->blocks[id];
        frag_span part = {.kind = block->is_busy ? FRAG_SPAN_BLOCK : FRAG_SPAN_HOLE,
                          .address = block->address,
                          .bytes = policy->bins[block->bin].block_bytes,
                          .handle = block->is_busy ? policy->first_handle + id : 0};
        walk->visit(walk->context, &part);
    }
}

static void fixed_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    slab_walk walk = {policy, visit, context};
    frag_composed_walk(&policy->upstream, visit_span, &walk);
}

static bool check_bin(const frag_policy *policy, uint32_t number, uint64_t *queued,
                      frag_error *error)
{
    const fixed_bin *bin = &policy->bins[number];
    for (uint32_t stream = 0; stream < bin->streams.stream_count; stream++) {
        uint32_t id = bin->queues[stream].first;
        if (id != NONE && !bin->streams.is_listed[stream])
            return frag_fail(error, FRAG_E_INPUT, "bin %u: stream %u has blocks and no list",
                             number, stream);
        for (; id != NONE; id = policy->blocks[id].next)
            if (++*queued > policy->block_count || policy->blocks[id].is_busy ||
                policy->blocks[id].bin != number)
                return frag_fail(error, FRAG_E_INPUT, "bin %u: the queue of stream %u is broken",
                                 number, stream);
    }
    return true;
}

static bool fixed_check(const frag_policy *policy, frag_error *error)
{
    uint64_t queued = 0;
    uint64_t busy = 0;
    if (!frag_composed_check(&policy->upstream, error))
        return false;
    for (uint32_t i = 0; i < policy->bin_count; i++)
        if (!check_bin(policy, i, &queued, error))
            return false;
    for (uint32_t id = 0; id < policy->block_count; id++)
        busy += policy->blocks[id].is_busy;
    return queued + busy == policy->block_count ||
           frag_fail(error, FRAG_E_INPUT, "a block is neither busy nor in a queue");
}

#define FIXED_OPS                                                                                  \
    .bound = "", .alloc = fixed_alloc, .free = fixed_free, .walk = fixed_walk, .check = fixed_check

/* ---- rmm-fixed-size */

enum { FIXED_BLOCK_SIZE, FIXED_BLOCKS, FIXED_ORDER };

static const frag_option fixed_options[] = {
    {"block_size", FRAG_OPTION_BYTES, "1MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "of every block, rounded up to 256; larger requests fail"},
    {"blocks_to_preallocate", FRAG_OPTION_COUNT, "128", .min = 1, .max = BLOCKS_MAX,
     .help = "blocks of a device malloc, one made at construction"},
    FRAG_RMM_ORDER_OPTION,
    {.key = NULL},
};

static size_t fixed_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    fixed_scale scale = scale_of(limits, 1, (uint32_t)values[FIXED_BLOCKS].number);
    return bytes_of(&scale);
}

static frag_policy *fixed_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    const frag_option_value *values = setup->values;
    fixed_scale scale = scale_of(&setup->limits, 1, (uint32_t)values[FIXED_BLOCKS].number);
    frag_policy *policy = create(setup, &scale, values[FIXED_ORDER].number != 0);
    stand_on_device(policy, setup, &scale);
    make_bin(policy, setup, values[FIXED_BLOCK_SIZE].number);
    return policy;
}

static const frag_policy_rules rmm_fixed_size_rules = {
    .rounding = "to block_size; larger requests fail",
    .takes = "the oldest of its stream, then of other streams",
    .cuts = "slabs into equal blocks",
    .joins = FRAG_RULE_NEVER,
    .grows = "slabs of blocks_to_preallocate blocks, the first at construction, that stay",
    .streams = FRAG_RULE_RMM_STREAMS,
};

const frag_policy_ops frag_policy_rmm_fixed_size = {
    .name = "rmm-fixed-size",
    .summary =
        "RMM's blocks of one size, oldest first, in queues of streams that take from one another",
    .source = "RMM 25.10.00, rmm::mr::fixed_size_memory_resource",
    .rules = &rmm_fixed_size_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/rmm-fixed-*)",
    .options = fixed_options,
    .arena_bytes = fixed_arena_bytes,
    .create = fixed_create,
    FIXED_OPS,
};

/* ---- rmm-binning */

enum {
    BINNING_MIN,
    BINNING_MAX,
    BINNING_UPSTREAM,
    BINNING_INITIAL,
    BINNING_MAXIMUM,
    BINNING_ORDER
};

static const frag_option binning_options[] = {
    {"min_size_exponent", FRAG_OPTION_COUNT, "18", .min = 8, .max = EXPONENT_MAX,
     .help = "the smallest bin has blocks of two to this power"},
    {"max_size_exponent", FRAG_OPTION_COUNT, "22", .min = 8, .max = EXPONENT_MAX,
     .help = "the largest; bins are for every power between them"},
    {"upstream", FRAG_OPTION_ENUM, "pool", .choices = "pool|cuda",
     .help =
         "what serves larger requests and gives slabs of 128 blocks: RMM's pool, or the device"},
    FRAG_RMM_INITIAL_OPTION,
    FRAG_RMM_MAXIMUM_OPTION,
    FRAG_RMM_ORDER_OPTION,
    {.key = NULL},
};

static uint32_t bins_between(const frag_option_value *values)
{
    uint64_t min = values[BINNING_MIN].number;
    uint64_t max = values[BINNING_MAX].number;
    return max < min ? 1 : (uint32_t)(max - min + 1);
}

static size_t binning_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    fixed_scale scale = scale_of(limits, bins_between(values), BIN_BLOCKS);
    return bytes_of(&scale);
}

static frag_policy *binning_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t min = values[BINNING_MIN].number;
    uint64_t max = values[BINNING_MAX].number;
    if (max < min) {
        frag_fail(error, FRAG_E_USAGE, "min_size_exponent=%s is above max_size_exponent=%s",
                  values[BINNING_MIN].text, values[BINNING_MAX].text);
        return NULL;
    }
    if (!frag_rmm_pool_check(&values[BINNING_INITIAL], &values[BINNING_MAXIMUM], error))
        return NULL;
    fixed_scale scale = scale_of(&setup->limits, bins_between(values), BIN_BLOCKS);
    frag_policy *policy = create(setup, &scale, values[BINNING_ORDER].number != 0);
    policy->passes_on = true;
    policy->min_exponent = (uint32_t)min;
    if (values[BINNING_UPSTREAM].number == 0)
        frag_rmm_pool_create(&policy->upstream, setup, &scale.upstream,
                             values[BINNING_INITIAL].number, values[BINNING_MAXIMUM].number,
                             &policy->events);
    else
        stand_on_device(policy, setup, &scale);
    for (uint64_t exponent = min; exponent <= max; exponent++)
        make_bin(policy, setup, (uint64_t)1 << exponent);
    return policy;
}

static const frag_policy_rules rmm_binning_rules = {
    .rounding = "to the block of its bin, powers of two from min_size_exponent to "
                "max_size_exponent; above as the upstream does",
    .takes = "the oldest of its bin and stream, then of other streams; above the bins as rmm-pool, "
             "or no cached block (upstream=cuda)",
    .cuts = "slabs into equal blocks of a bin; above the bins as the upstream does",
    .joins = "never; above the bins as the upstream does",
    .grows = "slabs of 128 blocks, taken from the upstream, that stay",
    .streams = FRAG_RULE_RMM_STREAMS,
};

const frag_policy_ops frag_policy_rmm_binning = {
    .name = "rmm-binning",
    .summary = "RMM's bins of blocks of powers of two over its pool, which serves what is larger",
    .source = "RMM 25.10.00, rmm::mr::binning_memory_resource",
    .rules = &rmm_binning_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/rmm-binning-*)",
    .options = binning_options,
    .arena_bytes = binning_arena_bytes,
    .create = binning_create,
    FIXED_OPS,
};
