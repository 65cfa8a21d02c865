/* Segments and the pools they can have been in: each pool is a colour, and two segments that were
 * seen to be in different pools get different ones. */
#ifndef FRAG_POOLS_SNAPSHOT_COLOURS_H
#define FRAG_POOLS_SNAPSHOT_COLOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/number_map.h"

#define FRAG_COLOUR_DEFAULT 0u
#define FRAG_COLOUR_MAX 512u

/* A segment from when it was taken until it was given back. */
typedef struct frag_colour_piece {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint64_t taken;       /* entry; UINT64_MAX: before the history */
    uint64_t given;       /* entry; UINT64_MAX: never */
    uint64_t first_alloc; /* entry; UINT64_MAX: none */
    uint64_t last_alloc;
    uint64_t burst; /* the first entry of those that gave memory back with it */
    uint32_t colour;
    uint32_t doubt; /* how often something spoke against the default pool without proving it */
    bool is_small;
    bool is_known; /* its colour is not to be changed */
    bool is_told;  /* it differs from another one, so that its colour is not the default for want of
                      evidence */
    uint32_t first_edge; /* of the array of edges, + 1; 0: none */
} frag_colour_piece;

/* Seen from one of its two pieces. */
typedef struct frag_colour_edge {
    uint32_t neighbour;
    uint32_t next; /* edge of the same piece, + 1; 0: none */
} frag_colour_edge;

typedef struct frag_colours {
    frag_colour_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    uint32_t colour_count;
    frag_colour_edge *edges; /* two for each pair of pieces of different colours */
    size_t edge_count;       /* pairs */
    size_t edge_capacity;
    frag_number_map pairs; /* those there are */
} frag_colours;

/* Adds a piece that is in the default pool unless something speaks against it. */
uint32_t frag_colours_add(frag_colours *colours, const frag_colour_piece *piece);
void frag_colours_destroy(frag_colours *colours);

/* Two pieces were not in one pool. */
void frag_colours_differ(frag_colours *colours, uint32_t a, uint32_t b);

/* Gives every piece that is not known the default colour, or, where that is ruled out, another.
 * false: too many are involved, or too many colours needed. */
bool frag_colours_solve(frag_colours *colours, uint32_t known_colours);

#endif
