/* libfraglab_torch.so: any policy of fraglab serves a running PyTorch, or any other program that
 * calls the first two functions below. docs/deploy.md shows how; fraglab_torch.py installs it.
 *
 * The interface is that of torch.cuda.memory.CUDAPluggableAllocator: plain functions without a
 * context, so that the library keeps its state in one place behind one lock. It is set by the
 * environment, once, when it is loaded: FRAGLAB_POLICY, FRAGLAB_CAPACITY, FRAGLAB_STATS,
 * FRAGLAB_RECORD, FRAGLAB_CUDART, FRAGLAB_TORCH_VERSION (torch_settings.h). When something there is
 * wrong it says so on stderr and serves nothing. A forked child is served nothing either, as CUDA
 * does not work there.
 *
 * A request that cannot be served returns NULL. PyTorch does not look for that; so where libc10 is
 * in the program the function throws a std::runtime_error instead, which Python sees as a
 * RuntimeError with the message. */
#ifndef FRAG_TORCH_TORCH_ALLOCATOR_H
#define FRAG_TORCH_TORCH_ALLOCATOR_H

#include <sys/types.h>

#include "gpu_replay/torch/torch_pools.h"

/* bytes 0: NULL, which is no failure. A device is opened at its first request. */
void *fraglab_alloc(ssize_t bytes, int device, frag_cuda_stream stream);
/* NULL is nothing. A pointer that is not fraglab's is reported once, counted, and left alone. */
void fraglab_free(void *pointer, ssize_t bytes, int device, frag_cuda_stream stream);

/* set_record_stream_fn: the free of the block waits for that stream too. */
void fraglab_record_stream(void *pointer, frag_cuda_stream stream);
/* set_reset_fn: torch.cuda.empty_cache(). */
void fraglab_empty_cache(void);
/* set_memory_fraction_fn: a share (0 to 1) of the device's capacity. */
void fraglab_set_memory_fraction(double fraction, int device);
/* set_base_alloc_fn: the segment of a block, *bytes long; the pointer itself when it is unknown. */
void *fraglab_base_allocation(void *pointer, size_t *bytes);

/* A std::pair<unsigned long long, unsigned long long> is handed over like this struct, and a
 * std::function by its address. */
/* set_begin_allocate_to_pool; set_end_allocate_to_pool_fn; set_release_pool: private pools. */
void fraglab_begin_allocate_to_pool(int device, frag_pool_id pool, const frag_torch_filter *filter);
void fraglab_end_allocate_to_pool(int device, frag_pool_id pool);
void fraglab_release_pool(int device, frag_pool_id pool);

/* Why the last request of the thread failed; "" when none has. Good until its next call. */
const char *fraglab_last_error(void);
/* One statistic of a device, named as in torch.cuda.memory_stats ("reserved_bytes.all.peak"); -1:
 * there is none of that name. */
long long fraglab_stat(int device, const char *name);
/* The printout that FRAGLAB_STATS asks for at the end, now; to stderr when nothing is set. */
void fraglab_print_stats(void);

#endif
