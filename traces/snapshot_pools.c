#include "traces/snapshot_pools.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/memory.h"
#include "traces/snapshot_bursts.h"
#include "traces/snapshot_colours.h"
#include "traces/snapshot_layout.h"

#define SMALL_BYTES_MAX FRAG_MIB
#define SMALL_SEGMENT_BYTES (2 * FRAG_MIB)
#define SPLIT_SMALL_BYTES_MIN 512u
#define SPLIT_LARGE_BYTES_ABOVE FRAG_MIB
#define UNSPLIT_SLACK_BYTES (20 * FRAG_MIB)

#define NONE UINT32_MAX
#define NEVER UINT64_MAX

/* Each walk tells more of the segments that are still in one pool; they are few. */
enum { WALKS_MAX = 32 };
/* What one request, one release and one walk may say, and segments looked at for all releases: a
 * hostile file costs no square of its size. */
enum { EDGES_PER_REQUEST = 8, EDGES_PER_BURST = 1024, EDGES_PER_WALK = 1 << 14 };
enum { LOOKS_MAX = 1 << 24, STEPS_MAX = 1 << 28, LISTS_MAX = 1024, GUESSES_MAX = 32 };

typedef struct walker {
    frag_snapshot *snapshot;
    const frag_snapshot_device *device;
    frag_rewound *rewound;
    frag_colours colours;
    frag_free_layout layout;
    uint32_t *block_of; /* by block of the rewound history: of the layout */
    uint32_t *piece_of; /* by block of the rewound history */
    uint32_t *pools;    /* by colour: of the snapshot */
    uint32_t known_colours;
    uint32_t lists[2];   /* where the last large and small request were served */
    uint32_t next_piece; /* of the next segment taken */
    uint64_t run_first;  /* since here nothing is recorded but parts of one request */
    uint32_t *given;     /* pieces given back in this run */
    size_t given_count;
    size_t given_capacity;
    uint64_t looks;
    uint64_t disorder; /* large segments of the default pool given back behind small ones */
    bool is_in_run;
    bool is_lost; /* something does not go with the rules, whatever the pools are */
} walker;

/* ---- pieces */

static uint32_t colour_of_pool(walker *state, uint32_t pool)
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

static void add_piece(walker *state, const frag_colour_piece *made, uint32_t pool)
{
    frag_colour_piece piece = *made;
    piece.given = NEVER;
    piece.first_alloc = NEVER;
    piece.is_small = made->bytes == SMALL_SEGMENT_BYTES;
    piece.colour = colour_of_pool(state, pool);
    frag_colours_add(&state->colours, &piece);
}

static void add_pieces(walker *state)
{
    const frag_rewound *rewound = state->rewound;
    for (size_t i = 0; i < rewound->range_count; i++)
        add_piece(state,
                  &(frag_colour_piece){.address = rewound->ranges[i].address,
                                       .bytes = rewound->ranges[i].bytes,
                                       .stream = rewound->ranges[i].stream,
                                       .taken = NEVER},
                  rewound->ranges[i].pool);
    for (uint64_t i = 0; i < state->device->entry_count && !state->is_lost; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        if (entry->action == FRAG_SNAPSHOT_SEGMENT_ALLOC)
            add_piece(state,
                      &(frag_colour_piece){.address = entry->address,
                                           .bytes = entry->bytes,
                                           .stream = entry->stream,
                                           .taken = i},
                      entry->pool);
    }
}

/* ---- what contradicts a common pool */

static void differ(walker *state, uint32_t a, uint32_t b)
{
    if (state->colours.edge_count < EDGES_PER_WALK * WALKS_MAX)
        frag_colours_differ(&state->colours, a, b);
}

/* May PyTorch serve a request of this rounded size from a free block of that size? */
static bool may_serve(const walker *state, uint64_t block_bytes, uint64_t rounded)
{
    uint64_t max = state->snapshot->settings.max_split_bytes;
    return rounded < max ? block_bytes < max : block_bytes < rounded + UNSPLIT_SLACK_BYTES;
}

/* A request was served by a block. Those that come before it in their list, or any when it is all
 * of a new segment, would have served it if they had been in its pool. */
static void examine(walker *state, uint32_t served, uint64_t rounded, bool is_new)
{
    const frag_free_layout_block *blocks = state->layout.blocks;
    const frag_free_layout_block *block = &blocks[served];
    uint32_t count = 0;
    if (!is_new && !may_serve(state, block->bytes, rounded))
        state->is_lost = true;
    for (uint32_t at = frag_free_layout_best(&state->layout, block->list, rounded);
         at != 0 && count < EDGES_PER_REQUEST; at = frag_free_layout_after(&state->layout, at)) {
        const frag_free_layout_block *other = &blocks[at];
        if (at == served && !is_new)
            return;
        if (!may_serve(state, other->bytes, rounded))
            return;
        bool is_late = is_new && other->since >= state->run_first;
        if (at == served || is_late || other->is_vague)
            continue;
        if (other->piece == block->piece) {
            state->is_lost = true;
            return;
        }
        differ(state, block->piece, other->piece);
        count++;
    }
}

/* The default pool gives its large segments back before its small ones, a private one after. */
static void count_disorder(walker *state)
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
static bool looks_default(const walker *state, uint64_t end)
{
    const frag_colour_piece *pieces = state->colours.pieces;
    const frag_snapshot_device *device = state->device;
    uint8_t action = end < device->entry_count ? device->entries[end].action : 0;
    bool is_for_request = action == FRAG_SNAPSHOT_OOM ||
                          (action == FRAG_SNAPSHOT_ALLOC &&
                           device->entries[end - 1].action == FRAG_SNAPSHOT_SEGMENT_ALLOC);
    bool is_small_first = pieces[state->given[0]].is_small;
    bool is_small_last = pieces[state->given[state->given_count - 1]].is_small;
    return is_small_first == is_small_last ? is_for_request : is_small_last;
}

/* Of one pool, all that can be given back is given back together. */
static void examine_given(walker *state, uint64_t end)
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
            differ(state, state->given[k], kept->piece);
            pieces[is_default ? kept->piece : state->given[k]].doubt++;
            count++;
        }
    }
    free(ranges);
}

/* A run of parts of requests, or of releases, ends before an entry. */
static void end_run(walker *state, uint64_t end)
{
    if (state->is_in_run && state->given_count > 0) {
        examine_given(state, end);
        count_disorder(state);
    }
    state->is_in_run = false;
    state->given_count = 0;
}

/* ---- one walk through the history */

static uint32_t list_of(walker *state, const frag_colour_piece *piece)
{
    uint32_t list =
        frag_free_layout_list_of(&state->layout, piece->colour, piece->stream, piece->is_small);
    if (list >= LISTS_MAX)
        state->is_lost = true;
    return list;
}

static void add_segment(walker *state, uint32_t piece, uint64_t since)
{
    const frag_colour_piece *made = &state->colours.pieces[piece];
    uint32_t list = list_of(state, made);
    if (frag_free_layout_add(&state->layout, list, made->address, made->bytes, piece, since) == 0)
        state->is_lost = true;
}

/* What lies behind a block from before the history may be a part of it, in the large pool. */
static void begin_walk(walker *state)
{
    const frag_rewound *rewound = state->rewound;
    frag_free_layout_destroy(&state->layout);
    frag_free_layout_create(&state->layout);
    memset(state->block_of, 0, rewound->block_count * sizeof *state->block_of);
    state->lists[0] = state->lists[1] = NONE;
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

static bool is_expected(const walker *state, uint32_t list, const frag_snapshot_entry *entry,
                        uint64_t rounded, uint32_t *found)
{
    const frag_free_layout_list *at = &state->layout.lists[list];
    if (at->stream != entry->stream || at->is_small != (rounded <= SMALL_BYTES_MAX))
        return false;
    *found = frag_free_layout_best(&state->layout, list, rounded);
    const frag_free_layout_block *block = &state->layout.blocks[*found];
    return block->address == entry->address && may_serve(state, block->bytes, rounded);
}

/* The free block that an allocation was cut from, when it is the one that PyTorch finds in some
 * pool; else 0. */
static uint32_t expected_block(walker *state, const frag_snapshot_entry *entry, uint64_t rounded)
{
    uint32_t *last = &state->lists[rounded <= SMALL_BYTES_MAX];
    uint32_t found = 0;
    if (*last != NONE && is_expected(state, *last, entry, rounded, &found))
        return found;
    for (uint32_t list = 0; list < state->layout.list_count; list++)
        if (is_expected(state, list, entry, rounded, &found)) {
            *last = list;
            return found;
        }
    return 0;
}

static uint32_t served_block(walker *state, uint64_t index, uint64_t rounded)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_snapshot_entry *before = index > 0 ? entry - 1 : NULL;
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
    if (piece->stream != entry->stream || piece->is_small != (rounded <= SMALL_BYTES_MAX))
        return 0;
    if (block->address != entry->address)
        return block->is_vague ? at : 0;
    /* With threads, others may have been served between a new segment and its first request. */
    bool is_fresh = piece->first_alloc == NEVER && piece->taken != NEVER;
    if (is_new || !is_fresh || piece->first_alloc < index)
        examine(state, at, rounded, is_new);
    return at;
}

static void walk_alloc(walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_snapshot_settings *settings = &state->snapshot->settings;
    uint64_t rounded = frag_snapshot_round(settings, entry->bytes);
    if (!state->is_in_run)
        state->run_first = index;
    uint32_t at = served_block(state, index, rounded);
    end_run(state, index);
    if (at == 0) {
        state->is_lost = true;
        return;
    }
    const frag_free_layout_block *block = &state->layout.blocks[at];
    uint64_t room = block->bytes - (entry->address - block->address);
    bool is_cut = rounded <= SMALL_BYTES_MAX ? room - rounded >= SPLIT_SMALL_BYTES_MIN
                                             : rounded < settings->max_split_bytes &&
                                                   room - rounded > SPLIT_LARGE_BYTES_ABOVE;
    frag_colour_piece *piece = &state->colours.pieces[block->piece];
    if (piece->first_alloc == NEVER)
        piece->first_alloc = index;
    piece->last_alloc = index;
    state->piece_of[entry->block] = block->piece;
    state->block_of[entry->block] =
        frag_free_layout_take(&state->layout, at, entry->address, is_cut ? rounded : room);
}

static void walk_release(walker *state, uint64_t index)
{
    uint32_t block = state->device->entries[index].block;
    if (block >= state->rewound->block_count || state->block_of[block] == 0)
        return;
    frag_free_layout_give(&state->layout, state->block_of[block], index);
    state->block_of[block] = 0;
}

static void walk_segment_free(walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    uint32_t piece = frag_free_layout_remove(&state->layout, entry->address);
    if (piece == NONE || state->colours.pieces[piece].bytes != entry->bytes) {
        state->is_lost = true;
        return;
    }
    state->colours.pieces[piece].given = index;
    state->colours.pieces[piece].burst = state->run_first;
    state->given = frag_grow(state->given, &state->given_capacity, state->given_count + 1,
                             sizeof *state->given);
    state->given[state->given_count++] = piece;
}

static void walk_entry(walker *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    bool is_part = entry->action == FRAG_SNAPSHOT_SEGMENT_ALLOC ||
                   entry->action == FRAG_SNAPSHOT_SEGMENT_FREE ||
                   frag_snapshot_is_late(state->device, index);
    if (is_part && !state->is_in_run) {
        state->is_in_run = true;
        state->run_first = index;
    } else if (!is_part && entry->action != FRAG_SNAPSHOT_ALLOC) {
        end_run(state, index);
    }
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
    default:
        break;
    }
}

/* false: the recording does not go with the rules. */
static bool walk(walker *state)
{
    begin_walk(state);
    size_t edges = state->colours.edge_count;
    for (uint64_t i = 0; i < state->device->entry_count && !state->is_lost; i++) {
        walk_entry(state, i);
        if (state->colours.edge_count - edges > EDGES_PER_WALK)
            state->is_lost = true;
    }
    end_run(state, state->device->entry_count);
    return !state->is_lost;
}

/* ---- conclusions */

/* Segments that are there at the end name their pool. */
static void know_kept(walker *state)
{
    for (size_t i = 0; i < state->colours.piece_count; i++)
        state->colours.pieces[i].is_known = state->colours.pieces[i].given == NEVER;
}

/* Walks, each time with what the walk before has told apart, until nothing contradicts. */
static bool tell_apart(walker *state)
{
    state->colours.colour_count = state->known_colours;
    if (!walk(state))
        return false;
    know_kept(state);
    for (uint32_t i = 0; i < WALKS_MAX; i++) {
        size_t edges = state->colours.edge_count;
        if (edges == 0)
            return true;
        if (!frag_colours_solve(&state->colours, state->known_colours) || !walk(state))
            return false;
        if (state->colours.edge_count == edges)
            return true;
    }
    return false;
}

/* A guess that is put to the test: pieces of a stream that are in the default pool for want of
 * evidence were all in one private pool. */
typedef struct guess {
    uint64_t stream;
    uint32_t colour;
    uint64_t after; /* entry; only pieces first used behind it */
    size_t moved;
    bool is_given_with; /* each was given back together with one of the colour before */
} guess;

static bool is_undecided(const frag_colour_piece *piece, uint64_t stream)
{
    return piece->stream == stream && !piece->is_known && !piece->is_told &&
           piece->colour == FRAG_COLOUR_DEFAULT && piece->first_alloc != NEVER;
}

/* Where the last request went to the stream that surely was of another pool, if that was before the
 * colour was first used on it. */
static bool find_after(const walker *state, guess *made)
{
    uint64_t first = NEVER;
    uint64_t after = 0;
    for (size_t i = 0; i < state->colours.piece_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        if (piece->stream != made->stream || piece->first_alloc == NEVER)
            continue;
        if (piece->colour == made->colour && piece->first_alloc < first)
            first = piece->first_alloc;
        else if (piece->colour != made->colour && (piece->is_known || piece->is_told) &&
                 piece->last_alloc + 1 > after)
            after = piece->last_alloc + 1;
    }
    made->after = after;
    return after <= first;
}

/* Sets the colours; false when the pool would have been used after it gave memory back. */
static bool recolour(walker *state, guess *made)
{
    uint64_t last_alloc = 0;
    uint64_t first_given = NEVER;
    uint64_t burst = NEVER;
    frag_colour_piece *pieces = state->colours.pieces;
    for (size_t i = 0; i < state->colours.piece_count; i++)
        if (pieces[i].colour == made->colour && pieces[i].given < first_given) {
            first_given = pieces[i].given;
            burst = pieces[i].burst;
        }
    made->is_given_with = true;
    for (size_t i = 0; i < state->colours.piece_count; i++)
        if (is_undecided(&pieces[i], made->stream) && pieces[i].first_alloc >= made->after) {
            made->is_given_with = made->is_given_with && pieces[i].burst == burst;
            pieces[i].colour = made->colour;
            made->moved++;
        }
    for (size_t i = 0; i < state->colours.piece_count; i++)
        if (pieces[i].colour == made->colour) {
            if (pieces[i].first_alloc != NEVER && pieces[i].last_alloc > last_alloc)
                last_alloc = pieces[i].last_alloc;
            if (pieces[i].given < first_given)
                first_given = pieces[i].given;
        }
    return last_alloc < first_given;
}

/* Takes a guess when nothing contradicts it, and something speaks for it: that memory was given
 * back in another order than the default pool's, or together with the rest of the private pool. */
static void test_guess(walker *state, guess made)
{
    frag_colours *colours = &state->colours;
    uint32_t *before = frag_alloc(colours->piece_count + 1, sizeof *before);
    for (size_t i = 0; i < colours->piece_count; i++)
        before[i] = colours->pieces[i].colour;
    size_t edges = colours->edge_count;
    uint64_t disorder = state->disorder;
    bool ok = find_after(state, &made) && recolour(state, &made) && made.moved > 0 && walk(state) &&
              colours->edge_count == edges &&
              (state->disorder < disorder || (state->disorder == disorder && made.is_given_with));
    for (size_t i = 0; i < colours->piece_count && !ok; i++)
        colours->pieces[i].colour = before[i];
    if (!ok) {
        state->disorder = disorder;
        state->is_lost = false;
    } else if (made.colour == colours->colour_count) {
        colours->colour_count++;
    }
    free(before);
}

static bool is_listed(const guess *guesses, uint32_t count, const frag_colour_piece *piece)
{
    for (uint32_t i = 0; i < count; i++)
        if (guesses[i].stream == piece->stream && guesses[i].colour == piece->colour)
            return true;
    return false;
}

/* A graph is captured on a stream of its own, which is not the default one. */
static void guess_streams(walker *state)
{
    frag_colours *colours = &state->colours;
    guess guesses[GUESSES_MAX];
    uint32_t count = 0;
    for (size_t i = 0; i < colours->piece_count && count < GUESSES_MAX; i++) {
        const frag_colour_piece *piece = &colours->pieces[i];
        if (piece->stream != 0 && !is_listed(guesses, count, piece))
            guesses[count++] = (guess){.stream = piece->stream, .colour = piece->colour};
    }
    for (uint32_t i = 0; i < count; i++)
        if (guesses[i].colour != FRAG_COLOUR_DEFAULT)
            test_guess(state, guesses[i]);
    for (uint32_t i = 0; i < count && state->disorder > 0; i++)
        if (guesses[i].colour == FRAG_COLOUR_DEFAULT && colours->colour_count < FRAG_COLOUR_MAX)
            test_guess(state,
                       (guess){.stream = guesses[i].stream, .colour = colours->colour_count});
}

/* Does any segment turn out to have been in a pool that the snapshot does not show it in? */
static bool is_anything_new(const frag_colours *colours)
{
    for (size_t i = 0; i < colours->piece_count; i++)
        if (!colours->pieces[i].is_known && colours->pieces[i].colour != FRAG_COLOUR_DEFAULT)
            return true;
    return false;
}

static bool is_open_to_question(const frag_snapshot_device *device)
{
    for (uint64_t i = 0; i < device->entry_count; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        /* With expandable segments, growing follows other rules. */
        if (entry->is_dropped || entry->has_pool || entry->action == FRAG_SNAPSHOT_SEGMENT_MAP ||
            entry->action == FRAG_SNAPSHOT_SEGMENT_UNMAP || entry->action == FRAG_SNAPSHOT_EMPTY)
            return false;
    }
    for (size_t i = 0; i < device->segment_count; i++)
        if (device->segments[i].is_expandable)
            return false;
    return device->entry_count > 0;
}

static void name_colours(walker *state)
{
    uint64_t id[2] = {0, 0};
    uint32_t known = 0;
    for (uint32_t colour = state->known_colours; colour < state->colours.colour_count; colour++) {
        do
            id[1]++;
        while (frag_strings_find(&state->snapshot->pools, (const char *)id, sizeof id, &known));
        state->pools[colour] =
            frag_strings_add(&state->snapshot->pools, (const char *)id, sizeof id);
    }
}

static uint32_t pool_of_piece(const walker *state, uint32_t piece)
{
    return state->pools[state->colours.pieces[piece].colour];
}

static void set_pools(walker *state)
{
    frag_rewound *rewound = state->rewound;
    frag_snapshot_entry *entries = state->device->entries;
    for (uint32_t i = 0; i < state->colours.piece_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        if (piece->taken != NEVER)
            entries[piece->taken].pool = pool_of_piece(state, i);
        if (piece->given != NEVER)
            entries[piece->given].pool = pool_of_piece(state, i);
    }
    for (uint32_t i = 0; i < rewound->range_count; i++)
        rewound->ranges[i].pool = pool_of_piece(state, i);
    for (size_t i = 0; i < rewound->block_count; i++)
        if (state->piece_of[i] != NONE)
            rewound->blocks[i].pool = pool_of_piece(state, state->piece_of[i]);
    for (uint64_t i = 0; i < state->device->entry_count; i++) {
        uint32_t block = entries[i].block;
        bool has_block = entries[i].action == FRAG_SNAPSHOT_ALLOC ||
                         entries[i].action == FRAG_SNAPSHOT_FREE_REQUESTED ||
                         entries[i].action == FRAG_SNAPSHOT_FREE_COMPLETED ||
                         entries[i].action == FRAG_SNAPSHOT_FREE;
        if (has_block && block < rewound->block_count)
            entries[i].pool = rewound->blocks[block].pool;
    }
}

static void tell(const walker *state, uint32_t ordinal, frag_findings *findings)
{
    for (uint32_t i = 0; i < state->colours.piece_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        if (!piece->is_known && piece->colour != FRAG_COLOUR_DEFAULT)
            frag_findings_add(findings, "pool-concluded",
                              "a segment was taken or kept although the default pool had free "
                              "memory for it: it is taken for a private pool's, which the "
                              "snapshot does not name",
                              false, ordinal, piece->taken == NEVER ? 0 : piece->taken,
                              "segment of %llu bytes at 0x%llx", (unsigned long long)piece->bytes,
                              (unsigned long long)piece->address);
    }
}

void frag_snapshot_pools_infer(frag_snapshot *snapshot, uint32_t device, frag_rewound *rewound,
                               frag_findings *findings)
{
    if (!snapshot->has_settings || !is_open_to_question(&snapshot->devices[device]))
        return;
    walker *state = frag_alloc(1, sizeof *state);
    state->snapshot = snapshot;
    state->device = &snapshot->devices[device];
    state->rewound = rewound;
    state->pools = frag_alloc(FRAG_COLOUR_MAX, sizeof *state->pools);
    state->known_colours = 1;
    state->block_of = frag_alloc(rewound->block_count + 1, sizeof *state->block_of);
    state->piece_of = frag_alloc(rewound->block_count + 1, sizeof *state->piece_of);
    memset(state->piece_of, 0xff, rewound->block_count * sizeof *state->piece_of);
    add_pieces(state);
    if (!state->is_lost && tell_apart(state)) {
        guess_streams(state);
        if (is_anything_new(&state->colours)) {
            name_colours(state);
            set_pools(state);
            tell(state, device, findings);
        }
    }
    frag_colours_destroy(&state->colours);
    frag_free_layout_destroy(&state->layout);
    free(state->pools);
    free(state->block_of);
    free(state->piece_of);
    free(state->given);
    free(state);
}
