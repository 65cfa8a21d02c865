/* The composed allocator with every choice open: what the presets fix, one option for each. For
 * finding out which of a pool's rules makes it better or worse than another: change one at a time.
 * Source: the pools it is composed of, see composed.h. */
#include "allocators/frameworks/composed_policy.h"
#include "base/bytes.h"

#define LIMIT_MAX ((uint64_t)1 << 50)

enum {
    OPTION_ROUNDING,
    OPTION_UNIT,
    OPTION_LINEAR,
    OPTION_LISTS,
    OPTION_SMALL,
    OPTION_PICK,
    OPTION_SPLIT,
    OPTION_SURPLUS,
    OPTION_MERGE,
    OPTION_GROW,
    OPTION_GROW_BYTES,
    OPTION_LIMIT,
    OPTION_GIVE_BACK
};

static const frag_option compose_options[] = {
    {"rounding", FRAG_OPTION_ENUM, "multiple", .choices = "multiple|least|power|stepped",
     .help = "requests become multiples of unit, at least unit, powers of two of at least unit, or "
             "(stepped) multiples of unit; see linear"},
    {"unit", FRAG_OPTION_BYTES, "256", .min = 1, .max = FRAG_GIB,
     .help = "what requests are rounded to, a power of two"},
    {"linear", FRAG_OPTION_BYTES, "16MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "rounding=power and stepped: larger requests become multiples of this power of two"},
    {"lists", FRAG_OPTION_ENUM, "one", .choices = "one|by-size|by-stream|shared",
     .help = "which free blocks serve a request: all; those of small or of large requests; those "
             "first allocated for its stream; those freed on its stream, then those of others"},
    {"small", FRAG_OPTION_BYTES, "1MiB", .min = 0, .max = FRAG_UNLIMITED,
     .help = "lists=by-size: the largest small request"},
    {"pick", FRAG_OPTION_ENUM, "best", .choices = "best|exact",
     .help = "the smallest block that is large enough, then the lowest; or the newest of exactly "
             "the size, which needs lists=one, split=never and merge=never"},
    {"split", FRAG_OPTION_ENUM, "low", .choices = "low|high|twice|never",
     .help = "always, and which end is handed out; or low, but only a block of twice the request "
             "or with surplus to spare"},
    {"surplus", FRAG_OPTION_BYTES, "128MiB", .min = 0, .max = FRAG_UNLIMITED,
     .help = "split=twice: a rest of so much is always cut off"},
    {"merge", FRAG_OPTION_ENUM, "segment", .choices = "segment|touching|never",
     .help = "a freed block joins free neighbours; touching: segments that touch become one, for "
             "devices that free them as one"},
    {"grow", FRAG_OPTION_ENUM, "exact", .choices = "exact|chunk|double|region|reserve",
     .help = "segments: of the request; of grow_bytes at least; as large as all before (RMM); "
             "regions that double (BFC); of the request, with 5% of the device left free (MXNet)"},
    {"grow_bytes", FRAG_OPTION_BYTES, "2MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "grow=chunk: least size; grow=region: the first one"},
    {"limit", FRAG_OPTION_BYTES, "unlimited", .min = 256, .max = FRAG_UNLIMITED,
     .help = "most bytes of all segments, for grow=exact, double and region"},
    {"give_back", FRAG_OPTION_ENUM, "when-full", .choices = "when-full|before-growing|at-once",
     .help =
         "when idle segments go back: when the device or the limit refuses (not with grow=double, "
         "which keeps them); before the device is asked (grow=chunk); as soon as they are idle"},
    {.key = NULL},
};

static frag_growth *const growth_rules[] = {
    frag_grow_within_limit, frag_grow_chunk,        frag_grow_doubling,
    frag_grow_region,       frag_grow_with_reserve,
};

static bool check_options(const frag_option_value *values, frag_error *error)
{
    if (!frag_is_power_of_two(values[OPTION_UNIT].number) ||
        !frag_is_power_of_two(values[OPTION_LINEAR].number))
        return frag_fail(error, FRAG_E_USAGE, "unit=%s and linear=%s must be powers of two",
                         values[OPTION_UNIT].text, values[OPTION_LINEAR].text);
    if (values[OPTION_LINEAR].number < values[OPTION_UNIT].number)
        return frag_fail(error, FRAG_E_USAGE, "unit=%s is above linear=%s",
                         values[OPTION_UNIT].text, values[OPTION_LINEAR].text);
    if (values[OPTION_PICK].number == FRAG_PICK_EXACT &&
        (values[OPTION_LISTS].number != FRAG_LISTS_ONE ||
         values[OPTION_SPLIT].number != FRAG_SPLIT_NEVER ||
         values[OPTION_MERGE].number != FRAG_MERGE_NEVER))
        return frag_fail(error, FRAG_E_USAGE,
                         "pick=exact needs lists=one, split=never and merge=never");
    return true;
}

static frag_policy *compose_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    if (!check_options(values, error))
        return NULL;
    uint64_t grow_bytes = values[OPTION_GROW_BYTES].number;
    uint64_t limit = values[OPTION_LIMIT].number;
    bool is_region = values[OPTION_GROW].number == 3;
    frag_composition rules = {
        .rounding = (frag_rounding)values[OPTION_ROUNDING].number,
        .lists = (frag_lists)values[OPTION_LISTS].number,
        .pick = (frag_pick)values[OPTION_PICK].number,
        .split = (frag_split)values[OPTION_SPLIT].number,
        .merge = (frag_merge)values[OPTION_MERGE].number,
        .grow = growth_rules[values[OPTION_GROW].number],
        .unit = values[OPTION_UNIT].number,
        .linear = values[OPTION_LINEAR].number,
        .small_bytes = values[OPTION_SMALL].number,
        .surplus_max = values[OPTION_SURPLUS].number,
        .gives_back = FRAG_GIVE_BACK_BY_ADDRESS,
        .gives_back_at_once = values[OPTION_GIVE_BACK].number == 2,
    };
    frag_growth_state growth = {
        .limit_bytes = is_region && limit > LIMIT_MAX ? LIMIT_MAX : limit,
        .step_bytes = is_region ? grow_bytes : 0,
        .chunk_bytes = {grow_bytes, grow_bytes},
        .reserve_percent = 5,
        .segment_max = FRAG_UNLIMITED,
        .collects = true,
        .empties_first = values[OPTION_GIVE_BACK].number == 1,
    };
    return frag_composed_policy_create(setup, &rules, &growth);
}

static const frag_policy_rules composed_rules = {
    .rounding =
        "as rounding= says: to multiples of unit, at least to unit, to powers of two of at least "
        "unit, or to multiples of unit; the last two above linear to multiples of that",
    .takes = "of the lists chosen by lists=, the smallest that is large enough, then the lowest; "
             "or the newest of exactly the size (pick=exact)",
    .cuts = "as split= says: always (low or high end handed out), only if the block is at least "
            "twice the request or the remainder at least surplus, or never",
    .joins = "as merge= says: with free neighbours of its list in its segment, also across "
             "segments that touch, or never",
    .grows = "as grow= and give_back= say",
    .streams = "ignored, or a free block stays with the stream it was first taken for "
               "(lists=by-stream), or goes to the one that freed it (lists=shared)",
};

const frag_policy_ops frag_policy_composed = {
    .name = "composed",
    .summary = "an allocator of five choices (rounding, lists and pick, split, merge, growth), of "
               "which the pools of other frameworks are presets",
    .source = "the choices of RMM, TensorFlow, ONNX Runtime, CuPy, Paddle and MXNet",
    .rules = &composed_rules,
    .options = compose_options,
    .create = compose_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};
