/* What the files of libcudart share. FRAG_CUDART, 12 or 13, is the major version that is built: the
 * two differ in the size of a device's properties and in a few signatures. */
#ifndef FRAG_RUNTIME_SOFT_RUNTIME_H
#define FRAG_RUNTIME_SOFT_RUNTIME_H

#include "gpu_replay/software/soft_entry.h"

enum { FRAG_RUNTIME_INVALID_SYMBOL = 13 };

/* Ends the call; a result other than 0 becomes the last error of the thread. Returns the result. */
int32_t frag_runtime_end(frag_soft_call *call);
/* The same for a result without a call. */
int32_t frag_runtime_return(int32_t result);
/* What a cudaMemcpy3DParms copies; not 0: it cannot be. */
int32_t frag_runtime_area_of(const void *parameters, frag_soft_area *area);
/* The place of a part of a symbol; 0: it does not lie in one. */
uint64_t frag_runtime_part_of(const void *symbol, size_t bytes, size_t offset);

#endif
