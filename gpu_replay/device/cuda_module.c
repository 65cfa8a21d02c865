/* What the module exports: one table. */
#include "gpu_replay/device/cuda_device.h"
#include "gpu_replay/device/cuda_gpu.h"
#include "gpu_replay/device/cuda_probe.h"

extern const frag_gpu_module frag_gpu_module_table __attribute__((visibility("default")));

const frag_gpu_module frag_gpu_module_table = {
    .abi = FRAG_GPU_MODULE_ABI,
    .name = "cuda",
    .open = frag_gpu_open,
    .close = frag_gpu_close,
    .facts = frag_gpu_facts_read,
    .device_create = frag_cuda_device_create,
    .device_finish = frag_cuda_device_finish,
    .probe = frag_cuda_probe,
};
