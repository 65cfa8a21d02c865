/* Expandable segments: one reserved range of addresses for each pool, stream and size class.
 *
 * A range is mapped from its beginning on, so that what was ever mapped of it has no holes but
 * where memory was unmapped. Memory that is mapped elsewhere begins another range, and PyTorch
 * reserves another one only for another pool as long as the first has room. */
#include "base/bytes.h"
#include "base/memory.h"
#include "traces/torch/pools/snapshot_pool_walk.h"
#include "traces/torch/history/snapshot_bursts.h"

#define SMALL_PAGE_BYTES (2 * FRAG_MIB)
#define SMALL_BYTES_MAX FRAG_MIB

/* Ranges alive at once; they are looked for one by one. */
enum { RANGES_MAX = 256, EDGES_PER_WALK = 1 << 12 };

static frag_pool_range *range_at(const frag_pool_walker *state, uint64_t address, uint64_t slack)
{
    for (size_t i = 0; i < state->range_count; i++) {
        frag_pool_range *range = &state->ranges[i];
        if (address >= range->base && address < range->end + slack)
            return range;
    }
    return NULL;
}

/* A range that still has memory at the end names its pool there. */
static void know_pool(frag_pool_walker *state, const frag_pool_range *range)
{
    frag_colour_piece *piece = &state->colours.pieces[range->piece];
    const frag_snapshot_device *device = state->device;
    for (size_t i = 0; i < device->segment_count; i++)
        if (device->segments[i].address >= range->base &&
            device->segments[i].address < range->end) {
            piece->is_known = true;
            piece->colour = frag_pool_walker_colour(state, device->segments[i].pool);
            return;
        }
}

static bool is_of_kind(const frag_colour_piece *piece, const frag_colour_piece *other)
{
    return piece->stream == other->stream && piece->is_small == other->is_small;
}

static void begin_range(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    frag_colour_piece made = {
        .address = entry->address,
        .bytes = entry->bytes,
        .stream = frag_snapshot_stream(state->snapshot, entry),
        .taken = index,
        .given = FRAG_ENTRY_NEVER,
        .first_alloc = FRAG_ENTRY_NEVER,
        .is_small = entry->bytes == SMALL_PAGE_BYTES,
    };
    uint32_t piece = state->next_piece++;
    if (piece == state->colours.piece_count)
        frag_colours_add(&state->colours, &made);
    for (size_t i = 0; i < state->range_count; i++) {
        const frag_pool_range *range = &state->ranges[i];
        uint64_t distance = range->base < entry->address ? entry->address - range->base
                                                         : range->base - entry->address;
        if (distance < state->range_distance)
            state->range_distance = distance;
    }
    for (size_t i = 0; i < state->range_count; i++) {
        const frag_pool_range *range = &state->ranges[i];
        bool has_room = range->end - range->base + entry->bytes <= state->range_distance;
        if (has_room && is_of_kind(&made, &state->colours.pieces[range->piece]))
            frag_pool_walker_differ(state, range->piece, piece);
    }
    if (state->range_count == RANGES_MAX) {
        state->is_lost = true;
        return;
    }
    *FRAG_APPEND(state->ranges, state->range_count, state->range_capacity) = (frag_pool_range){
        .base = entry->address,
        .end = entry->address + entry->bytes,
        .mapped_bytes = entry->bytes,
        .piece = piece,
    };
}

static void set_pool(const frag_pool_walker *state, uint64_t index, uint32_t piece)
{
    if (state->sets_pools)
        state->device->entries[index].pool = state->pools[state->colours.pieces[piece].colour];
}

static void walk_map(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    frag_pool_range *range = range_at(state, entry->address, 1);
    if (range == NULL) {
        begin_range(state, index);
        if (!state->is_lost)
            set_pool(state, index, state->ranges[state->range_count - 1].piece);
        return;
    }
    const frag_colour_piece *piece = &state->colours.pieces[range->piece];
    if (piece->stream != frag_snapshot_stream(state->snapshot, entry) ||
        (piece->is_small && entry->bytes != SMALL_PAGE_BYTES)) {
        state->is_lost = true;
        return;
    }
    if (entry->address + entry->bytes > range->end)
        range->end = entry->address + entry->bytes;
    range->mapped_bytes += entry->bytes;
    set_pool(state, index, range->piece);
}

/* A range without memory is given up, and its addresses may come again. */
static void walk_unmap(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    frag_pool_range *range = range_at(state, entry->address, 0);
    if (range == NULL || entry->bytes > range->mapped_bytes) {
        state->is_lost = true;
        return;
    }
    frag_colour_piece *piece = &state->colours.pieces[range->piece];
    frag_colour_piece before = *piece;
    frag_pool_walker_give(state, range->piece, index);
    if (before.given < index) { /* the first time counts */
        piece->given = before.given;
        piece->burst = before.burst;
    }
    set_pool(state, index, range->piece);
    range->mapped_bytes -= entry->bytes;
    if (range->mapped_bytes == 0)
        *range = state->ranges[--state->range_count];
}

static void walk_alloc(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_pool_range *range = range_at(state, entry->address, 0);
    uint64_t rounded = frag_snapshot_round(&state->snapshot->settings, entry->bytes);
    if (range == NULL) {
        state->is_lost = true;
        return;
    }
    frag_colour_piece *piece = &state->colours.pieces[range->piece];
    bool is_of_size = entry->is_placed || piece->is_small == (rounded <= SMALL_BYTES_MAX);
    if (piece->stream != frag_snapshot_stream(state->snapshot, entry) || !is_of_size) {
        state->is_lost = true;
        return;
    }
    if (piece->first_alloc == FRAG_ENTRY_NEVER)
        piece->first_alloc = index;
    piece->last_alloc = index;
    state->last_piece = range->piece;
    state->piece_of[entry->block] = range->piece;
}

/* What is free in ranges is not followed. A request that failed on a stream of its own is taken for
 * one of the private pool that served the last request, if it was on that stream: a capture goes
 * on. */
static void walk_oom(const frag_pool_walker *state, uint64_t index)
{
    if (!state->sets_pools || state->last_piece == FRAG_PIECE_NONE)
        return;
    const frag_colour_piece *piece = &state->colours.pieces[state->last_piece];
    uint64_t stream = frag_snapshot_stream(state->snapshot, &state->device->entries[index]);
    if (piece->colour != FRAG_COLOUR_DEFAULT && piece->stream == stream && stream != 0)
        frag_pool_walker_fail(state, index, piece->colour);
}

static void walk_entry(frag_pool_walker *state, uint64_t index)
{
    uint32_t action = state->device->entries[index].action;
    bool is_part = action == FRAG_SNAPSHOT_SEGMENT_MAP || action == FRAG_SNAPSHOT_SEGMENT_UNMAP ||
                   frag_snapshot_is_late(state->device, index);
    frag_pool_walker_enter(state, index, is_part);
    if (action == FRAG_SNAPSHOT_SEGMENT_MAP)
        walk_map(state, index);
    else if (action == FRAG_SNAPSHOT_SEGMENT_UNMAP)
        walk_unmap(state, index);
    else if (action == FRAG_SNAPSHOT_ALLOC)
        walk_alloc(state, index);
    else if (action == FRAG_SNAPSHOT_OOM)
        walk_oom(state, index);
}

bool frag_pool_walk_ranges(frag_pool_walker *state)
{
    state->edge_max = state->colours.edge_count + EDGES_PER_WALK;
    state->range_count = 0;
    state->range_distance = UINT64_MAX;
    state->next_piece = 0;
    state->last_piece = FRAG_PIECE_NONE;
    state->is_in_run = false;
    state->given_count = 0;
    state->disorder = 0;
    for (uint64_t i = 0; i < state->device->entry_count && !state->is_lost; i++)
        walk_entry(state, i);
    frag_pool_walker_end_run(state, state->device->entry_count);
    for (size_t i = 0; i < state->range_count; i++)
        know_pool(state, &state->ranges[i]);
    return !state->is_lost;
}
