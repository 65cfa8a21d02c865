/* Private pools: where requests go while a CUDA graph is captured.
 *
 * PyTorch opens a pool for the requests of some streams and tells which with a C++ object, a
 * std::function. It is taken over and called here by its binary layout in libstdc++, which has been
 * the same since GCC 4. */
#ifndef FRAG_TORCH_TORCH_POOLS_H
#define FRAG_TORCH_TORCH_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_replay/device/cuda_abi.h"
#include "gpu_replay/torch/torch_policy.h"

/* std::function<bool(cudaStream_t)> */
typedef struct frag_torch_filter {
    void *functor[2];
    bool (*manage)(void *to, const void *from, int operation); /* NULL: empty */
    bool (*call)(const void *functor, frag_cuda_stream *stream);
} frag_torch_filter;

typedef struct frag_torch_scope {
    uint32_t pool;
    bool is_used; /* a request has gone there */
    frag_torch_filter filter;
} frag_torch_scope;

/* Start from {0}. */
typedef struct frag_torch_pools {
    uint32_t count; /* private pools named so far: numbers 1 to count */
    uint32_t scope_count;
    frag_torch_scope scopes[FRAG_TORCH_POOL_MAX]; /* in the order in which they were opened */
} frag_torch_pools;

/* The number of a pool, 1 and up; ids: by number. 0: it has none so far. */
uint32_t frag_torch_pool_find(const frag_torch_pools *pools, const frag_pool_id *ids,
                              frag_pool_id id);
/* As find, and names it. 0: more than FRAG_TORCH_POOL_MAX. */
uint32_t frag_torch_pool_number(frag_torch_pools *pools, frag_pool_id *ids, frag_pool_id id);

/* Requests of the streams that the filter (copied; NULL: all) lets through go to the pool. false: a
 * scope of it is open. */
bool frag_torch_pools_open(frag_torch_pools *pools, uint32_t pool, const frag_torch_filter *filter);
/* false: there is none. is_used: a request has gone there. */
bool frag_torch_pools_close(frag_torch_pools *pools, uint32_t pool, bool *is_used);

/* Where a request of the stream goes; NULL: to the default pool. The scope opened last wins. */
frag_torch_scope *frag_torch_pools_route(frag_torch_pools *pools, frag_cuda_stream stream);

#endif
