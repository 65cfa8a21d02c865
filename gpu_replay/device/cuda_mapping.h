/* Physical memory in reserved ranges. The driver unmaps whole mappings only, so a mapped range is
 * made of pieces, each with a handle of its own. Calls come in the order in which PyTorch makes
 * them: all pieces are created, then all mapped, then made accessible in one call; each is unmapped
 * and released in turn. */
#ifndef FRAG_DEVICE_CUDA_MAPPING_H
#define FRAG_DEVICE_CUDA_MAPPING_H

#include "gpu_replay/device/cuda_places.h"
#include "gpu_replay/device/cuda_runtime.h"

typedef struct frag_cuda_mapper {
    const frag_cuda_runtime *cuda;
    frag_cuda_memory_properties properties;
    frag_cuda_places mappings;
    frag_cuda_place *pieces; /* of the call being made */
    size_t piece_capacity;
    const char *call; /* the CUDA function that was called last */
} frag_cuda_mapper;

/* Cuts where multiples of unit_bytes from the range's beginning lie. Not 0: the code of the call
 * that failed; nothing is mapped then. */
int frag_cuda_mapper_map(frag_cuda_mapper *mapper, frag_cuda_place *range, uint64_t address,
                         uint64_t bytes, uint64_t unit_bytes);
/* Maps what is mapped at source at a second place. Not 0: as above; FRAG_CUDA_INVALID_VALUE too
 * when the pieces there are others than the cuts here. */
int frag_cuda_mapper_map_again(frag_cuda_mapper *mapper, frag_cuda_place *range,
                               frag_cuda_place place, uint64_t source, uint64_t unit_bytes);
/* Second mappings too. Not 0: the code of the call that failed; FRAG_CUDA_INVALID_VALUE too when
 * the place is not made of whole pieces. */
int frag_cuda_mapper_unmap(frag_cuda_mapper *mapper, frag_cuda_place *range, uint64_t address,
                           uint64_t bytes);
/* Gives back all mappings, whatever fails. */
void frag_cuda_mapper_empty(frag_cuda_mapper *mapper);
void frag_cuda_mapper_destroy(frag_cuda_mapper *mapper);

#endif
