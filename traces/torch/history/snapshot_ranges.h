/* The memory a recorded allocator holds while its history is walked: cudaMalloc'ed segments and
 * mapped expandable ranges, in address order.
 *
 * Kept in pages of some dozen ranges, so that adding and removing stays cheap with any number. */
#ifndef FRAG_HISTORY_SNAPSHOT_RANGES_H
#define FRAG_HISTORY_SNAPSHOT_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct frag_held_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint32_t pool;
    uint32_t site; /* for those who keep it: where it was asked for */
    bool is_expandable;
    bool is_small; /* of the small pool */
} frag_held_range;

typedef struct frag_held_page frag_held_page;

typedef struct frag_held_ranges {
    frag_held_page **pages; /* none is empty */
    size_t page_count;
    size_t page_capacity;
    size_t count;
} frag_held_ranges;

/* The range that holds the byte at address, or NULL; good until the next change. */
frag_held_range *frag_held_ranges_find(const frag_held_ranges *ranges, uint64_t address);
/* The lowest range that holds one of the bytes at address, or NULL; good until the next change. */
frag_held_range *frag_held_ranges_overlap(const frag_held_ranges *ranges, uint64_t address,
                                          uint64_t bytes);
/* Adds a range; false when it overlaps one that is held. */
bool frag_held_ranges_add(frag_held_ranges *ranges, const frag_held_range *range);
/* Adds an expandable range and joins it with those of its stream and pool that it touches. */
bool frag_held_ranges_map(frag_held_ranges *ranges, const frag_held_range *range);
/* Removes the range that begins at address. */
void frag_held_ranges_remove(frag_held_ranges *ranges, uint64_t address);
/* Cuts bytes at address out of one expandable range; false when no single one holds them all. */
bool frag_held_ranges_cut(frag_held_ranges *ranges, uint64_t address, uint64_t bytes);
/* All ranges in address order; the caller frees the array. */
frag_held_range *frag_held_ranges_list(const frag_held_ranges *ranges);
void frag_held_ranges_destroy(frag_held_ranges *ranges);

#endif
