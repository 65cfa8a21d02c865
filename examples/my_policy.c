/* A cache of whole segments. A request is rounded up and takes the cached segment of exactly that
 * size that was freed last, else a new one from the device. Nothing is split and nothing merges.
 * When the device is full, everything cached is given back and the device is asked once more.
 * Source: a template; docs/adding-a-policy.md explains it. Bound: none proved. */
#include "base/bits.h"
#include "sim/policy.h"

#define NONE UINT32_MAX

enum { OPTION_ALIGN };

static const frag_option my_options[] = {
    [OPTION_ALIGN] = {"align", FRAG_OPTION_BYTES, "2MiB", .min = 512, .max = (uint64_t)1 << 40,
                      .help = "requests are multiples of this"},
    {.key = NULL},
};

typedef enum segment_state { SEGMENT_UNUSED, SEGMENT_GRANTED, SEGMENT_CACHED } segment_state;

typedef struct segment {
    uint64_t address;
    uint64_t bytes;
    uint32_t next; /* of the list it is in: unused records or cached segments */
    segment_state state;
} segment;

struct frag_policy {
    frag_device *device;
    uint64_t align_bytes;
    segment *segments;
    uint32_t segment_count; /* records in use or used before */
    uint32_t segment_max;
    uint32_t unused; /* first of the list */
    uint32_t cached; /* first of the list: freed last */
};

/* A record stays taken while its segment is cached, and any request may need one of its own. */
static uint32_t record_max(const frag_policy_limits *limits)
{
    return limits->request_count < NONE ? (uint32_t)limits->request_count + 1 : NONE;
}

static size_t my_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    /* Each piece of an arena begins at a multiple of 64. */
    return sizeof(frag_policy) + (size_t)record_max(limits) * sizeof(segment) + 2 * 64;
}

static frag_policy *my_create(const frag_policy_setup *setup, frag_error *error)
{
    uint64_t align = setup->values[OPTION_ALIGN].number;
    if (align % 512 != 0) {
        frag_fail(error, FRAG_E_USAGE, "align=%llu is not a multiple of 512",
                  (unsigned long long)align);
        return NULL;
    }
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->device = setup->device;
    policy->align_bytes = align;
    policy->segment_max = record_max(&setup->limits);
    policy->segments = frag_arena_take(setup->arena, policy->segment_max, sizeof *policy->segments);
    policy->unused = NONE;
    policy->cached = NONE;
    return policy;
}

static uint64_t my_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_round_up(bytes, policy->align_bytes);
}

/* Takes the first cached segment of this size off its list; NONE when there is none. */
static uint32_t take_cached(frag_policy *policy, uint64_t bytes)
{
    for (uint32_t *link = &policy->cached; *link != NONE; link = &policy->segments[*link].next) {
        uint32_t id = *link;
        if (policy->segments[id].bytes == bytes) {
            *link = policy->segments[id].next;
            return id;
        }
    }
    return NONE;
}

static void give_back_cached(frag_policy *policy)
{
    /* Blocks that wait for a stream come back through my_free before this returns. */
    (void)frag_device_synchronize(policy->device);
    while (policy->cached != NONE) {
        uint32_t id = policy->cached;
        segment *at = &policy->segments[id];
        policy->cached = at->next;
        (void)frag_device_free(policy->device, at->address, at->bytes);
        at->state = SEGMENT_UNUSED;
        at->next = policy->unused;
        policy->unused = id;
    }
}

static uint32_t get_segment(frag_policy *policy, uint64_t bytes)
{
    uint64_t address = 0;
    if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK) {
        give_back_cached(policy);
        if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK)
            return NONE;
    }
    uint32_t id = policy->unused;
    if (id != NONE)
        policy->unused = policy->segments[id].next;
    else
        id = policy->segment_count++;
    FRAG_ASSERT(id < policy->segment_max);
    policy->segments[id] = (segment){.address = address, .bytes = bytes};
    return id;
}

static bool my_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = my_rounded(policy, request->bytes);
    uint32_t id = take_cached(policy, bytes);
    if (id == NONE)
        id = get_segment(policy, bytes);
    if (id == NONE)
        return false;
    policy->segments[id].state = SEGMENT_GRANTED;
    *grant =
        (frag_grant){.address = policy->segments[id].address, .block_bytes = bytes, .handle = id};
    return true;
}

static void my_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream; /* a cached segment serves every stream */
    segment *at = &policy->segments[handle];
    FRAG_ASSERT(at->state == SEGMENT_GRANTED);
    at->state = SEGMENT_CACHED;
    at->next = policy->cached;
    policy->cached = handle;
}

static void my_empty_cache(frag_policy *policy, uint32_t pool)
{
    /* This policy has one pool; a request to empty a private one does not concern it. */
    if (pool == FRAG_POOL_ALL || pool == 0)
        give_back_cached(policy);
}

static void my_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t id = 0; id < policy->segment_count; id++) {
        const segment *at = &policy->segments[id];
        if (at->state == SEGMENT_UNUSED)
            continue;
        frag_span span = {.kind = FRAG_SPAN_SEGMENT, .address = at->address, .bytes = at->bytes};
        visit(context, &span);
        span.kind = at->state == SEGMENT_GRANTED ? FRAG_SPAN_BLOCK : FRAG_SPAN_HOLE;
        span.handle = id;
        visit(context, &span);
    }
}

static bool my_check(const frag_policy *policy, frag_error *error)
{
    uint32_t listed = 0;
    for (uint32_t id = policy->cached; id != NONE; id = policy->segments[id].next)
        if (policy->segments[id].state != SEGMENT_CACHED || ++listed > policy->segment_count)
            return frag_fail(error, FRAG_E_INPUT, "the list of cached segments breaks at %u", id);
    uint32_t cached = 0;
    for (uint32_t id = 0; id < policy->segment_count; id++)
        cached += policy->segments[id].state == SEGMENT_CACHED ? 1 : 0;
    return listed == cached ||
           frag_fail(error, FRAG_E_INPUT, "%u segments are cached, %u listed", cached, listed);
}

/* Printed by fraglab policies ./my_policy.so. */
static const frag_policy_rules my_rules = {
    .rounding = "to multiples of align",
    .takes = "the cached segment of exactly the rounded size that was freed last",
    .cuts = "never",
    .joins = "never",
    .grows = "device mallocs of exactly the rounded size. Everything cached goes back on "
             "empty_cache and when the device refuses, which is then asked again",
    .streams = "ignored: a cached segment serves every stream",
};

static const frag_policy_ops my_policy_ops = {
    .name = "my-policy",
    .summary = "whole segments, cached by exact size",
    .source = "docs/adding-a-policy.md",
    .bound = "",
    .rules = &my_rules,
    .options = my_options,
    .arena_bytes = my_arena_bytes,
    .create = my_create,
    .alloc = my_alloc,
    .free = my_free,
    .empty_cache = my_empty_cache,
    .rounded = my_rounded,
    .walk = my_walk,
    .check = my_check,
};

FRAG_POLICY_EXPORT(my_policy_ops);
