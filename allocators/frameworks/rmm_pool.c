/* RMM's pool: best fit with coalescing in a free list for each stream; a stream takes blocks from
 * others' lists, and then whole lists, before the pool grows. It doubles, and gives nothing back.
 * Source: RMM 25.10.00, pool_memory_resource, coalescing_free_list and stream_lists.h. */
#include "allocators/frameworks/composed_policy.h"
#include "allocators/frameworks/rmm.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

enum { OPTION_INITIAL, OPTION_MAXIMUM, OPTION_ORDER };

static const frag_option rmm_pool_options[] = {
    FRAG_RMM_INITIAL_OPTION, FRAG_RMM_MAXIMUM_OPTION, FRAG_RMM_ORDER_OPTION, {.key = NULL}};

uint32_t frag_rmm_default_stream(const frag_policy_setup *setup)
{
    uint32_t stream = 0;
    while (stream < setup->limits.stream_count && setup->stream_handles != NULL &&
           setup->stream_handles[stream] != 0)
        stream++;
    return stream;
}

static bool is_multiple(const frag_option_value *value)
{
    return value->number == FRAG_UNLIMITED || value->number % FRAG_RMM_UNIT == 0;
}

bool frag_rmm_pool_check(const frag_option_value *initial, const frag_option_value *maximum,
                         frag_error *error)
{
    if (!is_multiple(initial) || !is_multiple(maximum))
        return frag_fail(error, FRAG_E_USAGE,
                         "initial_pool_size=%s and maximum_pool_size=%s must be multiples of 256",
                         initial->text, maximum->text);
    return initial->number <= maximum->number ||
           frag_fail(error, FRAG_E_USAGE, "initial_pool_size=%s is more than maximum_pool_size=%s",
                     initial->text, maximum->text);
}

void frag_rmm_pool_create(frag_composed *pool, const frag_policy_setup *setup,
                          const frag_composed_scale *scale, uint64_t initial, uint64_t maximum,
                          frag_event_counter *counter)
{
    frag_composition rules = {
        .rounding = FRAG_ROUND_MULTIPLE,
        .unit = FRAG_RMM_UNIT,
        .lists = FRAG_LISTS_SHARED,
        .grow = frag_grow_doubling,
    };
    frag_growth_state growth = {.limit_bytes = maximum, .ask_unit = FRAG_RMM_ASK_UNIT};
    frag_composed_create(pool, setup, scale, &rules, &growth, counter);
    pool->space.tail_max = FRAG_RMM_ASK_UNIT - 1;
    if (initial == 0)
        return;
    uint32_t stream = frag_rmm_default_stream(setup);
    frag_grow_initial(pool, stream, initial);
    frag_stream_list_open(&pool->streams, stream);
}

static frag_policy *rmm_pool_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    if (!frag_rmm_pool_check(&values[OPTION_INITIAL], &values[OPTION_MAXIMUM], error))
        return NULL;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    frag_composed_scale scale = frag_composed_scale_of(&setup->limits);
    policy->events.is_descending = values[OPTION_ORDER].number != 0;
    frag_rmm_pool_create(&policy->core, setup, &scale, values[OPTION_INITIAL].number,
                         values[OPTION_MAXIMUM].number, &policy->events);
    return policy;
}

static const frag_policy_rules rmm_pool_rules = {
    .rounding = "to multiples of 256",
    .takes = "the smallest of its stream, of equal ones the lowest; then of other streams, in the "
             "order of their events; then of all blocks of such a stream, coalesced with its own",
    .cuts = FRAG_RULE_LOW_END,
    .joins = "with free neighbours of its stream in its segment, at once",
    .grows = "device mallocs as large as all before, at least the request, halved while the device "
             "refuses; nothing goes back",
    .streams = FRAG_RULE_RMM_STREAMS,
};

const frag_policy_ops frag_policy_rmm_pool = {
    .name = "rmm-pool",
    .summary = "RMM's pool: best fit in lists of streams, which take from one another; it doubles",
    .source = "RMM 25.10.00, rmm::mr::pool_memory_resource",
    .rules = &rmm_pool_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/rmm-pool-*)",
    .options = rmm_pool_options,
    .create = rmm_pool_create,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};
