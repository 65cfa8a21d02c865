/* No pool at all: every request is one device malloc of whole pages, every release one device free.
 * Source: a program that calls cudaMalloc and cudaFree itself. Bound: none needed, nothing is ever
 * held that is not in use; what it costs is page rounding and the time of the calls. */
#include "allocators/rule_texts.h"
#include "base/bits.h"
#include "sim/policy.h"

static const frag_option direct_options[] = {{.key = NULL}};

typedef struct direct_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t slack_bytes; /* of bytes: what the device gives because it gives whole pages only */
    uint32_t next;        /* unused records: the next unused one */
    bool is_held;
} direct_block;

struct frag_policy {
    frag_device *device;
    direct_block *blocks;
    uint32_t block_max;
    uint32_t block_count;
    uint32_t unused;
};

static size_t direct_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    return sizeof(frag_policy) + 128 + ((size_t)limits->live_count_max + 1) * sizeof(direct_block);
}

static frag_policy *direct_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->device = setup->device;
    policy->block_max =
        setup->limits.live_count_max < UINT32_MAX ? setup->limits.live_count_max + 1 : UINT32_MAX;
    policy->unused = UINT32_MAX;
    policy->blocks = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->blocks);
    return policy;
}

static bool direct_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = frag_round_up(request->bytes, policy->device->page_bytes);
    uint64_t address = 0;
    if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK)
        return false;
    uint32_t id = policy->unused;
    if (id != UINT32_MAX) {
        policy->unused = policy->blocks[id].next;
    } else {
        FRAG_ASSERT(policy->block_count < policy->block_max);
        id = policy->block_count++;
    }
    policy->blocks[id] = (direct_block){
        .address = address,
        .bytes = bytes,
        .slack_bytes = bytes - request->bytes,
        .is_held = true,
    };
    *grant = (frag_grant){.address = address, .block_bytes = bytes, .handle = id};
    return true;
}

static void direct_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    FRAG_ASSERT(handle < policy->block_count && policy->blocks[handle].is_held);
    direct_block *block = &policy->blocks[handle];
    (void)frag_device_free(policy->device, block->address, block->bytes);
    block->is_held = false;
    block->next = policy->unused;
    policy->unused = handle;
}

static void direct_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t id = 0; id < policy->block_count; id++) {
        const direct_block *block = &policy->blocks[id];
        if (!block->is_held)
            continue;
        frag_span span = {
            .kind = FRAG_SPAN_SEGMENT, .address = block->address, .bytes = block->bytes};
        visit(context, &span);
        span.kind = FRAG_SPAN_BLOCK;
        span.page_slack_bytes = block->slack_bytes;
        span.handle = id;
        visit(context, &span);
    }
}

static bool direct_check(const frag_policy *policy, frag_error *error)
{
    uint64_t unused_count = 0;
    for (uint32_t id = policy->unused; id != UINT32_MAX; id = policy->blocks[id].next)
        if (policy->blocks[id].is_held || ++unused_count > policy->block_count)
            return frag_fail(error, FRAG_E_INPUT, "the list of unused records is broken at %u", id);
    uint64_t held_count = 0;
    for (uint32_t id = 0; id < policy->block_count; id++)
        held_count += policy->blocks[id].is_held;
    return held_count + unused_count == policy->block_count ||
           frag_fail(error, FRAG_E_INPUT, "a record is lost");
}

static const frag_policy_rules direct_rules = {
    .rounding = "to whole pages of the device",
    .takes = "none: nothing is kept",
    .cuts = FRAG_RULE_NEVER,
    .joins = FRAG_RULE_NEVER,
    .grows = "a device malloc for each request, a device free for each release",
    .streams = "ignored: no block is free for a stream to use",
};

const frag_policy_ops frag_policy_direct = {
    .name = "direct",
    .summary =
        "every request is a device malloc, every release a device free; ignores streams and pools",
    .source = "cudaMalloc and cudaFree called by the program itself",
    .rules = &direct_rules,
    .bound = "peak of requests in whole pages",
    .options = direct_options,
    .arena_bytes = direct_arena_bytes,
    .create = direct_create,
    .alloc = direct_alloc,
    .free = direct_free,
    .walk = direct_walk,
    .check = direct_check,
};
