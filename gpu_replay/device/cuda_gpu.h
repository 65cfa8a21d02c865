/* One card with a context on it: what the device, the probe and whatever else speaks CUDA share. */
#ifndef FRAG_DEVICE_CUDA_GPU_H
#define FRAG_DEVICE_CUDA_GPU_H

#include "gpu_replay/device/cuda_runtime.h"
#include "sim/device/gpu_module.h"

struct frag_gpu {
    frag_cuda_runtime cuda;
    int ordinal;
};

/* See frag_gpu_module in sim/device/gpu_module.h. */
frag_gpu *frag_gpu_open(const char *runtime_path, uint32_t ordinal, frag_error *error);
void frag_gpu_close(frag_gpu *gpu);
bool frag_gpu_facts_read(frag_gpu *gpu, frag_gpu_facts *facts, frag_error *error);

/* What cuMemCreate is asked for: pinned memory of this card, not to be shared. */
frag_cuda_memory_properties frag_gpu_memory_properties(const frag_gpu *gpu);

#endif
