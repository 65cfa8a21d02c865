/* Two-level segregated fit. Holes hang in lists by size: one set of lists per power of two, each
 * cut into 2^sli equal steps; two levels of bitmaps find a list in constant time. A request is
 * rounded up to the next step, so that any hole of the list will do, and the newest is taken: a
 * good fit, not the best. Half fit is the same with one list to a power of two. Sources: Masmano,
 * Ripoll, Crespo, Real, ECRTS 2004; M. Conte's tlsf.c 3.1; Ogasawara, RTCSA 1995. Bound: that of
 * best fit; of half fit 2 M (1 + ceil(log2 n)). Ours differs in that memory is a range that grows
 * at its end; a hole there is extended, not skipped. */
#include "allocators/block_space.h"
#include "sim/base/bytes.h"

enum { OPTION_ALIGN, OPTION_GROW, OPTION_SLI, OPTION_SEARCH_OWN };

enum { FIRST_LEVELS = 64, SECOND_LEVELS_MAX = 64 };

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

#define SEARCH_OPTION(text)                                                                        \
    {                                                                                              \
        .key = "search_own", .type = FRAG_OPTION_FLAG, .default_text = (text),                     \
        .help = "before the range grows, the list that holes of the request's own size are in is " \
                "searched for one that fits"                                                       \
    }

static const frag_option tlsf_options[] = {
    ALIGN_OPTION("512"), GROW_OPTION, SLI_OPTION, SEARCH_OPTION("false"), {.key = NULL}};
static const frag_option conte_options[] = {
    ALIGN_OPTION("8"), GROW_OPTION, SLI_OPTION, SEARCH_OPTION("false"), {.key = NULL}};
static const frag_option vma_options[] = {
    ALIGN_OPTION("64"), GROW_OPTION, SLI_OPTION, SEARCH_OPTION("true"), {.key = NULL}};
static const frag_option half_fit_options[] = {ALIGN_OPTION("512"), GROW_OPTION, {.key = NULL}};

/* Neighbours in a list of holes. */
typedef struct list_links {
    uint32_t previous;
    uint32_t next;
} list_links;

typedef struct class_at {
    uint32_t first;
    uint32_t second;
} class_at;

struct frag_policy {
    frag_block_space space;
    list_links *links; /* by block */
    uint64_t align;
    uint32_t sli;
    uint32_t small_shift; /* below 1 << small_shift classes are equal steps of align */
    uint32_t align_shift;
    bool searches_own;
    uint64_t first_bits;
    uint64_t second_bits[FIRST_LEVELS];
    uint32_t heads[FIRST_LEVELS][SECOND_LEVELS_MAX];
};

static size_t tlsf_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    return sizeof(frag_policy) + 128 + frag_block_space_bytes(limits, FRAG_SPACE_GROWING) +
           (size_t)frag_block_space_records(limits, FRAG_SPACE_GROWING) * sizeof(list_links);
}

static inline class_at class_of(const frag_policy *policy, uint64_t bytes)
{
    if (bytes >> policy->small_shift == 0)
        return (class_at){0, (uint32_t)(bytes >> policy->align_shift)};
    uint32_t high = frag_bit_high(bytes);
    uint32_t second = (uint32_t)(bytes >> (high - policy->sli)) - (1u << policy->sli);
    return (class_at){high - policy->small_shift + 1, second};
}

static inline void insert(frag_policy *policy, uint32_t hole)
{
    class_at at = class_of(policy, policy->space.blocks[hole].bytes);
    uint32_t *head = &policy->heads[at.first][at.second];
    policy->links[hole] = (list_links){.previous = FRAG_BLOCK_NONE, .next = *head};
    if (*head != FRAG_BLOCK_NONE)
        policy->links[*head].previous = hole;
    *head = hole;
    policy->first_bits |= (uint64_t)1 << at.first;
    policy->second_bits[at.first] |= (uint64_t)1 << at.second;
}

static inline void remove_from(frag_policy *policy, uint32_t hole, class_at at)
{
    list_links links = policy->links[hole];
    if (links.next != FRAG_BLOCK_NONE)
        policy->links[links.next].previous = links.previous;
    if (links.previous != FRAG_BLOCK_NONE) {
        policy->links[links.previous].next = links.next;
        return;
    }
    policy->heads[at.first][at.second] = links.next;
    if (links.next != FRAG_BLOCK_NONE)
        return;
    policy->second_bits[at.first] &= ~((uint64_t)1 << at.second);
    if (policy->second_bits[at.first] == 0)
        policy->first_bits &= ~((uint64_t)1 << at.first);
}

static inline void take_out(frag_policy *policy, uint32_t hole)
{
    remove_from(policy, hole, class_of(policy, policy->space.blocks[hole].bytes));
}

static inline bool find(const frag_policy *policy, uint64_t bytes, class_at *at, uint32_t *hole)
{
    if (bytes >> policy->small_shift != 0)
        bytes += ((uint64_t)1 << (frag_bit_high(bytes) - policy->sli)) - 1;
    class_at least = class_of(policy, bytes);
    uint64_t second = policy->second_bits[least.first] & (~(uint64_t)0 << least.second);
    if (second == 0) {
        uint64_t first = policy->first_bits & (~(uint64_t)1 << least.first);
        if (first == 0)
            return false;
        least.first = frag_bit_low(first);
        second = policy->second_bits[least.first];
    }
    *at = (class_at){least.first, frag_bit_low(second)};
    *hole = policy->heads[at->first][at->second];
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
    policy->sli = (uint32_t)sli;
    policy->searches_own = searches_own;
    policy->small_shift = policy->align_shift + policy->sli;
    for (uint32_t i = 0; i < FIRST_LEVELS; i++)
        for (uint32_t j = 0; j < SECOND_LEVELS_MAX; j++)
            policy->heads[i][j] = FRAG_BLOCK_NONE;
    frag_block_space_setup shape = {.kind = FRAG_SPACE_GROWING,
                                    .align = align,
                                    .grow_bytes = values[OPTION_GROW].number,
                                    .hooks = &tlsf_hooks,
                                    .context = policy};
    if (!frag_block_space_create(&policy->space, setup, &shape, error))
        return NULL;
    policy->links = frag_arena_take(setup->arena, policy->space.record_max, sizeof *policy->links);
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
static bool find_own(const frag_policy *policy, uint64_t bytes, class_at *at, uint32_t *hole)
{
    *at = class_of(policy, bytes);
    uint32_t id = policy->heads[at->first][at->second];
    while (id != FRAG_BLOCK_NONE && policy->space.blocks[id].bytes < bytes)
        id = policy->links[id].next;
    *hole = id;
    return id != FRAG_BLOCK_NONE;
}

static bool tlsf_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint64_t bytes = frag_align_up(request->bytes, policy->align);
    uint32_t hole = 0;
    class_at at;
    if (FRAG_LIKELY(find(policy, bytes, &at, &hole)) ||
        (policy->searches_own && find_own(policy, bytes, &at, &hole)))
        remove_from(policy, hole, at);
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

static void tlsf_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    frag_block_space *space = &policy->space;
    FRAG_ASSERT(handle < space->record_count && space->blocks[handle].state == FRAG_BLOCK_BUSY);
    uint32_t hole = handle;
    uint32_t previous = space->blocks[handle].previous;
    if (space->blocks[previous].state == FRAG_BLOCK_HOLE) {
        take_out(policy, previous);
        space->blocks[previous].bytes += space->blocks[handle].bytes;
        frag_block_unlink(space, handle);
        hole = previous;
    }
    uint32_t next = space->blocks[hole].next;
    if (space->blocks[next].state == FRAG_BLOCK_HOLE) {
        take_out(policy, next);
        space->blocks[hole].bytes += space->blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    space->blocks[hole].state = FRAG_BLOCK_HOLE;
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

static bool check_list(const frag_policy *policy, class_at at, uint64_t *listed_count,
                       frag_error *error)
{
    uint32_t before = FRAG_BLOCK_NONE;
    for (uint32_t id = policy->heads[at.first][at.second]; id != FRAG_BLOCK_NONE;
         id = policy->links[id].next) {
        const frag_block *block = &policy->space.blocks[id];
        class_at own = class_of(policy, block->bytes);
        if (block->state != FRAG_BLOCK_HOLE || policy->links[id].previous != before ||
            own.first != at.first || own.second != at.second ||
            ++*listed_count > policy->space.record_count)
            return frag_fail(error, FRAG_E_INPUT, "hole %u does not belong in list %u, %u", id,
                             at.first, at.second);
        before = id;
    }
    bool is_marked = (policy->second_bits[at.first] >> at.second & 1) != 0;
    return is_marked == (before != FRAG_BLOCK_NONE) ||
           frag_fail(error, FRAG_E_INPUT, "the bit of list %u, %u is wrong", at.first, at.second);
}

static bool tlsf_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t listed_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error))
        return false;
    for (uint32_t i = 0; i < FIRST_LEVELS; i++) {
        for (uint32_t j = 0; j < SECOND_LEVELS_MAX; j++)
            if (!check_list(policy, (class_at){i, j}, &listed_count, error))
                return false;
        if ((policy->second_bits[i] != 0) != ((policy->first_bits >> i & 1) != 0))
            return frag_fail(error, FRAG_E_INPUT, "the first-level bit %u is wrong", i);
    }
    return listed_count == hole_count || frag_fail(error, FRAG_E_INPUT, "a hole is in no list");
}

#define TLSF_OPS                                                                                   \
    .arena_bytes = tlsf_arena_bytes, .alloc = tlsf_alloc, .free = tlsf_free,                       \
    .empty_cache = tlsf_empty_cache, .rounded = tlsf_rounded, .walk = tlsf_walk,                   \
    .check = tlsf_check

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

const frag_policy_ops frag_policy_tlsf_vma = {
    .name = "tlsf-vma",
    .summary = "TLSF with the lists of the Vulkan Memory Allocator, which searches one list before "
               "memory grows; in one range, not in its blocks",
    .source = "GPUOpen Vulkan Memory Allocator 3, VmaBlockMetadata_TLSF",
    .bound = "as that of tlsf",
    .options = vma_options,
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
