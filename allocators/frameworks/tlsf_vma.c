/* A virtual block of the Vulkan Memory Allocator: two-level segregated fit over one range, as in
 * vma_lists.h, whose free end is larger than any hole. Offsets are aligned; sizes are what the
 * program makes them, which is here to round them too, as drivers do. Source: Vulkan Memory
 * Allocator 3.4.0, VmaVirtualBlock. Bound: as that of TLSF. Ours differs in that without a size the
 * range grows at its end, where the library's is as large as it was made. */
#include "allocators/frameworks/vma_lists.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"

#define RANGE_BYTES_MAX ((uint64_t)1 << 43)
#define BLOCK_BYTES_MAX (512 * FRAG_GIB) /* the library's bitmap has 32 powers of two */

enum { OPTION_SIZE, OPTION_ALIGN, OPTION_ROUND, OPTION_STRATEGY, OPTION_GROW };

static const frag_option tlsf_vma_options[] = {
    {"size", FRAG_OPTION_BYTES, "unlimited", .min = 1, .max = FRAG_UNLIMITED,
     .help = "bytes of the block, one device malloc at the start; unlimited: a range that grows"},
    {"align", FRAG_OPTION_BYTES, "64", .min = 1, .max = FRAG_GIB,
     .help = "power of two that offsets are multiples of"},
    {"round", FRAG_OPTION_FLAG, "true",
     .help =
         "sizes are rounded up to align, too; false: what lies before an offset becomes a hole"},
    {"strategy", FRAG_OPTION_ENUM, "default", .choices = FRAG_VMA_STRATEGIES,
     .help = "VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_*"},
    {"grow", FRAG_OPTION_BYTES, "2MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "the range grows by at least this much; without size"},
    {.key = NULL}};

struct frag_policy {
    frag_block_space space;
    frag_vma_lists lists;
    uint64_t unit;  /* of sizes */
    uint64_t align; /* of offsets; 1 where sizes see to it */
    frag_vma_strategy strategy;
    uint64_t request_max; /* what is larger fits nowhere */
    bool is_growing;
};

static size_t tlsf_vma_arena_bytes(const frag_policy_limits *limits,
                                   const frag_option_value *values)
{
    (void)values;
    uint32_t records = frag_block_space_records(limits, FRAG_SPACE_GROWING);
    return sizeof(frag_policy) + 256 + frag_block_space_bytes(limits, FRAG_SPACE_GROWING) +
           ((size_t)records + FRAG_VMA_LIST_MAX) * sizeof(frag_free_link);
}

/* The space asks for these when it changes the hole at the end, which is in no list. */
static void ignore_end(void *context, uint32_t hole)
{
    (void)context;
    (void)hole;
}

static const frag_block_space_hooks tlsf_vma_hooks = {.insert = ignore_end, .remove = ignore_end};

static bool add_block(frag_policy *policy, const frag_policy_setup *setup, uint64_t size,
                      frag_error *error)
{
    uint64_t address = 0;
    frag_device_for_all(setup->device);
    if (frag_device_malloc(setup->device, size, &address) != FRAG_DEVICE_OK)
        return frag_fail(error, FRAG_E_USAGE, "the device has no room for size=%s",
                         setup->values[OPTION_SIZE].text);
    frag_block_space_create_bare(&policy->space, setup,
                                 frag_block_space_records(&setup->limits, FRAG_SPACE_GROWING));
    policy->space.may_adjoin = false;
    uint32_t header = frag_block_space_add_segment(&policy->space, address, size);
    (void)frag_block_space_append_hole(&policy->space, header, address, size);
    return true;
}

static bool add_range(frag_policy *policy, const frag_policy_setup *setup, frag_error *error)
{
    frag_block_space_setup shape = {.kind = FRAG_SPACE_GROWING,
                                    .align = setup->values[OPTION_ALIGN].number,
                                    .grow_bytes = setup->values[OPTION_GROW].number,
                                    .hooks = &tlsf_vma_hooks,
                                    .context = policy};
    return frag_block_space_create(&policy->space, setup, &shape, error);
}

static frag_policy *tlsf_vma_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t size = values[OPTION_SIZE].number;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    bool rounds = values[OPTION_ROUND].number != 0;
    uint64_t align = values[OPTION_ALIGN].number;
    policy->unit = rounds ? align : 1;
    policy->align = rounds ? 1 : align;
    policy->strategy = (frag_vma_strategy)values[OPTION_STRATEGY].number;
    policy->is_growing = size == FRAG_UNLIMITED;
    policy->request_max = policy->is_growing ? RANGE_BYTES_MAX : size;
    if (!frag_is_power_of_two(align)) {
        frag_fail(error, FRAG_E_USAGE, "align=%s is not a power of two", values[OPTION_ALIGN].text);
        return NULL;
    }
    if (!policy->is_growing && size > BLOCK_BYTES_MAX) {
        frag_fail(error, FRAG_E_USAGE, "size=%s is more than 512 GiB", values[OPTION_SIZE].text);
        return NULL;
    }
    if (!(policy->is_growing ? add_range(policy, setup, error)
                             : add_block(policy, setup, size, error)))
        return NULL;
    uint32_t first_head = policy->space.record_max;
    frag_free_link *links = frag_arena_take(setup->arena, (size_t)first_head + FRAG_VMA_LIST_MAX,
                                            sizeof *policy->lists.holes.links);
    frag_vma_lists_create(&policy->lists, &policy->space, links, first_head,
                          policy->space.first_header, true);
    return policy;
}

/* What the device has more of is as good as free at the end. */
static bool grow(frag_policy *policy, const frag_vma_want *want, uint32_t *hole)
{
    const frag_block *header = &policy->space.blocks[policy->space.first_header];
    uint32_t end = frag_vma_end_of(&policy->lists);
    uint64_t address = end == FRAG_BLOCK_NONE ? header->address + header->bytes
                                              : policy->space.blocks[end].address;
    uint64_t gap = frag_vma_gap(&policy->lists, address, want->align);
    return frag_block_space_grow(&policy->space, want->bytes + gap, hole);
}

FRAG_INLINE bool serve(frag_policy *policy, const frag_vma_want *want, uint32_t *granted)
{
    uint32_t hole = 0;
    if (FRAG_UNLIKELY(!frag_vma_find(&policy->lists, want, &hole)) &&
        !(policy->is_growing && grow(policy, want, &hole)) &&
        !frag_vma_search_after_end(&policy->lists, want, &hole))
        return false;
    *granted = frag_vma_take(&policy->lists, hole, want);
    return true;
}

static FRAG_NOINLINE bool serve_aligned(frag_policy *policy, const frag_vma_want *want,
                                        uint32_t *granted)
{
    return serve(policy, want, granted);
}

FRAG_INLINE bool tlsf_vma_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    frag_vma_want want = {frag_align_up(request->bytes, policy->unit), 1, policy->strategy};
    uint32_t granted = 0;
    if (FRAG_UNLIKELY(want.bytes > policy->request_max))
        return false;
    if (FRAG_LIKELY(policy->align == 1)) {
        if (!serve(policy, &want, &granted))
            return false;
    } else {
        want.align = policy->align;
        if (!serve_aligned(policy, &want, &granted))
            return false;
    }
    *grant = (frag_grant){.address = policy->space.blocks[granted].address,
                          .block_bytes = want.bytes,
                          .handle = granted};
    return true;
}

FRAG_INLINE void tlsf_vma_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    frag_vma_give(&policy->lists, handle);
}

/* The memory of a block with a size is the program's, which the library knows nothing of. */
static void tlsf_vma_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    if (policy->is_growing)
        frag_block_space_trim(&policy->space);
}

static uint64_t tlsf_vma_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_align_up(bytes, policy->unit);
}

static void tlsf_vma_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_block_space_walk(&policy->space, visit, context);
}

static bool tlsf_vma_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t listed_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error) ||
        !frag_vma_lists_check(&policy->lists, &listed_count, error))
        return false;
    return listed_count == hole_count || frag_fail(error, FRAG_E_INPUT, "a hole is in no list");
}

static void tlsf_vma_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, tlsf_vma_alloc, tlsf_vma_free);
}

static const frag_policy_rules tlsf_vma_rules = {
    .rounding = FRAG_RULE_TO_ALIGN
    "; with round=false only offsets are rounded, and the bytes skipped before one are a hole",
    .takes = "the newest hole of the first list above the request's own, where all are large "
             "enough; else the end of memory; else one of its own list, even if that fits exactly. "
             "min_memory: own list, end, lists above; min_offset: the lowest. Lists are 8 bytes "
             "apart up to 256, then 32 to a doubling",
    .cuts = FRAG_RULE_LOW_END,
    .joins = "with free neighbours, at once; what touches the end of memory is in no list",
    .grows =
        "with size, one device malloc at the start, and no more. Without, " FRAG_RULE_ONE_RANGE,
    .streams = FRAG_RULE_IGNORED,
};

static const frag_policy_engine tlsf_vma_engine = {.replay = tlsf_vma_replay};

const frag_policy_ops frag_policy_tlsf_vma = {
    .name = "tlsf-vma",
    .summary = "a virtual block of the Vulkan Memory Allocator: TLSF that takes the end of memory "
               "before a hole of the request's own list; ignores streams and pools",
    .source = "Vulkan Memory Allocator 3.4.0 (e386068), VmaBlockMetadata_TLSF in a VmaVirtualBlock",
    .rules = &tlsf_vma_rules,
    .bound = "as that of tlsf",
    .checked = "the library's own logs, request by request (tests/data/golden-peers/vma-virtual-*)",
    .options = tlsf_vma_options,
    .arena_bytes = tlsf_vma_arena_bytes,
    .create = tlsf_vma_create,
    .alloc = tlsf_vma_alloc,
    .free = tlsf_vma_free,
    .empty_cache = tlsf_vma_empty_cache,
    .rounded = tlsf_vma_rounded,
    .walk = tlsf_vma_walk,
    .check = tlsf_vma_check,
    .engine = &tlsf_vma_engine,
};
