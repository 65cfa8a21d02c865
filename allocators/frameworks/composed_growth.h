/* Growth rules of the composed allocator: what is asked of the device when no free block will do,
 * and what is given back instead. Each is a frag_growth. */
#ifndef FRAG_FRAMEWORKS_COMPOSED_GROWTH_H
#define FRAG_FRAMEWORKS_COMPOSED_GROWTH_H

#include "allocators/frameworks/composed.h"

/* A segment of the request's size in multiples of ask_unit, or out of memory. */
bool frag_grow_plain(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

/* As much again as the pool has (step_bytes), at least the request; with a limit half of what it
 * leaves. Halved while the device refuses, down to the request. Source: RMM's pool. */
bool frag_grow_doubling(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

/* The first segment at construction, asked for once: a free block of the list. A refusal leaves an
 * allocator that serves nothing. */
void frag_grow_initial(frag_composed *composed, uint32_t list, uint64_t bytes);

/* The region of the BFC allocators: step_bytes, which doubles, within the limit; nine tenths of it,
 * again and again, while the device refuses. Source: TensorFlow, ONNX Runtime. */
bool frag_grow_region(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

/* A segment of exactly the request within the limit; idle ones are given back when the limit or the
 * device refuses. Source: CuPy. */
bool frag_grow_within_limit(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

/* A segment of the list's chunk_bytes, or of the request when that is larger; on refusal idle ones
 * are given back and it is asked for once more. Source: Paddle. */
bool frag_grow_chunk(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

/* A segment of exactly the request; all idle ones go back before, when a share of the device would
 * not stay free otherwise, and when the device refuses, which is then asked once more.
 * Requests above segment_max fail. Source: MXNet. */
bool frag_grow_with_reserve(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

#endif
