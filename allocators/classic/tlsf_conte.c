/* The common implementation of two-level segregated fit: 32 lists to a power of two, exact ones of
 * 8 bytes below 256. It keeps its records in the memory itself: before every block lie 8 bytes with
 * its size, and a block or hole has at least 24. Source: M. Conte, tlsf.c 3.1 (deff9ab), of the
 * papers that tlsf.c names. Bound: as that of tlsf. Ours differs in that the 8 bytes count as the
 * end of the block before, and that without a size the range grows at its end. */
#include "allocators/index/bit_lists.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"

#define UNIT 8u         /* of sizes and addresses */
#define RECORD_BYTES 8u /* before a block: its size */
#define LEAST_BYTES 32u /* of a block or hole, with the record behind it */
#define GAP_LEAST 32u   /* before a block that is aligned to more than the unit */
#define POOL_MAX (4 * FRAG_GIB)
#define CLASS_SHIFT 47u /* a double's exponent and 5 bits of its fraction stay */
#define CLASS_BASE (1023u << 5)

enum { OPTION_SIZE, OPTION_ALIGN, OPTION_GROW };

static const frag_option conte_options[] = {
    {"size", FRAG_OPTION_BYTES, "unlimited", .min = 40, .max = FRAG_UNLIMITED,
     .help = "bytes of the pool, one device malloc at the start; unlimited: a range that grows"},
    {"align", FRAG_OPTION_BYTES, "8", .min = 1, .max = FRAG_GIB,
     .help = "power of two; above 8 every request is a tlsf_memalign"},
    {"grow", FRAG_OPTION_BYTES, "2MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "the range grows by at least this much; without size"},
    {.key = NULL}};

struct frag_policy {
    frag_block_space space;
    frag_bit_lists lists;
    uint64_t align;
    uint64_t address; /* of the pool; it has one record at its start */
    uint64_t bytes;   /* of the pool; 0: a range that grows */
};

static size_t conte_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    uint32_t records = frag_block_space_records(limits, FRAG_SPACE_GROWING);
    return sizeof(frag_policy) + 256 + frag_block_space_bytes(limits, FRAG_SPACE_GROWING) +
           ((size_t)records + FRAG_BIT_LIST_MAX) * sizeof(frag_free_link);
}

/* Sizes are multiples of the unit below 2^53: their doubles are exact, and the lists below 256
 * bytes too. */
static inline uint32_t class_at(uint64_t bytes, uint64_t addend)
{
    uint64_t bits = frag_double_bits((bytes - RECORD_BYTES) / UNIT);
    return (uint32_t)((bits + addend) >> CLASS_SHIFT) - CLASS_BASE;
}

static inline uint32_t class_of(uint64_t bytes)
{
    return class_at(bytes, 0);
}

/* The first class of which every hole has so many bytes. */
static inline uint32_t class_for(uint64_t bytes)
{
    return class_at(bytes, ((uint64_t)1 << CLASS_SHIFT) - 1);
}

/* What is left of the end of a range that gave pages back may be too small for a hole of a list. */
static inline bool is_listed(const frag_policy *policy, uint32_t hole)
{
    return policy->space.blocks[hole].bytes >= LEAST_BYTES;
}

static inline void insert(frag_policy *policy, uint32_t hole)
{
    if (FRAG_LIKELY(is_listed(policy, hole)))
        frag_bit_list_insert(&policy->lists, class_of(policy->space.blocks[hole].bytes), hole);
}

static inline void take_out(frag_policy *policy, uint32_t hole)
{
    if (FRAG_LIKELY(is_listed(policy, hole)))
        frag_bit_list_take_out(&policy->lists, hole);
}

static void insert_hole(void *context, uint32_t hole)
{
    insert(context, hole);
}

static void remove_hole(void *context, uint32_t hole)
{
    take_out(context, hole);
}

static const frag_block_space_hooks conte_hooks = {.insert = insert_hole, .remove = remove_hole};

/* The pool's first record belongs to no block, and up to 7 bytes behind its last one to nobody. */
static bool add_pool(frag_policy *policy, const frag_policy_setup *setup, uint64_t size,
                     frag_error *error)
{
    frag_device_for_all(setup->device);
    if (frag_device_malloc(setup->device, size, &policy->address) != FRAG_DEVICE_OK)
        return frag_fail(error, FRAG_E_USAGE, "the device has no room for size=%s",
                         setup->values[OPTION_SIZE].text);
    policy->bytes = size;
    frag_block_space_create_bare(&policy->space, setup,
                                 frag_block_space_records(&setup->limits, FRAG_SPACE_GROWING));
    policy->space.may_adjoin = false;
    uint64_t address = policy->address + RECORD_BYTES;
    uint64_t bytes = (size - RECORD_BYTES) / UNIT * UNIT;
    uint32_t header = frag_block_space_add_segment(&policy->space, address, bytes);
    (void)frag_block_space_append_hole(&policy->space, header, address, bytes);
    return true;
}

static bool add_range(frag_policy *policy, const frag_policy_setup *setup, frag_error *error)
{
    if (setup->device->page_bytes % UNIT != 0)
        return frag_fail(error, FRAG_E_USAGE,
                         "blocks of 8 bytes do not fill the device's pages of %llu bytes",
                         (unsigned long long)setup->device->page_bytes);
    /* A range may need so much more for each request than what it asks for. */
    frag_block_space_setup shape = {.kind = FRAG_SPACE_GROWING,
                                    .align = 2 * (policy->align + GAP_LEAST + LEAST_BYTES),
                                    .grow_bytes = setup->values[OPTION_GROW].number,
                                    .hooks = &conte_hooks,
                                    .context = policy};
    return frag_block_space_create(&policy->space, setup, &shape, error);
}

static frag_policy *conte_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t size = values[OPTION_SIZE].number;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->align = values[OPTION_ALIGN].number;
    if (!frag_is_power_of_two(policy->align)) {
        frag_fail(error, FRAG_E_USAGE, "align=%s is not a power of two", values[OPTION_ALIGN].text);
        return NULL;
    }
    if (size != FRAG_UNLIMITED && size > POOL_MAX) {
        frag_fail(error, FRAG_E_USAGE, "size=%s is more than 4 GiB, the most of the library",
                  values[OPTION_SIZE].text);
        return NULL;
    }
    if (!(size == FRAG_UNLIMITED ? add_range(policy, setup, error)
                                 : add_pool(policy, setup, size, error)))
        return NULL;
    uint32_t first_head = policy->space.record_max;
    policy->lists.first_head = first_head;
    policy->lists.links = frag_arena_take(setup->arena, (size_t)first_head + FRAG_BIT_LIST_MAX,
                                          sizeof *policy->lists.links);
    if (policy->bytes != 0)
        insert(policy, policy->space.blocks[policy->space.first_header].next);
    return policy;
}

/* With the record behind it. */
static uint64_t conte_rounded(const frag_policy *policy, uint64_t bytes)
{
    (void)policy;
    uint64_t rounded = frag_align_up(bytes, UNIT) + RECORD_BYTES;
    return rounded > LEAST_BYTES ? rounded : LEAST_BYTES;
}

/* A hole in no list any more, of at least so many bytes. */
static inline bool find(frag_policy *policy, uint64_t bytes, uint32_t *hole)
{
    uint32_t number = class_for(bytes);
    if (FRAG_LIKELY(frag_bit_list_from(&policy->lists, number, &number))) {
        *hole = frag_bit_list_first(&policy->lists, number);
        take_out(policy, *hole);
        return true;
    }
    return policy->bytes == 0 && frag_block_space_grow(&policy->space, bytes, hole);
}

/* A larger hole, whose low end goes back to the lists: it has room for a hole of its own before the
 * aligned place, where there must be one. */
static bool find_aligned(frag_policy *policy, uint64_t bytes, uint32_t *hole)
{
    uint64_t align = policy->align;
    uint64_t wanted = frag_align_up(bytes - RECORD_BYTES + align + GAP_LEAST, align) + RECORD_BYTES;
    if (!find(policy, wanted, hole))
        return false;
    uint64_t address = policy->space.blocks[*hole].address;
    uint64_t aligned = frag_align_up(address, align);
    if (aligned != address && aligned - address < GAP_LEAST) {
        uint64_t missing = GAP_LEAST - (aligned - address);
        aligned = frag_align_up(aligned + missing, align);
    }
    if (aligned != address) {
        uint32_t before = frag_block_cut(&policy->space, *hole, aligned - address);
        policy->space.blocks[before].state = FRAG_BLOCK_HOLE;
        insert(policy, before);
    }
    return true;
}

FRAG_INLINE bool conte_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    frag_block *blocks = policy->space.blocks;
    uint64_t bytes = conte_rounded(policy, request->bytes);
    uint32_t hole = 0;
    if (!(FRAG_LIKELY(policy->align <= UNIT) ? find(policy, bytes, &hole)
                                             : find_aligned(policy, bytes, &hole)))
        return false;
    uint32_t granted = hole;
    if (blocks[hole].bytes >= bytes + LEAST_BYTES) {
        granted = frag_block_cut(&policy->space, hole, bytes);
        insert(policy, hole);
    } else {
        blocks[hole].state = FRAG_BLOCK_BUSY;
    }
    *grant = (frag_grant){.address = blocks[granted].address,
                          .block_bytes = blocks[granted].bytes,
                          .handle = granted};
    return true;
}

FRAG_INLINE void conte_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    insert(policy, frag_block_release(&policy->space, handle, remove_hole, policy));
}

static void conte_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    if (policy->bytes == 0)
        frag_block_space_trim(&policy->space);
}

typedef struct pool_visit {
    const frag_policy *policy;
    frag_span_visitor *visit;
    void *context;
} pool_visit;

/* The pool is a little larger at both ends than what the space knows of it. */
static void visit_in_pool(void *context, const frag_span *span)
{
    const pool_visit *pool = context;
    const frag_policy *policy = pool->policy;
    if (span->kind != FRAG_SPAN_SEGMENT) {
        pool->visit(pool->context, span);
        return;
    }
    frag_span whole = {
        .kind = FRAG_SPAN_SEGMENT, .address = policy->address, .bytes = policy->bytes};
    frag_span record = {.kind = FRAG_SPAN_HOLE, .address = policy->address, .bytes = RECORD_BYTES};
    pool->visit(pool->context, &whole);
    pool->visit(pool->context, &record);
}

static void conte_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    pool_visit pool = {policy, visit, context};
    if (policy->bytes == 0) {
        frag_block_space_walk(&policy->space, visit, context);
        return;
    }
    frag_block_space_walk(&policy->space, visit_in_pool, &pool);
    const frag_block *header = &policy->space.blocks[policy->space.first_header];
    uint64_t end = header->address + header->bytes;
    frag_span rest = {
        .kind = FRAG_SPAN_HOLE, .address = end, .bytes = policy->address + policy->bytes - end};
    if (rest.bytes != 0)
        visit(context, &rest);
}

static uint32_t number_of(const void *context, uint64_t bytes)
{
    (void)context;
    return class_of(bytes);
}

static bool conte_check(const frag_policy *policy, frag_error *error)
{
    uint64_t hole_count = 0;
    uint64_t listed_count = 0;
    if (!frag_block_space_check(&policy->space, &hole_count, error) ||
        !frag_bit_lists_check(&policy->lists, &policy->space, number_of, policy, &listed_count,
                              error))
        return false;
    uint32_t last = policy->space.blocks[policy->space.first_header].previous;
    if (policy->space.blocks[last].state == FRAG_BLOCK_HOLE && !is_listed(policy, last))
        listed_count++;
    return listed_count == hole_count || frag_fail(error, FRAG_E_INPUT, "a hole is in no list");
}

static void conte_replay(frag_replay *replay, uint64_t end)
{
    frag_replay_loop(replay, end, conte_alloc, conte_free);
}

static const frag_policy_rules tlsf_conte_rules = {
    .rounding = "to multiples of 8, at least 24, and 8 for the record of the next block",
    .takes = "the newest hole of the first list whose holes all are large enough; lists are 8 "
             "bytes apart up to 256, then 32 to a doubling. With align above 8 one that is larger "
             "by align and 32 bytes; the part before the aligned place is freed",
    .cuts =
        "if the remainder has at least 32 bytes, its record included; the low end is handed out",
    .joins = FRAG_RULE_NEIGHBOURS,
    .grows =
        "with size, one device malloc at the start, and no more. Without, " FRAG_RULE_ONE_RANGE,
    .streams = FRAG_RULE_IGNORED,
};

static const frag_policy_engine tlsf_conte_engine = {.replay = conte_replay};

const frag_policy_ops frag_policy_tlsf_conte = {
    .name = "tlsf-conte",
    .summary = "TLSF as the common implementation for hosts does it, with 8 bytes of records "
               "before each block; ignores streams and pools",
    .source = "TLSF of Matthew Conte 3.1 (deff9ab), github.com/mattconte/tlsf, tlsf.c",
    .rules = &tlsf_conte_rules,
    .bound = "as that of tlsf",
    .checked = "the library's own logs, request by request (tests/data/golden-peers/tlsf-conte-*)",
    .options = conte_options,
    .arena_bytes = conte_arena_bytes,
    .create = conte_create,
    .alloc = conte_alloc,
    .free = conte_free,
    .empty_cache = conte_empty_cache,
    .rounded = conte_rounded,
    .walk = conte_walk,
    .check = conte_check,
    .engine = &tlsf_conte_engine,
};
