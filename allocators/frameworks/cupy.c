/* CuPy's memory pool: the smallest free chunk of the stream that is large enough, always split, and
 * coalesced when free. A miss is a device malloc of exactly the request. Source: CuPy 14.2.0,
 * cupy/cuda/memory.pyx. Ours differs among chunks of one size: CuPy takes any, which one follows
 * host addresses; this one takes the lowest. */
#include "allocators/frameworks/composed_policy.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"

enum { OPTION_LIMIT };

static const frag_option cupy_options[] = {
    {"limit", FRAG_OPTION_BYTES, "unlimited", .min = 0, .max = FRAG_UNLIMITED,
     .help = "most bytes of all segments (set_limit, CUPY_GPU_MEMORY_LIMIT); 0: unlimited"},
    {.key = NULL},
};

static frag_policy *cupy_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    uint64_t limit = setup->values[OPTION_LIMIT].number;
    frag_composition rules = {
        .rounding = FRAG_ROUND_MULTIPLE,
        .unit = 512,
        .lists = FRAG_LISTS_BY_STREAM,
        .grow = frag_grow_within_limit,
        .gives_back = FRAG_GIVE_BACK_BY_ADDRESS,
    };
    frag_growth_state growth = {.limit_bytes = limit == 0 ? FRAG_UNLIMITED : limit};
    return frag_composed_policy_create(setup, &rules, &growth);
}

static void cupy_prefer(frag_policy *policy, uint64_t address)
{
    policy->core.preferred = address;
}

static const frag_policy_rules cupy_rules = {
    .rounding = "to multiples of 512",
    .takes = "the smallest chunk of its stream that is large enough; of equal ones the lowest "
             "(CuPy: any)",
    .cuts = FRAG_RULE_LOW_END,
    .joins = FRAG_RULE_OF_ITS_SEGMENT,
    .grows = "device mallocs of exactly the request; idle ones go back on empty_cache, and when "
             "the limit or the device refuses a malloc",
    .streams = "a chunk stays with the stream that its segment was taken for",
};

static const frag_policy_engine cupy_engine = {.prefer = cupy_prefer,
                                               .replay = frag_composed_replay};

const frag_policy_ops frag_policy_cupy = {
    .name = "cupy",
    .summary = "CuPy's memory pool: best fit of a stream's chunks, segments of exactly the request",
    .source = "CuPy 14.2.0, cupy/cuda/memory.pyx",
    .rules = &cupy_rules,
    .checked = "the library's own logs, request by request, with the log's choice among chunks of "
               "one size (tests/data/golden-peers/cupy-*)",
    .options = cupy_options,
    .create = cupy_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &cupy_engine,
};
