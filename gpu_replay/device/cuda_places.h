/* Where things really are: places as the policy sees them, in order of address, each with its place
 * on the card. One table holds what was got in one piece (mallocs, pool blocks, reserved ranges),
 * another the mappings inside ranges. */
#ifndef FRAG_DEVICE_CUDA_PLACES_H
#define FRAG_DEVICE_CUDA_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum frag_cuda_place_kind {
    FRAG_CUDA_PLACE_MALLOC,
    FRAG_CUDA_PLACE_POOL,  /* of the driver's pool */
    FRAG_CUDA_PLACE_RANGE, /* address space that the policy reserved */
    FRAG_CUDA_PLACE_LOOSE, /* reserved for a mapping where the policy had reserved nothing */
    FRAG_CUDA_PLACE_MAPPING
} frag_cuda_place_kind;

typedef struct frag_cuda_place {
    uint64_t address; /* as the policy sees it */
    uint64_t bytes;
    uint64_t real;             /* on the card */
    uint64_t mapped_bytes;     /* ranges */
    unsigned long long handle; /* mappings */
    bool is_second;            /* mappings: the handle belongs to another one */
    frag_cuda_place_kind kind;
} frag_cuda_place;

/* Places do not overlap. */
typedef struct frag_cuda_places {
    frag_cuda_place *items;
    size_t count;
    size_t capacity;
} frag_cuda_places;

/* Index of the place that contains the address; count when none does. */
size_t frag_cuda_places_find(const frag_cuda_places *places, uint64_t address);
void frag_cuda_places_add(frag_cuda_places *places, const frag_cuda_place *place);
void frag_cuda_places_remove(frag_cuda_places *places, size_t first, size_t count);
void frag_cuda_places_destroy(frag_cuda_places *places);

#endif
