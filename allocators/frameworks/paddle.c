/* Paddle's auto-growth allocator: the smallest free block that is large enough, at the lowest
 * address; its high end is handed out. A miss takes a chunk from the device, of the request's size
 * or the configured one. Source: PaddlePaddle 3.3.1, auto_growth_best_fit_allocator.cc, without the
 * wrappers for retries and streams. */
#include "allocators/frameworks/composed_policy.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define MEGABYTES_MAX ((uint64_t)1 << 30)

enum {
    OPTION_CHUNK,
    OPTION_ALIGNMENT,
    OPTION_IDLE,
    OPTION_NO_HIT,
    OPTION_SMALL_POOL,
    OPTION_SMALL_CHUNK,
    OPTION_LARGE_CHUNK
};

static const frag_option paddle_options[] = {
    {"chunk_size", FRAG_OPTION_BYTES, "0", .min = 0, .max = 1024 * FRAG_GIB,
     .help = "least size of a chunk (FLAGS_auto_growth_chunk_size_in_mb)"},
    {"alignment", FRAG_OPTION_BYTES, "256", .min = 1, .max = FRAG_GIB,
     .help = "requests and chunks are rounded up to a multiple of this power of two"},
    {"free_idle_chunk", FRAG_OPTION_FLAG, "false",
     .help = "a chunk goes back when its last block is freed"},
    {"free_when_no_cache_hit", FRAG_OPTION_FLAG, "false",
     .help = "idle chunks go back before the device is asked"},
    {"small_pool_size_in_mb", FRAG_OPTION_COUNT, "0", .min = 0, .max = MEGABYTES_MAX,
     .help = "requests of up to so many MiB have free blocks of their own"},
    {"small_pool_auto_growth_chunk_size_in_mb", FRAG_OPTION_COUNT, "0", .min = 0,
     .max = MEGABYTES_MAX,
     .help = "least size of a chunk for small requests, in MiB; 0: chunk_size"},
    {"large_pool_auto_growth_chunk_size_in_mb", FRAG_OPTION_COUNT, "0", .min = 0,
     .max = MEGABYTES_MAX, .help = "the same for the others"},
    {.key = NULL},
};

static frag_policy *paddle_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t alignment = values[OPTION_ALIGNMENT].number;
    if (!frag_is_power_of_two(alignment)) {
        frag_fail(error, FRAG_E_USAGE, "alignment=%s is not a power of two",
                  values[OPTION_ALIGNMENT].text);
        return NULL;
    }
    uint64_t chunk = frag_align_up(values[OPTION_CHUNK].number, alignment);
    uint64_t small = values[OPTION_SMALL_CHUNK].number * FRAG_MIB;
    uint64_t large = values[OPTION_LARGE_CHUNK].number * FRAG_MIB;
    frag_composition rules = {
        .rounding = FRAG_ROUND_MULTIPLE,
        .unit = alignment,
        .lists = FRAG_LISTS_BY_SIZE,
        .small_bytes = values[OPTION_SMALL_POOL].number * FRAG_MIB,
        .split = FRAG_SPLIT_HIGH,
        .grow = frag_grow_chunk,
        .gives_back_at_once = values[OPTION_IDLE].number != 0,
    };
    frag_growth_state growth = {
        .chunk_bytes = {large != 0 ? large : chunk, small != 0 ? small : chunk},
        .empties_first = values[OPTION_NO_HIT].number != 0,
    };
    return frag_composed_policy_create(setup, &rules, &growth);
}

static const frag_policy_rules paddle_rules = {
    .rounding = "to multiples of alignment",
    .takes = "the smallest block that is large enough, of the small or the large pool; of equal "
             "ones the lowest",
    .cuts = "always; the high end is handed out, the remainder stays free",
    .joins = FRAG_RULE_OF_ITS_SEGMENT,
    .grows = "chunks of the request, at least chunk_size; idle ones go back on empty_cache, when "
             "the device refuses, and with free_idle_chunk at once",
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_paddle = {
    .name = "paddle-auto-growth",
    .summary =
        "Paddle's auto-growth allocator: best fit, the high end is handed out; ignores streams",
    .source = "PaddlePaddle 3.3.1, auto_growth_best_fit_allocator.cc",
    .rules = &paddle_rules,
    .checked = "the library's own logs, request by request (tests/data/golden-peers/paddle-*)",
    .options = paddle_options,
    .create = paddle_create,
    .empty_cache = frag_composed_policy_empty_cache,
    FRAG_COMPOSED_POLICY_OPS,
    .engine = &frag_composed_policy_engine,
};
