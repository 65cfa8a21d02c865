/* Two-level segregated fit. Holes are kept in lists by size: one set of lists per power of two,
 * each cut into 2^sli equal steps; two levels of bitmaps find a list in constant time. A request is
 * rounded up to the next step, so that any hole of the list will do, and the newest is taken: a
 * good fit, not the best. Half fit is the same with one list to a power of two. Sources: Masmano,
 * Ripoll, Crespo, Real, ECRTS 2004; M. Conte's tlsf.c 3.1; Ogasawara, RTCSA 1995. Bound: that of
 * best fit; of half fit 2 M (1 + ceil(log2 n)). Ours differs in that memory is a range that grows
 * at its end; a hole there is extended, not skipped. */
#include "allocators/index/bit_lists.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/replay/replay_loop.h"

enum { OPTION_ALIGN, OPTION_GROW, OPTION_SLI, OPTION_SEARCH_OWN };

_Static_assert(FRAG_BIT_LIST_MAX >= 64 << 6, "a list for each step of each power of two");

#define ALIGN_OPTION(text)                                                                         \
    {                                                                                              \
        .key = "align", .type = FRAG_OPTION_BYTES, .default_text = (text), .min = 1,               \
        .max = FRAG_GIB, .help = "requests are rounded up to a multiple of this power of two"      \
    }

#define GROW_OPTION                                                                                \
    {                                                                                              \
        .key = "grow", .type = FRAG_OPTION_BYTES, .default_text = "2MiB", .min = 1,                \
        .max = 1024 * FRAG_GIB, .help = "the range grows in steps of this, where there is room"    \
    }

#define SLI_OPTION                                                                                 \
    {                                                                                              \
        .key = "sli", .type = FRAG_OPTION_COUNT, .default_text = "5", .min = 0, .max = 6,          \
        .help = "second-level index: each power of two has 2^sli lists"                            \
    }

#define SEARCH_OPTION                                                                              \
    {                                                                                              \
        .key = "search_own", .type = FRAG_OPTION_FLAG, .default_text = "false",                    \
        .help = "before the range grows, the list that holes of the request's own size are in is " \
                "searched for one that fits"                                                       \
    }

static const frag_option tlsf_options[] = {
    ALIGN_OPTION("512"), GROW_OPTION, SLI_OPTION, SEARCH_OPTION, {.key = NULL}};
static const frag_option half_fit_options[] = {ALIGN_OPTION("512"), GROW_OPTION, {.key = NULL}};

/* Classes of sizes are numbered through, 2^sli to each power of two; where that is finer than the
 * alignment some are never used. */
struct frag_policy {
    frag_block_space space;
    uint64_t align;
    uint32_t align_shift;
    uint32_t class_shift;
    uint32_t class_base;
    bool searches_own;
    frag_bit_lists lists; /* one for each class */
};

static uint32_t class_count(uint64_t sli)
{
    return 64u << sli;
}

static size_t tlsf_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    uint32_t records = frag_block_space_records(limits, FRAG_SPACE_GROWING);
    return sizeof(frag_policy) + 128 + frag_block_space_bytes(limits, FRAG_SPACE_GROWING) +
           ((size_t)records + FRAG_BIT_LIST_MAX) * sizeof(frag_free_link);
}

/* Exponent and first sli bits of the fraction of a double: sizes are multiples of the alignment,
 * and those of holes are below 2^53 (the range has 2^43 bytes at most), so that it is exact. */
static inline uint32_t class_at(const frag_policy *policy, uint64_t bytes, uint64_t addend)
{
    uint64_t bits = frag_double_bits(bytes >> policy->align_shift);
    return (uint32_t)((bits + addend) >> policy->class_shift) - policy->class_base;
}

static inline uint32_t class_of(const frag_policy *policy, uint64_t bytes)
{
    return class_at(policy, bytes, 0);
}

/* The first class of which every hole has so many bytes. */
static inline uint32_t class_for(const frag_policy *policy, uint64_t bytes)
{
    return class_at(policy, bytes, ((uint64_t)1 << policy->class_shift) - 1);
}

static inline void insert(frag_policy *policy, uint32_t hole)
{
    frag_bit_list_insert(&policy->lists, class_of(policy, policy->space.blocks[hole].bytes), hole);
}

static inline void take_out(frag_policy *policy, uint32_t hole)
{
    frag_bit_list_take_out(&policy->lists, hole);
}

static inline bool find(const frag_policy *policy, uint64_t bytes, uint32_t *hole)
{
    uint32_t number = 0;
    if (!frag_bit_list_from(&policy->lists, class_for(policy, bytes), &number))
        return false;
    *hole = frag_bit_list_first(&policy->lists, number);
    return true;
}

static void insert_hole(void *context, uint32_t hole)
{
    insert(context, hole);
}

static void remove_hole(void *context, uint32_t hole)
{
    take_out(context, hole);
}

static const frag_block_space_hooks tlsf_hooks = {.insert = insert_hole, .remove = remove_hole};

static frag_policy *create(const frag_policy_setup *setup, uint64_t sli, bool searches_own,
                           frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t align = values[OPTION_ALIGN].number;
    if (!frag_is_power_of_two(align) || setup->device->page_bytes % align != 0) {
        frag_fail(error, FRAG_E_USAGE,
                  "align=%s is not a power of two that divides the device's pages of %llu bytes",
                  values[OPTION_ALIGN].text, (unsigned long long)setup->device->page_bytes);
        return NULL;
    }
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->align = align;
    policy->align_shift = frag_bit_low(align);
    policy->class_shift = 52 - (uint32_t)sli;
    policy->class_base = 1023u << sli;
    policy->searches_own = searches_own;
    frag_block_space_setup shape = {.kind = FRAG_SPACE_GROWING,
                                    .align = align,
                                    .grow_bytes = values[OPTION_GROW].number,
                                    .hooks = &tlsf_hooks,
                                    .context = policy};
    if (!frag_block_space_create(&policy->space, setup, &shape, error))
        return NULL;
    uint32_t first_head = policy->space.record_max;
    policy->lists.first_head = first_head;
    policy->lists.links = frag_arena_take(setup->arena, (size_t)first_head + class_count(sli),
                                          sizeof *policy->lists.links);
    return policy;
}

static frag_policy *tlsf_create(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, setup->values[OPTION_SLI].number,
                  setup->values[OPTION_SEARCH_OWN].number != 0, error);
}

static frag_policy *half_fit_create(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, 0, false, error);
}

/* The newest hole of the request's own list that fits. */
static bool find_own(const frag_policy *policy, uint64_t bytes, uint32_t *hole)
{
    uint32_t place = frag_bit_list_first(&policy->lists, class_of(policy, bytes));
    while (place != 0 && policy->space.blocks[place].bytes < bytes)
        place = policy->lists.links[place].next;
    *hole = place;
    return place != 0;
}

FRAG_INLINE bool tlsf_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = frag_align_up(request->bytes, policy->align);
    uint32_t hole = 0;
    if (FRAG_LIKELY(find(policy, bytes, &hole)) ||
        (policy->searches_own && find_own(policy, bytes, &hole)))
        take_out(policy, hole);
    else if (!frag_block_space_grow(&policy->space, bytes, &hole))
        return false;
    uint32_t granted = hole;
    if (policy->space.blocks[hole].bytes > bytes) {
        granted = frag_block_cut(&policy->space, hole, bytes);
        insert(policy, hole);
    } else {
        policy->space.blocks[hole].state = FRAG_BLOCK_BUSY;
    }
    *grant = (frag_grant){
        .address = policy->space.blocks[granted].address, .block_bytes = bytes, .handle = granted};
    return true;
}

FRAG_INLINE void tlsf_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    insert(policy, frag_block_release(&policy->space, handle, remove_hole, policy));
}

static void tlsf_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    frag_block_space_trim(&policy->space);
}

static uint64_t tlsf_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_align_up(bytes, policy->align);
}

static void tlsf_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_block_space_walk(&policy->space, visit, context);
}

static uint32_t number_of(const void *context, uint64_t bytes)
{
    return class_of(context, bytes);
}

static bool tlsf_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t listed_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error) ||
        !frag_bit_lists_check(&policy->lists, &policy->space, number_of, policy, &listed_count,
                              error))
        return false;
    return listed_count == hole_count || frag_fail(error, FRAG_E_INPUT, "a hole is in no list");
}

static void tlsf_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, tlsf_alloc, tlsf_free);
}

static const frag_policy_engine tlsf_engine = {.replay = tlsf_replay};

#define TLSF_OPS                                                                                   \
    .arena_bytes = tlsf_arena_bytes, .alloc = tlsf_alloc, .engine = &tlsf_engine,                  \
    .free = tlsf_free, .empty_cache = tlsf_empty_cache, .rounded = tlsf_rounded,                   \
    .walk = tlsf_walk, .check = tlsf_check

#define GOOD_FIT "the newest hole of the first non-empty list whose holes are all large enough"

static const frag_policy_rules tlsf_rules = {
    .rounding = FRAG_RULE_TO_ALIGN,
    .takes = GOOD_FIT "; 2^sli lists to a doubling. With search_own then the newest hole of the "
                      "list of its own size that is large enough",
    .cuts = FRAG_RULE_LOW_END,
    .joins = FRAG_RULE_NEIGHBOURS,
    .grows = FRAG_RULE_ONE_RANGE,
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_tlsf = {
    .name = "tlsf",
    .summary = "two-level segregated fit: a good fit in constant time; ignores streams and pools",
    .source = "Masmano, Ripoll, Crespo, Real: TLSF, ECRTS 2004; tlsf.c 3.1",
    .rules = &tlsf_rules,
    .bound = "quoted as that of best fit: about M n in the worst case (in one range, requests of 1 "
             "to n units, at most M in use)",
    .options = tlsf_options,
    .create = tlsf_create,
    TLSF_OPS,
};

static const frag_policy_rules half_fit_rules = {
    .rounding = FRAG_RULE_TO_ALIGN,
    .takes = GOOD_FIT "; one list to a doubling",
    .cuts = FRAG_RULE_LOW_END,
    .joins = FRAG_RULE_NEIGHBOURS,
    .grows = FRAG_RULE_ONE_RANGE,
    .streams = FRAG_RULE_IGNORED,
};

const frag_policy_ops frag_policy_half_fit = {
    .name = "half-fit",
    .summary =
        "one list to a power of two, of which the newest hole is taken; ignores streams and pools",
    .source = "Ogasawara: An algorithm with constant execution time for dynamic storage "
              "allocation, RTCSA 1995",
    .rules = &half_fit_rules,
    .bound = "in one range, requests of 1 to n units, at most M in use: at most 2 M (1 + ceil(log2 "
             "n)) (as quoted by o1heap)",
    .options = half_fit_options,
    .create = half_fit_create,
    TLSF_OPS,
};
