/* ONNX Runtime's arena: best fit with coalescing, as TensorFlow's, with two ways to grow: regions
 * that double up to 1 GiB, or of exactly the request. Shrinking (empty_cache) gives idle regions
 * back, all but the first where they double. Source: ONNX Runtime 1.31.1, onnxruntime::BFCArena,
 * without streams. */
#include "allocators/frameworks/composed_policy.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define UNIT 256u
#define LIMIT_MAX ((uint64_t)1 << 50)

enum {
    OPTION_STRATEGY,
    OPTION_INITIAL,
    OPTION_GROWTH,
    OPTION_DEAD,
    OPTION_MAX_MEM,
    OPTION_MAX_EXTEND
};

static const frag_option ort_arena_options[] = {
    {"arena_extend_strategy", FRAG_OPTION_ENUM, "kNextPowerOfTwo",
     .choices = "kNextPowerOfTwo|kSameAsRequested|0|1",
     .help = "regions double, or have the size of the request that made them"},
    {"initial_chunk_size_bytes", FRAG_OPTION_BYTES, "1MiB", .min = 1, .max = LIMIT_MAX,
     .help = "the first region when they double"},
    {"initial_growth_chunk_size_bytes", FRAG_OPTION_BYTES, "2MiB", .min = 1, .max = LIMIT_MAX,
     .help = "the next region after shrinking, when they double"},
    {"max_dead_bytes_per_chunk", FRAG_OPTION_BYTES, "128MiB", .min = 0, .max = LIMIT_MAX,
     .help = "a chunk that would leave this much unused is cut, as is one of twice the request"},
    {"max_mem", FRAG_OPTION_BYTES, "0", .min = 0, .max = FRAG_UNLIMITED,
     .help = "most bytes of all regions; 0: what the device has"},
    {"max_power_of_two_extend_bytes", FRAG_OPTION_BYTES, "1GiB", .min = 1, .max = LIMIT_MAX,
     .help = "doubling ends here"},
    {.key = NULL},
};

static frag_policy *ort_arena_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    const frag_option_value *values = setup->values;
    bool is_exact = values[OPTION_STRATEGY].number % 2 == 1;
    uint64_t limit = values[OPTION_MAX_MEM].number;
    limit = limit == 0 || limit > LIMIT_MAX ? LIMIT_MAX : limit;
    uint64_t initial = values[OPTION_INITIAL].number;
    frag_composition rules = {
        .rounding = FRAG_ROUND_MULTIPLE,
        .unit = UNIT,
        .split = FRAG_SPLIT_TWICE,
        .surplus_max = values[OPTION_DEAD].number,
        .grow = frag_grow_region,
        .gives_back = FRAG_GIVE_BACK_BY_ADDRESS,
        .keeps_first = !is_exact,
    };
    frag_growth_state growth = {
        .limit_bytes = limit,
        .step_bytes = frag_align_up(initial < limit ? initial : limit, UNIT),
        .step_max = values[OPTION_MAX_EXTEND].number,
        .step_restart = values[OPTION_GROWTH].number,
        .give_up_below = 8 * FRAG_KIB,
        .is_exact = is_exact,
        .steps_early = true,
    };
    return frag_composed_policy_create(setup, &rules, &growth);
}

static void ort_arena_shrink(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    frag_composed_give_back(&policy->core);
    policy->core.growth.step_bytes = policy->core.growth.step_restart;
}

static const frag_policy_rules ort_arena_rules = {
    .rounding = "to multiples of 256",
    .takes = "the smallest chunk that is large enough; of equal ones the lowest",
    .cuts = "if the chunk is at least twice the request or the remainder at least "
            "max_dead_bytes_per_chunk; the low end is handed out",
    .joins = FRAG_RULE_OF_ITS_SEGMENT,
    .grows = "regions of 1 MiB that double up to 1 GiB, each smaller by a tenth for every refusal "
             "of the device; or of the request (kSameAsRequested). Idle ones go back on "
             "empty_cache, but for the first where they double",
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_ort_arena = {
    .name = "ort-arena",
    .summary = "ONNX Runtime's arena: best fit in regions that double up to 1 GiB; ignores streams",
    .source = "ONNX Runtime 1.31.1, onnxruntime::BFCArena",
    .rules = &ort_arena_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/ort-bfc-*)",
    .options = ort_arena_options,
    .create = ort_arena_create,
    .empty_cache = ort_arena_shrink,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};
