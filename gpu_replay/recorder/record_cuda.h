/* The calls that are recorded, as CUDA 11.3 to 13 declare them, so that the recorder builds where
 * no toolkit is. Every handle is a pointer or 64 bits, every enumeration an int.
 * Source: cuda_runtime_api.h and cuda.h of CUDA 12.4 and 13.0. */
#ifndef FRAG_RECORDER_RECORD_CUDA_H
#define FRAG_RECORDER_RECORD_CUDA_H

#include "gpu_replay/device/cuda_abi.h"

#define FRAG_CUDA_STREAM_PER_THREAD 2
#define FRAG_CUDA_ENTRY_PER_THREAD 2 /* flag: the entry for per-thread default streams */

typedef struct frag_cuda_pitched {
    void *pointer;
    size_t pitch;
    size_t width;
    size_t height;
} frag_cuda_pitched;

typedef struct frag_cuda_extent {
    size_t width; /* in bytes */
    size_t height;
    size_t depth;
} frag_cuda_extent;

/* ---- runtime */
int cudaMalloc(void **pointer, size_t bytes);
int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
int cudaMalloc3D(frag_cuda_pitched *pitched, frag_cuda_extent extent);
int cudaMallocManaged(void **pointer, size_t bytes, unsigned flags);
int cudaMallocHost(void **pointer, size_t bytes);
int cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
int cudaFree(void *pointer);
int cudaFreeHost(void *pointer);
int cudaMallocAsync(void **pointer, size_t bytes, void *stream);
int cudaMallocAsync_ptsz(void **pointer, size_t bytes, void *stream);
int cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *pool, void *stream);
int cudaMallocFromPoolAsync_ptsz(void **pointer, size_t bytes, void *pool, void *stream);
int cudaFreeAsync(void *pointer, void *stream);
int cudaFreeAsync_ptsz(void *pointer, void *stream);
int cudaMemPoolCreate(void **pool, const frag_cuda_pool_properties *properties);
int cudaMemPoolDestroy(void *pool);
int cudaMemPoolTrimTo(void *pool, size_t bytes);
int cudaMemPoolSetAttribute(void *pool, int attribute, void *value);
int cudaDeviceReset(void);
int cudaGetDriverEntryPoint(const char *name, void **entry, unsigned long long flags, int *status);
int cudaGetDriverEntryPoint_ptsz(const char *name, void **entry, unsigned long long flags,
                                 int *status);
int cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                     unsigned long long flags, int *status);
int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **entry, unsigned version,
                                          unsigned long long flags, int *status);

/* ---- driver */
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
int cuMemAllocPitch_v2(uint64_t *pointer, size_t *pitch, size_t width, size_t height,
                       unsigned element_bytes);
int cuMemAllocManaged(uint64_t *pointer, size_t bytes, unsigned flags);
int cuMemAllocHost_v2(void **pointer, size_t bytes);
int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
int cuMemFree_v2(uint64_t pointer);
int cuMemFreeHost(void *pointer);
int cuMemAllocAsync(uint64_t *pointer, size_t bytes, void *stream);
int cuMemAllocAsync_ptsz(uint64_t *pointer, size_t bytes, void *stream);
int cuMemAllocFromPoolAsync(uint64_t *pointer, size_t bytes, void *pool, void *stream);
int cuMemAllocFromPoolAsync_ptsz(uint64_t *pointer, size_t bytes, void *pool, void *stream);
int cuMemFreeAsync(uint64_t pointer, void *stream);
int cuMemFreeAsync_ptsz(uint64_t pointer, void *stream);
int cuMemPoolCreate(void **pool, const frag_cuda_pool_properties *properties);
int cuMemPoolDestroy(void *pool);
int cuMemPoolTrimTo(void *pool, size_t bytes);
int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
int cuMemAddressReserve(uint64_t *pointer, size_t bytes, size_t alignment, uint64_t hint,
                        unsigned long long flags);
int cuMemAddressFree(uint64_t pointer, size_t bytes);
int cuMemCreate(uint64_t *handle, size_t bytes, const frag_cuda_memory_properties *properties,
                unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemRetainAllocationHandle(uint64_t *handle, void *pointer);
int cuMemMap(uint64_t pointer, size_t bytes, size_t offset, uint64_t handle,
             unsigned long long flags);
int cuMemUnmap(uint64_t pointer, size_t bytes);
int cuMemSetAccess(uint64_t pointer, size_t bytes, const void *access, size_t count);
int cuDevicePrimaryCtxReset_v2(int device);
int cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status);

#endif
