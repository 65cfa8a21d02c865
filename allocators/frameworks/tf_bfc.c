/* TensorFlow's BFC allocator: best fit with coalescing in regions that double. A chunk is split
 * only when it is twice the request or would leave 128 MiB unused; nothing goes back, unless
 * garbage collection is on. Source: TensorFlow 2.21.0, tsl::BFCAllocator. Ours differs where the
 * library does not return: the device refuses everything and the request has at most 2304 bytes;
 * this one is out of memory then. */
#include "allocators/frameworks/composed_policy.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define UNIT 256u
#define FIRST_REGION_BYTES (2 * FRAG_MIB)
#define SURPLUS_MAX (128 * FRAG_MIB)
#define LIMIT_MAX ((uint64_t)1 << 50)

enum { OPTION_LIMIT, OPTION_GROWTH, OPTION_COLLECTION, OPTION_FRACTION, OPTION_COALESCES };

static const frag_option tf_bfc_options[] = {
    {"memory_limit", FRAG_OPTION_BYTES, "unlimited", .min = 1, .max = FRAG_UNLIMITED,
     .help = "most bytes of all regions; unlimited: what the device has"},
    {"allow_growth", FRAG_OPTION_FLAG, "true",
     .help = "regions begin at 2 MiB and double; false, TensorFlow's own default: the first "
             "request takes the whole limit"},
    {"garbage_collection", FRAG_OPTION_FLAG, "false",
     .help = "idle regions go back to the device before a request fails"},
    {"fragmentation_fraction", FRAG_OPTION_RATIO, "0", .ratio_min = 0, .ratio_max = 1,
     .help = "share of the limit that a chunk may have more than the request and stay whole; 0: "
             "128 MiB"},
    {"sub_allocator_coalesces", FRAG_OPTION_FLAG, "false",
     .help = "a region that begins where another ends becomes part of it, for devices that free "
             "them as one"},
    {.key = NULL},
};

/* Without growth the limit is what is asked for, so it must be known. */
static bool find_limit(const frag_policy_setup *setup, uint64_t *limit, frag_error *error)
{
    const frag_option_value *values = setup->values;
    *limit = values[OPTION_LIMIT].number;
    bool needs_limit = values[OPTION_GROWTH].number == 0 || values[OPTION_FRACTION].ratio > 0;
    if (*limit == FRAG_UNLIMITED && needs_limit)
        *limit = frag_device_capacity(setup->device);
    if (*limit == FRAG_UNLIMITED && needs_limit)
        return frag_fail(error, FRAG_E_USAGE,
                         "allow_growth=false and fragmentation_fraction need a memory_limit; name "
                         "one, or a --capacity");
    if (*limit > LIMIT_MAX)
        *limit = LIMIT_MAX;
    return true;
}

static frag_policy *tf_bfc_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t limit = 0;
    if (!find_limit(setup, &limit, error))
        return NULL;
    double fraction = values[OPTION_FRACTION].ratio;
    bool grows = values[OPTION_GROWTH].number != 0;
    frag_composition rules = {
        .rounding = FRAG_ROUND_MULTIPLE,
        .unit = UNIT,
        .split = FRAG_SPLIT_TWICE,
        .surplus_max = fraction > 0 ? (uint64_t)(fraction * (double)limit) : SURPLUS_MAX,
        .merge = values[OPTION_COALESCES].number != 0 ? FRAG_MERGE_TOUCHING : FRAG_MERGE_SEGMENT,
        .grow = frag_grow_region,
        .gives_back = FRAG_GIVE_BACK_BY_ADDRESS,
    };
    uint64_t first = grows && limit > FIRST_REGION_BYTES ? FIRST_REGION_BYTES : limit;
    frag_growth_state growth = {
        .limit_bytes = limit,
        .step_bytes = frag_align_up(first, UNIT),
        .collects = values[OPTION_COLLECTION].number != 0,
    };
    return frag_composed_policy_create(setup, &rules, &growth);
}

static const frag_policy_rules tf_bfc_rules = {
    .rounding = "to multiples of 256",
    .takes = "the smallest chunk that is large enough; of equal ones the lowest",
    .cuts = "if the chunk is at least twice the request or the remainder at least 128 MiB "
            "(fragmentation_fraction); the low end is handed out",
    .joins = FRAG_RULE_OF_ITS_SEGMENT,
    .grows = "regions of 2 MiB that double, each smaller by a tenth for every refusal of the "
             "device; or all of memory_limit at once (allow_growth=false). They stay, unless "
             "garbage_collection gives idle ones back before a request fails",
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_tf_bfc = {
    .name = "tf-bfc",
    .summary = "TensorFlow's BFC allocator: best fit in regions that double; ignores streams",
    .source = "TensorFlow 2.21.0, tsl::BFCAllocator",
    .rules = &tf_bfc_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/tf-bfc-*)",
    .options = tf_bfc_options,
    .create = tf_bfc_create,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};
