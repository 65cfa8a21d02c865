/* Free address ranges of a simulated device.
 *
 * A treap of the free ranges, ordered by address, each node knowing the largest range below it: the
 * lowest range that is large enough, or a given place, is found in O(log n). Priorities are hashes
 * of node numbers, so that the shape is the same on every machine. */
#ifndef FRAG_DEVICE_RANGES_H
#define FRAG_DEVICE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/image.h"

typedef struct frag_range_node {
    uint64_t address;
    uint64_t bytes;
    uint64_t bytes_max; /* in this subtree */
    uint32_t left;
    uint32_t right;
} frag_range_node;

typedef struct frag_ranges {
    frag_range_node *nodes; /* [0] is the empty tree */
    size_t capacity;
    uint32_t count; /* nodes ever used, [0] included */
    uint32_t free_list;
    uint32_t root;
} frag_ranges;

/* All of [address, address + bytes) is free. */
void frag_ranges_create(frag_ranges *ranges, uint64_t address, uint64_t bytes);
void frag_ranges_destroy(frag_ranges *ranges);
/* Takes the lowest bytes; false when no free range is large enough. */
bool frag_ranges_take_lowest(frag_ranges *ranges, uint64_t bytes, uint64_t *address);
/* Takes exactly this place; false unless all of it is free. */
bool frag_ranges_take_at(frag_ranges *ranges, uint64_t address, uint64_t bytes);
/* Takes whatever is free in this place. */
void frag_ranges_clear(frag_ranges *ranges, uint64_t address, uint64_t bytes);
/* Gives a place back, joining its neighbours. Giving back what is free is a bug and asserts. */
void frag_ranges_give(frag_ranges *ranges, uint64_t address, uint64_t bytes);
/* For checkpoints: what was kept is brought back, in order (sim/image.h). */
void frag_ranges_keep(const frag_ranges *ranges, frag_image *image);
void frag_ranges_return(frag_ranges *ranges, frag_image *image);
bool frag_ranges_check(const frag_ranges *ranges, frag_error *error);

#endif
