/* MXNet's two pools: freed blocks are kept by their rounded size, the newest is used again first,
 * and none is ever split or coalesced. Naive rounds to pages, above 2 MiB to multiples of that;
 * Round to powers of two, above 16 MiB to multiples of that. When a share of the device would not
 * stay free, everything cached goes back before a device malloc, and again when that is refused,
 * which is then tried once more. Source: Apache MXNet, pooled_storage_manager.h of 1.9.1 and of 2.0
 * (b84609d). */
#include "allocators/frameworks/composed_policy.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

enum { OPTION_PAGE, OPTION_RESERVE, OPTION_VERSION, OPTION_STEP };

enum { VERSION_1_9, VERSION_2_0 };

/* The library reads its variables as signed numbers of 32 bits. */
#define VARIABLE_MAX ((uint64_t)INT32_MAX)
/* And refuses smaller pages. */
#define PAGE_MIN 32
/* Round's table of lists ends here; the library crashes on larger requests. */
#define ROUND_MAX (16 * FRAG_GIB)

#define SHARED_OPTIONS(page_help)                                                                  \
    {.key = "page_size",                                                                           \
     .type = FRAG_OPTION_BYTES,                                                                    \
     .default_text = "4KiB",                                                                       \
     .min = PAGE_MIN,                                                                              \
     .max = VARIABLE_MAX,                                                                          \
     .help = page_help " (MXNET_GPU_MEM_POOL_PAGE_SIZE; 2.0: MXNET_GPU_POOL_PAGE_SIZE)"},          \
        {.key = "reserve",                                                                         \
         .type = FRAG_OPTION_COUNT,                                                                \
         .default_text = "5",                                                                      \
         .min = 0,                                                                                 \
         .max = 100,                                                                               \
         .help = "percent of the device to be left free (MXNET_GPU_MEM_POOL_RESERVE)"},            \
    {                                                                                              \
        .key = "version", .type = FRAG_OPTION_ENUM, .default_text = "1.9", .choices = "1.9|2.0",   \
        .help = "release of MXNet; with reserve=0 only 2.0 gives back what is cached before a "    \
                "request for exactly what is free"                                                 \
    }

static const frag_option naive_options[] = {
    SHARED_OPTIONS("requests become multiples of this"),
    {.key = "large_alloc_round_size",
     .type = FRAG_OPTION_BYTES,
     .default_text = "2MiB",
     .min = 1,
     .max = VARIABLE_MAX,
     .help = "larger requests become multiples of this (MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE)"},
    {.key = NULL},
};

static const frag_option round_options[] = {
    SHARED_OPTIONS("smaller requests are as large as this, a power of two"),
    {.key = "round_linear_cutoff",
     .type = FRAG_OPTION_COUNT,
     .default_text = "24",
     .min = 20,
     .max = 34,
     .help = "requests above two to this power are rounded to multiples of it "
             "(MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF)"},
    {.key = NULL},
};

static frag_policy *create(const frag_policy_setup *setup, frag_composition rules,
                           uint64_t segment_max)
{
    rules.unit = setup->values[OPTION_PAGE].number;
    rules.pick = FRAG_PICK_EXACT;
    rules.split = FRAG_SPLIT_NEVER;
    rules.merge = FRAG_MERGE_NEVER;
    rules.grow = frag_grow_with_reserve;
    frag_growth_state growth = {
        .segment_max = segment_max,
        .reserve_percent = setup->values[OPTION_RESERVE].number,
        .spares_a_byte = setup->values[OPTION_VERSION].number == VERSION_2_0,
    };
    return frag_composed_policy_create(setup, &rules, &growth);
}

static frag_policy *naive_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    frag_composition rules = {
        .rounding = FRAG_ROUND_STEPPED,
        .linear = setup->values[OPTION_STEP].number,
        .gives_back = FRAG_GIVE_BACK_BY_TABLE,
    };
    return create(setup, rules, FRAG_UNLIMITED);
}

static frag_policy *round_create(const frag_policy_setup *setup, frag_error *error)
{
    uint64_t page = setup->values[OPTION_PAGE].number;
    uint64_t linear = (uint64_t)1 << setup->values[OPTION_STEP].number;
    if (!frag_is_power_of_two(page)) {
        frag_fail(error, FRAG_E_USAGE, "page_size=%s is not a power of two",
                  setup->values[OPTION_PAGE].text);
        return NULL;
    }
    if (linear < page) {
        frag_fail(error, FRAG_E_USAGE, "page_size=%s is above two to the round_linear_cutoff=%s",
                  setup->values[OPTION_PAGE].text, setup->values[OPTION_STEP].text);
        return NULL;
    }
    frag_composition rules = {
        .rounding = FRAG_ROUND_POWER,
        .linear = linear,
        .gives_back = FRAG_GIVE_BACK_BY_SIZE,
    };
    return create(setup, rules, ROUND_MAX);
}

#define NEWEST_OF_SIZE "the newest of exactly the rounded size"
#define MXNET_GROWS                                                                                \
    "device mallocs of exactly the rounded request. Everything cached goes back first if less "    \
    "than reserve "                                                                                \
    "percent of the device (version=2.0: nothing) would stay "                                     \
    "free, and again when the device refuses, which is then "                                      \
    "asked once more; of one size the longest free goes first"

static const frag_policy_rules mxnet_naive_rules = {
    .rounding =
        "to multiples of page_size; results above large_alloc_round_size to multiples of that",
    .takes = NEWEST_OF_SIZE,
    .cuts = FRAG_RULE_NEVER,
    .joins = FRAG_RULE_NEVER,
    .grows = MXNET_GROWS
    ", size by size in the order of a hash table (std::unordered_map as GCC has it)",
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_mxnet_naive = {
    .name = "mxnet-naive",
    .summary = "MXNet's naive pool: freed blocks serve requests of exactly their rounded size; "
               "ignores streams",
    .source = "Apache MXNet 1.9.1 and 2.0 (b84609d), src/storage/pooled_storage_manager.h",
    .rules = &mxnet_naive_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/mxnet-naive-*)",
    .options = naive_options,
    .create = naive_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};

static const frag_policy_rules mxnet_round_rules = {
    .rounding = "to powers of two; above 2^round_linear_cutoff to multiples of that. Requests "
                "above 16 GiB fail: the library crashes on them",
    .takes = NEWEST_OF_SIZE,
    .cuts = FRAG_RULE_NEVER,
    .joins = FRAG_RULE_NEVER,
    .grows = MXNET_GROWS ", the smallest sizes first",
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_mxnet_round = {
    .name = "mxnet-round",
    .summary =
        "MXNet's rounding pool: sizes are powers of two, or multiples of 16 MiB; ignores streams",
    .source = "Apache MXNet 1.9.1 and 2.0 (b84609d), src/storage/pooled_storage_manager.h",
    .rules = &mxnet_round_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/mxnet-round-*)",
    .options = round_options,
    .create = round_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};
