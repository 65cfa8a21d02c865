/* MXNet's two pools: freed blocks are kept by their exact size, the newest is used again first, and
 * none is ever cut or joined. Naive keeps sizes as they are, Round rounds them to powers of two and
 * from 16 MiB on to multiples of 16 MiB. When a share of the device would not stay free, everything
 * cached goes back before a device malloc. Source: Apache MXNet, pooled_storage_manager.h. */
#include "allocators/composed_policy.h"
#include "sim/base/bytes.h"

enum { OPTION_PAGE, OPTION_RESERVE, OPTION_CUTOFF };

#define PAGE_OPTION                                                                                \
    {                                                                                              \
        .key = "page_size", .type = FRAG_OPTION_BYTES, .default_text = "4KiB", .min = 1,           \
        .max = FRAG_GIB,                                                                           \
        .help = "smaller requests are as large as this, a power of two "                           \
                "(MXNET_GPU_MEM_POOL_PAGE_SIZE)"                                                   \
    }
#define RESERVE_OPTION                                                                             \
    {                                                                                              \
        .key = "reserve", .type = FRAG_OPTION_COUNT, .default_text = "5", .min = 0, .max = 100,    \
        .help = "percent of the device to be left free (MXNET_GPU_MEM_POOL_RESERVE)"               \
    }

static const frag_option naive_options[] = {PAGE_OPTION, RESERVE_OPTION, {.key = NULL}};

static const frag_option round_options[] = {
    PAGE_OPTION,
    RESERVE_OPTION,
    {.key = "round_linear_cutoff",
     .type = FRAG_OPTION_COUNT,
     .default_text = "24",
     .min = 12,
     .max = 40,
     .help = "requests above two to this power are rounded to multiples of it "
             "(MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF)"},
    {.key = NULL},
};

static frag_policy *create(const frag_policy_setup *setup, frag_rounding rounding, uint64_t linear,
                           frag_error *error)
{
    uint64_t page = setup->values[OPTION_PAGE].number;
    if (!frag_is_power_of_two(page)) {
        frag_fail(error, FRAG_E_USAGE, "page_size=%s is not a power of two",
                  setup->values[OPTION_PAGE].text);
        return NULL;
    }
    frag_composition rules = {
        .rounding = rounding,
        .unit = page,
        .linear = linear,
        .pick = FRAG_PICK_EXACT,
        .split = FRAG_SPLIT_NEVER,
        .merge = FRAG_MERGE_NEVER,
        .grow = frag_grow_with_reserve,
    };
    frag_growth_state growth = {.reserve_percent = setup->values[OPTION_RESERVE].number};
    return frag_composed_policy_create(setup, &rules, &growth);
}

static frag_policy *naive_create(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, FRAG_ROUND_LEAST, 0, error);
}

static frag_policy *round_create(const frag_policy_setup *setup, frag_error *error)
{
    uint64_t linear = (uint64_t)1 << setup->values[OPTION_CUTOFF].number;
    if (linear < setup->values[OPTION_PAGE].number) {
        frag_fail(error, FRAG_E_USAGE, "page_size=%s is above two to the round_linear_cutoff=%s",
                  setup->values[OPTION_PAGE].text, setup->values[OPTION_CUTOFF].text);
        return NULL;
    }
    return create(setup, FRAG_ROUND_POWER, linear, error);
}

const frag_policy_ops frag_policy_mxnet_naive = {
    .name = "mxnet-naive",
    .summary = "MXNet's naive pool: freed blocks serve requests of exactly their size; ignores "
               "streams",
    .source = "Apache MXNet 1.9, src/storage/pooled_storage_manager.h",
    .options = naive_options,
    .create = naive_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
};

const frag_policy_ops frag_policy_mxnet_round = {
    .name = "mxnet-round",
    .summary = "MXNet's rounding pool: sizes are powers of two, or multiples of 16 MiB; ignores "
               "streams",
    .source = "Apache MXNet 1.9, src/storage/pooled_storage_manager.h",
    .options = round_options,
    .create = round_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
};
