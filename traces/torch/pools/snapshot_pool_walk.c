#include "traces/torch/pools/snapshot_pool_walk.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "traces/torch/history/snapshot_bursts.h"

#define SMALL_BYTES_MAX FRAG_MIB
#define SMALL_SEGMENT_BYTES (2 * FRAG_MIB)
#define SPLIT_SMALL_BYTES_MIN 512u
#define SPLIT_LARGE_BYTES_ABOVE FRAG_MIB
#define UNSPLIT_SLACK_BYTES (20 * FRAG_MIB)

/* Most edges found by one request, one release and one walk (the next walk continues), and most
 * segments and blocks visited: they keep the time linear in the size of a hostile file. */
enum { EDGES_PER_REQUEST = 8, EDGES_PER_BURST = 1024, EDGES_PER_WALK = 1 << 12 };
enum { LOOKS_MAX = 1 << 24, STEPS_MAX = 1 << 28, LISTS_MAX = 1024 };

/* ---- pieces */

uint32_t frag_pool_walker_colour(frag_pool_walker *state, uint32_t pool)
{
    uint32_t colour = 0;
    while (colour < state->known_colours && state->pools[colour] != pool)
        colour++;
    if (colour == FRAG_COLOUR_MAX) {
        state->is_lost = true;
        return FRAG_COLOUR_DEFAULT;
    }
    if (colour == state->known_colours)
        state->pools[state->known_colours++] = pool;
    return colour;
}

static void add_piece(frag_pool_walker *state, const frag_colour_piece *made, uint32_t pool)
{
    frag_colour_piece piece = *made;
    piece.given = FRAG_ENTRY_NEVER;
    /* Where a history begins late, all was in use before. */
    piece.first_alloc = made->taken == FRAG_ENTRY_NEVER ? 0 : FRAG_ENTRY_NEVER;
    piece.is_small = made->bytes == SMALL_SEGMENT_BYTES;
    piece.colour = frag_pool_walker_colour(state, pool);
    frag_colours_add(&state->colours, &piece);
}

static void add_pieces(frag_pool_walker *state)
{
    const frag_rewound *rewound = state->rewound;
    for (size_t i = 0; i < rewound->range_count; i++)
        add_piece(state,
                  &(frag_colour_piece){.address = rewound->ranges[i].address,
                                       .bytes = rewound->ranges[i].bytes,
                                       .stream = rewound->ranges[i].stream,
                                       .taken = FRAG_ENTRY_NEVER},
                  rewound->ranges[i].pool);
    for (size_t i = 0; i < rewound->segment_entry_count && !state->is_lost; i++) {
        uint32_t index = rewound->segment_entries[i];
        const frag_snapshot_entry *entry = &state->device->entries[index];
        if (entry->action == FRAG_SNAPSHOT_SEGMENT_ALLOC)
            add_piece(state,
                      &(frag_colour_piece){.address = entry->address,
                                           .bytes = entry->bytes,
                                           .stream = frag_snapshot_stream(state->snapshot, entry),
                                           .taken = index},
                      entry->pool);
    }
}

void frag_pool_walker_create(frag_pool_walker *state, frag_snapshot *snapshot, uint32_t device,
                             frag_rewound *rewound, bool is_expandable)
{
    *state = (frag_pool_walker){
        .snapshot = snapshot,
        .device = &snapshot->devices[device],
        .rewound = rewound,
        .known_colours = 1,
        .is_expandable = is_expandable,
    };
    state->pools = frag_alloc(FRAG_COLOUR_MAX, sizeof *state->pools);
    state->block_of = frag_alloc(rewound->block_count, sizeof *state->block_of);
    state->piece_of = frag_alloc(rewound->block_count, sizeof *state->piece_of);
    memset(state->piece_of, 0xff, rewound->block_count * sizeof *state->piece_of);
    if (!is_expandable)
        add_pieces(state);
}

void frag_pool_walker_destroy(frag_pool_walker *state)
{
    frag_colours_destroy(&state->colours);
    frag_free_layout_destroy(&state->layout);
    frag_free(state->pools);
    frag_free(state->block_of);
    frag_free(state->piece_of);
    frag_free(state->given);
    frag_free(state->ranges);
}

/* ---- what contradicts a common pool */

void frag_pool_walker_differ(frag_pool_walker *state, uint32_t a, uint32_t b)
{
    if (state->colours.edge_count < state->edge_max)
        frag_colours_differ(&state->colours, a, b);
}

/* May PyTorch serve a request of this rounded size from a free block of that size? */
static bool may_serve(const frag_pool_walker *state, uint64_t block_bytes, uint64_t rounded)
{
    uint64_t max = state->snapshot->settings.max_split_bytes;
    return rounded < max ? block_bytes < max : block_bytes < rounded + UNSPLIT_SLACK_BYTES;
}

/* A request was served by a block. Those that come before it in their list, or any when it is all
 * of a new segment, would have served it if they had been in its pool. */
static void examine(frag_pool_walker *state, uint32_t served, uint64_t rounded, bool is_new)
{
    const frag_free_layout_block *blocks = state->layout.blocks;
    const frag_free_layout_block *block = &blocks[served];
    uint32_t count = 0;
    if (!is_new && !may_serve(state, block->bytes, rounded))
        state->is_lost = true;
    for (uint32_t at = frag_free_layout_best(&state->layout, block->list, rounded);
         at != 0 && count < EDGES_PER_REQUEST && !state->is_lost;
         at = frag_free_layout_after(&state->layout, at)) {
        const frag_free_layout_block *other = &blocks[at];
        if (at == served && !is_new)
            return;
        if (!may_serve(state, other->bytes, rounded))
            return;
        bool is_late = is_new && other->since >= state->run_first;
        if (++state->layout.steps > STEPS_MAX)
            state->is_lost = true;
        if (at == served || is_late || other->is_vague)
            continue;
        if (other->piece == block->piece) {
            state->is_lost = true;
            return;
        }
        frag_pool_walker_differ(state, block->piece, other->piece);
        count++;
    }
}

/* The default pool gives its large segments back before its small ones, a private one after. */
static void count_disorder(frag_pool_walker *state)
{
    bool has_small = false;
    for (size_t i = 0; i < state->given_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[state->given[i]];
        if (piece->colour != FRAG_COLOUR_DEFAULT)
            continue;
        if (has_small && !piece->is_small)
            state->disorder++;
        has_small = has_small || piece->is_small;
    }
}

/* The default pool is emptied to make room for a request, large segments before small ones; a
 * private one when its owner goes, small ones first. Says whether the default pool was emptied. */
static bool looks_default(const frag_pool_walker *state, uint64_t end)
{
    const frag_colour_piece *pieces = state->colours.pieces;
    const frag_snapshot_device *device = state->device;
    uint32_t action = end < device->entry_count ? device->entries[end].action : 0;
    bool is_for_request = action == FRAG_SNAPSHOT_OOM ||
                          (action == FRAG_SNAPSHOT_ALLOC &&
                           device->entries[end - 1].action == FRAG_SNAPSHOT_SEGMENT_ALLOC);
    bool is_small_first = pieces[state->given[0]].is_small;
    bool is_small_last = pieces[state->given[state->given_count - 1]].is_small;
    return is_small_first == is_small_last ? is_for_request : is_small_last;
}

/* Of one pool, all that can be given back is given back together. */
static void examine_given(frag_pool_walker *state, uint64_t end)
{
    frag_colour_piece *pieces = state->colours.pieces;
    const frag_snapshot_settings *settings = &state->snapshot->settings;
    bool is_all = settings->gc_threshold <= 0 && settings->max_split_bytes == UINT64_MAX;
    for (size_t i = 0; i < state->given_count; i++) {
        const frag_colour_piece *piece = &pieces[state->given[i]];
        is_all = is_all || (piece->colour == FRAG_COLOUR_DEFAULT && piece->is_small);
    }
    state->looks += state->layout.segments.count;
    if (state->looks > LOOKS_MAX)
        return;
    bool is_default = looks_default(state, end);
    frag_held_range *ranges = frag_held_ranges_list(&state->layout.segments);
    uint32_t count = 0;
    for (size_t i = 0; i < state->layout.segments.count; i++) {
        const frag_free_layout_block *kept = &state->layout.blocks[ranges[i].pool];
        if (!kept->is_free || kept->next != 0 || kept->since >= state->run_first)
            continue;
        uint32_t colour = pieces[kept->piece].colour;
        for (size_t k = 0; k < state->given_count && count < EDGES_PER_BURST; k++) {
            if (pieces[state->given[k]].colour != colour ||
                (colour == FRAG_COLOUR_DEFAULT && !is_all))
                continue;
            frag_pool_walker_differ(state, state->given[k], kept->piece);
            pieces[is_default ? kept->piece : state->given[k]].doubt++;
            count++;
        }
    }
    frag_free(ranges);
}

/* A run of parts of requests, or of releases, ends before an entry. */
void frag_pool_walker_end_run(frag_pool_walker *state, uint64_t end)
{
    if (state->is_in_run && state->given_count > 0) {
        if (!state->is_expandable)
            examine_given(state, end);
        count_disorder(state);
    }
    state->is_in_run = false;
    state->given_count = 0;
}

void frag_pool_walker_give(frag_pool_walker *state, uint32_t piece, uint64_t index)
{
    state->colours.pieces[piece].given = index;
    state->colours.pieces[piece].burst = state->run_first;
    *FRAG_APPEND(state->given, state->given_count, state->given_capacity) = piece;
}

void frag_pool_walker_enter(frag_pool_walker *state, uint64_t index, bool is_part)
{
    if (!is_part) {
        frag_pool_walker_end_run(state, index);
    } else if (!state->is_in_run) {
        state->is_in_run = true;
        state->run_first = index;
    }
}

/* ---- requests that failed */

void frag_pool_walker_fail(const frag_pool_walker *state, uint64_t index, uint32_t colour)
{
    state->device->entries[index].pool = state->pools[colour];
}

/* Is there a free block that would have served a request? One that became free from an entry on
 * would not: PyTorch waits for streams once it has looked, and then asks the device alone. */
static bool has_room(frag_pool_walker *state, uint32_t colour, uint64_t stream, uint64_t rounded,
                     uint64_t late_from)
{
    for (uint32_t i = 0; i < state->layout.list_count; i++) {
        const frag_free_layout_list *list = &state->layout.lists[i];
        if (list->colour != colour || list->stream != stream ||
            list->is_small != (rounded <= SMALL_BYTES_MAX))
            continue;
        for (uint32_t at = frag_free_layout_best(&state->layout, i, rounded); at != 0;
             at = frag_free_layout_after(&state->layout, at)) {
            const frag_free_layout_block *block = &state->layout.blocks[at];
            if (!may_serve(state, block->bytes, rounded) || ++state->layout.steps > STEPS_MAX)
                break;
            if (block->since < late_from)
                return true;
        }
    }
    return false;
}

/* The default pool gives all back that it can before it fails. */
static bool keeps_memory(frag_pool_walker *state)
{
    state->looks += state->layout.segments.count;
    if (state->looks > LOOKS_MAX)
        return false;
    frag_held_range *ranges = frag_held_ranges_list(&state->layout.segments);
    bool is_found = false;
    for (size_t i = 0; i < state->layout.segments.count && !is_found; i++) {
        const frag_free_layout_block *kept = &state->layout.blocks[ranges[i].pool];
        is_found = kept->is_free && kept->next == 0 &&
                   state->colours.pieces[kept->piece].colour == FRAG_COLOUR_DEFAULT;
    }
    frag_free(ranges);
    return is_found;
}

/* A request that failed is the default pool's, unless that could have served it, or kept memory
 * that it would have given back. Then it is of the private pool last used on its stream that could
 * not serve it; there may be one with no memory at all, which is named behind the others. */
static void walk_oom(frag_pool_walker *state, uint64_t index, uint64_t late_from)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    uint64_t stream = frag_snapshot_stream(state->snapshot, entry);
    uint64_t rounded = frag_snapshot_round(&state->snapshot->settings, entry->bytes);
    if (!has_room(state, FRAG_COLOUR_DEFAULT, stream, rounded, late_from) && !keeps_memory(state))
        return;
    uint32_t colour = state->colours.colour_count;
    uint64_t last = 0;
    for (size_t i = 0; i < state->colours.piece_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        bool is_used = piece->first_alloc < index && piece->last_alloc < index;
        if (is_used && piece->colour != FRAG_COLOUR_DEFAULT && piece->stream == stream &&
            piece->last_alloc >= last &&
            !has_room(state, piece->colour, stream, rounded, late_from)) {
            colour = piece->colour;
            last = piece->last_alloc;
        }
    }
    frag_pool_walker_fail(state, index, colour);
}

/* ---- one walk through the history */

static uint32_t list_of(frag_pool_walker *state, const frag_colour_piece *piece)
{
    uint32_t list =
        frag_free_layout_list_of(&state->layout, piece->colour, piece->stream, piece->is_small);
    if (list >= LISTS_MAX)
        state->is_lost = true;
    return list;
}

static void add_segment(frag_pool_walker *state, uint32_t piece, uint64_t since)
{
    const frag_colour_piece *made = &state->colours.pieces[piece];
    uint32_t list = list_of(state, made);
    if (frag_free_layout_add(&state->layout, list, made->address, made->bytes, piece, since) == 0)
        state->is_lost = true;
}

/* What lies behind a block from before the history may be a part of it, in the large pool. */
static void begin_walk(frag_pool_walker *state)
{
    const frag_rewound *rewound = state->rewound;
    state->edge_max = state->colours.edge_count + EDGES_PER_WALK;
    frag_free_layout_destroy(&state->layout);
    frag_free_layout_create(&state->layout);
    memset(state->block_of, 0, rewound->block_count * sizeof *state->block_of);
    state->lists[0] = state->lists[1] = FRAG_PIECE_NONE;
    state->next_piece = (uint32_t)rewound->range_count;
    state->is_in_run = false;
    state->given_count = 0;
    state->looks = 0;
    state->disorder = 0;
    for (uint32_t i = 0; i < rewound->range_count && !state->is_lost; i++)
        add_segment(state, i, 0);
    for (size_t i = 0; i < rewound->initial_count && !state->is_lost; i++) {
        const frag_rewound_block *block = &rewound->blocks[rewound->initial[i]];
        uint32_t at = frag_free_layout_find(&state->layout, block->address);
        FRAG_ASSERT(at != 0 && state->layout.blocks[at].is_free);
        uint32_t taken =
            frag_free_layout_take(&state->layout, at, block->address, block->block_bytes);
        uint32_t behind = state->layout.blocks[taken].next;
        uint32_t piece = state->layout.blocks[taken].piece;
        if (behind != 0 && !state->colours.pieces[piece].is_small)
            state->layout.blocks[behind].is_vague = true;
        state->block_of[rewound->initial[i]] = taken;
        state->piece_of[rewound->initial[i]] = piece;
    }
}

static bool is_expected(frag_pool_walker *state, uint32_t list, const frag_snapshot_entry *entry,
                        uint64_t rounded, uint32_t *found)
{
    const frag_free_layout_list *at = &state->layout.lists[list];
    if (at->stream != frag_snapshot_stream(state->snapshot, entry) ||
        at->is_small != (rounded <= SMALL_BYTES_MAX))
        return false;
    *found = frag_free_layout_best(&state->layout, list, rounded);
    const frag_free_layout_block *block = &state->layout.blocks[*found];
    return block->address == entry->address && may_serve(state, block->bytes, rounded);
}

/* The free block that an allocation was cut from, when it is the one that PyTorch finds in some
 * pool; else 0. */
static uint32_t expected_block(frag_pool_walker *state, const frag_snapshot_entry *entry,
                               uint64_t rounded)
{
    uint32_t *last = &state->lists[rounded <= SMALL_BYTES_MAX];
    uint32_t found = 0;
    if (*last != FRAG_PIECE_NONE && is_expected(state, *last, entry, rounded, &found))
        return found;
    for (uint32_t list = 0; list < state->layout.list_count; list++)
        if (is_expected(state, list, entry, rounded, &found)) {
            *last = list;
            return found;
        }
    return 0;
}

/* The place of a request that named it says nothing of what else was free. */
static uint32_t placed_block(frag_pool_walker *state, const frag_snapshot_entry *entry)
{
    uint32_t at = frag_free_layout_find(&state->layout, entry->address);
    const frag_free_layout_block *block = &state->layout.blocks[at];
    return at != 0 && block->is_free && block->address == entry->address &&
                   block->bytes >= entry->bytes
               ? at
               : 0;
}

static uint32_t served_block(frag_pool_walker *state, uint64_t index, uint64_t rounded)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_snapshot_entry *before = index > 0 ? entry - 1 : NULL;
    if (entry->is_placed)
        return placed_block(state, entry);
    bool is_new = before != NULL && before->action == FRAG_SNAPSHOT_SEGMENT_ALLOC &&
                  before->address == entry->address;
    uint32_t at = is_new ? 0 : expected_block(state, entry, rounded);
    if (at != 0)
        return at;
    at = frag_free_layout_find(&state->layout, entry->address);
    if (state->layout.steps > STEPS_MAX)
        return 0;
    const frag_free_layout_block *block = &state->layout.blocks[at];
    if (at == 0 || !block->is_free || block->bytes - (entry->address - block->address) < rounded)
        return 0;
    const frag_colour_piece *piece = &state->colours.pieces[block->piece];
    if (piece->stream != frag_snapshot_stream(state->snapshot, entry) ||
        piece->is_small != (rounded <= SMALL_BYTES_MAX))
        return 0;
    if (block->address != entry->address)
        return block->is_vague ? at : 0;
    /* With threads, others may have been served between a new segment and its first request. */
    bool is_fresh = piece->first_alloc == FRAG_ENTRY_NEVER && piece->taken != FRAG_ENTRY_NEVER;
    if (is_new || !is_fresh || piece->first_alloc < index)
        examine(state, at, rounded, is_new);
    return at;
}

static void walk_alloc(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_snapshot_settings *settings = &state->snapshot->settings;
    uint64_t rounded =
        entry->is_placed ? entry->bytes : frag_snapshot_round(settings, entry->bytes);
    if (!state->is_in_run)
        state->run_first = index;
    uint32_t at = served_block(state, index, rounded);
    if (state->is_in_run)
        frag_pool_walker_end_run(state, index);
    if (at == 0) {
        state->is_lost = true;
        return;
    }
    const frag_free_layout_block *block = &state->layout.blocks[at];
    uint64_t room = block->bytes - (entry->address - block->address);
    bool is_cut =
        rounded <= SMALL_BYTES_MAX || entry->is_placed
            ? room - rounded >= SPLIT_SMALL_BYTES_MIN
            : rounded < settings->max_split_bytes && room - rounded > SPLIT_LARGE_BYTES_ABOVE;
    frag_colour_piece *piece = &state->colours.pieces[block->piece];
    if (piece->first_alloc == FRAG_ENTRY_NEVER)
        piece->first_alloc = index;
    piece->last_alloc = index;
    state->piece_of[entry->block] = block->piece;
    state->block_of[entry->block] =
        frag_free_layout_take(&state->layout, at, entry->address, is_cut ? rounded : room);
}

static void walk_release(frag_pool_walker *state, uint64_t index)
{
    uint32_t block = state->device->entries[index].block;
    if (block >= state->rewound->block_count || state->block_of[block] == 0)
        return;
    frag_free_layout_give(&state->layout, state->block_of[block], index);
    state->block_of[block] = 0;
}

static void walk_segment_free(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    uint32_t piece = frag_free_layout_remove(&state->layout, entry->address);
    if (piece == FRAG_PIECE_NONE || state->colours.pieces[piece].bytes != entry->bytes) {
        state->is_lost = true;
        return;
    }
    frag_pool_walker_give(state, piece, index);
}

static void walk_entry(frag_pool_walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    bool is_part = entry->action == FRAG_SNAPSHOT_SEGMENT_ALLOC ||
                   entry->action == FRAG_SNAPSHOT_SEGMENT_FREE ||
                   frag_snapshot_is_late(state->device, index);
    uint64_t late_from = state->is_in_run ? state->run_first : UINT64_MAX;
    if (is_part || entry->action != FRAG_SNAPSHOT_ALLOC)
        frag_pool_walker_enter(state, index, is_part);
    switch (entry->action) {
    case FRAG_SNAPSHOT_ALLOC:
        walk_alloc(state, index);
        break;
    case FRAG_SNAPSHOT_FREE_COMPLETED:
    case FRAG_SNAPSHOT_FREE:
        walk_release(state, index);
        break;
    case FRAG_SNAPSHOT_SEGMENT_ALLOC:
        add_segment(state, state->next_piece++, index);
        break;
    case FRAG_SNAPSHOT_SEGMENT_FREE:
        walk_segment_free(state, index);
        break;
    case FRAG_SNAPSHOT_OOM:
        if (state->sets_pools)
            walk_oom(state, index, late_from);
        break;
    default:
        break;
    }
}

bool frag_pool_walk_segments(frag_pool_walker *state)
{
    begin_walk(state);
    for (uint64_t i = 0; i < state->device->entry_count && !state->is_lost; i++) {
        walk_entry(state, i);
        state->is_lost = state->is_lost || state->layout.steps > STEPS_MAX;
    }
    frag_pool_walker_end_run(state, state->device->entry_count);
    return !state->is_lost;
}
