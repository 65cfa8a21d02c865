#include "traces/torch/pools/snapshot_colours.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Pieces whose colour is in question; choosing among them is quadratic. */
enum { INVOLVED_MAX = 4096, WORD_BITS = 64, WORDS = FRAG_COLOUR_MAX / WORD_BITS };

#define NONE UINT32_MAX

/* All the pieces of a private colour taken together. */
typedef struct colour_life {
    uint64_t last_alloc;  /* entry + 1; 0 none */
    uint64_t first_given; /* entry; UINT64_MAX never */
    uint64_t burst;       /* of that piece */
} colour_life;

typedef struct solver {
    frag_colours *colours;
    uint32_t *involved; /* pieces with an edge, not known */
    uint32_t involved_count;
    uint32_t *index_of;           /* by piece: into involved, or NONE */
    uint64_t (*ruled_out)[WORDS]; /* by involved */
    bool *is_done;                /* by involved */
    size_t *first_neighbour;      /* by involved */
    uint32_t *neighbours;         /* pieces */
    colour_life lives[FRAG_COLOUR_MAX];
} solver;

uint32_t frag_colours_add(frag_colours *colours, const frag_colour_piece *piece)
{
    if (colours->piece_count == colours->piece_capacity)
        colours->pieces = frag_grow(colours->pieces, &colours->piece_capacity,
                                    colours->piece_count + 1, sizeof *colours->pieces);
    colours->pieces[colours->piece_count] = *piece;
    return (uint32_t)colours->piece_count++;
}

void frag_colours_destroy(frag_colours *colours)
{
    frag_free(colours->pieces);
    frag_free(colours->edges);
    frag_number_map_destroy(&colours->numbers);
    *colours = (frag_colours){0};
}

/* ---- edges */

void frag_colours_differ(frag_colours *colours, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b;
    uint32_t high = a < b ? b : a;
    uint64_t key = (uint64_t)low << 32 | high;
    uint64_t known = 0;
    if (frag_number_map_get(&colours->numbers, key, &known))
        return;
    frag_number_map_set(&colours->numbers, key, colours->edge_count);
    colours->edges = frag_grow(colours->edges, &colours->edge_capacity, colours->edge_count + 1,
                               sizeof *colours->edges);
    colours->edges[colours->edge_count][0] = low;
    colours->edges[colours->edge_count++][1] = high;
}

/* ---- colouring */

static bool involve(solver *state, uint32_t piece)
{
    if (state->colours->pieces[piece].is_known || state->index_of[piece] != NONE)
        return true;
    if (state->involved_count == INVOLVED_MAX)
        return false;
    state->index_of[piece] = state->involved_count;
    state->involved[state->involved_count++] = piece;
    return true;
}

/* Neighbours of each involved piece, one after the other. */
static void list_neighbours(solver *state)
{
    const frag_colours *colours = state->colours;
    size_t *counts = frag_alloc((size_t)state->involved_count + 1, sizeof *counts);
    for (size_t i = 0; i < colours->edge_count; i++)
        for (int end = 0; end < 2; end++) {
            uint32_t at = state->index_of[colours->edges[i][end]];
            if (at != NONE)
                counts[at]++;
        }
    state->first_neighbour = frag_alloc((size_t)state->involved_count + 1, sizeof(size_t));
    for (uint32_t i = 0; i < state->involved_count; i++) {
        state->first_neighbour[i + 1] = state->first_neighbour[i] + counts[i];
        counts[i] = state->first_neighbour[i];
    }
    state->neighbours =
        frag_alloc(state->first_neighbour[state->involved_count] + 1, sizeof(uint32_t));
    for (size_t i = 0; i < colours->edge_count; i++)
        for (int end = 0; end < 2; end++) {
            uint32_t at = state->index_of[colours->edges[i][end]];
            if (at != NONE)
                state->neighbours[counts[at]++] = colours->edges[i][1 - end];
        }
    frag_free(counts);
}

static void rule_out(solver *state, uint32_t at, uint32_t colour)
{
    state->ruled_out[at][colour / WORD_BITS] |= (uint64_t)1 << colour % WORD_BITS;
}

static void join_life(solver *state, const frag_colour_piece *piece)
{
    colour_life *life = &state->lives[piece->colour];
    if (piece->first_alloc != UINT64_MAX && piece->last_alloc + 1 > life->last_alloc)
        life->last_alloc = piece->last_alloc + 1;
    if (piece->given < life->first_given) {
        life->first_given = piece->given;
        life->burst = piece->burst;
    }
}

/* A private pool gives memory back when nobody owns it any more. */
static bool is_possible(const solver *state, uint32_t at, uint32_t colour)
{
    if ((state->ruled_out[at][colour / WORD_BITS] >> colour % WORD_BITS & 1) != 0)
        return false;
    const frag_colour_piece *piece = &state->colours->pieces[state->involved[at]];
    const colour_life *life = &state->lives[colour];
    if (colour == FRAG_COLOUR_DEFAULT)
        return true;
    bool is_used = piece->first_alloc != UINT64_MAX;
    return (life->last_alloc == 0 || life->last_alloc - 1 < piece->given) &&
           (!is_used || piece->last_alloc < life->first_given);
}

static uint32_t possible_count(const solver *state, uint32_t at)
{
    uint32_t count = 0;
    for (uint32_t colour = 0; colour < state->colours->colour_count; colour++)
        count += is_possible(state, at, colour) ? 1 : 0;
    return count;
}

/* Was memory of this colour given back together with the piece? */
static bool is_given_with(const solver *state, const frag_colour_piece *piece, uint32_t colour)
{
    const colour_life *life = &state->lives[colour];
    return piece->given != UINT64_MAX && life->first_given != UINT64_MAX &&
           life->burst == piece->burst;
}

/* The default pool if possible; then the pool of what was given back together with it; then one
 * that is there, else a new one, whose number is colour_count. */
static uint32_t choose_colour(const solver *state, uint32_t at)
{
    const frag_colours *colours = state->colours;
    const frag_colour_piece *piece = &colours->pieces[state->involved[at]];
    uint32_t first = colours->colour_count;
    for (uint32_t colour = 0; colour < colours->colour_count; colour++) {
        if (!is_possible(state, at, colour))
            continue;
        if (colour == FRAG_COLOUR_DEFAULT || is_given_with(state, piece, colour))
            return colour;
        if (first == colours->colour_count)
            first = colour;
    }
    return first;
}

static void set_colour(solver *state, uint32_t at, uint32_t colour)
{
    frag_colour_piece *piece = &state->colours->pieces[state->involved[at]];
    piece->colour = colour;
    state->is_done[at] = true;
    join_life(state, piece);
    for (size_t i = state->first_neighbour[at]; i < state->first_neighbour[at + 1]; i++) {
        uint32_t neighbour = state->index_of[state->neighbours[i]];
        if (neighbour != NONE)
            rule_out(state, neighbour, colour);
    }
}

/* The piece with the fewest colours left; of equals the least doubtful, then the earliest, for
 * programs begin with the default pool. */
static uint32_t next_piece(const solver *state, const uint32_t *possible)
{
    const frag_colour_piece *pieces = state->colours->pieces;
    uint32_t found = NONE;
    for (uint32_t i = 0; i < state->involved_count; i++) {
        if (state->is_done[i])
            continue;
        uint32_t piece = state->involved[i];
        uint32_t other = found == NONE ? 0 : state->involved[found];
        if (found == NONE || possible[i] < possible[found] ||
            (possible[i] == possible[found] &&
             (pieces[piece].doubt < pieces[other].doubt ||
              (pieces[piece].doubt == pieces[other].doubt && piece < other))))
            found = i;
    }
    return found;
}

static bool colour_all(solver *state)
{
    frag_colours *colours = state->colours;
    uint32_t *possible = frag_alloc((size_t)state->involved_count + 1, sizeof *possible);
    bool ok = true;
    for (uint32_t i = 0; i < state->involved_count; i++)
        possible[i] = possible_count(state, i);
    for (uint32_t done = 0; done < state->involved_count && ok; done++) {
        uint32_t at = next_piece(state, possible);
        uint32_t colour = choose_colour(state, at);
        ok = colour < FRAG_COLOUR_MAX;
        if (!ok)
            break;
        if (colour == colours->colour_count)
            colours->colour_count++;
        set_colour(state, at, colour);
        for (size_t i = state->first_neighbour[at]; i < state->first_neighbour[at + 1]; i++) {
            uint32_t neighbour = state->index_of[state->neighbours[i]];
            if (neighbour != NONE)
                possible[neighbour] = possible_count(state, neighbour);
        }
    }
    frag_free(possible);
    return ok;
}

static bool begin(solver *state)
{
    frag_colours *colours = state->colours;
    state->involved = frag_alloc(INVOLVED_MAX, sizeof *state->involved);
    state->index_of = frag_alloc(colours->piece_count + 1, sizeof *state->index_of);
    memset(state->index_of, 0xff, colours->piece_count * sizeof *state->index_of);
    for (size_t i = 0; i < colours->edge_count; i++)
        if (!involve(state, colours->edges[i][0]) || !involve(state, colours->edges[i][1]))
            return false;
    state->ruled_out = frag_alloc((size_t)state->involved_count + 1, sizeof *state->ruled_out);
    state->is_done = frag_alloc((size_t)state->involved_count + 1, sizeof *state->is_done);
    list_neighbours(state);
    for (uint32_t i = 0; i < FRAG_COLOUR_MAX; i++)
        state->lives[i] = (colour_life){.first_given = UINT64_MAX};
    for (size_t i = 0; i < colours->piece_count; i++) {
        frag_colour_piece *piece = &colours->pieces[i];
        if (piece->is_known)
            join_life(state, piece);
        else
            piece->colour = FRAG_COLOUR_DEFAULT;
        piece->is_told = state->index_of[i] != NONE;
    }
    for (uint32_t i = 0; i < state->involved_count; i++)
        for (size_t k = state->first_neighbour[i]; k < state->first_neighbour[i + 1]; k++) {
            const frag_colour_piece *neighbour = &colours->pieces[state->neighbours[k]];
            if (neighbour->is_known)
                rule_out(state, i, neighbour->colour);
        }
    return true;
}

bool frag_colours_solve(frag_colours *colours, uint32_t known_colours)
{
    solver *state = frag_alloc(1, sizeof *state);
    state->colours = colours;
    colours->colour_count = known_colours;
    bool ok = begin(state) && colour_all(state);
    frag_free(state->involved);
    frag_free(state->index_of);
    frag_free(state->ruled_out);
    frag_free(state->is_done);
    frag_free(state->first_neighbour);
    frag_free(state->neighbours);
    frag_free(state);
    return ok;
}
