#include "gpu_replay/device/cuda_ballast.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Running out of memory is no failure here, but must not be found by the next check. */
static bool check(const frag_cuda_runtime *cuda, const char *call, int code, frag_error *error)
{
    if (code == FRAG_CUDA_OK)
        return true;
    cuda->cudaGetLastError();
    return code == FRAG_CUDA_OUT_OF_MEMORY || frag_cuda_fail(cuda, call, code, error);
}

/* The arguments of the call stand in parentheses of their own. */
#define CHECK(name, arguments, error) check(cuda, #name, cuda->name arguments, error)

static bool warm_up_malloc(const frag_cuda_runtime *cuda, uint64_t bytes, frag_error *error)
{
    void *memory = NULL;
    int code = cuda->cudaMalloc(&memory, (size_t)bytes);
    if (code != FRAG_CUDA_OK)
        return check(cuda, "cudaMalloc", code, error);
    bool ok = CHECK(cudaMemset, (memory, 0, (size_t)bytes), error) &&
              CHECK(cudaDeviceSynchronize, (), error);
    return CHECK(cudaFree, (memory), ok ? error : NULL) && ok;
}

static bool map_once(frag_gpu *gpu, frag_cuda_address address, uint64_t bytes, frag_error *error)
{
    const frag_cuda_runtime *cuda = &gpu->cuda;
    frag_cuda_memory_properties properties = frag_gpu_memory_properties(gpu);
    frag_cuda_access access = {properties.location, FRAG_CUDA_READ_WRITE};
    frag_cuda_handle handle = 0;
    int code = cuda->cuMemCreate(&handle, (size_t)bytes, &properties, 0);
    if (code != FRAG_CUDA_OK)
        return check(cuda, "cuMemCreate", code, error);
    code = cuda->cuMemMap(address, (size_t)bytes, 0, handle, 0);
    bool ok = check(cuda, "cuMemMap", code, error);
    if (code == FRAG_CUDA_OK) {
        ok = CHECK(cuMemSetAccess, (address, (size_t)bytes, &access, 1), error);
        ok = CHECK(cuMemUnmap, (address, (size_t)bytes), ok ? error : NULL) && ok;
    }
    return CHECK(cuMemRelease, (handle), ok ? error : NULL) && ok;
}

static bool warm_up_mapping(frag_gpu *gpu, uint64_t bytes, frag_error *error)
{
    const frag_cuda_runtime *cuda = &gpu->cuda;
    frag_cuda_address address = 0;
    int code = cuda->cuMemAddressReserve(&address, (size_t)bytes, 0, 0, 0);
    if (code != FRAG_CUDA_OK)
        return check(cuda, "cuMemAddressReserve", code, error);
    bool ok = map_once(gpu, address, bytes, error);
    return CHECK(cuMemAddressFree, (address, (size_t)bytes), ok ? error : NULL) && ok;
}

/* What the pool took from the driver goes back. */
static bool warm_up_pool(const frag_gpu *gpu, uint64_t bytes, frag_error *error)
{
    const frag_cuda_runtime *cuda = &gpu->cuda;
    frag_cuda_pool pool = NULL;
    void *memory = NULL;
    int code = cuda->cudaDeviceGetDefaultMemPool(&pool, gpu->ordinal);
    if (code != FRAG_CUDA_OK)
        return check(cuda, "cudaDeviceGetDefaultMemPool", code, error);
    code = cuda->cudaMallocAsync(&memory, (size_t)bytes, NULL);
    if (code != FRAG_CUDA_OK)
        return check(cuda, "cudaMallocAsync", code, error);
    return CHECK(cudaFreeAsync, (memory, NULL), error) && CHECK(cudaDeviceSynchronize, (), error) &&
           CHECK(cudaMemPoolTrimTo, (pool, 0), error);
}

bool frag_cuda_warm_up(frag_gpu *gpu, const frag_gpu_facts *facts, uint64_t page_bytes,
                       frag_error *error)
{
    return warm_up_malloc(&gpu->cuda, page_bytes, error) &&
           (!facts->has_virtual_memory || warm_up_mapping(gpu, page_bytes, error)) &&
           (!facts->has_pools || warm_up_pool(gpu, page_bytes, error));
}

bool frag_cuda_free_bytes(frag_gpu *gpu, uint64_t *free_bytes, frag_error *error)
{
    size_t free_now = 0;
    size_t total = 0;
    int code = gpu->cuda.cudaMemGetInfo(&free_now, &total);
    *free_bytes = free_now;
    return code == FRAG_CUDA_OK || frag_cuda_fail(&gpu->cuda, "cudaMemGetInfo", code, error);
}

bool frag_cuda_ballast_fill(frag_cuda_ballast *ballast, frag_gpu *gpu, uint64_t capacity_bytes,
                            uint64_t page_bytes, frag_error *error)
{
    const frag_cuda_runtime *cuda = &gpu->cuda;
    uint64_t wanted = capacity_bytes - capacity_bytes % page_bytes;
    uint64_t piece = FRAG_UNLIMITED;
    uint64_t free_bytes = 0;
    if (!frag_cuda_free_bytes(gpu, &free_bytes, error))
        return false;
    if (free_bytes < wanted) {
        return frag_fail(error, FRAG_E_SYSTEM,
                         "the card has %s free, and %s are to be left of it; ask for less",
                         FRAG_BYTES(free_bytes), FRAG_BYTES(wanted));
    }
    while (free_bytes - wanted >= page_bytes) {
        uint64_t excess = (free_bytes - wanted) / page_bytes * page_bytes;
        piece = piece < excess ? piece : excess;
        void *memory = NULL;
        int code = cuda->cudaMalloc(&memory, (size_t)piece);
        if (code == FRAG_CUDA_OUT_OF_MEMORY && piece > page_bytes) {
            cuda->cudaGetLastError();
            piece = (piece / 2 + page_bytes - 1) / page_bytes * page_bytes;
            continue;
        }
        if (code != FRAG_CUDA_OK)
            return frag_cuda_fail(cuda, "cudaMalloc", code, error);
        *FRAG_APPEND(ballast->pieces, ballast->count, ballast->capacity) = memory;
        ballast->bytes += piece;
        if (!frag_cuda_free_bytes(gpu, &free_bytes, error))
            return false;
        if (free_bytes < wanted)
            return frag_fail(error, FRAG_E_SYSTEM,
                             "other programs took memory of the card while it was being filled");
    }
    return true;
}

void frag_cuda_ballast_empty(frag_cuda_ballast *ballast, frag_gpu *gpu)
{
    for (size_t i = 0; i < ballast->count; i++)
        gpu->cuda.cudaFree(ballast->pieces[i]);
    free(ballast->pieces);
    *ballast = (frag_cuda_ballast){0};
}
