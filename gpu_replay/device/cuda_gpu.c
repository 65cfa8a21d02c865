#include "gpu_replay/device/cuda_gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* Names what is the matter where the code alone would send people to the wrong place. */
static bool fail_to_start(const frag_cuda_runtime *cuda, const char *call, int code,
                          frag_error *error)
{
    char words[256];
    frag_cuda_words(cuda, call, code, words, sizeof words);
    if (code == FRAG_CUDA_INSUFFICIENT_DRIVER && cuda->driver_version == 0)
        return frag_fail(error, FRAG_E_SYSTEM, "%s; no NVIDIA driver is loaded on this machine",
                         words);
    return frag_fail(error, FRAG_E_SYSTEM, "%s", words);
}

static bool make_context(frag_gpu *gpu, frag_error *error)
{
    const frag_cuda_runtime *cuda = &gpu->cuda;
    int count = 0;
    int code = cuda->cudaGetDeviceCount(&count);
    if (code != FRAG_CUDA_OK)
        return fail_to_start(cuda, "cudaGetDeviceCount", code, error);
    if (gpu->ordinal >= count)
        return frag_fail(error, FRAG_E_SYSTEM,
                         "there is no GPU number %d; the runtime shows %d, counted from 0",
                         gpu->ordinal, count);
    code = cuda->cudaSetDevice(gpu->ordinal);
    if (code != FRAG_CUDA_OK)
        return fail_to_start(cuda, "cudaSetDevice", code, error);
    /* Up to 11 cudaSetDevice makes no context; freeing nothing does. */
    code = cuda->cudaFree(NULL);
    if (code != FRAG_CUDA_OK)
        return fail_to_start(cuda, "cudaFree", code, error);
    return true;
}

static bool open_with(const char *path, frag_gpu *gpu, frag_error *error)
{
    if (!frag_cuda_runtime_open(path, &gpu->cuda, error))
        return false;
    if (make_context(gpu, error))
        return true;
    frag_cuda_runtime_close(&gpu->cuda);
    return false;
}

/* The newest runtime of a machine may be newer than its driver: then an older one serves. Of what
 * stands in the way the newest one's word is the one to hear. */
static bool open_any(frag_gpu *gpu, frag_error *error)
{
    frag_error first = {0};
    for (size_t i = 0; frag_cuda_runtime_names[i] != NULL; i++) {
        frag_error problem = {0};
        if (!frag_cuda_runtime_open(frag_cuda_runtime_names[i], &gpu->cuda, &problem))
            continue;
        if (make_context(gpu, &problem))
            return true;
        frag_cuda_runtime_close(&gpu->cuda);
        first = first.code == FRAG_E_NONE ? problem : first;
    }
    if (first.code == FRAG_E_NONE)
        return frag_cuda_runtime_fail_missing(error);
    *error = first;
    return false;
}

frag_gpu *frag_gpu_open(const char *runtime_path, uint32_t ordinal, frag_error *error)
{
    frag_gpu *gpu = frag_alloc(1, sizeof *gpu);
    *gpu = (frag_gpu){.ordinal = (int)ordinal};
    bool ok = runtime_path != NULL ? open_with(runtime_path, gpu, error) : open_any(gpu, error);
    if (!ok) {
        free(gpu);
        return NULL;
    }
    /* A card or driver without virtual memory still serves everything else. */
    frag_error unused = {0};
    frag_cuda_runtime_find_driver(&gpu->cuda, &unused);
    return gpu;
}

/* The runtime stays loaded: a context is on the card until the process ends, and the driver has
 * threads and work at exit of its own by now. */
void frag_gpu_close(frag_gpu *gpu)
{
    free(gpu);
}

frag_cuda_memory_properties frag_gpu_memory_properties(const frag_gpu *gpu)
{
    return (frag_cuda_memory_properties){
        .type = FRAG_CUDA_PINNED,
        .location = {.type = FRAG_CUDA_LOCATION_DEVICE, .id = gpu->ordinal},
    };
}

bool frag_gpu_facts_read(frag_gpu *gpu, frag_gpu_facts *facts, frag_error *error)
{
    const frag_cuda_runtime *cuda = &gpu->cuda;
    *facts = (frag_gpu_facts){
        .runtime_version = cuda->runtime_version,
        .driver_version = cuda->driver_version,
    };
    snprintf(facts->runtime_path, sizeof facts->runtime_path, "%s", cuda->path);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int code = cuda->cudaMemGetInfo(&free_bytes, &total_bytes);
    if (code != FRAG_CUDA_OK)
        return frag_cuda_fail(cuda, "cudaMemGetInfo", code, error);
    facts->free_bytes = free_bytes;
    facts->total_bytes = total_bytes;
    code = cuda->cudaDeviceGetPCIBusId(facts->pci, (int)sizeof facts->pci, gpu->ordinal);
    if (code != FRAG_CUDA_OK)
        return frag_cuda_fail(cuda, "cudaDeviceGetPCIBusId", code, error);
    int major = 0;
    int minor = 0;
    int pools = 0;
    cuda->cudaDeviceGetAttribute(&major, FRAG_CUDA_ATTRIBUTE_MAJOR, gpu->ordinal);
    cuda->cudaDeviceGetAttribute(&minor, FRAG_CUDA_ATTRIBUTE_MINOR, gpu->ordinal);
    cuda->cudaDeviceGetAttribute(&pools, FRAG_CUDA_ATTRIBUTE_POOLS, gpu->ordinal);
    facts->capability = major * 10 + minor;
    facts->has_pools = pools != 0;
    if (!cuda->has_driver)
        return true;
    int has_virtual_memory = 0;
    cuda->cuDeviceGetName(facts->name, (int)sizeof facts->name, gpu->ordinal);
    cuda->cuDeviceGetAttribute(&has_virtual_memory, FRAG_CUDA_ATTRIBUTE_VMM, gpu->ordinal);
    frag_cuda_memory_properties properties = frag_gpu_memory_properties(gpu);
    size_t granularity = 0;
    if (has_virtual_memory != 0 &&
        cuda->cuMemGetAllocationGranularity(&granularity, &properties,
                                            FRAG_CUDA_GRANULARITY_MINIMUM) == FRAG_CUDA_OK) {
        facts->has_virtual_memory = true;
        facts->granularity_bytes = granularity;
    }
    return true;
}
