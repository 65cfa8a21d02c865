/* Where is memory free during a whole lifetime? A tree over time that answers for many buffers.
 *
 * A segment tree over the sections; each placed buffer is kept at the O(log n) nodes that make up
 * its lifetime. A node has two sets of addresses: those taken during all of its time by buffers
 * kept there, and those taken at some moment by anything kept there or below. What stands in the
 * way of a lifetime is the second set of the nodes it is made of, and the first set of those above.
 * Neighbouring ranges are merged, and good packings leave few holes, so the sets stay small: a
 * placement costs O(log n) short searches however many buffers are live. */
#ifndef FRAG_PLANNER_GAP_TREE_H
#define FRAG_PLANNER_GAP_TREE_H

#include "planner/sections.h"

typedef enum frag_gap_choice {
    FRAG_GAP_FIRST, /* the lowest that is large enough */
    FRAG_GAP_BEST,  /* the smallest that is large enough, the lowest among equals */
} frag_gap_choice;

typedef struct frag_gap_tree frag_gap_tree;

frag_gap_tree *frag_gap_tree_create(uint32_t section_count);
void frag_gap_tree_destroy(frag_gap_tree *tree);
/* Takes everything out again; keeps the memory. */
void frag_gap_tree_clear(frag_gap_tree *tree);

/* The chosen offset, a multiple of alignment, at which size bytes are free in all sections [lower,
 * upper). There always is one: above everything. */
uint64_t frag_gap_tree_find(frag_gap_tree *tree, uint32_t lower, uint32_t upper, uint64_t size,
                            uint64_t alignment, frag_gap_choice choice);

/* Takes [offset, offset + size) in the sections [lower, upper); it must be free there. */
void frag_gap_tree_take(frag_gap_tree *tree, uint32_t lower, uint32_t upper, uint64_t offset,
                        uint64_t size);

#endif
