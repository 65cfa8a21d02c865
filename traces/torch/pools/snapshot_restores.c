/* PyTorch restores a private pool in this way: it frees every block of the pool; then, one segment
 * after the other, it takes all of the segment, block by block as they lay, and frees those again
 * that were free. So a restore shows as requests that fill whole segments of a pool in which
 * nothing is in use, one behind the other, and of which at least one lies where a search for the
 * best fit would not have put it. A program that itself fills its segments so is left alone. */
#include "traces/torch/pools/snapshot_restores.h"

#include <stdlib.h>

#include "base/memory.h"

/* Of blocks; the largest request that the small pool serves, and the largest segment of it. */
#define BLOCK_UNIT 512u
#define SMALL_REQUEST_MAX (UINT64_C(1) << 20)
#define SMALL_SEGMENT_MAX (UINT64_C(2) << 20)

typedef struct hole {
    uint64_t address;
    uint64_t bytes;
    uint64_t segment; /* its address */
    bool is_small;
} hole;

typedef struct hole_list {
    hole *holes;
    size_t count;
    size_t capacity;
} hole_list;

typedef struct restore_finder {
    const frag_snapshot *snapshot;
    const frag_snapshot_device *device;
    const frag_rewound *rewound;
    frag_held_ranges ranges;
    uint64_t *live;   /* by pool: blocks in use, or waiting for a stream */
    uint8_t *is_live; /* by block of the rewound history */
    uint64_t *filled; /* addresses of the segments that the restore being looked at has filled */
    size_t filled_count;
    size_t filled_capacity;
    uint64_t restores;
    uint64_t first; /* entry of the first restore */
} restore_finder;

static void set_live(restore_finder *state, uint32_t block, bool is_live)
{
    if (block >= state->rewound->block_count || state->is_live[block] == is_live)
        return;
    const frag_rewound_block *at = &state->rewound->blocks[block];
    state->is_live[block] = is_live;
    state->live[at->pool] += is_live ? 1 : UINT64_MAX;
}

/* May a request be of a private pool? Where pools are not named: a graph is captured on a stream of
 * its own, which is not the default one. */
static bool may_be_private(const restore_finder *state, const frag_snapshot_entry *entry)
{
    return entry->pool != 0 ||
           (!state->rewound->has_pools && frag_snapshot_stream(state->snapshot, entry) != 0);
}

static bool has_private(const restore_finder *state)
{
    for (uint64_t i = 0; i < state->device->entry_count; i++)
        if (state->device->entries[i].action == FRAG_SNAPSHOT_ALLOC &&
            may_be_private(state, &state->device->entries[i]))
            return true;
    return false;
}

/* May a request be the first of a restore? Of a pool that is not named, nothing shows what else was
 * in use. */
static bool may_begin(const restore_finder *state, const frag_snapshot_entry *entry)
{
    return may_be_private(state, entry) && (entry->pool == 0 || state->live[entry->pool] == 0);
}

static void begin(restore_finder *state)
{
    for (size_t i = 0; i < state->rewound->range_count; i++)
        (void)frag_held_ranges_add(&state->ranges, &state->rewound->ranges[i]);
    for (size_t i = 0; i < state->rewound->initial_count; i++)
        set_live(state, state->rewound->initial[i], true);
}

static bool is_filled(const restore_finder *state, uint64_t address)
{
    for (size_t i = 0; i < state->filled_count; i++)
        if (state->filled[i] == address)
            return true;
    return false;
}

/* Frees of blocks of one segment, from the lowest address up. Returns the entry behind them. */
static uint64_t skip_frees(const restore_finder *state, uint64_t at, const frag_held_range *range)
{
    const frag_snapshot_entry *entries = state->device->entries;
    uint64_t lowest = range->address;
    while (at + 1 < state->device->entry_count &&
           entries[at].action == FRAG_SNAPSHOT_FREE_REQUESTED &&
           entries[at + 1].action == FRAG_SNAPSHOT_FREE_COMPLETED &&
           entries[at].block == entries[at + 1].block && entries[at].address >= lowest &&
           entries[at].address - range->address < range->bytes) {
        lowest = entries[at].address + 1;
        at += 2;
    }
    return at;
}

/* A segment that requests from an entry on fill from its beginning to its end, and what is freed
 * of it then. Returns the entry behind all that; the same one when there is no such segment. */
static uint64_t skip_segment(restore_finder *state, uint64_t first)
{
    const frag_snapshot_entry *entries = state->device->entries;
    if (first == state->device->entry_count || entries[first].action != FRAG_SNAPSHOT_ALLOC)
        return first;
    const frag_held_range *range = frag_held_ranges_find(&state->ranges, entries[first].address);
    if (range == NULL || range->address != entries[first].address ||
        range->pool != entries[first].pool ||
        range->stream != frag_snapshot_stream(state->snapshot, &entries[first]) ||
        is_filled(state, range->address))
        return first;
    uint64_t filled = 0;
    uint64_t at = first;
    for (; filled < range->bytes; at++) {
        if (at == state->device->entry_count || entries[at].action != FRAG_SNAPSHOT_ALLOC ||
            entries[at].is_dropped || entries[at].address != range->address + filled ||
            entries[at].bytes > range->bytes - filled || entries[at].bytes % BLOCK_UNIT != 0)
            return first;
        filled += entries[at].bytes;
    }
    *FRAG_APPEND(state->filled, state->filled_count, state->filled_capacity) = range->address;
    return skip_frees(state, at, range);
}

static void add_hole(hole_list *list, const frag_held_range *segment, uint64_t address,
                     uint64_t bytes)
{
    *FRAG_APPEND(list->holes, list->count, list->capacity) =
        (hole){address, bytes, segment->address, segment->bytes <= SMALL_SEGMENT_MAX};
}

/* The pool's segments, all of them free; of a pool that is not named, those that get filled. */
static void add_segments(const restore_finder *state, const frag_snapshot_entry *entry,
                         hole_list *list)
{
    uint64_t stream = frag_snapshot_stream(state->snapshot, entry);
    frag_held_range *ranges = frag_held_ranges_list(&state->ranges);
    for (size_t i = 0; i < state->ranges.count; i++)
        if (ranges[i].pool == entry->pool && ranges[i].stream == stream &&
            (entry->pool != 0 || is_filled(state, ranges[i].address)))
            add_hole(list, &ranges[i], ranges[i].address, ranges[i].bytes);
    frag_free(ranges);
}

/* Blocks of a segment are freed from the lowest up: one may lie right behind the last that was. */
static void free_block(const restore_finder *state, const frag_snapshot_entry *entry,
                       hole_list *list)
{
    const frag_held_range *segment = frag_held_ranges_find(&state->ranges, entry->address);
    hole *last = list->count > 0 ? &list->holes[list->count - 1] : NULL;
    if (last != NULL && last->segment == segment->address &&
        last->address + last->bytes == entry->address)
        last->bytes += entry->bytes;
    else
        add_hole(list, segment, entry->address, entry->bytes);
}

/* Takes bytes at address if a search for the best fit finds that place: in the smallest hole of the
 * request's kind that is large enough, of these in the lowest, at its beginning. */
static bool search_takes(const hole_list *list, uint64_t address, uint64_t bytes)
{
    hole *taken = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (list->holes[i].address == address && list->holes[i].bytes >= bytes &&
            list->holes[i].is_small == (bytes <= SMALL_REQUEST_MAX))
            taken = &list->holes[i];
    for (size_t i = 0; taken != NULL && i < list->count; i++) {
        const hole *other = &list->holes[i];
        if (other->is_small == taken->is_small && other->bytes >= bytes &&
            (other->bytes < taken->bytes ||
             (other->bytes == taken->bytes && other->address < taken->address)))
            taken = NULL;
    }
    if (taken == NULL)
        return false;
    taken->address += bytes;
    taken->bytes -= bytes;
    return true;
}

/* Would a search have put each of these requests where it lies? */
static bool is_searched(const restore_finder *state, uint64_t first, uint64_t end)
{
    const frag_snapshot_entry *entries = state->device->entries;
    hole_list list = {0};
    bool is_so = true;
    add_segments(state, &entries[first], &list);
    for (uint64_t i = first; i < end && is_so; i++)
        if (entries[i].action == FRAG_SNAPSHOT_FREE_COMPLETED)
            free_block(state, &entries[i], &list);
        else if (entries[i].action == FRAG_SNAPSHOT_ALLOC)
            is_so = search_takes(&list, entries[i].address, entries[i].bytes);
    frag_free(list.holes);
    return is_so;
}

/* One request that takes a whole segment shows nothing. */
static void look_at(restore_finder *state, uint64_t first)
{
    frag_snapshot_entry *entries = state->device->entries;
    uint64_t end = first;
    uint64_t requests = 0;
    state->filled_count = 0;
    for (uint64_t next = skip_segment(state, end); next > end; next = skip_segment(state, end))
        end = next;
    for (uint64_t i = first; i < end; i++)
        requests += entries[i].action == FRAG_SNAPSHOT_ALLOC ? 1 : 0;
    if (requests < 2 || is_searched(state, first, end))
        return;
    for (uint64_t i = first; i < end; i++)
        entries[i].is_placed = entries[i].action == FRAG_SNAPSHOT_ALLOC;
    state->first = state->restores == 0 ? first : state->first;
    state->restores++;
}

static void walk_entry(restore_finder *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    frag_held_range range = {.address = entry->address,
                             .bytes = entry->bytes,
                             .stream = frag_snapshot_stream(state->snapshot, entry),
                             .pool = entry->pool,
                             .is_expandable = entry->action == FRAG_SNAPSHOT_SEGMENT_MAP};
    switch (entry->action) {
    case FRAG_SNAPSHOT_ALLOC:
        if (!entry->is_placed && may_begin(state, entry))
            look_at(state, index);
        set_live(state, entry->block, true);
        break;
    case FRAG_SNAPSHOT_FREE_COMPLETED:
    case FRAG_SNAPSHOT_FREE:
        set_live(state, entry->block, false);
        break;
    case FRAG_SNAPSHOT_SEGMENT_ALLOC:
        (void)frag_held_ranges_add(&state->ranges, &range);
        break;
    case FRAG_SNAPSHOT_SEGMENT_FREE:
        frag_held_ranges_remove(&state->ranges, entry->address);
        break;
    case FRAG_SNAPSHOT_SEGMENT_MAP:
        (void)frag_held_ranges_map(&state->ranges, &range);
        break;
    case FRAG_SNAPSHOT_SEGMENT_UNMAP:
        (void)frag_held_ranges_cut(&state->ranges, entry->address, entry->bytes);
        break;
    default:
        break;
    }
}

void frag_snapshot_restores_find(frag_snapshot *snapshot, uint32_t device,
                                 const frag_rewound *rewound, frag_findings *findings)
{
    restore_finder state = {
        .snapshot = snapshot, .device = &snapshot->devices[device], .rewound = rewound};
    if (!has_private(&state))
        return;
    state.live = frag_alloc(snapshot->pools.count, sizeof *state.live);
    state.is_live = frag_alloc(rewound->block_count, sizeof *state.is_live);
    begin(&state);
    for (uint64_t i = 0; i < state.device->entry_count; i++)
        if (!state.device->entries[i].is_dropped)
            walk_entry(&state, i);
    if (state.restores > 0)
        frag_findings_add(findings, "pool-restored",
                          "a private pool was brought back to a layout that it had before, as "
                          "torch.compile does with CUDA graphs; its blocks are placed as recorded",
                          false, device, state.first, "%llu times",
                          (unsigned long long)state.restores);
    frag_held_ranges_destroy(&state.ranges);
    frag_free(state.live);
    frag_free(state.is_live);
    frag_free(state.filled);
}
