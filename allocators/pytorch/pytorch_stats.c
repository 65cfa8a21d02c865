/* What torch.cuda.memory_stats counts: kept only when someone will ask, since it costs more than
 * the allocator itself. Source: the stats of c10/cuda/CUDACachingAllocator.cpp. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/pytorch/pytorch_state.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"

typedef struct stat {
    int64_t current;
    int64_t peak;
    int64_t allocated; /* sum of the increases */
    int64_t freed;     /* sum of the decreases */
} stat;

/* In the order of their names. */
enum {
    ACTIVE,
    ACTIVE_BYTES,
    ALLOCATED_BYTES,
    ALLOCATION,
    INACTIVE_SPLIT,
    INACTIVE_SPLIT_BYTES,
    REQUESTED_BYTES,
    RESERVED_BYTES,
    SEGMENT,
    STAT_COUNT
};

static const char *const stat_names[STAT_COUNT] = {
    "active",          "active_bytes",   "allocated_bytes",
    "allocation",      "inactive_split", "inactive_split_bytes",
    "requested_bytes", "reserved_bytes", "segment",
};

enum { ALL, LARGE_POOL, SMALL_POOL, POOL_KINDS };

static const char *const pool_names[POOL_KINDS] = {"all", "large_pool", "small_pool"};

struct frag_pytorch_stats {
    stat stats[STAT_COUNT][POOL_KINDS];
    stat oversize_allocations;
    stat oversize_segments;
    int64_t max_split_bytes; /* when the allocator was made; -1: unlimited */
    int64_t retries;
    int64_t device_allocs;
    int64_t device_frees;
    int64_t rejections;
    int64_t ooms;
    int64_t sync_alls;
    stat private_reserved[][POOL_KINDS]; /* by pool */
};

size_t frag_pytorch_stats_bytes(uint32_t pool_count)
{
    return sizeof(frag_pytorch_stats) + pool_count * sizeof(stat[POOL_KINDS]);
}

void frag_pytorch_keep_stats(frag_policy *policy)
{
    uint64_t limit = policy->settings.max_split_bytes;
    policy->stats = policy->stats_room;
    policy->is_watched = true;
    frag_pytorch_settle(policy);
    policy->stats->max_split_bytes = limit == FRAG_UNLIMITED ? -1 : (int64_t)limit;
}

static void bump(stat *at, int64_t change)
{
    at->current += change;
    if (change > 0)
        at->allocated += change;
    else
        at->freed -= change;
    if (at->current > at->peak)
        at->peak = at->current;
}

static void count(frag_policy *policy, const frag_pytorch_list *list, int what, int64_t change)
{
    bump(&policy->stats->stats[what][ALL], change);
    bump(&policy->stats->stats[what][list->is_small ? SMALL_POOL : LARGE_POOL], change);
}

static bool is_oversize(const frag_policy *policy, uint64_t bytes)
{
    return bytes >= policy->settings.max_split_bytes;
}

static bool is_cut(const frag_pytorch_block *at)
{
    return at->prev != FRAG_PYTORCH_NONE || at->next != FRAG_PYTORCH_NONE;
}

static bool is_expandable(const frag_pytorch_block *at)
{
    return (at->list & FRAG_PYTORCH_EXPANDABLE) != 0;
}

void frag_pytorch_count_grant(frag_policy *policy, uint32_t id, uint64_t requested)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    policy->requested[id] = requested;
    count(policy, list, ALLOCATION, 1);
    count(policy, list, ALLOCATED_BYTES, (int64_t)at->bytes);
    count(policy, list, ACTIVE, 1);
    count(policy, list, ACTIVE_BYTES, (int64_t)at->bytes);
    count(policy, list, REQUESTED_BYTES, (int64_t)requested);
    if (is_oversize(policy, at->bytes))
        bump(&policy->stats->oversize_allocations, 1);
}

void frag_pytorch_count_alloc(frag_policy *policy, uint32_t id, uint64_t requested, bool is_split)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    if (is_split && !is_expandable(at)) {
        const frag_pytorch_block *rest = frag_pytorch_at(policy, at->next);
        bool was_cut = at->prev != FRAG_PYTORCH_NONE || rest->next != FRAG_PYTORCH_NONE;
        if (was_cut) {
            count(policy, list, INACTIVE_SPLIT_BYTES, -(int64_t)at->bytes);
        } else {
            count(policy, list, INACTIVE_SPLIT_BYTES, (int64_t)rest->bytes);
            count(policy, list, INACTIVE_SPLIT, 1);
        }
    } else if (is_cut(at) && !is_expandable(at)) {
        count(policy, list, INACTIVE_SPLIT_BYTES, -(int64_t)at->bytes);
        count(policy, list, INACTIVE_SPLIT, -1);
    }
    frag_pytorch_count_grant(policy, id, requested);
}

void frag_pytorch_count_free(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    count(policy, list, ALLOCATION, -1);
    count(policy, list, ALLOCATED_BYTES, -(int64_t)at->bytes);
    if (is_oversize(policy, at->bytes))
        bump(&policy->stats->oversize_allocations, -1);
}

/* A neighbour that will be coalesced into the block: its bytes, and whether anything lies behind
 * it. */
static bool swallow(const frag_policy *policy, uint32_t id, bool is_before, int64_t *blocks,
                    int64_t *bytes)
{
    if (id == FRAG_PYTORCH_NONE)
        return false;
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    if (!frag_pytorch_is_free(at))
        return true;
    *blocks -= 1;
    *bytes -= (int64_t)at->bytes;
    return (is_before ? at->prev : at->next) != FRAG_PYTORCH_NONE;
}

void frag_pytorch_count_complete(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    const frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    if (!is_expandable(at)) {
        int64_t blocks = 0;
        int64_t bytes = 0;
        bool stays_cut = swallow(policy, at->prev, true, &blocks, &bytes);
        stays_cut = swallow(policy, at->next, false, &blocks, &bytes) || stays_cut;
        if (stays_cut) {
            /* The coalesced block is all that it took in, and this block. */
            bytes = (int64_t)at->bytes;
            blocks += 1;
        }
        count(policy, list, INACTIVE_SPLIT, blocks);
        count(policy, list, INACTIVE_SPLIT_BYTES, bytes);
    }
    count(policy, list, ACTIVE, -1);
    count(policy, list, ACTIVE_BYTES, -(int64_t)at->bytes);
    count(policy, list, REQUESTED_BYTES, -(int64_t)policy->requested[id]);
}

void frag_pytorch_count_device(frag_policy *policy, const frag_pytorch_list *list, int64_t bytes,
                               bool is_segment)
{
    frag_pytorch_stats *stats = policy->stats;
    count(policy, list, RESERVED_BYTES, bytes);
    if (list->pool != 0) {
        bump(&stats->private_reserved[list->pool][ALL], bytes);
        bump(&stats->private_reserved[list->pool][list->is_small ? SMALL_POOL : LARGE_POOL], bytes);
    }
    if (bytes > 0)
        stats->device_allocs++;
    else
        stats->device_frees++;
    if (!is_segment)
        return;
    count(policy, list, SEGMENT, bytes > 0 ? 1 : -1);
    if (is_oversize(policy, (uint64_t)(bytes > 0 ? bytes : -bytes)))
        bump(&stats->oversize_segments, bytes > 0 ? 1 : -1);
}

void frag_pytorch_count_adopted_hole(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = frag_pytorch_at(policy, id);
    if (is_expandable(at) || !is_cut(at))
        return;
    count(policy, frag_pytorch_list_at(policy, at), INACTIVE_SPLIT, 1);
    count(policy, frag_pytorch_list_at(policy, at), INACTIVE_SPLIT_BYTES, (int64_t)at->bytes);
}

void frag_pytorch_count_event(frag_policy *policy, frag_pytorch_event event)
{
    frag_pytorch_stats *stats = policy->stats;
    switch (event) {
    case FRAG_PYTORCH_RETRY:
        stats->retries++;
        break;
    case FRAG_PYTORCH_OOM:
        stats->ooms++;
        break;
    case FRAG_PYTORCH_REJECTION:
        stats->rejections++;
        break;
    case FRAG_PYTORCH_SYNC_ALL:
        stats->sync_alls++;
        break;
    }
}

/* ---- reporting */

/* "1_0" before "1_10" before "1_2": as their names are sorted. */
static int compare_names(const frag_policy *policy, uint32_t left, uint32_t right)
{
    char a[48];
    char b[48];
    snprintf(a, sizeof a, "%" PRIu64 "_%" PRIu64 ".", policy->pool_ids[left].high,
             policy->pool_ids[left].low);
    snprintf(b, sizeof b, "%" PRIu64 "_%" PRIu64 ".", policy->pool_ids[right].high,
             policy->pool_ids[right].low);
    return strcmp(a, b);
}

static void visit_stat(const stat *at, const char *name, frag_stat_visitor *visit, void *context)
{
    char text[160];
    snprintf(text, sizeof text, "%s.allocated", name);
    visit(context, text, at->allocated);
    snprintf(text, sizeof text, "%s.current", name);
    visit(context, text, at->current);
    snprintf(text, sizeof text, "%s.freed", name);
    visit(context, text, at->freed);
    snprintf(text, sizeof text, "%s.peak", name);
    visit(context, text, at->peak);
}

static void visit_kinds(const stat *kinds, const char *what, frag_stat_visitor *visit,
                        void *context)
{
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        char name[128];
        snprintf(name, sizeof name, "%s.%s", what, pool_names[kind]);
        visit_stat(&kinds[kind], name, visit, context);
    }
}

/* Private pools that ever held memory, in the order of their names; there are few. */
static void visit_private_pools(const frag_policy *policy, frag_stat_visitor *visit, void *context)
{
    uint32_t last = 0;
    for (;;) {
        uint32_t next = 0;
        for (uint32_t pool = 1; pool < policy->pool_count; pool++)
            if (policy->stats->private_reserved[pool][ALL].peak > 0 &&
                (last == 0 || compare_names(policy, pool, last) > 0) &&
                (next == 0 || compare_names(policy, pool, next) < 0))
                next = pool;
        if (next == 0)
            return;
        char name[96];
        snprintf(name, sizeof name, "reserved_bytes_by_private_pools.%" PRIu64 "_%" PRIu64,
                 policy->pool_ids[next].high, policy->pool_ids[next].low);
        visit_kinds(policy->stats->private_reserved[next], name, visit, context);
        last = next;
    }
}

/* Sorted by name, as torch.cuda.memory_stats prints them. */
void frag_pytorch_stats_visit(const frag_policy *policy, frag_stat_visitor *visit, void *context)
{
    const frag_pytorch_stats *stats = policy->stats;
    uint32_t version = policy->settings.version;
    if (stats == NULL)
        return;
    for (int what = ACTIVE; what <= INACTIVE_SPLIT_BYTES; what++)
        visit_kinds(stats->stats[what], stat_names[what], visit, context);
    visit(context, "max_split_size", stats->max_split_bytes);
    visit(context, "num_alloc_retries", stats->retries);
    if (version >= 203) {
        visit(context, "num_device_alloc", stats->device_allocs);
        visit(context, "num_device_free", stats->device_frees);
    }
    if (version >= 212)
        visit(context, "num_oom_rejections", stats->rejections);
    visit(context, "num_ooms", stats->ooms);
    if (version >= 203)
        visit(context, "num_sync_all_streams", stats->sync_alls);
    visit_stat(&stats->oversize_allocations, "oversize_allocations", visit, context);
    visit_stat(&stats->oversize_segments, "oversize_segments", visit, context);
    visit_kinds(stats->stats[REQUESTED_BYTES], stat_names[REQUESTED_BYTES], visit, context);
    visit_kinds(stats->stats[RESERVED_BYTES], stat_names[RESERVED_BYTES], visit, context);
    if (version >= 213)
        visit_private_pools(policy, visit, context);
    visit_kinds(stats->stats[SEGMENT], stat_names[SEGMENT], visit, context);
}

static void reset_stat(stat *at, bool resets_peaks, bool resets_sums)
{
    if (resets_peaks)
        at->peak = at->current;
    if (resets_sums)
        at->allocated = at->freed = 0;
}

void frag_pytorch_reset_stats(frag_policy *policy, bool resets_peaks, bool resets_sums)
{
    frag_pytorch_stats *stats = policy->stats;
    if (stats == NULL)
        return;
    for (int what = 0; what < STAT_COUNT; what++)
        for (int kind = 0; kind < POOL_KINDS; kind++)
            reset_stat(&stats->stats[what][kind], resets_peaks, resets_sums);
    for (uint32_t pool = 1; pool < policy->pool_count; pool++)
        for (int kind = 0; kind < POOL_KINDS; kind++)
            reset_stat(&stats->private_reserved[pool][kind], resets_peaks, resets_sums);
    reset_stat(&stats->oversize_allocations, resets_peaks, resets_sums);
    reset_stat(&stats->oversize_segments, resets_peaks, resets_sums);
    if (!resets_sums)
        return;
    stats->retries = stats->device_allocs = stats->device_frees = 0;
    stats->rejections = stats->ooms = stats->sync_alls = 0;
}
