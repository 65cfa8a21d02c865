/* Preparing a card for a run: every kind of call made once, so that what the driver keeps for
 * itself is kept before anything is measured; and the ballast that leaves only a given capacity. */
#ifndef FRAG_DEVICE_CUDA_BALLAST_H
#define FRAG_DEVICE_CUDA_BALLAST_H

#include "gpu_replay/device/cuda_gpu.h"

typedef struct frag_cuda_ballast {
    void **pieces;
    size_t count;
    size_t capacity;
    uint64_t bytes;
} frag_cuda_ballast;

/* Allocates, maps, writes and frees one page, in each way the card offers. A full card is no
 * failure. false: the card is of no use. */
bool frag_cuda_warm_up(frag_gpu *gpu, const frag_gpu_facts *facts, uint64_t page_bytes,
                       frag_error *error);

/* Allocates until as many whole pages are free as fit into capacity_bytes, largest pieces first.
 * false: the card has less free, or refused. The caller empties the ballast either way. */
bool frag_cuda_ballast_fill(frag_cuda_ballast *ballast, frag_gpu *gpu, uint64_t capacity_bytes,
                            uint64_t page_bytes, frag_error *error);
void frag_cuda_ballast_empty(frag_cuda_ballast *ballast, frag_gpu *gpu);

/* Bytes free on the card, by the driver's word. */
bool frag_cuda_free_bytes(frag_gpu *gpu, uint64_t *free_bytes, frag_error *error);

#endif
