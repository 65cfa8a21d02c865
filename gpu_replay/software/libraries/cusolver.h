/* cuSOLVER: its versions. */
#ifndef FRAG_LIBRARIES_CUSOLVER_H
#define FRAG_LIBRARIES_CUSOLVER_H

#include <stdint.h>

#include "gpu_replay/software/libraries/standin.h"

/* cuSOLVER is a release behind: 11.7 belongs to CUDA 12, 12.7 to CUDA 13. */
static inline int32_t frag_cusolver_version_part(uint64_t property)
{
    return property == 0 ? FRAG_CUDART - 1 : property == 1 ? 7 : 0;
}

#endif
