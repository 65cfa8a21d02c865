/* The order in which a std::unordered_map walks whole numbers, for pools that give memory back as
 * they walk such a table. The standard leaves the order open; this is GCC's, whose hash of a number
 * is the number: a number that finds its bucket empty comes first of all, one that does not comes
 * first in its bucket, and more buckets are made by taking the numbers over in their order. Source:
 * libstdc++ of GCC 12, which the logs were made with. */
#ifndef FRAG_INDEX_WALK_ORDER_H
#define FRAG_INDEX_WALK_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct frag_walk_order {
    uint64_t *numbers;      /* as they were added, until they are put in order */
    uint64_t *spare;        /* number_max: the order, while it is made */
    uint32_t *newest;       /* by bucket: index of the number that comes first in it */
    uint32_t *older;        /* by index: the next one of its bucket */
    uint32_t *used_buckets; /* in order of their first number */
    uint32_t number_count;
    uint32_t number_max;
    uint32_t bucket_count; /* of the table; stays when its numbers are forgotten */
} frag_walk_order;

/* Arena bytes for so many numbers at a time. */
size_t frag_walk_order_bytes(uint32_t number_max);
void frag_walk_order_create(frag_walk_order *order, frag_arena *arena, uint32_t number_max);

/* A number that was not added since all were forgotten. */
void frag_walk_order_add(frag_walk_order *order, uint64_t number);
/* All numbers in the table's order, or ascending; valid until the next add. They are forgotten, the
 * table keeps its buckets. */
const uint64_t *frag_walk_order_take(frag_walk_order *order, uint32_t *count);
const uint64_t *frag_walk_order_take_sorted(frag_walk_order *order, uint32_t *count);

#endif
