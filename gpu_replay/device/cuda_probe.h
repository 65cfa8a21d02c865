/* Measures a card: what frag_device_description holds of memory, addresses, virtual memory, pool
 * and the time of calls. */
#ifndef FRAG_DEVICE_CUDA_PROBE_H
#define FRAG_DEVICE_CUDA_PROBE_H

#include "gpu_replay/device/cuda_gpu.h"
#include "sim/device/device_description.h"

/* See frag_gpu_module in sim/device/gpu_module.h. */
bool frag_cuda_probe(frag_gpu *gpu, const frag_gpu_probe_options *options,
                     frag_device_description *description, frag_error *error);

/* ---- what the parts of the probe share */

/* Everything the probe holds, so that nothing stays when a call fails half-way. */
typedef struct frag_cuda_probing {
    frag_gpu *gpu;
    const frag_cuda_runtime *cuda;
    frag_error *error;
    void **blocks; /* cudaMalloc'ed, NULL where freed */
    size_t block_count;
    size_t block_capacity;
    frag_cuda_stream stream;
    frag_cuda_event event;
    frag_cuda_pool pool;
} frag_cuda_probing;

/* Was the call served? Else the error is filled with the driver's words. */
bool frag_cuda_probing_ok(frag_cuda_probing *probing, const char *call, int code);
/* Makes the call, whose arguments stand in parentheses of their own. */
#define FRAG_CUDA_PROBED(probing, name, arguments)                                                 \
    frag_cuda_probing_ok((probing), #name, (probing)->cuda->name arguments)

bool frag_cuda_probing_free_bytes(frag_cuda_probing *probing, uint64_t *free_bytes,
                                  uint64_t *total_bytes);

/* Times every kind of call on an idle card, after each has been made some times. */
bool frag_cuda_probe_times(frag_cuda_probing *probing, const frag_gpu_facts *facts,
                           frag_latency_table *table);

#endif
