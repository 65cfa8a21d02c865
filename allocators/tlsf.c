/* Two-level segregated fit. Holes hang in lists by size: one set of lists per power of two, each
 * cut into 2^sli equal steps; two levels of bitmaps find a list in constant time. A request is
 * rounded up to the next step, so that any hole of the list will do, and the newest is taken: a
 * good fit, not the best. Half fit is the same with one list to a power of two. Sources: Masmano,
 * Ripoll, Crespo, Real, ECRTS 2004; M. Conte's tlsf.c 3.1; Ogasawara, RTCSA 1995. Bound: that of
 * best fit; of half fit 2 M (1 + ceil(log2 n)). Ours differs in that memory is a range that grows
 * at its end; a hole there is extended, not skipped. */
#include "allocators/block_space.h"
#include "sim/base/bytes.h"
#include "sim/replay_loop.h"

enum { OPTION_ALIGN, OPTION_GROW, OPTION_SLI, OPTION_SEARCH_OWN };

enum { SLI_MAX = 6, CLASSES_MAX = 64 << SLI_MAX, WORDS = CLASSES_MAX / 64 };

#define ALIGN_OPTION(text)                                                                         \
    {                                                                                              \
        .key = "align", .type = FRAG_OPTION_BYTES, .default_text = (text), .min = 1,               \
        .max = FRAG_GIB, .help = "requests are rounded up to a multiple of this power of two"      \
    }

#define GROW_OPTION                                                                                \
    {                                                                                              \
        .key = "grow", .type = FRAG_OPTION_BYTES, .default_text = "2MiB", .min = 1,                \
        .max = 1024 * FRAG_GIB, .help = "the range grows by at least this much"                    \
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
static const frag_option conte_options[] = {
    ALIGN_OPTION("8"), GROW_OPTION, SLI_OPTION, SEARCH_OPTION, {.key = NULL}};
static const frag_option half_fit_options[] = {ALIGN_OPTION("512"), GROW_OPTION, {.key = NULL}};

/* Classes of sizes are numbered through, 2^sli to each power of two; where that is finer than the
 * alignment some are never used. */
struct frag_policy {
    frag_block_space space;
    frag_free_link *links; /* of all holes, then of the heads: as in a free index */
    uint64_t align;
    uint32_t align_shift;
    uint32_t class_shift;
    uint32_t class_base;
    uint32_t first_head;
    bool searches_own;
    uint64_t summary;      /* bit w: words[w] is not 0 */
    uint64_t words[WORDS]; /* bit c of the whole: class c has a hole */
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
           ((size_t)records + CLASSES_MAX) * sizeof(frag_free_link);
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
    uint32_t number = class_of(policy, policy->space.blocks[hole].bytes);
    frag_free_link_behind(policy->links, policy->first_head + number, hole);
    policy->words[number / 64] |= (uint64_t)1 << (number % 64);
    policy->summary |= (uint64_t)1 << (number / 64);
}

static inline void take_out(frag_policy *policy, uint32_t hole)
{
    frag_free_link link = frag_free_unlink(policy->links, hole);
    if (link.next != 0 || link.previous < policy->first_head)
        return;
    uint32_t number = link.previous - policy->first_head;
    uint64_t word = policy->words[number / 64] & ~((uint64_t)1 << (number % 64));
    policy->words[number / 64] = word;
    if (word == 0)
        policy->summary &= ~((uint64_t)1 << (number / 64));
}

static inline bool find(const frag_policy *policy, uint64_t bytes, uint32_t *hole)
{
    uint32_t number = class_for(policy, bytes);
    uint32_t at = number / 64;
    uint64_t word = policy->words[at] & (~(uint64_t)0 << (number % 64));
    if (word == 0) {
        uint64_t above = policy->summary & (~(uint64_t)1 << at);
        if (above == 0)
            return false;
        at = frag_bit_low(above);
        word = policy->words[at];
    }
    *hole = policy->links[policy->first_head + at * 64 + frag_bit_low(word)].next;
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
    policy->first_head = policy->space.record_max;
    policy->links = frag_arena_take(setup->arena, (size_t)policy->first_head + class_count(sli),
                                    sizeof *policy->links);
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
    uint32_t place = policy->links[policy->first_head + class_of(policy, bytes)].next;
    while (place != 0 && policy->space.blocks[place].bytes < bytes)
        place = policy->links[place].next;
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
    frag_block_space *space = &policy->space;
    frag_block *blocks = space->blocks;
    FRAG_ASSERT(handle < space->record_count && blocks[handle].state == FRAG_BLOCK_BUSY);
    uint32_t hole = handle;
    uint32_t previous = blocks[handle].previous;
    if (blocks[previous].state == FRAG_BLOCK_HOLE) {
        take_out(policy, previous);
        blocks[previous].bytes += blocks[handle].bytes;
        frag_block_unlink(space, handle);
        hole = previous;
    }
    uint32_t next = blocks[hole].next;
    if (blocks[next].state == FRAG_BLOCK_HOLE) {
        take_out(policy, next);
        blocks[hole].bytes += blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    blocks[hole].state = FRAG_BLOCK_HOLE;
    insert(policy, hole);
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

static bool check_list(const frag_policy *policy, uint32_t number, uint64_t *listed_count,
                       frag_error *error)
{
    uint32_t before = policy->first_head + number;
    for (uint32_t place = policy->links[before].next; place != 0;
         before = place, place = policy->links[place].next) {
        const frag_block *block = &policy->space.blocks[place];
        if (place >= policy->space.record_count || block->state != FRAG_BLOCK_HOLE ||
            policy->links[place].previous != before || class_of(policy, block->bytes) != number ||
            ++*listed_count > policy->space.record_count)
            return frag_fail(error, FRAG_E_INPUT, "hole %u does not belong in list %u", place,
                             number);
    }
    bool is_marked = (policy->words[number / 64] >> (number % 64) & 1) != 0;
    return is_marked == (before != policy->first_head + number) ||
           frag_fail(error, FRAG_E_INPUT, "the bit of list %u is wrong", number);
}

static bool tlsf_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t listed_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error))
        return false;
    for (uint32_t number = 0; number < class_count(52 - policy->class_shift); number++)
        if (!check_list(policy, number, &listed_count, error))
            return false;
    for (uint32_t i = 0; i < WORDS; i++)
        if ((policy->words[i] != 0) != ((policy->summary >> i & 1) != 0))
            return frag_fail(error, FRAG_E_INPUT, "the bit of word %u is wrong", i);
    return listed_count == hole_count || frag_fail(error, FRAG_E_INPUT, "a hole is in no list");
}

static void tlsf_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, tlsf_alloc, tlsf_free);
}

#define TLSF_OPS                                                                                   \
    .arena_bytes = tlsf_arena_bytes, .alloc = tlsf_alloc, .replay = tlsf_replay,                   \
    .free = tlsf_free, .empty_cache = tlsf_empty_cache, .rounded = tlsf_rounded,                   \
    .walk = tlsf_walk, .check = tlsf_check

const frag_policy_ops frag_policy_tlsf = {
    .name = "tlsf",
    .summary = "two-level segregated fit: a good fit in constant time; ignores streams and pools",
    .source = "Masmano, Ripoll, Crespo, Real: TLSF, ECRTS 2004; tlsf.c 3.1",
    .bound = "quoted as that of best fit, about M n in the worst case",
    .options = tlsf_options,
    .create = tlsf_create,
    TLSF_OPS,
};

const frag_policy_ops frag_policy_tlsf_conte = {
    .name = "tlsf-conte",
    .summary = "TLSF with the lists of the common implementation for hosts: steps of 8 bytes up to "
               "256, then 32 to a power of two",
    .source = "M. Conte, github.com/mattconte/tlsf, tlsf.c 3.1",
    .bound = "as that of tlsf",
    .options = conte_options,
    .create = tlsf_create,
    TLSF_OPS,
};

const frag_policy_ops frag_policy_half_fit = {
    .name = "half-fit",
    .summary = "one list to a power of two, of which the newest hole is taken; ignores streams and "
               "pools",
    .source =
        "Ogasawara: An algorithm with constant execution time for dynamic storage allocation, "
        "RTCSA 1995",
    .bound = "at most 2 M (1 + ceil(log2 n)) (as quoted by o1heap)",
    .options = half_fit_options,
    .create = half_fit_create,
    TLSF_OPS,
};
