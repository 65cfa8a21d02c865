/* The block sizes of buddy systems, in units: how a request is rounded, and where a block is split.
 *
 * Binary: powers of two, cut in halves. Weighted: 2^k and 3 * 2^k; 2^k is cut into 3/4 and 1/4, 3 *
 * 2^k into 2/3 and 1/3. Fibonacci: 1, 2, 3, 5, 8 ..., each cut into the two before it. The lower
 * part is never the smaller one. Sources: Knowlton, CACM 8(10), 1965; Shen and Peterson, CACM
 * 17(10), 1974; Hirschberg, CACM 16(10), 1973. */
#ifndef FRAG_CLASSIC_BUDDY_SIZES_H
#define FRAG_CLASSIC_BUDDY_SIZES_H

#include <stdint.h>

typedef enum frag_buddy_sizes {
    FRAG_BUDDY_BINARY,
    FRAG_BUDDY_WEIGHTED,
    FRAG_BUDDY_FIBONACCI
} frag_buddy_sizes;

/* No path from the largest block to the smallest one is longer. */
enum { FRAG_BUDDY_DEPTH_MAX = 128 };

/* The smallest size that holds these units, 1 to 2^62. */
uint64_t frag_buddy_size_up(frag_buddy_sizes sizes, uint64_t units);
/* The lower part of a size above 1. */
uint64_t frag_buddy_low_part(frag_buddy_sizes sizes, uint64_t size);

#endif
