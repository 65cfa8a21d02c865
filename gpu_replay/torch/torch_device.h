/* One card of the running program, and the policy that serves it.
 *
 * What the replay engine is to a trace, this is to a program: it gives blocks numbers, counts
 * bytes from requests and grants, holds back frees that wait for streams and tells the recorder.
 * Nothing here locks; torch_allocator.c holds one lock around every call. */
#ifndef FRAG_TORCH_TORCH_DEVICE_H
#define FRAG_TORCH_TORCH_DEVICE_H

#include <stdio.h>

#include "gpu_replay/torch/torch_card.h"
#include "gpu_replay/torch/torch_settings.h"

#define FRAG_TORCH_DEVICE_MAX 64u
#define FRAG_TORCH_MESSAGE_BYTES 2048

/* Opens the card and creates the policy on it. NULL: the driver's words, or an option that does not
 * fit this card. The current device of the thread stays as it is. */
frag_torch_device *frag_torch_device_create(const frag_torch_settings *settings, uint32_t ordinal,
                                            frag_error *error);

/* The address of a block of at least bytes (not 0), to be used on the stream. 0: it could not be
 * served, and message says why in words that begin with "CUDA out of memory" where memory was the
 * reason. */
uint64_t frag_torch_device_alloc(frag_torch_device *device, uint64_t bytes, frag_cuda_stream stream,
                                 char message[FRAG_TORCH_MESSAGE_BYTES]);

/* stream: on which the program frees; PyTorch names that of the request. false: no block of this
 * device begins there. */
bool frag_torch_device_free(frag_torch_device *device, uint64_t address, frag_cuda_stream stream);

/* The block's memory is used on that stream too: its free will wait for it. false: no block begins
 * there. */
bool frag_torch_device_use(frag_torch_device *device, uint64_t address, frag_cuda_stream stream);

/* The segment that the block at the address lies in. false: no block begins there. */
bool frag_torch_device_segment(const frag_torch_device *device, uint64_t address, uint64_t *base,
                               uint64_t *bytes);

void frag_torch_device_empty_cache(frag_torch_device *device);
/* A share of the capacity that may be held from now on; policies without limits refuse. */
bool frag_torch_device_limit(frag_torch_device *device, double fraction);

/* ---- requests to private pools. false: message says why. */
bool frag_torch_device_pool_begin(frag_torch_device *device, frag_pool_id id,
                                  const frag_torch_filter *filter,
                                  char message[FRAG_TORCH_MESSAGE_BYTES]);
void frag_torch_device_pool_end(frag_torch_device *device, frag_pool_id id);
void frag_torch_device_pool_release(frag_torch_device *device, frag_pool_id id);

/* Prints what was served, and PyTorch's table of statistics. */
void frag_torch_device_print(const frag_torch_device *device, const frag_torch_settings *settings,
                             FILE *stream);

/* At the end of the program: gives everything back to the driver if the program holds nothing any
 * more. */
void frag_torch_device_close(frag_torch_device *device);

#endif
