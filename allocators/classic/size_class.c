/* Segregated storage. Sizes fall into classes; each class splits slabs, device mallocs of one size,
 * into equal slots, which are never split further or coalesced. A slab whose slots are all free
 * serves any class. Requests above `large` get a device segment of their own, kept when it is free
 * and reused by requests that nearly fill it. Free segments beyond `keep` bytes go back at once, as
 * in the slab allocators of kernels (Bonwick 1994; SLUB). Source: Wilson, Johnstone, Neely, Boles:
 * Dynamic storage allocation, a survey (1995), "simple segregated storage"; classes as in jemalloc
 * 5, 4 per doubling. Bound: a slab per class beyond rounding, if all slots of a class are in use;
 * with one slot in use per slab it holds slots-per-slab times what is asked. */
#include <string.h>

#include "allocators/index/free_index.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"
#include "sim/policy.h"

enum { OPTION_CLASSES, OPTION_SLAB, OPTION_LARGE, OPTION_SURPLUS, OPTION_KEEP };

enum { UNIT_BYTES = 512, CLASSES_MAX = 2048, STEPS_MAX = 32 };

#define NONE UINT32_MAX
#define SLAB_BYTES_MAX (64 * FRAG_MIB)

#define CLASSES_OPTION(text)                                                                       \
    {                                                                                              \
        .key = "classes", .type = FRAG_OPTION_TEXT, .default_text = (text),                        \
        .help = "equal steps per doubling, 1 to 32; or ascending multiples of 512, as "            \
                "[512,4KiB,1MiB], of which the last takes the place of large"                      \
    }

#define SLAB_OPTION                                                                                \
    {                                                                                              \
        .key = "slab", .type = FRAG_OPTION_BYTES, .default_text = "2MiB", .min = UNIT_BYTES,       \
        .max = SLAB_BYTES_MAX, .help = "bytes of the segments that are cut into slots"             \
    }

#define LARGE_OPTION                                                                               \
    {                                                                                              \
        .key = "large", .type = FRAG_OPTION_BYTES, .default_text = "1MiB", .min = UNIT_BYTES,      \
        .max = SLAB_BYTES_MAX,                                                                     \
        .help = "requests above this get segments of their own; at most slab. Multiples of 512, "  \
                "both"                                                                             \
    }

#define SURPLUS_OPTION                                                                             \
    {                                                                                              \
        .key = "surplus", .type = FRAG_OPTION_RATIO, .default_text = "0.25", .ratio_min = 0,       \
        .ratio_max = 1000000,                                                                      \
        .help = "a kept segment serves a large request if it is at most this share larger than "   \
                "needed"                                                                           \
    }

#define KEEP_OPTION(text)                                                                          \
    {                                                                                              \
        .key = "keep", .type = FRAG_OPTION_BYTES, .default_text = (text), .max = FRAG_UNLIMITED,   \
        .help = "bytes of free segments that are kept; what would be more goes back at once"       \
    }

static const frag_option size_class_options[] = {
    CLASSES_OPTION("4"),      SLAB_OPTION,  LARGE_OPTION, SURPLUS_OPTION,
    KEEP_OPTION("unlimited"), {.key = NULL}};
static const frag_option slab_options[] = {CLASSES_OPTION("1"),  SLAB_OPTION,
                                           LARGE_OPTION,         SURPLUS_OPTION,
                                           KEEP_OPTION("10MiB"), {.key = NULL}};

typedef enum segment_state {
    SEGMENT_UNUSED,
    SEGMENT_SLAB,
    SEGMENT_SLAB_EMPTY,
    SEGMENT_LARGE,
    SEGMENT_KEPT
} segment_state;

typedef struct segment {
    uint64_t address;
    uint64_t bytes;
    segment_state state;
    uint32_t size_class;
    uint32_t slot_count;
    uint32_t used_count;
    uint32_t previous; /* among the slabs of the class with a free slot; next also links unused
                          records */
    uint32_t next;
    uint32_t low_word; /* no word of free_slots below this has a bit */
    uint32_t number; /* slabs: place in the two arrays of slots; large ones: handle of the block */
} segment;

typedef struct live_block {
    uint32_t segment; /* unused records: NONE */
    uint32_t slot;    /* unused records: the next unused one */
} live_block;

struct frag_policy {
    frag_device *device;
    segment *segments;
    uint32_t segment_max;
    uint32_t segment_count; /* [0] included, which names nothing */
    uint32_t unused_segment;
    live_block *blocks;
    uint32_t block_max;
    uint32_t block_count;
    uint32_t unused_block;
    uint64_t *free_slots;   /* bitmaps, words_per_slab for each slab number */
    uint32_t *slot_handles; /* slots_per_slab for each slab number */
    uint32_t number_count;
    uint32_t unused_number; /* list through slot_handles */
    uint32_t slots_per_slab;
    uint32_t words_per_slab;
    uint64_t slab_bytes;
    uint64_t large_bytes;
    double surplus_ratio;
    uint64_t keep_bytes;
    uint64_t idle_bytes; /* of empty slabs and kept segments */
    uint64_t classes[CLASSES_MAX];
    uint32_t class_count;
    uint32_t partial[CLASSES_MAX]; /* per class: slabs with a free slot, newest first */
    uint32_t empty_slab;           /* list of slabs without a class, through next */
    uint16_t class_of_unit[SLAB_BYTES_MAX / UNIT_BYTES + 1];
    frag_free_index_store store;
    frag_free_index kept; /* free large segments */
};

/* A new slab is only made while every slab holds a block, a large segment at most once per request.
 */
static uint32_t segment_max(const frag_policy_limits *limits)
{
    uint64_t count = (uint64_t)limits->live_count_max + limits->request_count + 3;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX - 1;
}

static size_t size_class_arena_bytes(const frag_policy_limits *limits,
                                     const frag_option_value *values)
{
    size_t slots = (size_t)(values[OPTION_SLAB].number / UNIT_BYTES);
    size_t slab_count = (size_t)limits->live_count_max + 1;
    return sizeof(frag_policy) + 512 + segment_max(limits) * sizeof(segment) +
           slab_count * sizeof(live_block) +
           slab_count * ((slots + 63) / 64 * sizeof(uint64_t) + slots * sizeof(uint32_t)) +
           frag_free_records_bytes(segment_max(limits)) +
           frag_free_index_store_bytes(segment_max(limits), 1);
}

static bool add_class(frag_policy *policy, uint64_t bytes, frag_error *error)
{
    if (policy->class_count == CLASSES_MAX)
        return frag_fail(error, FRAG_E_USAGE, "more than %d classes", CLASSES_MAX);
    policy->classes[policy->class_count++] = bytes;
    return true;
}

/* Steps of a doubling are equal, as in jemalloc; those finer than a unit fall together. */
static bool add_geometric(frag_policy *policy, uint64_t steps, frag_error *error)
{
    for (uint64_t low = UNIT_BYTES; low <= policy->large_bytes; low *= 2) {
        for (uint64_t i = 0; i < steps; i++) {
            uint64_t bytes = frag_round_up(low + low / steps * i, UNIT_BYTES);
            bool is_new =
                policy->class_count == 0 || bytes > policy->classes[policy->class_count - 1];
            if (is_new && bytes < policy->large_bytes && !add_class(policy, bytes, error))
                return false;
        }
    }
    return add_class(policy, policy->large_bytes, error);
}

static bool add_listed(frag_policy *policy, const char *text, frag_error *error)
{
    const char *at = text + 1;
    for (;;) {
        size_t length = strcspn(at, ",]");
        char item[64];
        uint64_t bytes = 0;
        if (at[length] == '\0' || length >= sizeof item)
            return frag_fail(error, FRAG_E_USAGE,
                             "classes=%s is not a list; expected sizes, as [512,4KiB,1MiB]", text);
        memcpy(item, at, length);
        item[length] = '\0';
        if (!frag_bytes_parse(item, &bytes, error))
            return false;
        uint64_t before = policy->class_count == 0 ? 0 : policy->classes[policy->class_count - 1];
        if (bytes <= before || bytes % UNIT_BYTES != 0 || bytes > policy->slab_bytes)
            return frag_fail(error, FRAG_E_USAGE,
                             "the class '%s' is out of place; expected ascending multiples of %d "
                             "bytes up to slab=%llu",
                             item, UNIT_BYTES, (unsigned long long)policy->slab_bytes);
        if (!add_class(policy, bytes, error))
            return false;
        at += length;
        if (*at == ']')
            break;
        at++;
    }
    if (at[1] != '\0')
        return frag_fail(error, FRAG_E_USAGE, "classes=%s goes on after its list", text);
    policy->large_bytes = policy->classes[policy->class_count - 1];
    return true;
}

static bool read_options(frag_policy *policy, const frag_option_value *values, frag_error *error)
{
    const char *classes = values[OPTION_CLASSES].text;
    policy->slab_bytes = values[OPTION_SLAB].number;
    policy->large_bytes = values[OPTION_LARGE].number;
    policy->surplus_ratio = values[OPTION_SURPLUS].ratio;
    policy->keep_bytes = values[OPTION_KEEP].number;
    if (policy->slab_bytes % UNIT_BYTES != 0 || policy->large_bytes % UNIT_BYTES != 0)
        return frag_fail(error, FRAG_E_USAGE, "slab=%s and large=%s must be multiples of %d bytes",
                         values[OPTION_SLAB].text, values[OPTION_LARGE].text, UNIT_BYTES);
    if (policy->large_bytes > policy->slab_bytes)
        return frag_fail(error, FRAG_E_USAGE,
                         "large=%s is above slab=%s; a slot must fit into a slab",
                         values[OPTION_LARGE].text, values[OPTION_SLAB].text);
    uint64_t steps = 0;
    bool ok = classes[0] == '[' ? add_listed(policy, classes, error)
                                : frag_count_parse(classes, 1, STEPS_MAX, &steps, error) &&
                                      add_geometric(policy, steps, error);
    if (!ok)
        return frag_error_in(error, "classes");
    uint32_t number = 0;
    for (uint64_t unit = 0; unit <= policy->large_bytes / UNIT_BYTES; unit++) {
        while (policy->classes[number] < unit * UNIT_BYTES)
            number++;
        policy->class_of_unit[unit] = (uint16_t)number;
    }
    return true;
}

static frag_policy *size_class_create(const frag_policy_setup *setup, frag_error *error)
{
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->device = setup->device;
    if (!read_options(policy, setup->values, error))
        return NULL;
    uint32_t slab_count = setup->limits.live_count_max + 1;
    policy->segment_max = segment_max(&setup->limits);
    policy->segments = frag_arena_take(setup->arena, policy->segment_max, sizeof(segment));
    policy->unused_segment = NONE;
    policy->empty_slab = NONE;
    policy->unused_number = NONE;
    policy->block_max = slab_count;
    policy->blocks = frag_arena_take(setup->arena, slab_count, sizeof(live_block));
    policy->unused_block = NONE;
    policy->slots_per_slab = (uint32_t)(policy->slab_bytes / UNIT_BYTES);
    policy->words_per_slab = (policy->slots_per_slab + 63) / 64;
    policy->free_slots = frag_arena_take(setup->arena, (size_t)slab_count * policy->words_per_slab,
                                         sizeof(uint64_t));
    policy->slot_handles = frag_arena_take(
        setup->arena, (size_t)slab_count * policy->slots_per_slab, sizeof(uint32_t));
    for (uint32_t i = 0; i < policy->class_count; i++)
        policy->partial[i] = NONE;
    policy->segment_count = 1;
    frag_free_index_store_create(&policy->store, setup->arena,
                                 frag_free_records_take(setup->arena, policy->segment_max),
                                 policy->segment_max, 1, false);
    return policy;
}

static uint64_t size_class_rounded(const frag_policy *policy, uint64_t bytes)
{
    if (bytes <= policy->large_bytes)
        return policy->classes[policy->class_of_unit[(bytes + UNIT_BYTES - 1) / UNIT_BYTES]];
    return frag_round_up(bytes, policy->device->page_bytes);
}

static uint32_t take_segment(frag_policy *policy, uint64_t address, uint64_t bytes)
{
    uint32_t id = policy->unused_segment;
    if (id != NONE) {
        policy->unused_segment = policy->segments[id].next;
    } else {
        FRAG_ASSERT(policy->segment_count < policy->segment_max);
        id = policy->segment_count++;
    }
    policy->segments[id] = (segment){.address = address, .bytes = bytes};
    return id;
}

static void drop_segment(frag_policy *policy, uint32_t id)
{
    policy->segments[id].state = SEGMENT_UNUSED;
    policy->segments[id].next = policy->unused_segment;
    policy->unused_segment = id;
}

static uint32_t take_number(frag_policy *policy)
{
    uint32_t number = policy->unused_number;
    if (number != NONE) {
        policy->unused_number = policy->slot_handles[(size_t)number * policy->slots_per_slab];
        return number;
    }
    FRAG_ASSERT(policy->number_count < policy->block_max);
    return policy->number_count++;
}

static void drop_number(frag_policy *policy, uint32_t number)
{
    policy->slot_handles[(size_t)number * policy->slots_per_slab] = policy->unused_number;
    policy->unused_number = number;
}

static bool give_back(frag_policy *policy, uint32_t id)
{
    const segment *gone = &policy->segments[id];
    frag_device_for_all(policy->device);
    if (frag_device_free(policy->device, gone->address, gone->bytes) != FRAG_DEVICE_OK)
        return false;
    drop_segment(policy, id);
    return true;
}

/* Everything that holds no block goes back to the device. */
static void trim(frag_policy *policy)
{
    for (uint32_t id = 1; id < policy->segment_count; id++) {
        const segment *kept = &policy->segments[id];
        uint64_t bytes = kept->bytes;
        if (kept->state == SEGMENT_KEPT && give_back(policy, id)) {
            frag_free_index_remove(&policy->store, &policy->kept, id);
            policy->idle_bytes -= bytes;
        }
    }
    uint32_t refused = NONE;
    for (uint32_t id = policy->empty_slab, next = NONE; id != NONE; id = next) {
        next = policy->segments[id].next;
        uint32_t number = policy->segments[id].number;
        uint64_t bytes = policy->segments[id].bytes;
        if (give_back(policy, id)) {
            drop_number(policy, number);
            policy->idle_bytes -= bytes;
        } else {
            policy->segments[id].next = refused;
            refused = id;
        }
    }
    policy->empty_slab = refused;
}

static bool ask_device(frag_policy *policy, uint64_t bytes, uint32_t *id)
{
    uint64_t address = 0;
    frag_device_for_all(policy->device);
    if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK) {
        trim(policy);
        if (frag_device_malloc(policy->device, bytes, &address) != FRAG_DEVICE_OK)
            return false;
    }
    *id = take_segment(policy, address, bytes);
    return true;
}

static void link_partial(frag_policy *policy, uint32_t id)
{
    segment *slab = &policy->segments[id];
    uint32_t *head = &policy->partial[slab->size_class];
    slab->previous = NONE;
    slab->next = *head;
    if (*head != NONE)
        policy->segments[*head].previous = id;
    *head = id;
}

static void unlink_partial(frag_policy *policy, uint32_t id)
{
    const segment *slab = &policy->segments[id];
    if (slab->next != NONE)
        policy->segments[slab->next].previous = slab->previous;
    if (slab->previous != NONE)
        policy->segments[slab->previous].next = slab->next;
    else
        policy->partial[slab->size_class] = slab->next;
}

static bool open_slab(frag_policy *policy, uint32_t size_class, uint32_t *id)
{
    *id = policy->empty_slab;
    if (*id != NONE) {
        policy->empty_slab = policy->segments[*id].next;
        policy->idle_bytes -= policy->segments[*id].bytes;
    } else {
        uint64_t bytes = frag_round_up(policy->slab_bytes, policy->device->page_bytes);
        if (!ask_device(policy, bytes, id))
            return false;
        policy->segments[*id].number = take_number(policy);
    }
    segment *slab = &policy->segments[*id];
    slab->state = SEGMENT_SLAB;
    slab->size_class = size_class;
    slab->slot_count = (uint32_t)(policy->slab_bytes / policy->classes[size_class]);
    slab->used_count = 0;
    slab->low_word = 0;
    uint64_t *words = &policy->free_slots[(size_t)slab->number * policy->words_per_slab];
    memset(words, 0, policy->words_per_slab * sizeof *words);
    memset(words, 0xff, slab->slot_count / 64 * sizeof *words);
    if (slab->slot_count % 64 != 0)
        words[slab->slot_count / 64] = ((uint64_t)1 << (slab->slot_count % 64)) - 1;
    link_partial(policy, *id);
    return true;
}

static uint32_t take_block(frag_policy *policy, uint32_t segment_id, uint32_t slot)
{
    uint32_t id = policy->unused_block;
    if (id != NONE) {
        policy->unused_block = policy->blocks[id].slot;
    } else {
        FRAG_ASSERT(policy->block_count < policy->block_max);
        id = policy->block_count++;
    }
    policy->blocks[id] = (live_block){.segment = segment_id, .slot = slot};
    return id;
}

static bool alloc_slot(frag_policy *policy, uint64_t bytes, frag_grant *grant)
{
    uint32_t size_class = policy->class_of_unit[(bytes + UNIT_BYTES - 1) / UNIT_BYTES];
    uint32_t id = policy->partial[size_class];
    if (FRAG_UNLIKELY(id == NONE) && !open_slab(policy, size_class, &id))
        return false;
    segment *slab = &policy->segments[id];
    uint64_t *words = &policy->free_slots[(size_t)slab->number * policy->words_per_slab];
    uint32_t at = slab->low_word;
    while (words[at] == 0)
        at++;
    slab->low_word = at;
    uint32_t slot = at * 64 + frag_bit_low(words[at]);
    words[at] &= words[at] - 1;
    if (++slab->used_count == slab->slot_count)
        unlink_partial(policy, id);
    uint64_t slot_bytes = policy->classes[size_class];
    *grant = (frag_grant){.address = slab->address + slot * slot_bytes,
                          .block_bytes = slot_bytes,
                          .handle = take_block(policy, id, slot)};
    policy->slot_handles[(size_t)slab->number * policy->slots_per_slab + slot] = grant->handle;
    return true;
}

static bool alloc_large(frag_policy *policy, uint64_t bytes, frag_grant *grant)
{
    bytes = frag_round_up(bytes, policy->device->page_bytes);
    uint32_t id = NONE;
    bool is_kept =
        frag_free_index_best(&policy->store, &policy->kept, bytes, &id) &&
        (double)(policy->segments[id].bytes - bytes) <= policy->surplus_ratio * (double)bytes;
    if (is_kept) {
        frag_free_index_remove(&policy->store, &policy->kept, id);
        policy->idle_bytes -= policy->segments[id].bytes;
    } else if (!ask_device(policy, bytes, &id))
        return false;
    segment *large = &policy->segments[id];
    large->state = SEGMENT_LARGE;
    large->number = take_block(policy, id, 0);
    *grant = (frag_grant){
        .address = large->address, .block_bytes = large->bytes, .handle = large->number};
    return true;
}

static bool size_class_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    if (request->bytes <= policy->large_bytes)
        return alloc_slot(policy, request->bytes, grant);
    return alloc_large(policy, request->bytes, grant);
}

static bool is_one_too_many(const frag_policy *policy, uint64_t bytes)
{
    return policy->idle_bytes > policy->keep_bytes ||
           bytes > policy->keep_bytes - policy->idle_bytes;
}

static void free_slot(frag_policy *policy, uint32_t id, uint32_t slot)
{
    segment *slab = &policy->segments[id];
    uint64_t *word = &policy->free_slots[(size_t)slab->number * policy->words_per_slab + slot / 64];
    FRAG_ASSERT((*word >> (slot % 64) & 1) == 0);
    *word |= (uint64_t)1 << (slot % 64);
    if (slot / 64 < slab->low_word)
        slab->low_word = slot / 64;
    if (slab->used_count == slab->slot_count)
        link_partial(policy, id);
    if (--slab->used_count != 0)
        return;
    unlink_partial(policy, id);
    uint32_t number = slab->number;
    if (is_one_too_many(policy, slab->bytes) && give_back(policy, id)) {
        drop_number(policy, number);
        return;
    }
    policy->idle_bytes += slab->bytes;
    slab->state = SEGMENT_SLAB_EMPTY;
    slab->next = policy->empty_slab;
    policy->empty_slab = id;
}

static void size_class_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    FRAG_ASSERT(handle < policy->block_count && policy->blocks[handle].segment != NONE);
    live_block block = policy->blocks[handle];
    segment *home = &policy->segments[block.segment];
    if (home->state == SEGMENT_SLAB) {
        free_slot(policy, block.segment, block.slot);
    } else if (!is_one_too_many(policy, home->bytes) || !give_back(policy, block.segment)) {
        policy->idle_bytes += home->bytes;
        home->state = SEGMENT_KEPT;
        frag_free_record *records = policy->store.records;
        records[block.segment] = (frag_free_record){.address = home->address, .bytes = home->bytes};
        frag_free_index_insert(&policy->store, &policy->kept, block.segment);
    }
    policy->blocks[handle] = (live_block){.segment = NONE, .slot = policy->unused_block};
    policy->unused_block = handle;
}

static void size_class_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)pool;
    trim(policy);
}

static void walk_slots(const frag_policy *policy, const segment *slab, frag_span_visitor *visit,
                       void *context)
{
    const uint64_t *words = &policy->free_slots[(size_t)slab->number * policy->words_per_slab];
    const uint32_t *handles = &policy->slot_handles[(size_t)slab->number * policy->slots_per_slab];
    uint64_t bytes = policy->classes[slab->size_class];
    for (uint32_t slot = 0; slot < slab->slot_count; slot++) {
        bool is_free = (words[slot / 64] >> (slot % 64) & 1) != 0;
        frag_span span = {.kind = is_free ? FRAG_SPAN_HOLE : FRAG_SPAN_BLOCK,
                          .address = slab->address + slot * bytes,
                          .bytes = bytes,
                          .handle = is_free ? 0 : handles[slot]};
        visit(context, &span);
    }
    uint64_t used = slab->slot_count * bytes;
    frag_span rest = {
        .kind = FRAG_SPAN_HOLE, .address = slab->address + used, .bytes = slab->bytes - used};
    if (rest.bytes != 0)
        visit(context, &rest);
}

/* Each free slot is a hole, as slots never coalesce. */
static void size_class_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (uint32_t id = 1; id < policy->segment_count; id++) {
        const segment *at = &policy->segments[id];
        if (at->state == SEGMENT_UNUSED)
            continue;
        frag_span span = {.kind = FRAG_SPAN_SEGMENT, .address = at->address, .bytes = at->bytes};
        span.is_small_pool = at->state == SEGMENT_SLAB || at->state == SEGMENT_SLAB_EMPTY;
        visit(context, &span);
        if (at->state == SEGMENT_SLAB) {
            walk_slots(policy, at, visit, context);
            continue;
        }
        bool is_block = at->state == SEGMENT_LARGE;
        span = (frag_span){.kind = is_block ? FRAG_SPAN_BLOCK : FRAG_SPAN_HOLE,
                           .address = at->address,
                           .bytes = at->bytes,
                           .handle = is_block ? at->number : 0};
        visit(context, &span);
    }
}

static bool check_slab(const frag_policy *policy, uint32_t id, frag_error *error)
{
    const segment *slab = &policy->segments[id];
    const uint64_t *words = &policy->free_slots[(size_t)slab->number * policy->words_per_slab];
    uint32_t free_count = 0;
    for (uint32_t i = 0; i < policy->words_per_slab; i++) {
        free_count += frag_bit_count(words[i]);
        if (i < slab->low_word && words[i] != 0)
            return frag_fail(error, FRAG_E_INPUT, "slab %u has a free slot below its mark", id);
    }
    if (free_count + slab->used_count != slab->slot_count || slab->used_count == 0)
        return frag_fail(error, FRAG_E_INPUT, "slab %u counts %u used slots wrongly", id,
                         slab->used_count);
    for (uint32_t slot = 0; slot < slab->slot_count; slot++) {
        if ((words[slot / 64] >> (slot % 64) & 1) != 0)
            continue;
        uint32_t handle =
            policy->slot_handles[(size_t)slab->number * policy->slots_per_slab + slot];
        if (handle >= policy->block_count || policy->blocks[handle].segment != id ||
            policy->blocks[handle].slot != slot)
            return frag_fail(error, FRAG_E_INPUT, "slot %u of slab %u does not know its block",
                             slot, id);
    }
    return true;
}

static bool check_partial(const frag_policy *policy, uint64_t *listed_count, frag_error *error)
{
    for (uint32_t i = 0; i < policy->class_count; i++) {
        uint32_t before = NONE;
        for (uint32_t id = policy->partial[i]; id != NONE;
             before = id, id = policy->segments[id].next) {
            const segment *slab = &policy->segments[id];
            if (slab->state != SEGMENT_SLAB || slab->size_class != i || slab->previous != before ||
                slab->used_count == slab->slot_count || ++*listed_count > policy->segment_count)
                return frag_fail(error, FRAG_E_INPUT,
                                 "slab %u does not belong in the list of class %u", id, i);
        }
    }
    return true;
}

static bool size_class_check(const frag_policy *policy, frag_error *error)
{
    uint64_t kept_count = 0;
    uint64_t idle_bytes = 0;
    uint64_t partial_count = 0;
    uint64_t listed_count = 0;
    if (!frag_free_index_check(&policy->store, &policy->kept, error) ||
        !check_partial(policy, &listed_count, error))
        return false;
    for (uint32_t id = 1; id < policy->segment_count; id++) {
        const segment *at = &policy->segments[id];
        kept_count += at->state == SEGMENT_KEPT;
        idle_bytes += at->state == SEGMENT_KEPT || at->state == SEGMENT_SLAB_EMPTY ? at->bytes : 0;
        partial_count += at->state == SEGMENT_SLAB && at->used_count < at->slot_count;
        if (at->state == SEGMENT_SLAB && !check_slab(policy, id, error))
            return false;
        if (at->state == SEGMENT_LARGE && policy->blocks[at->number].segment != id)
            return frag_fail(error, FRAG_E_INPUT, "large segment %u does not know its block", id);
    }
    if (kept_count != frag_free_index_count(&policy->store, &policy->kept) ||
        partial_count != listed_count)
        return frag_fail(error, FRAG_E_INPUT, "a segment with room is in no list");
    return idle_bytes == policy->idle_bytes ||
           frag_fail(error, FRAG_E_INPUT, "%llu bytes are free in segments, %llu counted",
                     (unsigned long long)idle_bytes, (unsigned long long)policy->idle_bytes);
}

#define SIZE_CLASS_OPS                                                                             \
    .bound = "", .arena_bytes = size_class_arena_bytes, .create = size_class_create,               \
    .alloc = size_class_alloc, .free = size_class_free, .empty_cache = size_class_empty_cache,     \
    .rounded = size_class_rounded, .walk = size_class_walk, .check = size_class_check

#define SLAB_ROUNDS "multiples of 512 bytes; above large to whole pages"
/* But for the classes. */
#define SLAB_RULES                                                                                 \
    .takes = "the lowest free slot in the slab of its class that got one last (newly opened, or "  \
             "full before); else in a free slab. Above large the smallest free segment that is "   \
             "large enough, if it exceeds the request by at most the share surplus",               \
    .cuts = "slabs into equal slots of one class; slots and large segments never",                 \
    .joins = "never; a slab whose slots are all free serves any class",                            \
    .grows = "device mallocs of slab bytes, above large of the request. Up to keep bytes of free " \
             "ones are cached; one more goes back at once, and all go back on empty_cache and "    \
             "when the device refuses, which is then asked again",                                 \
    .streams = FRAG_RULE_IGNORED

static const frag_policy_rules size_class_rules = {
    .rounding = "to the next of the classes, 4 to a doubling, all " SLAB_ROUNDS,
    SLAB_RULES,
};

const frag_policy_ops frag_policy_size_class = {
    .name = "size-class",
    .summary = "slabs of equal slots per size class, segments for large requests; ignores streams "
               "and pools",
    .source = "Wilson, Johnstone, Neely, Boles: Dynamic storage allocation, 1995; classes as in "
              "jemalloc 5",
    .rules = &size_class_rules,
    .options = size_class_options,
    SIZE_CLASS_OPS,
};

static const frag_policy_rules slab_rules = {
    .rounding = "to the next of the classes, 1 to a doubling, all " SLAB_ROUNDS,
    SLAB_RULES,
};

const frag_policy_ops frag_policy_slab = {
    .name = "slab",
    .summary =
        "slabs of equal slots, powers of two; empty ones go back to the device, but for a few",
    .source =
        "Bonwick: The slab allocator, USENIX Summer 1994; SLUB of Linux 6, with sizes of GPUs",
    .rules = &slab_rules,
    .options = slab_options,
    SIZE_CLASS_OPS,
};
