/* Where the recorded allocator's free memory lies while a history is walked forward: the blocks of
 * each segment in address order, and the free ones in the order in which PyTorch looks for them.
 *
 * Blocks are numbered from 1; 0 is none. A block keeps its number when it is cut (the front does)
 * and when it is merged (the left one does), so that the first of a segment never changes. */
#ifndef FRAG_POOLS_SNAPSHOT_LAYOUT_H
#define FRAG_POOLS_SNAPSHOT_LAYOUT_H

#include "traces/torch/history/snapshot_ranges.h"

/* A part of a segment, in use or free. */
typedef struct frag_free_layout_block {
    uint64_t address;
    uint64_t bytes;
    uint32_t prev; /* in the segment */
    uint32_t next;
    uint64_t since; /* entry that made it free as it is now */
    uint32_t list;
    uint32_t piece; /* the segment, as its owner numbers them */
    bool is_free;
    bool is_vague; /* where it begins is not recorded but guessed */
} frag_free_layout_block;

/* The free blocks that one request can be served from. */
typedef struct frag_free_layout_list {
    uint64_t stream;
    uint32_t colour; /* of the pool */
    bool is_small;
    uint32_t *blocks; /* by size, then address */
    size_t count;
    size_t capacity;
} frag_free_layout_list;

typedef struct frag_free_layout {
    frag_free_layout_block *blocks;
    size_t block_count; /* [0] included */
    size_t block_capacity;
    uint32_t spare;
    frag_free_layout_list *lists;
    size_t list_count;
    size_t list_capacity;
    uint32_t last_list;
    uint64_t steps;            /* by frag_free_layout_find, and blocks moved in long lists */
    frag_held_ranges segments; /* pool: the first block */
} frag_free_layout;

void frag_free_layout_create(frag_free_layout *layout);
void frag_free_layout_destroy(frag_free_layout *layout);

/* A list; they are few, and looked for one by one. */
uint32_t frag_free_layout_list_of(frag_free_layout *layout, uint32_t colour, uint64_t stream,
                                  bool is_small);

/* Adds a segment as one free block, and returns it; 0 when something lies there. */
uint32_t frag_free_layout_add(frag_free_layout *layout, uint32_t list, uint64_t address,
                              uint64_t bytes, uint32_t piece, uint64_t since);
/* Removes the segment that begins at address and is free as a whole, and returns its piece;
 * UINT32_MAX when there is none. */
uint32_t frag_free_layout_remove(frag_free_layout *layout, uint64_t address);

/* The block that holds an address, or 0; goes through the segment's blocks one by one. */
uint32_t frag_free_layout_find(frag_free_layout *layout, uint64_t address);
/* The smallest free block of a list with at least bytes, of equal ones that at the lowest address;
 * or 0. */
uint32_t frag_free_layout_best(frag_free_layout *layout, uint32_t list, uint64_t bytes);
/* The free block that comes next in its list, or 0. */
uint32_t frag_free_layout_after(frag_free_layout *layout, uint32_t block);

/* Takes bytes at an address inside a free block into use, and returns their block; what is left on
 * either side stays free, and is of the time of the block. */
uint32_t frag_free_layout_take(frag_free_layout *layout, uint32_t block, uint64_t address,
                               uint64_t bytes);
/* Sets a block free and merges it with its neighbours. */
void frag_free_layout_give(frag_free_layout *layout, uint32_t block, uint64_t since);

#endif
