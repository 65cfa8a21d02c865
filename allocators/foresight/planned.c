/* A program's start and one iteration are planned, and all that follow served by that. In the
 * requests of a trace the first iteration is found that comes again as it is; everything up to its
 * end is packed, blocks that outlive it for good. Each request then gets its planned place as long
 * as sizes come in the planned order, iteration after iteration. A request that is not expected,
 * or whose place is taken, goes to best fit in a range of its own; where many are not
 * expected, they get the smallest gap in the plan's range where there is one.
 * Source: Guo and others, "STAlloc: Enhancing Memory Efficiency in Large-Scale Model Training with
 * Spatio-Temporal Planning", 2025, for the split into planned and other requests. Ours plans with
 * planner/plan.h, and finds the iteration in the recording itself. */
#include <stdlib.h>
#include <string.h>

#include "allocators/index/block_space.h"
#include "allocators/rule_texts.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "planner/plan.h"
#include "sim/policy_engine.h"

#define NONE UINT32_MAX

extern const frag_policy_ops frag_policy_best_fit;

enum { OPTION_ALIGN, OPTION_STEPS, OPTION_COUNT };

static const frag_option planned_options[] = {
    [OPTION_ALIGN] = {"align", FRAG_OPTION_BYTES, "512", .min = 1, .max = 1 << 30,
                      .help = "requests are rounded up to a multiple of this power of two"},
    [OPTION_STEPS] = {"steps", FRAG_OPTION_COUNT, "1000000", .max = FRAG_UNLIMITED,
                      .help = "budget of the search for a lower packing of the iteration"},
    [OPTION_COUNT] = {.key = NULL},
};

/* So many sizes in a row are taken for a place in the iteration. */
#define GRAM_SIZES 6u
/* Distances that are looked at as the length of an iteration, and how much of the trace must come
 * again; almost as much as at the best is enough for a shorter one. */
#define CANDIDATES_MAX 256u
#define LIKENESS_MIN 0.6
#define LIKENESS_ENOUGH 0.97
/* Of the most bytes live at once in the trace, so much must be live within what is planned: else
 * the iteration is not what the program is about. */
#define LOAD_MIN 0.9
/* The share of an iteration's requests that must come again. */
#define REPEATED_RATIO 0.9

/* A request that was not expected counts for two that were, up to the most; from the least on the
 * program is taken to do something else than what was planned. */
#define LOST_MIN 4u
#define LOST_MAX 64u

struct frag_policy_plan {
    frag_plan packing;
    uint64_t *sizes; /* of the planned requests: the start of the program, then the iteration */
    uint64_t *offsets;
    uint32_t count;   /* of planned requests; 0: nothing repeats */
    uint32_t start;   /* where the iteration begins; its end is the last of them */
    uint32_t *places; /* open addressing: 1 + where in the iteration a gram of sizes ends */
    uint32_t place_mask;
};

typedef struct planned_block {
    uint64_t address;
    uint64_t bytes;
    uint32_t inner; /* best fit's handle; unused records: the next unused one */
    bool is_held;
    bool is_planned;
} planned_block;

struct frag_policy {
    frag_device *device;
    const frag_policy_plan *plan;
    frag_policy *inner; /* best fit */
    frag_option_value inner_values[5];
    uint64_t align;
    uint64_t range_address;
    uint64_t range_bytes; /* 0: nothing is held for the plan */
    uint32_t expected;    /* the planned request that should come next */
    uint64_t last[GRAM_SIZES];
    uint64_t request_count;
    uint32_t lost; /* how far the requests of late were not those expected */
    planned_block *blocks;
    uint32_t block_max;
    uint32_t block_count;
    uint32_t unused;
    uint32_t *live; /* planned blocks in use, by address */
    uint32_t live_count;
    uint32_t *outer; /* by best fit's handle: ours */
};

/* ---- finding what repeats */

static uint64_t hash_gram(const uint64_t *sizes)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < GRAM_SIZES; i++)
        hash = (hash ^ sizes[i]) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

typedef struct distance {
    uint32_t requests;
    uint32_t count; /* grams that come again after so many requests */
} distance;

/* Grams are looked up in a table that no cache holds: its lines are fetched so far ahead. */
#define FETCHED_AHEAD 16u

/* How many grams of sizes come again after each number of requests, by that number. The caller
 * frees. */
static uint32_t *count_distances(const uint64_t *sizes, uint32_t count)
{
    uint32_t slots = (uint32_t)frag_power_of_two_up((uint64_t)count * 2 + 2);
    uint32_t *last = frag_alloc(slots, sizeof *last);
    uint32_t *counts = frag_alloc(count, sizeof *counts);
    uint32_t ahead[FETCHED_AHEAD] = {0}; /* slots of the grams that come next */
    uint32_t grams = count >= GRAM_SIZES ? count - GRAM_SIZES + 1 : 0;
    for (uint32_t i = 0; i < grams + FETCHED_AHEAD; i++) {
        uint32_t at = ahead[i % FETCHED_AHEAD];
        if (i < grams) {
            ahead[i % FETCHED_AHEAD] = (uint32_t)hash_gram(sizes + i) & (slots - 1);
            FRAG_PREFETCH(&last[ahead[i % FETCHED_AHEAD]]);
        }
        if (i < FETCHED_AHEAD)
            continue;
        uint32_t gram = i - FETCHED_AHEAD;
        while (last[at] != 0 &&
               memcmp(sizes + last[at] - 1, sizes + gram, GRAM_SIZES * sizeof *sizes) != 0)
            at = (at + 1) & (slots - 1);
        if (last[at] != 0)
            counts[gram + 1 - last[at]]++;
        last[at] = gram + 1;
    }
    frag_free(last);
    return counts;
}

/* The distances after which most grams come again, the most frequent first, the least of equals. */
static uint32_t find_distances(const uint64_t *sizes, uint32_t count, distance most[CANDIDATES_MAX])
{
    uint32_t *counts = count_distances(sizes, count);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (counts[i] == 0 || (found == CANDIDATES_MAX && counts[i] <= most[found - 1].count))
            continue;
        uint32_t at = found < CANDIDATES_MAX ? found++ : found - 1;
        for (; at > 0 && most[at - 1].count < counts[i]; at--)
            most[at] = most[at - 1];
        most[at] = (distance){i, counts[i]};
    }
    frag_free(counts);
    return found;
}

/* Requests that are compared before it is asked whether the rest can still matter. */
#define LIKENESS_STEP 65536u

/* Bytes that are equal in two rows of them. */
static uint32_t count_same_bytes(const unsigned char *one, const unsigned char *other,
                                 uint32_t count)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++)
        same += one[i] == other[i] ? 1 : 0;
    return same;
}

static uint32_t count_same_sizes(const uint64_t *one, const uint64_t *other, uint32_t count)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++)
        same += one[i] == other[i] ? 1 : 0;
    return same;
}

/* The requests of a trace, and a byte made of the size of each: where bytes differ sizes do, and
 * eight times as many bytes are compared at a time. */
typedef struct size_rows {
    const uint64_t *sizes;
    unsigned char *bytes;
    uint32_t count;
} size_rows;

/* The share of requests that are as large as the one so many requests later; 0: less than `least`.
 */
static double find_likeness(const size_rows *rows, uint32_t period, double least)
{
    uint32_t pairs = rows->count - period;
    uint32_t same = 0;
    for (int exactly = 0; exactly < 2; exactly++) {
        same = 0;
        for (uint32_t done = 0; done < pairs;) {
            uint32_t step = pairs - done > LIKENESS_STEP ? LIKENESS_STEP : pairs - done;
            uint32_t other = done + period;
            same += exactly ? count_same_sizes(rows->sizes + done, rows->sizes + other, step)
                            : count_same_bytes(rows->bytes + done, rows->bytes + other, step);
            done += step;
            if ((double)(same + (pairs - done)) / (double)pairs < least)
                return 0;
        }
    }
    return (double)same / (double)pairs;
}

/* After how many requests the trace is most like itself, the least of about equals; 0: after none
 * much. Layers of a network repeat within an iteration, but not across its ends, so the iteration
 * is liker. */
static uint32_t find_period(const uint64_t *sizes, uint32_t count)
{
    distance distances[CANDIDATES_MAX];
    uint32_t distance_count = find_distances(sizes, count, distances);
    size_rows rows = {.sizes = sizes, .count = count};
    rows.bytes = frag_alloc((size_t)count + 1, 1);
    for (uint32_t i = 0; i < count; i++)
        rows.bytes[i] = (unsigned char)(sizes[i] * 0x9e3779b97f4a7c15u >> 56);
    double likeness[CANDIDATES_MAX];
    double most = LIKENESS_MIN;
    for (uint32_t i = 0; i < distance_count; i++) {
        likeness[i] = 2 * (uint64_t)distances[i].requests <= count
                          ? find_likeness(&rows, distances[i].requests, LIKENESS_ENOUGH * most)
                          : 0;
        most = likeness[i] > most ? likeness[i] : most;
    }
    uint32_t period = 0;
    for (uint32_t i = 0; i < distance_count; i++)
        if (likeness[i] >= LIKENESS_ENOUGH * most &&
            (period == 0 || distances[i].requests < period))
            period = distances[i].requests;
    frag_free(rows.bytes);
    return period;
}

/* Where each request's release stands among the requests: the first that comes after it. */
static uint32_t *find_ends(const frag_lifetime *lifetimes, const uint32_t *numbers, uint32_t count)
{
    uint32_t *ends = frag_alloc(count, sizeof *ends);
    for (uint32_t i = 0; i < count; i++) {
        /* Most end soon. */
        uint32_t low = i + 1;
        uint32_t high = low;
        for (uint32_t step = 1;
             high < count && lifetimes[numbers[high]].lower < lifetimes[numbers[i]].upper;
             step *= 2) {
            low = high + 1;
            high = count - high > step ? high + step : count;
        }
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (lifetimes[numbers[middle]].lower < lifetimes[numbers[i]].upper)
                low = middle + 1;
            else
                high = middle;
        }
        ends[i] = low;
    }
    return ends;
}

/* The start of the first iteration that comes again as it is: of those within its length that do so
 * most exactly the point that the fewest bytes of short life cross; count: there is none. */
static uint32_t find_iteration(const uint64_t *sizes, const uint32_t *ends, uint32_t count,
                               uint32_t period)
{
    int64_t *crossing = frag_alloc((size_t)count + 1, sizeof *crossing);
    uint32_t *same = frag_alloc((size_t)count + 1, sizeof *same); /* among the first i */
    for (uint32_t i = 0; i < count; i++) {
        if (ends[i] - i < period) {
            crossing[i + 1 < count ? i + 1 : count] += (int64_t)sizes[i];
            crossing[ends[i]] -= (int64_t)sizes[i];
        }
        same[i + 1] = same[i] + (i + period < count && sizes[i] == sizes[i + period] ? 1 : 0);
    }
    uint32_t best = count;
    uint32_t first = count;
    int64_t live = 0;
    uint32_t most = 0;
    int64_t best_live = INT64_MAX;
    for (uint32_t i = 0; i + 2 * (uint64_t)period <= count; i++) {
        live += crossing[i];
        uint32_t repeated = same[i + period] - same[i];
        if ((double)repeated < REPEATED_RATIO * (double)period)
            continue;
        first = first == count ? i : first;
        if (i - first >= period)
            break;
        if (repeated > most || (repeated == most && live < best_live)) {
            most = repeated;
            best_live = live;
            best = i;
        }
    }
    frag_free(crossing);
    frag_free(same);
    return best;
}

/* Does most of what is live at once in the trace come up among its first requests already? Nothing
 * is made of sizes that cannot be packed. */
static bool has_most_load(const uint64_t *sizes, const uint32_t *ends, uint32_t count,
                          uint32_t planned)
{
    uint64_t *ending = frag_alloc((size_t)count + 1, sizeof *ending);
    uint64_t live = 0;
    uint64_t sum = 0;
    uint64_t most = 0;
    uint64_t most_planned = 0;
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = sizes[i] > 0 && frag_add(sum, sizes[i], &sum) && sum >> 62 == 0;
        ending[ends[i]] += sizes[i];
        live += sizes[i] - ending[i];
        most = live > most ? live : most;
        most_planned = i < planned ? most : most_planned;
    }
    frag_free(ending);
    return !ok || (double)most_planned >= LOAD_MIN * (double)most;
}

/* ---- the plan */

static void index_places(frag_policy_plan *plan)
{
    uint32_t period = plan->count - plan->start;
    plan->place_mask = (uint32_t)frag_power_of_two_up((uint64_t)period * 2) - 1;
    plan->places = frag_alloc((size_t)plan->place_mask + 1, sizeof *plan->places);
    for (uint32_t i = plan->start + GRAM_SIZES - 1; i < plan->count; i++) {
        const uint64_t *gram = plan->sizes + i + 1 - GRAM_SIZES;
        uint32_t at = (uint32_t)hash_gram(gram) & plan->place_mask;
        /* Of equal grams the first is enough, and many of them would make long searches. */
        while (plan->places[at] != 0 && memcmp(plan->sizes + plan->places[at] - GRAM_SIZES, gram,
                                               GRAM_SIZES * sizeof *gram) != 0)
            at = (at + 1) & plan->place_mask;
        if (plan->places[at] == 0)
            plan->places[at] = i + 1;
    }
}

static bool pack_requests(frag_policy_plan *plan, const frag_policy_plan_setup *setup,
                          const uint32_t *numbers, uint64_t end, frag_error *error)
{
    frag_buffer *buffers = frag_alloc(plan->count, sizeof *buffers);
    uint64_t align = setup->values[OPTION_ALIGN].number;
    for (uint32_t i = 0; i < plan->count; i++) {
        const frag_lifetime *at = &setup->lifetimes[numbers[i]];
        plan->sizes[i] = at->bytes;
        buffers[i] = (frag_buffer){at->lower, at->upper < end ? at->upper : end + 1,
                                   frag_round_up(at->bytes, align), align};
    }
    frag_plan_options options = {.capacity_bytes = FRAG_UNLIMITED,
                                 .steps = setup->values[OPTION_STEPS].number,
                                 .is_stopped = setup->limits.is_stopped,
                                 .context = setup->limits.context};
    bool ok = frag_plan_make(buffers, plan->count, &options, &plan->packing, error);
    if (ok)
        memcpy(plan->offsets, plan->packing.offsets, plan->count * sizeof *plan->offsets);
    frag_free(buffers);
    return ok;
}

static void planned_plan_destroy(frag_policy_plan *plan)
{
    frag_plan_destroy(&plan->packing);
    frag_free(plan->sizes);
    frag_free(plan->offsets);
    frag_free(plan->places);
    frag_free(plan);
}

static frag_policy_plan *planned_plan(const frag_policy_plan_setup *setup, frag_error *error)
{
    frag_policy_plan *plan = frag_alloc(1, sizeof *plan);
    uint64_t all = setup->lifetime_count;
    uint32_t *numbers = frag_alloc(all, sizeof *numbers);
    uint64_t *sizes = frag_alloc(all, sizeof *sizes);
    uint32_t count = 0;
    for (uint64_t i = 0; i < all && count < FRAG_BUFFER_COUNT_MAX; i++)
        if (setup->lifetimes[i].lower < setup->lifetimes[i].upper) {
            sizes[count] = setup->lifetimes[i].bytes;
            numbers[count++] = (uint32_t)i;
        }
    uint32_t period = find_period(sizes, count);
    uint32_t *ends = find_ends(setup->lifetimes, numbers, count);
    uint32_t start = period > 0 ? find_iteration(sizes, ends, count, period) : count;
    bool ok = true;
    uint64_t end = start < count ? setup->lifetimes[numbers[start + period]].lower : 0;
    uint32_t planned = start < count ? start + period : 0;
    while (planned > 0 && setup->lifetimes[numbers[planned - 1]].lower >= end)
        planned--; /* comes at the time of the end */
    if (start < count && has_most_load(sizes, ends, count, planned)) {
        plan->start = start;
        plan->count = start + period;
        plan->sizes = frag_alloc(plan->count, sizeof *plan->sizes);
        plan->offsets = frag_alloc(plan->count, sizeof *plan->offsets);
        ok = pack_requests(plan, setup, numbers, end, error);
        index_places(plan);
    }
    frag_free(ends);
    frag_free(sizes);
    frag_free(numbers);
    if (ok)
        return plan;
    planned_plan_destroy(plan);
    return NULL;
}

static void planned_plan_facts(const frag_policy_plan *plan, frag_policy_plan_facts *facts)
{
    *facts = (frag_policy_plan_facts){
        .answer = plan->count > 0 ? frag_plan_answer_name(plan->packing.answer) : "none",
        .peak_bytes = plan->packing.height_bytes,
        .bound_bytes = plan->packing.bound_bytes,
        .load_bytes = plan->packing.load_bytes,
    };
}

/* ---- the policy */

static void fill_inner_values(uint64_t align, frag_option_value *values)
{
    const uint64_t numbers[] = {align, 0, 2 * FRAG_MIB, 0, FRAG_UNLIMITED};
    for (uint32_t i = 0; i < 5; i++)
        values[i] = (frag_option_value){.number = numbers[i],
                                        .text = frag_policy_best_fit.options[i].default_text};
}

static uint32_t inner_handles(const frag_policy_limits *limits)
{
    return frag_block_space_records(limits, FRAG_SPACE_GROWING);
}

static size_t planned_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    frag_option_value inner[5];
    fill_inner_values(values[OPTION_ALIGN].number, inner);
    return sizeof(frag_policy) + 6 * 128 + frag_policy_best_fit.arena_bytes(limits, inner) +
           ((size_t)limits->live_count_max + 1) * (sizeof(planned_block) + sizeof(uint32_t)) +
           (size_t)inner_handles(limits) * sizeof(uint32_t);
}

static frag_policy *planned_create(const frag_policy_setup *setup, frag_error *error)
{
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    uint32_t live = setup->limits.live_count_max;
    policy->device = setup->device;
    policy->plan = setup->plan;
    policy->align = setup->values[OPTION_ALIGN].number;
    policy->block_max = live < UINT32_MAX ? live + 1 : UINT32_MAX;
    policy->unused = NONE;
    policy->blocks = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->blocks);
    policy->live = frag_arena_take(setup->arena, policy->block_max, sizeof *policy->live);
    policy->outer =
        frag_arena_take(setup->arena, inner_handles(&setup->limits), sizeof *policy->outer);
    fill_inner_values(policy->align, policy->inner_values);
    frag_policy_setup inner = *setup;
    inner.values = policy->inner_values;
    inner.plan = NULL;
    policy->inner = frag_policy_best_fit.create(&inner, error);
    return policy->inner != NULL ? policy : NULL;
}

/* The request's place in the iteration; NONE: it seems not to belong to it. */
static uint32_t follow(frag_policy *policy, uint64_t bytes)
{
    const frag_policy_plan *plan = policy->plan;
    if (plan == NULL || plan->count == 0)
        return NONE;
    memmove(policy->last, policy->last + 1, sizeof policy->last - sizeof policy->last[0]);
    policy->last[GRAM_SIZES - 1] = bytes;
    policy->request_count++;
    uint32_t place = policy->expected;
    if (plan->sizes[place] != bytes) {
        /* Lost: the last requests may tell where this is. */
        uint32_t at = (uint32_t)hash_gram(policy->last) & plan->place_mask;
        for (place = NONE; plan->places[at] != 0 && place == NONE;
             at = (at + 1) & plan->place_mask) {
            uint32_t end = plan->places[at] - 1;
            bool is_same = policy->request_count >= GRAM_SIZES;
            is_same = is_same && memcmp(plan->sizes + end + 1 - GRAM_SIZES, policy->last,
                                        sizeof policy->last) == 0;
            place = is_same ? end : NONE;
        }
        if (place == NONE)
            return NONE;
    }
    policy->expected = place + 1 < plan->count ? place + 1 : plan->start;
    return place;
}

/* The first live planned block at or above the address. */
static uint32_t find_live(const frag_policy *policy, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = policy->live_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (policy->blocks[policy->live[middle]].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The range that the plan lives in; whole pages, as the device gives them. */
static bool hold_range(frag_policy *policy)
{
    if (policy->range_bytes > 0)
        return true;
    uint64_t bytes = frag_round_up(policy->plan->packing.height_bytes, policy->device->page_bytes);
    if (frag_device_malloc(policy->device, bytes, &policy->range_address) != FRAG_DEVICE_OK)
        return false;
    policy->range_bytes = bytes;
    return true;
}

/* Is the planned place free? Then *live is where the block goes among the live ones. */
static bool is_free(frag_policy *policy, uint64_t offset, uint64_t bytes, uint32_t *live)
{
    if (!hold_range(policy))
        return false;
    uint64_t address = policy->range_address + offset;
    *live = find_live(policy, address);
    if (*live < policy->live_count && policy->blocks[policy->live[*live]].address < address + bytes)
        return false;
    if (*live == 0)
        return true;
    const planned_block *below = &policy->blocks[policy->live[*live - 1]];
    return below->address + below->bytes <= address;
}

static bool give_range_back(frag_policy *policy)
{
    if (policy->live_count > 0 || policy->range_bytes == 0)
        return false;
    (void)frag_device_free(policy->device, policy->range_address, policy->range_bytes);
    policy->range_bytes = 0;
    return true;
}

/* The smallest gap between live blocks of the range, the lowest among equals. */
static bool find_gap(const frag_policy *policy, uint64_t bytes, uint64_t *address, uint32_t *live)
{
    uint64_t least = UINT64_MAX;
    uint64_t at = policy->range_address;
    for (uint32_t i = 0; i <= policy->live_count; i++) {
        const planned_block *above =
            i < policy->live_count ? &policy->blocks[policy->live[i]] : NULL;
        uint64_t end = above != NULL ? above->address : policy->range_address + policy->range_bytes;
        if (end - at >= bytes && end - at < least) {
            least = end - at;
            *address = at;
            *live = i;
        }
        at = above != NULL ? above->address + above->bytes : at;
    }
    return least != UINT64_MAX;
}

static uint32_t take_record(frag_policy *policy)
{
    uint32_t id = policy->unused;
    if (id != NONE) {
        policy->unused = policy->blocks[id].inner;
        return id;
    }
    FRAG_ASSERT(policy->block_count < policy->block_max);
    return policy->block_count++;
}

static void place_block(frag_policy *policy, uint64_t address, uint64_t bytes, uint32_t live,
                        frag_grant *grant)
{
    uint32_t id = take_record(policy);
    policy->blocks[id] =
        (planned_block){.address = address, .bytes = bytes, .is_held = true, .is_planned = true};
    memmove(policy->live + live + 1, policy->live + live,
            (policy->live_count - live) * sizeof *policy->live);
    policy->live[live] = id;
    policy->live_count++;
    *grant = (frag_grant){.address = address, .block_bytes = bytes, .handle = id};
}

static bool planned_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    uint32_t place = follow(policy, request->bytes);
    uint64_t bytes = frag_round_up(request->bytes, policy->align);
    uint64_t address = 0;
    uint32_t live = 0;
    if (place == NONE)
        policy->lost += policy->lost + 2 <= LOST_MAX ? 2 : 0;
    else
        policy->lost -= policy->lost > 0 ? 1 : 0;
    if (place != NONE && is_free(policy, policy->plan->offsets[place], bytes, &live)) {
        place_block(policy, policy->range_address + policy->plan->offsets[place], bytes, live,
                    grant);
        return true;
    }
    if (policy->lost >= LOST_MIN && find_gap(policy, bytes, &address, &live)) {
        place_block(policy, address, bytes, live, grant);
        return true;
    }
    if (!frag_policy_best_fit.alloc(policy->inner, request, grant) &&
        !(give_range_back(policy) && frag_policy_best_fit.alloc(policy->inner, request, grant)))
        return false;
    uint32_t id = take_record(policy);
    policy->blocks[id] = (planned_block){.inner = grant->handle, .is_held = true};
    policy->outer[grant->handle] = id;
    grant->handle = id;
    return true;
}

static void planned_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    FRAG_ASSERT(handle < policy->block_count && policy->blocks[handle].is_held);
    planned_block *block = &policy->blocks[handle];
    if (block->is_planned) {
        uint32_t live = find_live(policy, block->address);
        FRAG_ASSERT(policy->live[live] == handle);
        policy->live_count--;
        memmove(policy->live + live, policy->live + live + 1,
                (policy->live_count - live) * sizeof *policy->live);
    } else {
        frag_policy_best_fit.free(policy->inner, block->inner, stream);
    }
    block->is_held = false;
    block->inner = policy->unused;
    policy->unused = handle;
}

static void planned_empty_cache(frag_policy *policy, uint32_t pool)
{
    (void)give_range_back(policy);
    frag_policy_best_fit.empty_cache(policy->inner, pool);
}

/* ---- walking and checking */

static void walk_range(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_span segment = {
        .kind = FRAG_SPAN_SEGMENT, .address = policy->range_address, .bytes = policy->range_bytes};
    visit(context, &segment);
    uint64_t at = policy->range_address;
    for (uint32_t i = 0; i <= policy->live_count; i++) {
        bool is_last = i == policy->live_count;
        uint64_t next = is_last ? policy->range_address + policy->range_bytes
                                : policy->blocks[policy->live[i]].address;
        if (next > at) {
            frag_span hole = {.kind = FRAG_SPAN_HOLE, .address = at, .bytes = next - at};
            visit(context, &hole);
        }
        if (is_last)
            return;
        frag_span block = {.kind = FRAG_SPAN_BLOCK,
                           .address = next,
                           .bytes = policy->blocks[policy->live[i]].bytes,
                           .handle = policy->live[i]};
        visit(context, &block);
        at = next + block.bytes;
    }
}

typedef struct renamed_walk {
    const frag_policy *policy;
    frag_span_visitor *visit;
    void *context;
} renamed_walk;

static void visit_renamed(void *context, const frag_span *span)
{
    const renamed_walk *to = context;
    frag_span renamed = *span;
    if (span->kind == FRAG_SPAN_BLOCK)
        renamed.handle = to->policy->outer[span->handle];
    to->visit(to->context, &renamed);
}

static void planned_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    if (policy->range_bytes > 0)
        walk_range(policy, visit, context);
    renamed_walk to = {policy, visit, context};
    frag_policy_best_fit.walk(policy->inner, visit_renamed, &to);
}

static bool planned_check(const frag_policy *policy, frag_error *error)
{
    uint64_t at = policy->range_address;
    for (uint32_t i = 0; i < policy->live_count; i++) {
        const planned_block *block = &policy->blocks[policy->live[i]];
        if (!block->is_held || !block->is_planned || block->address < at)
            return frag_fail(error, FRAG_E_INPUT, "planned block %u is not in its place",
                             policy->live[i]);
        at = block->address + block->bytes;
    }
    if (policy->live_count > 0 && at > policy->range_address + policy->range_bytes)
        return frag_fail(error, FRAG_E_INPUT, "a planned block ends outside of its range");
    uint32_t held_count = 0;
    for (uint32_t id = 0; id < policy->block_count; id++) {
        const planned_block *block = &policy->blocks[id];
        held_count += block->is_held ? 1 : 0;
        if (block->is_held && !block->is_planned && policy->outer[block->inner] != id)
            return frag_fail(error, FRAG_E_INPUT, "block %u is not known by best fit's name", id);
    }
    for (uint32_t id = policy->unused; id != NONE && held_count <= policy->block_count;
         id = policy->blocks[id].inner)
        held_count++;
    return (held_count == policy->block_count ||
            frag_fail(error, FRAG_E_INPUT, "a record is lost")) &&
           frag_policy_best_fit.check(policy->inner, error);
}

static uint64_t planned_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_round_up(bytes, policy->align);
}

static const frag_policy_rules planned_rules = {
    .rounding = FRAG_RULE_TO_ALIGN,
    .takes = "its place in the plan, if that is free: requests have one whose sizes follow in "
             "the order of the planned start and iteration. After a departure six sizes in a "
             "row find that order again. Otherwise as best-fit; when many recent sizes did not "
             "follow the order, the smallest gap in the plan's range is taken before that",
    .cuts = "places never; else as best-fit",
    .joins = "places never; else as best-fit",
    .grows = "one device malloc for the plan, which goes back on empty_cache and before a request "
             "fails, when nothing is in it; for the rest as best-fit",
    .streams = FRAG_RULE_IGNORED,
};

static const frag_policy_planner planned_planner = {
    .create = planned_plan,
    .facts = planned_plan_facts,
    .destroy = planned_plan_destroy,
};

static const frag_policy_engine planned_engine = {.planner = &planned_planner};

const frag_policy_ops frag_policy_planned = {
    .name = "planned",
    .summary = "packs the start of a trace and one iteration, and serves those that follow by "
               "that; best fit for the rest",
    .source = "Guo and others, STAlloc, 2025",
    .rules = &planned_rules,
    .bound = "",
    .options = planned_options,
    .arena_bytes = planned_arena_bytes,
    .create = planned_create,
    .alloc = planned_alloc,
    .free = planned_free,
    .empty_cache = planned_empty_cache,
    .rounded = planned_rounded,
    .walk = planned_walk,
    .check = planned_check,
    .engine = &planned_engine,
};
