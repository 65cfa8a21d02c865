/* Free blocks in the order in which PyTorch looks for one: by size, then by address.
 *
 * They lie in logarithmic bins of their size, 8 to an octave, each a search tree whose shape
 * depends on the numbers of its blocks (a treap: Seidel and Aragon, Algorithmica 16, 1996). Bins
 * are mostly of one or two blocks; one in which thousands are of one size stays as cheap as a
 * logarithm. */
#ifndef FRAG_POOLS_SNAPSHOT_ORDER_H
#define FRAG_POOLS_SNAPSHOT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* A part of a segment, in use or free. Named by its place in an array of the caller's, where [0] is
 * no block. */
typedef struct frag_free_layout_block {
    uint64_t address;
    uint64_t bytes;
    uint32_t child[2]; /* in the tree of its bin: what is before it, what is behind it */
    uint32_t prev;     /* in the segment */
    uint32_t next;
    uint64_t since; /* entry that made it free as it is now */
    uint32_t list;
    uint32_t piece; /* the segment, as its owner numbers them */
    bool is_free;
    bool is_vague; /* where it begins is not recorded but guessed */
} frag_free_layout_block;

typedef struct frag_free_bins frag_free_bins;

/* Start from {0}. */
typedef struct frag_free_order {
    frag_free_bins *bins; /* NULL: none was ever added */
} frag_free_order;

/* No two blocks are of the same size and address, which stay as they are while a block is here.
 * To *steps are added those down trees that are deeper than chance makes them. */
void frag_free_order_add(frag_free_order *order, frag_free_layout_block *blocks, uint32_t block,
                         uint64_t *steps);
/* Removes a block, which must be there. */
void frag_free_order_remove(frag_free_order *order, frag_free_layout_block *blocks, uint32_t block,
                            uint64_t *steps);
/* The first block at or behind a size and an address, or 0. */
uint32_t frag_free_order_from(const frag_free_order *order, const frag_free_layout_block *blocks,
                              uint64_t bytes, uint64_t address, uint64_t *steps);
void frag_free_order_destroy(frag_free_order *order);

#endif
