/* Streams: when memory freed by the program is really free.
 *
 * The program frees a block while the work it gave to a stream is still to be done. On the block's
 * own stream that is safe, as later work comes later. Two cases are not:
 *
 * A block was used by other streams too (record_stream): at its free an event is recorded on each
 * of them, and it reaches the policy when all are done. They are polled before every request,
 * oldest first; a policy that synchronises the device waits for all.
 *
 * A policy that ignores streams grants memory that another stream's work may still touch. Before
 * such a grant the asking stream is made to wait, on the card, for the work given so far to every
 * other stream that has had frees since it last did. Programs with one stream never need that.
 *
 * While a CUDA graph is captured no event may be recorded or polled; frees then wait for the end of
 * the capture. */
#ifndef FRAG_TORCH_TORCH_STREAMS_H
#define FRAG_TORCH_TORCH_STREAMS_H

#include "gpu_replay/torch/torch_card.h"

void frag_torch_streams_create(frag_torch_device *device);

/* false: all numbers below FRAG_TORCH_STREAM_NOBODY are taken. */
bool frag_torch_stream_number(frag_torch_device *device, frag_cuda_stream stream, uint32_t *number);

/* The block is used by a stream that is not its own. */
void frag_torch_use_add(frag_torch_device *device, uint32_t block, uint32_t stream);

/* The program has freed the block. true: it waits, and frag_torch_block_complete follows. */
bool frag_torch_wait_begin(frag_torch_device *device, uint32_t block);
/* Completes what is done. */
void frag_torch_wait_poll(frag_torch_device *device);
/* Waits for everything, and completes it in order of frees. */
void frag_torch_wait_all(frag_torch_device *device);

/* Makes the stream safe for any memory the policy may grant. */
void frag_torch_stream_join(frag_torch_device *device, uint32_t stream);

#endif
