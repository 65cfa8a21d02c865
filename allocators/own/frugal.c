/* Best fit in mapped address space whose free pages move to where they are wanted. Small and large
 * requests lie apart, and so do private pools. When no hole fits, pages are mapped where the fewest
 * are missing: new ones, at least 1/16 of the area but 32 to 64 MiB. Where these would make a new
 * peak, up to two large holes give up pages instead, one call per 96 MiB held being affordable.
 * Streams keep to their own holes and wait for another's only rather than map.
 * Source: best fit from Knuth, The Art of Computer Programming 1, section 2.5; mapping other pages
 * below the same addresses from GMLake (ASPLOS 2024) and PyTorch's expandable segments. Ours
 * differs: nothing is mapped twice, and what moves is weighed against the calls it takes. */
#include "allocators/index/page_space.h"
#include "allocators/rule_texts.h"
#include "base/bytes.h"

#define GRAIN_PART 64 /* a hole is worth a call when it has this part of all that is held */
#define GROW_PART 16  /* of an area: what it grows by */
#define MOVES_MAX 2   /* holes that give up pages for one request */

enum { OPTION_ALIGN, OPTION_SMALL, OPTION_GROW, OPTION_CALL_WORTH };

static const frag_option frugal_options[] = {
    {"align", FRAG_OPTION_BYTES, "512", .min = 1, .max = FRAG_GIB,
     .help = "requests are rounded up to a multiple of this power of two"},
    {"small", FRAG_OPTION_BYTES, "1MiB", .min = 0, .max = FRAG_GIB,
     .help = "requests up to this size lie apart from larger ones"},
    {"grow", FRAG_OPTION_BYTES, "32MiB", .min = 1, .max = 1024 * FRAG_GIB,
     .help = "least step of growth; a quarter of it for small requests; no step is forced above "
             "twice of it"},
    {"call_worth", FRAG_OPTION_BYTES, "96MiB", .min = 1, .max = FRAG_UNLIMITED,
     .help = "pages move while there are fewer device calls than one for this much held at the "
             "peak; unlimited: only when the device is full"},
    {.key = NULL},
};

struct frag_policy {
    frag_page_space space;
    uint64_t align;
    uint64_t small_bytes;
    uint64_t grow_bytes;
    uint64_t call_worth_bytes;
    uint64_t call_count; /* maps and unmaps */
    uint64_t mapped_max_bytes;
    uint32_t stream_count;
    uint32_t pool_count;
    uint32_t capture_count;
    uint32_t *owners; /* by pool */
};

/* Two for each pool, small and large; those of the default pool are the last, and its large one is
 * the very last, which has the most address space. */
static uint32_t area_count_of(const frag_policy_limits *limits)
{
    return 2 * limits->pool_count;
}

static inline uint32_t area_for(const frag_policy *policy, uint32_t pool, uint64_t bytes)
{
    return 2 * (policy->pool_count - 1 - pool) + (bytes > policy->small_bytes);
}

static uint32_t pool_of(const frag_policy *policy, uint32_t area)
{
    return policy->pool_count - 1 - area / 2;
}

static size_t frugal_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    return sizeof(frag_policy) + 2 * 64 + limits->pool_count * sizeof(uint32_t) +
           frag_page_space_bytes(limits, area_count_of(limits));
}

/* Twice what all requests take when nothing is reused: pages that move leave addresses behind. */
static uint64_t address_bytes(const frag_policy_setup *setup, uint64_t align, uint64_t grow_bytes)
{
    const frag_policy_limits *limits = &setup->limits;
    uint64_t slack = 0;
    uint64_t twice = 0;
    uint64_t bytes = 0;
    if (!frag_multiply(limits->request_count, align + 2 * setup->device->page_bytes, &slack) ||
        !frag_multiply(limits->requested_bytes_total, 2, &twice) ||
        !frag_add(slack, twice, &bytes) || !frag_add(bytes, 2 * grow_bytes, &bytes))
        return FRAG_UNLIMITED;
    return bytes;
}

static frag_policy *frugal_create(const frag_policy_setup *setup, frag_error *error)
{
    const frag_option_value *values = setup->values;
    uint64_t align = values[OPTION_ALIGN].number;
    uint64_t page = setup->device->page_bytes;
    if (!frag_is_power_of_two(align)) {
        (void)frag_fail(error, FRAG_E_USAGE, "align=%s is not a power of two",
                        values[OPTION_ALIGN].text);
        return NULL;
    }
    if (!frag_is_power_of_two(page)) {
        (void)frag_fail(error, FRAG_E_USAGE, "pages of %llu bytes are no power of two",
                        (unsigned long long)page);
        return NULL;
    }
    if (page % align != 0) {
        (void)frag_fail(error, FRAG_E_USAGE,
                        "align=%s does not divide the device's pages of %llu bytes",
                        values[OPTION_ALIGN].text, (unsigned long long)page);
        return NULL;
    }
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->align = align;
    policy->small_bytes = values[OPTION_SMALL].number;
    policy->grow_bytes = values[OPTION_GROW].number;
    policy->call_worth_bytes = values[OPTION_CALL_WORTH].number;
    policy->stream_count = setup->limits.stream_count;
    policy->pool_count = setup->limits.pool_count;
    policy->owners = frag_arena_take(setup->arena, policy->pool_count, sizeof *policy->owners);
    policy->owners[0] = 1;
    uint64_t needed = address_bytes(setup, align, policy->grow_bytes);
    if (!frag_page_space_create(&policy->space, setup, area_count_of(&setup->limits), needed,
                                error))
        return NULL;
    return policy;
}

/* A graph that lives writes to all memory of its pool, blocks or not. */
static bool is_movable(const frag_policy *policy, uint32_t area)
{
    uint32_t pool = pool_of(policy, area);
    return pool == 0 || policy->owners[pool] == 0;
}

/* The best of what other labels hold; clean memory before memory that must be waited for. */
static bool find_other(const frag_policy *policy, uint32_t area, uint32_t stream, uint64_t bytes,
                       uint32_t *hole)
{
    const frag_page_space *space = &policy->space;
    if (frag_free_index_best(&policy->space.store, frag_page_space_holes(space, area, space->clean),
                             bytes, hole))
        return true;
    uint64_t least = FRAG_UNLIMITED;
    for (uint32_t label = 0; label <= space->mixed; label++) {
        uint32_t id = 0;
        if (label == stream ||
            !frag_free_index_best(&policy->space.store, frag_page_space_holes(space, area, label),
                                  bytes, &id) ||
            space->records.blocks[id].bytes >= least)
            continue;
        least = space->records.blocks[id].bytes;
        *hole = id;
    }
    return least != FRAG_UNLIMITED;
}

static inline bool find(const frag_policy *policy, uint32_t area, uint32_t stream, uint64_t bytes,
                        uint32_t *hole)
{
    return frag_free_index_best(&policy->space.store,
                                frag_page_space_holes(&policy->space, area, stream), bytes, hole) ||
           find_other(policy, area, stream, bytes, hole);
}

/* The stream goes on when those that used the memory of a label have done what they have now. */
static void await(const frag_policy *policy, uint32_t label, uint32_t stream)
{
    frag_device *device = policy->space.device;
    for (uint32_t other = 0; other < policy->stream_count; other++) {
        if (other == stream || (label != other && label != policy->space.mixed))
            continue;
        uint64_t mark = frag_device_event_record(device, other);
        frag_device_event_await(device, stream, other, mark);
    }
}

/* The hole of any area that may lose pages to the run: see frag_page_space_donor. */
static bool find_donor(const frag_policy *policy, const frag_page_donor *wanted, uint32_t *hole)
{
    frag_page_donor best = *wanted;
    bool is_found = false;
    for (uint32_t area = 0; area < policy->space.area_count; area++)
        if (is_movable(policy, area) && frag_page_space_donor(&policy->space, area, &best, hole))
            is_found = true;
    return is_found;
}

/* Unmaps pages of up to count holes with at least this many bytes of them, until the run's missing
 * ones are gathered. Returns the bytes that are still missing. */
static uint64_t gather(frag_policy *policy, frag_page_run *run, uint64_t least, uint64_t count)
{
    uint64_t missing = run->missing;
    for (uint64_t i = 0; i < count && missing > 0; i++) {
        frag_page_donor wanted = {.least = least, .enough = missing, .spared = run};
        uint32_t hole = 0;
        uint64_t gained = find_donor(policy, &wanted, &hole)
                              ? frag_page_space_unmap(&policy->space, hole, missing, run)
                              : 0;
        if (gained == 0)
            break;
        policy->call_count++;
        missing -= gained;
    }
    return missing;
}

/* What a growth maps at least. */
static uint64_t step_of(const frag_policy *policy, uint32_t area, uint64_t bytes)
{
    uint64_t page = policy->space.device->page_bytes;
    uint64_t least = policy->grow_bytes;
    if (bytes <= policy->small_bytes)
        return frag_round_up(least / 4 == 0 ? 1 : least / 4, page);
    uint64_t part = policy->space.areas[area].mapped_bytes / GROW_PART;
    uint64_t step = part < least ? least : part > 2 * least ? 2 * least : part;
    return frag_round_up(step, page);
}

static bool map(frag_policy *policy, const frag_page_run *run, uint64_t bytes, uint32_t *hole)
{
    policy->call_count++;
    if (!frag_page_space_map(&policy->space, run, bytes, hole))
        return false;
    if (policy->space.mapped_bytes > policy->mapped_max_bytes)
        policy->mapped_max_bytes = policy->space.mapped_bytes;
    return true;
}

/* May pages move rather than that the run makes a new peak? */
static bool is_saving(const frag_policy *policy, const frag_page_run *run)
{
    uint64_t affordable = policy->mapped_max_bytes / policy->call_worth_bytes;
    return policy->capture_count == 0 && policy->call_count + MOVES_MAX <= affordable &&
           policy->space.mapped_bytes + run->missing > policy->mapped_max_bytes;
}

static bool grow(frag_policy *policy, uint32_t area, uint64_t bytes, const frag_page_run *run,
                 bool is_new, uint32_t *hole)
{
    uint64_t step = is_new ? step_of(policy, area, bytes) : 0;
    uint64_t wanted = run->missing < step ? step : run->missing;
    wanted = wanted < run->room ? wanted : run->room;
    return map(policy, run, wanted, hole) ||
           (wanted > run->missing && map(policy, run, run->missing, hole));
}

/* The device is full: whatever is free moves. */
static bool make_do(frag_policy *policy, uint32_t area, uint32_t stream, uint64_t bytes,
                    uint32_t *hole)
{
    frag_page_space *space = &policy->space;
    frag_page_run run;
    if (policy->capture_count > 0)
        return false; /* nothing may be waited for */
    (void)frag_device_synchronize(space->device);
    if (find(policy, area, stream, bytes, hole))
        return true;
    if (!frag_page_space_place(space, area, bytes, &run))
        return false;
    (void)gather(policy, &run, space->device->page_bytes, UINT64_MAX);
    return frag_page_space_place(space, area, bytes, &run) && map(policy, &run, run.missing, hole);
}

/* Makes a hole of at least bytes where there is none. false: out of memory. */
static bool make_room(frag_policy *policy, uint32_t area, uint32_t stream, uint64_t bytes,
                      uint32_t *hole)
{
    frag_page_space *space = &policy->space;
    uint64_t grain = space->mapped_bytes / GRAIN_PART;
    frag_page_run run;
    frag_device_for_all(space->device);
    if (!frag_page_space_place(space, area, bytes, &run))
        return false;
    uint64_t missing = run.missing;
    frag_page_donor wanted = {.least = grain, .enough = missing, .spared = &run};
    uint32_t donor = 0;
    if (is_saving(policy, &run) && find_donor(policy, &wanted, &donor)) {
        /* What is unmapped must not be in use, and what was waited for may do by itself. */
        (void)frag_device_synchronize(space->device);
        if (find(policy, area, stream, bytes, hole))
            return true;
        if (!frag_page_space_place(space, area, bytes, &run))
            return false;
        missing = gather(policy, &run, grain, MOVES_MAX);
    }
    return grow(policy, area, bytes, &run, missing > 0, hole) ||
           make_do(policy, area, stream, bytes, hole);
}

static bool frugal_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    frag_page_space *space = &policy->space;
    uint64_t bytes = frag_align_up(request->bytes, policy->align);
    uint32_t stream = request->stream;
    uint32_t area = area_for(policy, request->pool, bytes);
    if (FRAG_UNLIKELY(policy->owners[request->pool] == 0))
        policy->owners[request->pool] = 1; /* made before the recording began */
    uint32_t hole = 0;
    if (!find(policy, area, stream, bytes, &hole) && !make_room(policy, area, stream, bytes, &hole))
        return false;
    frag_block *block = &space->records.blocks[hole];
    uint32_t label = block->link;
    if (FRAG_UNLIKELY(label != stream && label != space->clean)) {
        await(policy, label, stream);
        /* The stream has waited for all others, so that what is left is safe for it too. */
        if (label == space->mixed)
            frag_page_space_relabel(space, hole, stream);
    }
    uint32_t granted = frag_page_space_cut(space, area, hole, bytes);
    block = &space->records.blocks[granted];
    block->link = stream;
    *grant = (frag_grant){.address = block->address, .block_bytes = bytes, .handle = granted};
    return true;
}

static void frugal_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    frag_page_space *space = &policy->space;
    FRAG_ASSERT(handle < space->records.record_count &&
                space->records.blocks[handle].state == FRAG_BLOCK_BUSY);
    uint32_t of = space->records.blocks[handle].link;
    frag_page_space_free(space, handle, of == stream ? stream : space->mixed);
}

static void frugal_empty_cache(frag_policy *policy, uint32_t pool)
{
    frag_page_space *space = &policy->space;
    if (policy->capture_count > 0)
        return;
    frag_device_for_all(space->device);
    (void)frag_device_synchronize(space->device);
    for (uint32_t area = 0; area < space->area_count; area++)
        if (is_movable(policy, area) && (pool == FRAG_POOL_ALL || pool == pool_of(policy, area)))
            policy->call_count += frag_page_space_give_back(space, area);
}

static void frugal_pool_change(frag_policy *policy, frag_pool_change change, uint32_t pool,
                               uint32_t stream)
{
    (void)stream;
    if (pool == 0 || pool >= policy->pool_count)
        return;
    if (change == FRAG_POOL_CREATED || change == FRAG_POOL_BEGUN)
        policy->owners[pool]++;
    else if ((change == FRAG_POOL_ENDED || change == FRAG_POOL_RELEASED) &&
             policy->owners[pool] > 0)
        policy->owners[pool]--;
}

static void frugal_capture(frag_policy *policy, bool begins)
{
    if (begins)
        policy->capture_count++;
    else if (policy->capture_count > 0)
        policy->capture_count--;
}

static uint64_t frugal_rounded(const frag_policy *policy, uint64_t bytes)
{
    return frag_align_up(bytes, policy->align);
}

static void frugal_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    frag_page_space_walk(&policy->space, visit, context);
}

static bool frugal_check(const frag_policy *policy, frag_error *error)
{
    return frag_page_space_check(&policy->space, error);
}

static const frag_policy_rules frugal_rules = {
    .rounding = FRAG_RULE_TO_ALIGN,
    .takes = "the smallest free block that fits, the lowest of equal ones: first of those of "
             "its stream, then of those that every stream may use, then of those of other "
             "streams, which it waits for; all within its area (requests up to small, larger "
             "ones, or a private pool). Only then are pages mapped",
    .cuts = FRAG_RULE_LOW_END,
    .joins = "with free neighbours of its area, at once",
    .grows = "pages are mapped where the fewest are missing, by at least grow where there is "
             "room, for small requests a quarter of it. Where that would make a new peak, up "
             "to two large holes give up their pages instead (call_worth); as many as it takes "
             "when the device refuses. All free pages go back on empty_cache",
    .streams = "a free block belongs to the stream that used it; where several did, each waits for "
               "the others",
};

const frag_policy_ops frag_policy_frugal = {
    .name = "frugal",
    .summary =
        "best fit over mapped pages; free ones move to where they are missing, few at a time",
    .source = "fraglab's own: docs/own-policy.md",
    .rules = &frugal_rules,
    .bound = "before the device is full, no more unmaps than peak / call_worth but for empty_cache",
    .options = frugal_options,
    .arena_bytes = frugal_arena_bytes,
    .create = frugal_create,
    .alloc = frugal_alloc,
    .free = frugal_free,
    .empty_cache = frugal_empty_cache,
    .pool_change = frugal_pool_change,
    .capture = frugal_capture,
    .rounded = frugal_rounded,
    .walk = frugal_walk,
    .check = frugal_check,
};
