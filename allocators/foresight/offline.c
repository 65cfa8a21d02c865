/* The whole trace is packed before it runs; each request is then served at its place in the plan.
 * One device malloc of the plan's height holds them all. Where the device has no room for requests
 * that failed when recorded, the others are served by a plan without them. Requests that nobody
 * could plan (every one where no trace is known in advance) get a malloc each.
 * Source: planner/plan.h. Bound: the plan's own; where it is proved optimal, no policy that never
 * moves a block comes lower. */
#include <stdlib.h>

#include "allocators/rule_texts.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "planner/plan.h"
#include "sim/policy_engine.h"

#define NONE UINT32_MAX
#define NO_OFFSET UINT64_MAX

enum { OPTION_ALIGN, OPTION_STEPS, OPTION_COUNT };

static const frag_option offline_options[] = {
    [OPTION_ALIGN] = {"align", FRAG_OPTION_BYTES, "512", .min = 1, .max = 1 << 30,
                      .help = "blocks are multiples of this, and begin at one; a packing problem "
                              "has its own alignments instead"},
    [OPTION_STEPS] = {"steps", FRAG_OPTION_COUNT, "1000000", .max = FRAG_UNLIMITED,
                      .help =
                          "budget of the search for a lower packing; one step places one block"},
    [OPTION_COUNT] = {.key = NULL},
};

typedef struct layout {
    frag_plan packing;
    uint64_t *offsets; /* by request; NO_OFFSET: it has no place */
} layout;

struct frag_policy_plan {
    layout whole;
    layout served;     /* without requests that failed when recorded */
    bool has_attempts; /* false: served is not made */
    uint64_t *bytes;   /* by request, of its block */
    uint64_t count;
};

typedef struct offline_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t slack_bytes; /* of bytes: what the device gives because it gives whole pages only */
    uint32_t next; /* unused records: the next unused one; planned: its place among the live */
    bool is_held;
    bool is_planned;
} offline_block;

struct frag_policy {
    frag_device *device;
    const frag_policy_plan *plan;
    const layout *places; /* of the plan, which the range has room for; NULL: no range is held */
    uint64_t request;     /* the number of the next one */
    uint64_t align;
    uint64_t range_address;
    uint64_t range_bytes; /* 0: nothing is held for the plan */
    offline_block *blocks;
    uint32_t block_max;
    uint32_t block_count;
    uint32_t unused;
    uint32_t *live; /* planned blocks in use, in no order */
    uint32_t live_count;
    uint64_t *sorted; /* scratch of the walk: address and block of each */
};

/* ---- the plan */

static bool has_place(const frag_lifetime *lifetime, bool with_attempts)
{
    return lifetime->lower < lifetime->upper ||
           (with_attempts && frag_lifetime_is_attempt(lifetime));
}

static bool make_layout(const frag_policy_plan *plan, const frag_policy_plan_setup *setup,
                        bool with_attempts, layout *made, frag_error *error)
{
    uint64_t align = setup->values[OPTION_ALIGN].number;
    frag_buffer *buffers = frag_alloc(plan->count, sizeof *buffers);
    uint32_t count = 0;
    for (uint64_t i = 0; i < plan->count; i++) {
        const frag_lifetime *at = &setup->lifetimes[i];
        if (has_place(at, with_attempts) && count < FRAG_BUFFER_COUNT_MAX)
            buffers[count++] =
                (frag_buffer){at->lower, at->upper + (frag_lifetime_is_attempt(at) ? 1 : 0),
                              plan->bytes[i], at->alignment > 0 ? at->alignment : align};
    }
    frag_plan_options options = {
        .capacity_bytes = setup->limits.capacity_bytes,
        .steps = setup->values[OPTION_STEPS].number,
        .is_stopped = setup->limits.is_stopped,
        .context = setup->limits.context,
    };
    bool ok = frag_plan_make(buffers, count, &options, &made->packing, error);
    frag_free(buffers);
    if (!ok)
        return false;
    made->offsets = frag_alloc(plan->count, sizeof *made->offsets);
    uint32_t next = 0;
    for (uint64_t i = 0; i < plan->count; i++)
        made->offsets[i] = next < count && has_place(&setup->lifetimes[i], with_attempts)
                               ? made->packing.offsets[next++]
                               : NO_OFFSET;
    return true;
}

static void offline_plan_destroy(frag_policy_plan *plan)
{
    frag_plan_destroy(&plan->whole.packing);
    frag_plan_destroy(&plan->served.packing);
    frag_free(plan->whole.offsets);
    frag_free(plan->served.offsets);
    frag_free(plan->bytes);
    frag_free(plan);
}

static frag_policy_plan *offline_plan(const frag_policy_plan_setup *setup, frag_error *error)
{
    uint64_t align = setup->values[OPTION_ALIGN].number;
    frag_policy_plan *plan = frag_alloc(1, sizeof *plan);
    plan->count = setup->lifetime_count;
    plan->bytes = frag_alloc(plan->count, sizeof *plan->bytes);
    for (uint64_t i = 0; i < plan->count; i++) {
        const frag_lifetime *at = &setup->lifetimes[i];
        plan->bytes[i] = at->alignment > 0 ? at->bytes : frag_round_up(at->bytes, align);
        plan->has_attempts = plan->has_attempts || frag_lifetime_is_attempt(at);
    }
    if (make_layout(plan, setup, true, &plan->whole, error) &&
        (!plan->has_attempts || make_layout(plan, setup, false, &plan->served, error)))
        return plan;
    offline_plan_destroy(plan);
    return NULL;
}

static void offline_plan_facts(const frag_policy_plan *plan, frag_policy_plan_facts *facts)
{
    const frag_plan *packing = &plan->whole.packing;
    *facts = (frag_policy_plan_facts){
        .answer = frag_plan_answer_name(packing->answer),
        .peak_bytes = packing->height_bytes,
        .bound_bytes = packing->bound_bytes,
        .load_bytes = packing->load_bytes,
    };
}

/* ---- the policy */

static size_t offline_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    size_t each = sizeof(offline_block) + sizeof(uint32_t) + 2 * sizeof(uint64_t);
    return sizeof(frag_policy) + 4 * 128 + ((size_t)limits->live_count_max + 1) * each;
}

static frag_policy *offline_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    uint32_t live = setup->limits.live_count_max;
    policy->device = setup->device;
    policy->plan = setup->plan;
    policy->align = setup->values[OPTION_ALIGN].number;
    policy->block_max = live < UINT32_MAX ? live + 1 : UINT32_MAX;
    policy->unused = NONE;
    policy->blocks = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->blocks);
    policy->live = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->live);
    policy->sorted = frag_arena_take(setup->arena, policy->block_max, 2 * sizeof *policy->sorted);
    return policy;
}

static uint32_t take_record(frag_policy *policy)
{
    uint32_t id = policy->unused;
    if (id != NONE) {
        policy->unused = policy->blocks[id].next;
        return id;
    }
    FRAG_ASSERT(policy->block_count < policy->block_max);
    return policy->block_count++;
}

/* The range that a layout lives in; whole pages, as the device gives them. */
static bool hold_range_of(frag_policy *policy, const layout *places)
{
    uint64_t bytes = frag_round_up(places->packing.height_bytes, policy->device->page_bytes);
    if (frag_device_malloc(policy->device, bytes, &policy->range_address) != FRAG_DEVICE_OK)
        return false;
    policy->range_bytes = bytes;
    policy->places = places;
    return true;
}

static bool hold_range(frag_policy *policy)
{
    const frag_policy_plan *plan = policy->plan;
    return policy->range_bytes > 0 || hold_range_of(policy, &plan->whole) ||
           (plan->has_attempts && hold_range_of(policy, &plan->served));
}

/* The place of a request in the plan. false: it has none, or there is no memory for the plan. */
static bool find_place(frag_policy *policy, uint64_t number, offline_block *block)
{
    if (!hold_range(policy) || policy->places->offsets[number] == NO_OFFSET)
        return false;
    block->is_planned = true;
    block->address = policy->range_address + policy->places->offsets[number];
    block->bytes = policy->plan->bytes[number];
    return true;
}

static bool offline_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    const frag_policy_plan *plan = policy->plan;
    uint64_t number = policy->request++;
    offline_block block = {.is_held = true};
    if (plan != NULL && number < plan->count && plan->whole.offsets[number] != NO_OFFSET) {
        FRAG_ASSERT(request->bytes <= plan->bytes[number]);
        if (!find_place(policy, number, &block))
            return false;
    } else {
        uint64_t rounded = frag_round_up(request->bytes, policy->align);
        block.bytes = frag_round_up(rounded, policy->device->page_bytes);
        block.slack_bytes = block.bytes - rounded;
        if (frag_device_malloc(policy->device, block.bytes, &block.address) != FRAG_DEVICE_OK)
            return false;
    }
    uint32_t id = take_record(policy);
    if (block.is_planned) {
        block.next = policy->live_count;
        policy->live[policy->live_count++] = id;
    }
    policy->blocks[id] = block;
    *grant = (frag_grant){.address = block.address, .block_bytes = block.bytes, .handle = id};
    return true;
}

static void offline_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    FRAG_ASSERT(handle < policy->block_count && policy->blocks[handle].is_held);
    offline_block *block = &policy->blocks[handle];
    if (block->is_planned) {
        uint32_t last = policy->live[--policy->live_count];
        policy->live[block->next] = last;
        policy->blocks[last].next = block->next;
    } else {
        (void)frag_device_free(policy->device, block->address, block->bytes);
    }
    block->is_held = false;
    block->next = policy->unused;
    policy->unused = handle;
}

static void offline_empty_cache(frag_policy *policy, uint32_t pool)
{
    if (pool != FRAG_POOL_ALL || policy->live_count > 0 || policy->range_bytes == 0)
        return;
    (void)frag_device_free(policy->device, policy->range_address, policy->range_bytes);
    policy->range_bytes = 0;
}

static void sort_live(const frag_policy *policy)
{
    for (uint32_t i = 0; i < policy->live_count; i++) {
        policy->sorted[(size_t)i * 2] = policy->blocks[policy->live[i]].address;
        policy->sorted[(size_t)i * 2 + 1] = policy->live[i];
    }
    qsort(policy->sorted, policy->live_count, 2 * sizeof *policy->sorted, frag_compare_numbers);
}

static void walk_range(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_span segment = {
        .kind = FRAG_SPAN_SEGMENT, .address = policy->range_address, .bytes = policy->range_bytes};
    visit(context, &segment);
    sort_live(policy);
    uint64_t at = policy->range_address;
    uint64_t end = policy->range_address + policy->range_bytes;
    for (uint32_t i = 0; i <= policy->live_count; i++) {
        bool is_last = i == policy->live_count;
        uint32_t id = is_last ? NONE : (uint32_t)policy->sorted[(size_t)i * 2 + 1];
        uint64_t next = is_last ? end : policy->blocks[id].address;
        if (next > at) {
            frag_span hole = {.kind = FRAG_SPAN_HOLE, .address = at, .bytes = next - at};
            visit(context, &hole);
        }
        if (is_last)
            return;
        frag_span block = {.kind = FRAG_SPAN_BLOCK,
                           .address = next,
                           .bytes = policy->blocks[id].bytes,
                           .handle = id};
        visit(context, &block);
        at = next + block.bytes;
    }
}

static void offline_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    if (policy->range_bytes > 0)
        walk_range(policy, visit, context);
    for (uint32_t id = 0; id < policy->block_count; id++) {
        const offline_block *block = &policy->blocks[id];
        if (!block->is_held || block->is_planned)
            continue;
        frag_span span = {
            .kind = FRAG_SPAN_SEGMENT, .address = block->address, .bytes = block->bytes};
        visit(context, &span);
        span.kind = FRAG_SPAN_BLOCK;
        span.page_slack_bytes = block->slack_bytes;
        span.handle = id;
        visit(context, &span);
    }
}

static bool offline_check(const frag_policy *policy, frag_error *error)
{
    uint32_t unused_count = 0;
    for (uint32_t id = policy->unused; id != NONE; id = policy->blocks[id].next)
        if (id >= policy->block_count || policy->blocks[id].is_held ||
            ++unused_count > policy->block_count)
            return frag_fail(error, FRAG_E_INPUT, "the list of unused records is broken at %u", id);
    uint32_t held_count = 0;
    uint32_t planned_count = 0;
    for (uint32_t id = 0; id < policy->block_count; id++) {
        const offline_block *block = &policy->blocks[id];
        held_count += block->is_held ? 1 : 0;
        if (!block->is_held || !block->is_planned)
            continue;
        planned_count++;
        if (block->next >= policy->live_count || policy->live[block->next] != id)
            return frag_fail(error, FRAG_E_INPUT, "planned block %u is not among the live ones",
                             id);
    }
    if (planned_count != policy->live_count || held_count + unused_count != policy->block_count)
        return frag_fail(error, FRAG_E_INPUT, "a record is lost");
    sort_live(policy);
    uint64_t at = policy->range_address;
    for (uint32_t i = 0; i < policy->live_count; i++) {
        const offline_block *block = &policy->blocks[policy->sorted[(size_t)i * 2 + 1]];
        if (block->address < at)
            return frag_fail(error, FRAG_E_INPUT,
                             "two blocks of the plan share bytes at address %llu",
                             (unsigned long long)block->address);
        at = block->address + block->bytes;
    }
    return policy->live_count == 0 || at <= policy->range_address + policy->range_bytes ||
           frag_fail(error, FRAG_E_INPUT, "a block ends outside of the plan's range");
}

static uint64_t offline_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_round_up(bytes, policy->align);
}

static const frag_policy_rules offline_rules = {
    .rounding = FRAG_RULE_TO_ALIGN "; outside the packing to whole pages",
    .takes = "its place in a packing of the whole trace, but for requests that failed when they "
             "were recorded",
    .cuts = FRAG_RULE_NEVER,
    .joins = FRAG_RULE_NEVER,
    .grows = "one device malloc of the packing's height, which goes back on empty_cache when "
             "nothing is in it; requests outside it get one each until they are freed",
    .streams = "ignored: the lifetimes that are packed are those of the trace",
};

static const frag_policy_planner offline_planner = {
    .create = offline_plan,
    .facts = offline_plan_facts,
    .destroy = offline_plan_destroy,
};

static const frag_policy_engine offline_engine = {.planner = &offline_planner};

const frag_policy_ops frag_policy_offline = {
    .name = "offline",
    .summary = "packs the whole trace before it runs: what a policy that knows the future needs",
    .source =
        "greedy portfolio, local search, and exact search after Moffitt, MiniMalloc, ASPLOS 2023",
    .rules = &offline_rules,
    .bound = "its own packing, which a proof may say is optimal",
    .options = offline_options,
    .arena_bytes = offline_arena_bytes,
    .create = offline_create,
    .alloc = offline_alloc,
    .free = offline_free,
    .empty_cache = offline_empty_cache,
    .rounded = offline_rounded,
    .walk = offline_walk,
    .check = offline_check,
    .engine = &offline_engine,
};
