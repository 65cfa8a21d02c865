#include "traces/torch/pools/snapshot_colours.h"

#include "base/memory.h"

/* Pieces whose colour is in question; choosing among them is quadratic. */
enum { MEMBERS_MAX = 4096, WORD_BITS = 64, WORDS = FRAG_COLOUR_MAX / WORD_BITS };

#define NONE UINT32_MAX

/* All the pieces of a private colour taken together. */
typedef struct colour_life {
    uint64_t last_alloc;  /* entry + 1; 0 none */
    uint64_t first_given; /* entry; UINT64_MAX never */
    uint64_t burst;       /* of that piece */
} colour_life;

/* A piece whose colour is in question. */
typedef struct member {
    uint32_t piece;
    uint32_t possible_count; /* colours */
    uint64_t ruled_out[WORDS];
    bool is_done;
} member;

typedef struct solver {
    frag_colours *colours;
    member *members;
    uint32_t member_count;
    uint32_t *member_of; /* by piece; NONE */
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
    frag_number_map_destroy(&colours->pairs);
    *colours = (frag_colours){0};
}

/* ---- edges */

static void add_edge(frag_colours *colours, size_t edge, uint32_t from, uint32_t to)
{
    colours->edges[edge] = (frag_colour_edge){to, colours->pieces[from].first_edge};
    colours->pieces[from].first_edge = (uint32_t)edge + 1;
}

void frag_colours_differ(frag_colours *colours, uint32_t a, uint32_t b)
{
    uint64_t pair = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    uint64_t known = 0;
    if (frag_number_map_get(&colours->pairs, pair, &known))
        return;
    frag_number_map_set(&colours->pairs, pair, colours->edge_count);
    size_t edge = 2 * colours->edge_count++;
    colours->edges =
        frag_grow(colours->edges, &colours->edge_capacity, edge + 2, sizeof *colours->edges);
    add_edge(colours, edge, a, b);
    add_edge(colours, edge + 1, b, a);
}

/* ---- colouring */

static const frag_colour_piece *piece_of(const solver *state, uint32_t at)
{
    return &state->colours->pieces[state->members[at].piece];
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
    if ((state->members[at].ruled_out[colour / WORD_BITS] >> colour % WORD_BITS & 1) != 0)
        return false;
    const frag_colour_piece *piece = piece_of(state, at);
    const colour_life *life = &state->lives[colour];
    if (colour == FRAG_COLOUR_DEFAULT)
        return true;
    bool is_used = piece->first_alloc != UINT64_MAX;
    return (life->last_alloc == 0 || life->last_alloc - 1 < piece->given) &&
           (!is_used || piece->last_alloc < life->first_given);
}

static void count_possible(solver *state, uint32_t at)
{
    state->members[at].possible_count = 0;
    for (uint32_t colour = 0; colour < state->colours->colour_count; colour++)
        state->members[at].possible_count += is_possible(state, at, colour) ? 1 : 0;
}

/* The neighbours of a piece are of other colours. */
static void rule_out_beside(solver *state, const frag_colour_piece *piece)
{
    const frag_colour_edge *edges = state->colours->edges;
    for (uint32_t edge = piece->first_edge; edge != 0; edge = edges[edge - 1].next) {
        uint32_t at = state->member_of[edges[edge - 1].neighbour];
        if (at == NONE)
            continue;
        state->members[at].ruled_out[piece->colour / WORD_BITS] |= (uint64_t)1
                                                                   << piece->colour % WORD_BITS;
        count_possible(state, at);
    }
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
    uint32_t first = colours->colour_count;
    for (uint32_t colour = 0; colour < colours->colour_count; colour++) {
        if (!is_possible(state, at, colour))
            continue;
        if (colour == FRAG_COLOUR_DEFAULT || is_given_with(state, piece_of(state, at), colour))
            return colour;
        if (first == colours->colour_count)
            first = colour;
    }
    return first;
}

/* The piece with the fewest colours left; of equals the least doubtful, then the earliest, for
 * programs begin with the default pool. */
static uint32_t next_member(const solver *state)
{
    uint32_t found = NONE;
    for (uint32_t i = 0; i < state->member_count; i++) {
        const member *it = &state->members[i];
        if (it->is_done)
            continue;
        const member *other = found == NONE ? it : &state->members[found];
        if (found == NONE || it->possible_count < other->possible_count ||
            (it->possible_count == other->possible_count &&
             piece_of(state, i)->doubt < piece_of(state, found)->doubt))
            found = i;
    }
    return found;
}

static bool colour_all(solver *state)
{
    frag_colours *colours = state->colours;
    for (uint32_t i = 0; i < state->member_count; i++)
        count_possible(state, i);
    for (uint32_t done = 0; done < state->member_count; done++) {
        uint32_t at = next_member(state);
        uint32_t colour = choose_colour(state, at);
        if (colour == FRAG_COLOUR_MAX)
            return false;
        if (colour == colours->colour_count)
            colours->colour_count++;
        frag_colour_piece *piece = &colours->pieces[state->members[at].piece];
        piece->colour = colour;
        state->members[at].is_done = true;
        join_life(state, piece);
        rule_out_beside(state, piece);
    }
    return true;
}

static bool begin(solver *state)
{
    frag_colours *colours = state->colours;
    state->members = frag_alloc(MEMBERS_MAX, sizeof *state->members);
    state->member_of = frag_alloc(colours->piece_count, sizeof *state->member_of);
    for (uint32_t i = 0; i < FRAG_COLOUR_MAX; i++)
        state->lives[i] = (colour_life){.first_given = UINT64_MAX};
    for (uint32_t i = 0; i < colours->piece_count; i++) {
        frag_colour_piece *piece = &colours->pieces[i];
        piece->is_told = !piece->is_known && piece->first_edge != 0;
        state->member_of[i] = piece->is_told ? state->member_count : NONE;
        if (piece->is_known)
            join_life(state, piece);
        else
            piece->colour = FRAG_COLOUR_DEFAULT;
        if (!piece->is_told)
            continue;
        if (state->member_count == MEMBERS_MAX)
            return false;
        state->members[state->member_count++].piece = i;
    }
    for (size_t i = 0; i < colours->piece_count; i++)
        if (colours->pieces[i].is_known)
            rule_out_beside(state, &colours->pieces[i]);
    return true;
}

bool frag_colours_solve(frag_colours *colours, uint32_t known_colours)
{
    solver *state = frag_alloc(1, sizeof *state);
    state->colours = colours;
    colours->colour_count = known_colours;
    bool ok = begin(state) && colour_all(state);
    frag_free(state->members);
    frag_free(state->member_of);
    frag_free(state);
    return ok;
}
