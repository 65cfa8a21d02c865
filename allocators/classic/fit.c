/* Sequential fits: every hole will do that is large enough; the policies differ only in which one
 * they take. Best fit takes the smallest, worst fit the largest, first fit the lowest address, next
 * fit the first at or after the end of the last grant. The low end is granted, the remainder stays
 * a hole; on release a block is coalesced with free neighbours at once. Ties break by the lowest
 * address. Source: Knuth, The Art of Computer Programming 1, section 2.5 (1968); Robson, Computer
 * Journal 20(3), 1977 for the bounds. Ours differs in where memory comes from: a range that grows
 * at its end by pages, or device segments. */
#include "allocators/index/address_index.h"
#include "allocators/index/block_space.h"
#include "allocators/index/free_index.h"
#include "allocators/index/index_audit.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"

typedef enum search { SEARCH_BEST, SEARCH_FIRST, SEARCH_NEXT, SEARCH_WORST } search;

/* A constant of each caller, so that every policy gets a path of its own. */
typedef struct way {
    search how;
    bool has_limit; /* max_split may be set */
} way;

enum { OPTION_ALIGN, OPTION_SPACE, OPTION_GROW, OPTION_MIN_SPLIT, OPTION_MAX_SPLIT };

static const frag_option fit_options[] = {
    {"align", FRAG_OPTION_BYTES, "512", .min = 1, .max = FRAG_GIB,
     .help = "requests are rounded up to a multiple of this power of two"},
    {"space", FRAG_OPTION_ENUM, "growing", .choices = "growing|segments",
     .help =
         "growing: one address range mapped at its end; segments: device mallocs that never merge"},
    {"grow", FRAG_OPTION_BYTES, "2MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "growing: steps, where there is room; segments: their sizes are multiples of this"},
    {"min_split", FRAG_OPTION_BYTES, "0", .min = 0, .max = FRAG_UNLIMITED,
     .help = "a rest smaller than this stays with the block instead of becoming a hole"},
    {"max_split", FRAG_OPTION_BYTES, "unlimited", .min = 1, .max = FRAG_UNLIMITED,
     .help = "segments: a hole larger than this is never split and serves only requests larger "
             "than this"},
    {.key = NULL},
};

/* Best fit looks holes up by size, in tables that stay open, the others by address. [1]: holes
 * above max_split */
struct frag_policy {
    frag_block_space space;
    search how;
    frag_free_index by_size[2];
    frag_address_index by_address[2];
    uint64_t align;
    uint64_t min_split; /* at least 1: an empty rest is no hole */
    uint64_t max_split;
    uint64_t rover; /* next fit: where the last grant ended */
    frag_free_index_store size_store;
    frag_address_index_store address_store;
};

static frag_space_kind kind_of(const frag_option_value *values)
{
    return values[OPTION_SPACE].number == 0 ? FRAG_SPACE_GROWING : FRAG_SPACE_SEGMENTS;
}

static inline bool is_by_size(search how)
{
    return how == SEARCH_BEST;
}

static size_t space_bytes(const frag_policy_limits *limits, frag_space_kind kind)
{
    return sizeof(frag_policy) + 64 + frag_block_space_bytes(limits, kind);
}

static size_t size_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    frag_space_kind kind = kind_of(values);
    return space_bytes(limits, kind) +
           frag_free_index_store_bytes(frag_block_space_records(limits, kind), 2);
}

static size_t address_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    frag_space_kind kind = kind_of(values);
    return space_bytes(limits, kind) +
           frag_address_index_store_bytes(frag_block_space_records(limits, kind), 2);
}

/* ---- holes */

static inline uint32_t index_of(const frag_policy *policy, uint64_t bytes, way of)
{
    return of.has_limit && bytes > policy->max_split;
}

/* The record is that of a hole, and no index holds it yet. */
FRAG_INLINE void add_hole(frag_policy *policy, uint32_t hole, way of)
{
    const frag_block *block = &policy->space.blocks[hole];
    uint32_t i = index_of(policy, block->bytes, of);
    if (is_by_size(of.how))
        frag_free_table_insert(&policy->size_store, policy->by_size[i].heads, hole, block->bytes);
    else
        frag_address_index_insert(&policy->by_address[i], hole);
}

/* bytes: those the index knows. */
FRAG_INLINE void take_hole(frag_policy *policy, uint32_t hole, uint64_t bytes, way of)
{
    uint32_t i = index_of(policy, bytes, of);
    if (is_by_size(of.how))
        (void)frag_free_table_take_out(&policy->size_store, policy->by_size[i].heads, hole);
    else
        frag_address_index_remove(&policy->by_address[i], hole);
}

/* The record of a hole that the index i holds has a new start, and bytes. */
FRAG_INLINE void change_hole(frag_policy *policy, uint32_t i, uint32_t hole, uint64_t bytes, way of)
{
    if (is_by_size(of.how))
        frag_free_table_change(&policy->size_store, policy->by_size[i].heads, hole, bytes);
    else
        frag_address_index_change(&policy->by_address[i], hole);
}

static void insert_hole(void *context, uint32_t hole)
{
    frag_policy *policy = context;
    add_hole(policy, hole, (way){policy->how, true});
}

static void remove_hole(void *context, uint32_t hole)
{
    frag_policy *policy = context;
    take_hole(policy, hole, policy->space.blocks[hole].bytes, (way){policy->how, true});
}

static const frag_block_space_hooks fit_hooks = {.insert = insert_hole, .remove = remove_hole};

static bool check_options(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t align = values[OPTION_ALIGN].number;
    uint64_t max_split = values[OPTION_MAX_SPLIT].number;
    uint64_t grow = values[OPTION_GROW].number;
    uint64_t page = setup->device->page_bytes;
    if (!frag_is_power_of_two(align))
        return frag_fail(error, FRAG_E_USAGE, "align=%s is not a power of two",
                         values[OPTION_ALIGN].text);
    if (page % align != 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "align=%s does not divide the device's pages of %llu bytes",
                         values[OPTION_ALIGN].text, (unsigned long long)page);
    if (max_split == FRAG_UNLIMITED)
        return true;
    if (kind_of(values) != FRAG_SPACE_SEGMENTS)
        return frag_fail(error, FRAG_E_USAGE,
                         "max_split needs space=segments: a growing range has no whole segments");
    if (max_split % grow != 0 || max_split % page != 0)
        return frag_fail(
            error, FRAG_E_USAGE,
            "max_split=%s is not a multiple of grow=%s and of the device's pages of %llu bytes",
            values[OPTION_MAX_SPLIT].text, values[OPTION_GROW].text, (unsigned long long)page);
    return true;
}

static frag_policy *create(const frag_policy_setup *setup, search how, frag_error *error)
{
    if (!check_options(setup, error))
        return NULL;
    const frag_option_value *values = setup->values;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->align = values[OPTION_ALIGN].number;
    policy->min_split = values[OPTION_MIN_SPLIT].number == 0 ? 1 : values[OPTION_MIN_SPLIT].number;
    policy->max_split = values[OPTION_MAX_SPLIT].number;
    frag_block_space_setup shape = {.kind = kind_of(values),
                                    .align = policy->align,
                                    .grow_bytes = values[OPTION_GROW].number,
                                    .hooks = &fit_hooks,
                                    .context = policy};
    if (!frag_block_space_create(&policy->space, setup, &shape, error))
        return NULL;
    policy->how = how;
    uint32_t record_max = policy->space.record_max;
    if (is_by_size(how)) {
        frag_free_index_store_create(&policy->size_store, setup->arena, policy->space.blocks,
                                     record_max, 2, false);
        frag_free_table_open(&policy->size_store, &policy->by_size[0]);
        if (policy->max_split != FRAG_UNLIMITED)
            frag_free_table_open(&policy->size_store, &policy->by_size[1]);
    } else {
        frag_address_index_store_create(&policy->address_store, setup->arena, policy->space.blocks,
                                        record_max, 2, policy->align);
    }
    for (uint32_t i = 0; i < 2; i++)
        policy->by_address[i] = (frag_address_index){&policy->address_store, FRAG_ADDRESS_NONE};
    return policy;
}

static frag_policy *create_best(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, SEARCH_BEST, error);
}

static frag_policy *create_first(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, SEARCH_FIRST, error);
}

static frag_policy *create_next(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, SEARCH_NEXT, error);
}

static frag_policy *create_worst(const frag_policy_setup *setup, frag_error *error)
{
    return create(setup, SEARCH_WORST, error);
}

/* 0: no hole of the index will do. */
FRAG_INLINE uint32_t find(const frag_policy *policy, uint32_t i, uint64_t bytes, way of)
{
    uint32_t hole = 0;
    bool is_there = false;
    switch (of.how) {
    case SEARCH_BEST:
        return frag_free_place_best(&policy->size_store, policy->by_size[i].heads, bytes);
    case SEARCH_FIRST:
        is_there = frag_address_index_first(&policy->by_address[i], bytes, &hole);
        break;
    case SEARCH_NEXT:
        is_there = frag_address_index_next(&policy->by_address[i], bytes, policy->rover, &hole);
        break;
    case SEARCH_WORST:
        is_there = frag_address_index_largest(&policy->by_address[i], bytes, &hole);
        break;
    }
    return is_there ? hole : 0;
}

FRAG_INLINE bool is_to_split(const frag_policy *policy, uint64_t bytes, uint64_t rest, way of)
{
    return rest >= policy->min_split && (!of.has_limit || bytes <= policy->max_split);
}

/* A hole that no index holds, when none of theirs will do; the rest of it is put into one. 0: the
 * device has no room. */
static FRAG_NOINLINE uint32_t take_fresh(frag_policy *policy, uint64_t bytes)
{
    const way of = {policy->how, true};
    uint32_t hole = 0;
    if (!frag_block_space_grow(&policy->space, bytes, &hole))
        return 0;
    frag_block *block = &policy->space.blocks[hole];
    if (!is_to_split(policy, bytes, block->bytes - bytes, of)) {
        block->state = FRAG_BLOCK_BUSY;
        return hole;
    }
    uint32_t granted = frag_block_cut(&policy->space, hole, bytes);
    add_hole(policy, hole, of);
    return granted;
}

FRAG_INLINE uint32_t take(frag_policy *policy, uint64_t bytes, way of)
{
    uint32_t i = index_of(policy, bytes, of);
    uint32_t hole = find(policy, i, bytes, of);
    if (FRAG_UNLIKELY(hole == 0))
        return take_fresh(policy, bytes);
    frag_block *block = &policy->space.blocks[hole];
    uint64_t held = block->bytes;
    uint64_t rest = held - bytes;
    if (!is_to_split(policy, bytes, rest, of)) {
        take_hole(policy, hole, held, of);
        block->state = FRAG_BLOCK_BUSY;
        return hole;
    }
    uint32_t granted = frag_block_cut(&policy->space, hole, bytes);
    change_hole(policy, i, hole, rest, of);
    return granted;
}

FRAG_INLINE bool alloc(frag_policy *policy, const frag_request *request, frag_grant *grant, way of)
{
    uint32_t granted = take(policy, frag_align_up(request->bytes, policy->align), of);
    if (FRAG_UNLIKELY(granted == 0))
        return false;
    const frag_block *block = &policy->space.blocks[granted];
    *grant =
        (frag_grant){.address = block->address, .block_bytes = block->bytes, .handle = granted};
    if (of.how == SEARCH_NEXT)
        policy->rover = block->address + block->bytes;
    return true;
}

static bool alloc_best(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, (way){SEARCH_BEST, true});
}

FRAG_INLINE bool alloc_best_plainly(frag_policy *policy, const frag_request *request,
                                    frag_grant *grant)
{
    return alloc(policy, request, grant, (way){SEARCH_BEST, false});
}

static bool alloc_first(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, (way){SEARCH_FIRST, true});
}

FRAG_INLINE bool alloc_first_plainly(frag_policy *policy, const frag_request *request,
                                     frag_grant *grant)
{
    return alloc(policy, request, grant, (way){SEARCH_FIRST, false});
}

static bool alloc_next(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, (way){SEARCH_NEXT, true});
}

static bool alloc_worst(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, (way){SEARCH_WORST, true});
}

/* Gives a hole that an index holds a new start and size. */
FRAG_INLINE void resize_hole(frag_policy *policy, uint32_t hole, uint64_t address, uint64_t bytes,
                             way of)
{
    frag_block *block = &policy->space.blocks[hole];
    uint64_t before = block->bytes;
    block->address = address;
    block->bytes = bytes;
    uint32_t i = index_of(policy, before, of);
    if (i == index_of(policy, bytes, of)) {
        change_hole(policy, i, hole, bytes, of);
    } else {
        take_hole(policy, hole, before, of);
        add_hole(policy, hole, of);
    }
}

FRAG_INLINE void release(frag_policy *policy, frag_handle handle, way of)
{
    frag_block_space *space = &policy->space;
    frag_block *block = &space->blocks[handle];
    FRAG_ASSERT(block->state == FRAG_BLOCK_BUSY);
    const frag_block *previous = &space->blocks[block->previous];
    const frag_block *next = &space->blocks[block->next];
    uint64_t address = block->address;
    uint64_t bytes = block->bytes;
    if (previous->state == FRAG_BLOCK_HOLE) {
        uint32_t hole = block->previous;
        uint32_t after = block->next;
        bytes += previous->bytes;
        address = previous->address;
        frag_block_unlink(space, handle);
        if (next->state == FRAG_BLOCK_HOLE) {
            bytes += next->bytes;
            take_hole(policy, after, next->bytes, of);
            frag_block_unlink(space, after);
        }
        resize_hole(policy, hole, address, bytes, of);
    } else if (next->state == FRAG_BLOCK_HOLE) {
        uint32_t hole = block->next;
        bytes += next->bytes;
        frag_block_unlink(space, handle);
        resize_hole(policy, hole, address, bytes, of);
    } else {
        block->state = FRAG_BLOCK_HOLE;
        add_hole(policy, handle, of);
    }
    /* Next fit continues at the hole that swallowed the rover's place. */
    if (of.how == SEARCH_NEXT && policy->rover - address < bytes)
        policy->rover = address;
}

static void free_by_size(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    release(policy, handle, (way){SEARCH_BEST, true});
}

FRAG_INLINE void free_by_size_plainly(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    release(policy, handle, (way){SEARCH_BEST, false});
}

static void free_first(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    release(policy, handle, (way){SEARCH_FIRST, true});
}

FRAG_INLINE void free_first_plainly(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    release(policy, handle, (way){SEARCH_FIRST, false});
}

static void free_next(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    release(policy, handle, (way){SEARCH_NEXT, true});
}

static void fit_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    frag_block_space_trim(&policy->space);
}

static uint64_t fit_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_align_up(bytes, policy->align);
}

static void fit_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_block_space_walk(&policy->space, visit, context);
}

/* Whether the index of that number may hold the hole. */
static bool belongs(const void *context, uint32_t id, uint32_t number)
{
    const frag_policy *policy = context;
    return index_of(policy, policy->space.blocks[id].bytes, (way){policy->how, true}) == number;
}

static bool fit_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error))
        return false;
    frag_index_audit audit = {.blocks = policy->space.blocks,
                              .state = FRAG_BLOCK_HOLE,
                              .belongs = belongs,
                              .context = policy};
    for (uint32_t i = 0; i < 2; i++)
        if (is_by_size(policy->how)
                ? !frag_index_audit_take(&audit, &policy->size_store, &policy->by_size[i], i, error)
                : !frag_index_audit_take_by_address(&audit, &policy->by_address[i], i, error))
            return false;
    if (audit.is_wrong || audit.count != hole_count)
        return frag_fail(error, FRAG_E_INPUT, "the free index and the %llu holes differ",
                         (unsigned long long)hole_count);
    return true;
}

/* Without max_split, as most are. */
static void replay_best(frag_replay *replay, uint64_t end)
{
    if (replay->policy->max_split == FRAG_UNLIMITED)
        frag_replay_loop(replay, end, alloc_best_plainly, free_by_size_plainly);
    else
        frag_replay_loop(replay, end, alloc_best, free_by_size);
}

static void replay_first(frag_replay *replay, uint64_t end)
{
    if (replay->policy->max_split == FRAG_UNLIMITED)
        frag_replay_loop(replay, end, alloc_first_plainly, free_first_plainly);
    else
        frag_replay_loop(replay, end, alloc_first, free_first);
}

#define FIT_OPS                                                                                    \
    .options = fit_options, .empty_cache = fit_empty_cache, .rounded = fit_rounded,                \
    .walk = fit_walk, .check = fit_check

/* But for which hole it is. */
#define FIT_RULES                                                                                  \
    .rounding = FRAG_RULE_TO_ALIGN,                                                                \
    .cuts = "unless the remainder is below min_split; the low end is handed out. With max_split, " \
            "larger holes are not split and serve only requests above it",                         \
    .joins = "with free neighbours of the range or of its segment, at once",                       \
    .grows = FRAG_RULE_MAPPED_AT_ITS_END                                                           \
        "Or device mallocs in multiples of grow (space=segments). Free memory at the end, or all " \
        "free segments, goes back on empty_cache and before a request fails; then the device is "  \
        "asked again",                                                                             \
    .streams = FRAG_RULE_IGNORED

static const frag_policy_rules best_fit_rules = {
    .takes = "the smallest hole that is large enough; of equal ones the lowest",
    FIT_RULES,
};

/* Searches know sizes and addresses of holes alone, but for the rover of next fit. */
static bool fit_shows_all(const frag_policy *policy)
{
    return policy->how != SEARCH_NEXT;
}

static const frag_policy_engine best_fit_engine = {.replay = replay_best,
                                                   .shows_all = fit_shows_all};

const frag_policy_ops frag_policy_best_fit = {
    .name = "best-fit",
    .summary = "the smallest hole that is large enough, with coalescing; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5",
    .rules = &best_fit_rules,
    .bound = "in one range, requests of 1 to n units, at most M in use: the worst case is at least "
             "M n - O(M + n^2) (Knuth, exercise 2.5-42)",
    .arena_bytes = size_arena_bytes,
    .create = create_best,
    .alloc = alloc_best,
    .free = free_by_size,
    FIT_OPS,
    .engine = &best_fit_engine,
};

static const frag_policy_rules first_fit_rules = {
    .takes = "the lowest hole that is large enough",
    FIT_RULES,
};

static const frag_policy_engine first_fit_engine = {.replay = replay_first,
                                                    .shows_all = fit_shows_all};

const frag_policy_ops frag_policy_first_fit = {
    .name = "first-fit",
    .summary = "the lowest hole that is large enough, with coalescing; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5",
    .rules = &first_fit_rules,
    .bound = "in one range, requests of 1 to n units, at most M in use: at most M H(n) / ln 2, "
             "H(n) = 1 + 1/2 + ... + 1/n, about M log2 n (Robson, Computer Journal 20(3), 1977)",
    .arena_bytes = address_arena_bytes,
    .create = create_first,
    .alloc = alloc_first,
    .free = free_first,
    FIT_OPS,
    .engine = &first_fit_engine,
};

static const frag_policy_rules next_fit_rules = {
    .takes = "the first hole that is large enough, searching from the end of the last grant (or "
             "the start of the hole that now covers it), then from the start of memory",
    FIT_RULES,
};

const frag_policy_ops frag_policy_next_fit = {
    .name = "next-fit",
    .summary =
        "the first hole after the last grant that is large enough; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5, exercise 6",
    .rules = &next_fit_rules,
    .bound = "",
    .arena_bytes = address_arena_bytes,
    .create = create_next,
    .alloc = alloc_next,
    .free = free_next,
    FIT_OPS,
};

static const frag_policy_rules worst_fit_rules = {
    .takes = "the largest hole; of equal ones the lowest",
    FIT_RULES,
};

static const frag_policy_engine worst_fit_engine = {.shows_all = fit_shows_all};

const frag_policy_ops frag_policy_worst_fit = {
    .name = "worst-fit",
    .summary = "the largest hole, with coalescing; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5, exercise 5",
    .rules = &worst_fit_rules,
    .bound = "",
    .arena_bytes = address_arena_bytes,
    .create = create_worst,
    .alloc = alloc_worst,
    .free = free_first,
    FIT_OPS,
    .engine = &worst_fit_engine,
};
