#include "traces/torch/pools/snapshot_pools.h"

#include <stdlib.h>

#include "base/memory.h"
#include "traces/torch/pools/snapshot_pool_walk.h"

/* Streams that are tried as those of private pools. */
enum { GUESSES_MAX = 32 };

static bool walk(frag_pool_walker *state)
{
    return state->is_expandable ? frag_pool_walk_ranges(state) : frag_pool_walk_segments(state);
}

/* ---- conclusions */

/* Segments that are there at the end name their pool. */
static void know_kept(frag_pool_walker *state)
{
    for (size_t i = 0; i < state->colours.piece_count; i++)
        state->colours.pieces[i].is_known = state->colours.pieces[i].given == FRAG_ENTRY_NEVER;
}

/* Walks again with the pools that the walk before has separated, until a walk finds no
 * contradiction. */
static bool tell_apart(frag_pool_walker *state)
{
    if (!walk(state))
        return false;
    state->colours.colour_count = state->known_colours;
    if (!state->is_expandable)
        know_kept(state);
    for (uint32_t i = 0; i < FRAG_POOL_WALKS_MAX; i++) {
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

/* A guess to be tested: pieces of a stream that are in the default pool only because there is no
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
           piece->colour == FRAG_COLOUR_DEFAULT && piece->first_alloc != FRAG_ENTRY_NEVER;
}

/* Where the last request went to the stream that surely was of another pool, if that was before the
 * colour was first used on it. */
static bool find_after(const frag_pool_walker *state, guess *made)
{
    uint64_t first = FRAG_ENTRY_NEVER;
    uint64_t after = 0;
    for (size_t i = 0; i < state->colours.piece_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        if (piece->stream != made->stream || piece->first_alloc == FRAG_ENTRY_NEVER)
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
static bool recolour(frag_pool_walker *state, guess *made)
{
    uint64_t last_alloc = 0;
    uint64_t first_given = FRAG_ENTRY_NEVER;
    uint64_t burst = FRAG_ENTRY_NEVER;
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
            if (pieces[i].first_alloc != FRAG_ENTRY_NEVER && pieces[i].last_alloc > last_alloc)
                last_alloc = pieces[i].last_alloc;
            if (pieces[i].given < first_given)
                first_given = pieces[i].given;
        }
    return last_alloc < first_given;
}

/* Takes a guess when nothing contradicts it, and something speaks for it: that memory was given
 * back in another order than the default pool's, or together with the rest of the private pool. */
static void test_guess(frag_pool_walker *state, guess made)
{
    frag_colours *colours = &state->colours;
    uint32_t *before = frag_alloc(colours->piece_count, sizeof *before);
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
    frag_free(before);
}

static bool is_listed(const guess *guesses, uint32_t count, const frag_colour_piece *piece)
{
    for (uint32_t i = 0; i < count; i++)
        if (guesses[i].stream == piece->stream && guesses[i].colour == piece->colour)
            return true;
    return false;
}

/* A graph is captured on a stream of its own, which is not the default one. */
static void guess_streams(frag_pool_walker *state)
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

/* The kind of a device's history: expandable segments, which grow, and segments of fixed size
 * follow different rules. */
typedef enum history_kind { HISTORY_NONE, HISTORY_SEGMENTS, HISTORY_RANGES } history_kind;

static history_kind kind_of(const frag_snapshot *snapshot, uint32_t ordinal,
                            const frag_rewound *rewound)
{
    const frag_snapshot_device *device = &snapshot->devices[ordinal];
    bool has_segments = false;
    bool has_ranges = false;
    bool has_given = false;
    if (rewound->has_doubtful || rewound->has_pools)
        return HISTORY_NONE;
    for (size_t i = 0; i < rewound->segment_entry_count; i++) {
        const frag_snapshot_entry *entry = &device->entries[rewound->segment_entries[i]];
        has_segments = has_segments || entry->action == FRAG_SNAPSHOT_SEGMENT_ALLOC ||
                       entry->action == FRAG_SNAPSHOT_SEGMENT_FREE;
        has_given = has_given || entry->action == FRAG_SNAPSHOT_SEGMENT_FREE;
        has_ranges = has_ranges || entry->action == FRAG_SNAPSHOT_SEGMENT_MAP ||
                     entry->action == FRAG_SNAPSHOT_SEGMENT_UNMAP;
    }
    for (size_t i = 0; i < device->segment_count; i++) {
        has_segments = has_segments || !device->segments[i].is_expandable;
        has_ranges = has_ranges || device->segments[i].is_expandable;
    }
    /* Of a range from before the history, it is not known where it begins. */
    if (has_segments == has_ranges || !snapshot->has_settings || device->entry_count == 0 ||
        (has_ranges && rewound->range_count > 0))
        return HISTORY_NONE;
    /* Segments that are all there at the end name their pools, and only a request that failed may
     * have been in another one. */
    if (!has_ranges && !has_given && !rewound->has_failed)
        return HISTORY_NONE;
    return has_ranges ? HISTORY_RANGES : HISTORY_SEGMENTS;
}

/* One more than there are: for requests that failed in a pool without memory. */
static void name_colours(frag_pool_walker *state)
{
    uint64_t id[2] = {0, 0};
    uint32_t known = 0;
    for (uint32_t colour = state->known_colours; colour <= state->colours.colour_count; colour++) {
        do
            id[1]++;
        while (frag_strings_find(&state->snapshot->pools, (const char *)id, sizeof id, &known));
        state->pools[colour] =
            frag_strings_add(&state->snapshot->pools, (const char *)id, sizeof id);
    }
}

static uint32_t pool_of_piece(const frag_pool_walker *state, uint32_t piece)
{
    return state->pools[state->colours.pieces[piece].colour];
}

static void set_pools(frag_pool_walker *state)
{
    state->sets_pools = true;
    walk(state);
    frag_rewound *rewound = state->rewound;
    frag_snapshot_entry *entries = state->device->entries;
    for (uint32_t i = 0; i < state->colours.piece_count && !state->is_expandable; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        if (piece->taken != FRAG_ENTRY_NEVER)
            entries[piece->taken].pool = pool_of_piece(state, i);
        if (piece->given != FRAG_ENTRY_NEVER)
            entries[piece->given].pool = pool_of_piece(state, i);
    }
    for (uint32_t i = 0; i < rewound->range_count; i++)
        rewound->ranges[i].pool = pool_of_piece(state, i);
    for (size_t i = 0; i < rewound->block_count; i++)
        if (state->piece_of[i] != FRAG_PIECE_NONE)
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

static void tell(const frag_pool_walker *state, uint32_t ordinal, frag_findings *findings)
{
    for (uint32_t i = 0; i < state->colours.piece_count; i++) {
        const frag_colour_piece *piece = &state->colours.pieces[i];
        if (!piece->is_known && piece->colour != FRAG_COLOUR_DEFAULT)
            frag_findings_add(
                findings, "pool-concluded",
                "a segment was taken or kept although the default pool had free memory for it: it "
                "is taken for a private pool's, which the snapshot does not name",
                false, ordinal, piece->taken == FRAG_ENTRY_NEVER ? 0 : piece->taken,
                "segment of %llu bytes at 0x%llx", (unsigned long long)piece->bytes,
                (unsigned long long)piece->address);
    }
}

void frag_snapshot_pools_infer(frag_snapshot *snapshot, uint32_t device, frag_rewound *rewound,
                               frag_findings *findings)
{
    history_kind kind = kind_of(snapshot, device, rewound);
    if (kind == HISTORY_NONE)
        return;
    frag_pool_walker state;
    frag_pool_walker_create(&state, snapshot, device, rewound, kind == HISTORY_RANGES);
    if (!state.is_lost && tell_apart(&state)) {
        guess_streams(&state);
        if (state.colours.colour_count < FRAG_COLOUR_MAX &&
            (is_anything_new(&state.colours) || rewound->has_failed)) {
            name_colours(&state);
            set_pools(&state);
            tell(&state, device, findings);
        }
    }
    frag_pool_walker_destroy(&state);
}
