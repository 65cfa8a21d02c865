/* Sequential fits: every hole will do that is large enough; the policies differ only in which one
 * they take. Best fit takes the smallest, worst fit the largest, first fit the lowest address, next
 * fit the first at or after the end of the last grant. The low end is granted, the rest stays a
 * hole; on release a block merges with free neighbours at once. Ties break by the lowest address.
 * Source: Knuth, The Art of Computer Programming 1, section 2.5 (1968); Robson, Computer Journal
 * 20(3), 1977 for the bounds. Ours differs in where memory comes from: a range that grows at its
 * end by pages, or device segments. */
#include "allocators/block_space.h"
#include "allocators/free_index.h"
#include "allocators/index_audit.h"
#include "sim/base/bytes.h"

typedef enum search { SEARCH_BEST, SEARCH_FIRST, SEARCH_NEXT, SEARCH_WORST } search;

enum { OPTION_ALIGN, OPTION_SPACE, OPTION_GROW, OPTION_MIN_SPLIT, OPTION_MAX_SPLIT };

static const frag_option fit_options[] = {
    {.key = "align",
     .type = FRAG_OPTION_BYTES,
     .default_text = "512",
     .min = 1,
     .max = FRAG_GIB,
     .help = "requests are rounded up to a multiple of this power of two"},
    {.key = "space",
     .type = FRAG_OPTION_ENUM,
     .default_text = "growing",
     .choices = "growing|segments",
     .help =
         "growing: one address range mapped at its end; segments: device mallocs that never merge"},
    {.key = "grow",
     .type = FRAG_OPTION_BYTES,
     .default_text = "2MiB",
     .min = 1,
     .max = 1024 * FRAG_GIB,
     .help = "growing: least step; segments: least size, and the unit sizes are rounded up to"},
    {.key = "min_split",
     .type = FRAG_OPTION_BYTES,
     .default_text = "0",
     .min = 0,
     .max = FRAG_UNLIMITED,
     .help = "a rest smaller than this stays with the block instead of becoming a hole"},
    {.key = "max_split",
     .type = FRAG_OPTION_BYTES,
     .default_text = "unlimited",
     .min = 1,
     .max = FRAG_UNLIMITED,
     .help = "segments: a hole larger than this is never split and serves only requests larger "
             "than this"},
    {.key = NULL},
};

struct frag_policy {
    frag_block_space space;
    frag_free_index indexes[2]; /* [1]: holes above max_split */
    uint64_t align;
    uint64_t min_split; /* at least 1: an empty rest is no hole */
    uint64_t max_split;
    uint64_t rover; /* next fit: where the last grant ended */
    frag_free_index_store store;
};

static frag_space_kind kind_of(const frag_option_value *values)
{
    return values[OPTION_SPACE].number == 0 ? FRAG_SPACE_GROWING : FRAG_SPACE_SEGMENTS;
}

static size_t fit_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    frag_space_kind kind = kind_of(values);
    return sizeof(frag_policy) + 64 + frag_block_space_bytes(limits, kind) +
           frag_free_index_store_bytes(frag_block_space_records(limits, kind), 2, true);
}

static inline frag_free_index *index_for(frag_policy *policy, uint64_t bytes)
{
    return &policy->indexes[bytes > policy->max_split];
}

static void insert_hole(void *context, uint32_t hole)
{
    frag_policy *policy = context;
    const frag_block *block = &policy->space.blocks[hole];
    frag_free_index_insert(index_for(policy, block->bytes), hole, block->bytes, block->address);
}

static void remove_hole(void *context, uint32_t hole)
{
    frag_policy *policy = context;
    uint64_t bytes = policy->space.blocks[hole].bytes;
    frag_free_index_remove(index_for(policy, bytes), hole, bytes);
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
    frag_free_index_store_create(&policy->store, setup->arena, policy->space.record_max, 2,
                                 how == SEARCH_FIRST);
    policy->indexes[0].store = &policy->store;
    policy->indexes[1].store = &policy->store;
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

/* how is a constant of each caller, so that every policy gets a path of its own. */
static inline bool find(const frag_policy *policy, const frag_free_index *index, uint64_t bytes,
                        search how, uint32_t *hole)
{
    switch (how) {
    case SEARCH_BEST:
        return frag_free_index_best(index, bytes, hole);
    case SEARCH_FIRST:
        return frag_free_index_first(index, bytes, hole);
    case SEARCH_NEXT:
        return frag_free_index_next(index, bytes, policy->rover, hole);
    case SEARCH_WORST:
        return frag_free_index_worst(index, bytes, hole);
    }
    return false;
}

static inline bool alloc(frag_policy *policy, const frag_request *request, frag_grant *grant,
                         search how)
{
    uint64_t bytes = frag_align_up(request->bytes, policy->align);
    frag_free_index *index = index_for(policy, bytes);
    uint32_t hole = 0;
    bool is_indexed = find(policy, index, bytes, how, &hole);
    if (FRAG_UNLIKELY(!is_indexed) && !frag_block_space_grow(&policy->space, bytes, &hole))
        return false;
    frag_block *block = &policy->space.blocks[hole];
    uint64_t held = block->bytes;
    uint64_t rest = held - bytes;
    bool is_split = rest >= policy->min_split && bytes <= policy->max_split;
    uint32_t granted = hole;
    if (is_split) {
        granted = frag_block_cut(&policy->space, hole, bytes);
        if (is_indexed)
            frag_free_index_change(index, hole, held, rest, block->address);
        else
            insert_hole(policy, hole);
        block = &policy->space.blocks[granted];
    } else {
        if (is_indexed)
            frag_free_index_remove(index, hole, held);
        block->state = FRAG_BLOCK_BUSY;
    }
    *grant =
        (frag_grant){.address = block->address, .block_bytes = block->bytes, .handle = granted};
    if (how == SEARCH_NEXT)
        policy->rover = block->address + block->bytes;
    return true;
}

static bool alloc_best(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, SEARCH_BEST);
}

static bool alloc_first(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, SEARCH_FIRST);
}

static bool alloc_next(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, SEARCH_NEXT);
}

static bool alloc_worst(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    return alloc(policy, request, grant, SEARCH_WORST);
}

/* Gives a hole that an index holds a new start and size. */
static inline void resize_hole(frag_policy *policy, uint32_t hole, uint64_t address, uint64_t bytes)
{
    frag_block *block = &policy->space.blocks[hole];
    uint64_t before = block->bytes;
    frag_free_index *from = index_for(policy, before);
    frag_free_index *to = index_for(policy, bytes);
    block->address = address;
    block->bytes = bytes;
    if (from == to) {
        frag_free_index_change(from, hole, before, bytes, address);
    } else {
        frag_free_index_remove(from, hole, before);
        frag_free_index_insert(to, hole, bytes, address);
    }
}

static void fit_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    frag_block_space *space = &policy->space;
    FRAG_ASSERT(handle < space->record_count && space->blocks[handle].state == FRAG_BLOCK_BUSY);
    frag_block *block = &space->blocks[handle];
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
            frag_free_index_remove(index_for(policy, next->bytes), after, next->bytes);
            frag_block_unlink(space, after);
        }
        resize_hole(policy, hole, address, bytes);
    } else if (next->state == FRAG_BLOCK_HOLE) {
        uint32_t hole = block->next;
        bytes += next->bytes;
        frag_block_unlink(space, handle);
        resize_hole(policy, hole, address, bytes);
    } else {
        block->state = FRAG_BLOCK_HOLE;
        frag_free_index_insert(index_for(policy, bytes), handle, bytes, address);
    }
    /* A hole that swallowed the rover's place is where next fit goes on. */
    if (policy->rover - address < bytes)
        policy->rover = address;
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

static bool fit_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error))
        return false;
    frag_index_audit audit = {.blocks = policy->space.blocks, .state = FRAG_BLOCK_HOLE};
    for (uint32_t i = 0; i < 2; i++)
        if (!frag_index_audit_take(&audit, &policy->indexes[i], i, error))
            return false;
    if (audit.is_wrong || audit.count != hole_count)
        return frag_fail(error, FRAG_E_INPUT, "the free index and the %llu holes differ",
                         (unsigned long long)hole_count);
    return true;
}

#define FIT_OPS                                                                                    \
    .options = fit_options, .arena_bytes = fit_arena_bytes, .free = fit_free,                      \
    .empty_cache = fit_empty_cache, .rounded = fit_rounded, .walk = fit_walk, .check = fit_check

const frag_policy_ops frag_policy_best_fit = {
    .name = "best-fit",
    .summary = "the smallest hole that is large enough, with coalescing; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5",
    .bound = "the worst case is at least M n - O(M + n^2) (Knuth, exercise 2.5-42)",
    .create = create_best,
    .alloc = alloc_best,
    FIT_OPS,
};

const frag_policy_ops frag_policy_first_fit = {
    .name = "first-fit",
    .summary = "the lowest hole that is large enough, with coalescing; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5",
    .bound = "at most M H(n) / ln 2, about M log2 n (Robson, Computer Journal 20(3), 1977)",
    .create = create_first,
    .alloc = alloc_first,
    FIT_OPS,
};

const frag_policy_ops frag_policy_next_fit = {
    .name = "next-fit",
    .summary =
        "the first hole after the last grant that is large enough; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5, exercise 6",
    .bound = "",
    .create = create_next,
    .alloc = alloc_next,
    FIT_OPS,
};

const frag_policy_ops frag_policy_worst_fit = {
    .name = "worst-fit",
    .summary = "the largest hole, with coalescing; ignores streams and pools",
    .source = "Knuth, The Art of Computer Programming 1, section 2.5, exercise 5",
    .bound = "",
    .create = create_worst,
    .alloc = alloc_worst,
    FIT_OPS,
};
