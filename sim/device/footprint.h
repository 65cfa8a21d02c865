/* What a device malloc of so many bytes really takes away from free memory.
 *
 * Drivers pack small mallocs into shared pages, in classes of sizes, and give whole pages to large
 * ones. */
#ifndef FRAG_DEVICE_FOOTPRINT_H
#define FRAG_DEVICE_FOOTPRINT_H

#include <stdint.h>

#include "base/bits.h"

#define FRAG_FOOTPRINT_CLASSES_MAX 128

typedef struct frag_footprint_class {
    uint64_t up_to_bytes; /* mallocs of at most so many bytes, and more than the class below */
    uint64_t takes_bytes; /* each */
} frag_footprint_class;

typedef struct frag_footprint {
    frag_footprint_class classes[FRAG_FOOTPRINT_CLASSES_MAX]; /* ascending in both */
    uint32_t count;
    uint64_t unit_bytes; /* above the last class whole multiples of this are taken */
} frag_footprint;

static inline uint64_t frag_footprint_bytes(const frag_footprint *footprint, uint64_t bytes)
{
    for (uint32_t i = 0; i < footprint->count; i++)
        if (bytes <= footprint->classes[i].up_to_bytes)
            return footprint->classes[i].takes_bytes;
    return frag_round_up(bytes, footprint->unit_bytes);
}

#endif
