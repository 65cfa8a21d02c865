/* What stands between a program and CUDA when the recorder is preloaded: the names that it takes
 * the place of, the real functions behind them, and what every such function does around the call.
 *
 * A call that CUDA makes inside another call is not recorded: a program's cudaMalloc is one call,
 * whatever the runtime asks of the driver for it. */
#ifndef FRAG_RECORDER_RECORD_CALLS_H
#define FRAG_RECORDER_RECORD_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_replay/recorder/record_cuda.h"
#include "sim/device/device_log_format.h"

#define FRAG_RUNTIME_CALLS(X)                                                                      \
    X(cudaMalloc)                                                                                  \
    X(cudaMallocPitch)                                                                             \
    X(cudaMalloc3D)                                                                                \
    X(cudaMallocManaged)                                                                           \
    X(cudaMallocHost)                                                                              \
    X(cudaHostAlloc)                                                                               \
    X(cudaFree)                                                                                    \
    X(cudaFreeHost)                                                                                \
    X(cudaMallocAsync)                                                                             \
    X(cudaMallocAsync_ptsz)                                                                        \
    X(cudaMallocFromPoolAsync)                                                                     \
    X(cudaMallocFromPoolAsync_ptsz)                                                                \
    X(cudaFreeAsync)                                                                               \
    X(cudaFreeAsync_ptsz)                                                                          \
    X(cudaMemPoolCreate)                                                                           \
    X(cudaMemPoolDestroy)                                                                          \
    X(cudaMemPoolTrimTo)                                                                           \
    X(cudaMemPoolSetAttribute)                                                                     \
    X(cudaDeviceReset)                                                                             \
    X(cudaGetDriverEntryPoint)                                                                     \
    X(cudaGetDriverEntryPoint_ptsz)                                                                \
    X(cudaGetDriverEntryPointByVersion)                                                            \
    X(cudaGetDriverEntryPointByVersion_ptsz)

#define FRAG_DRIVER_CALLS(X)                                                                       \
    X(cuMemAlloc_v2)                                                                               \
    X(cuMemAllocPitch_v2)                                                                          \
    X(cuMemAllocManaged)                                                                           \
    X(cuMemAllocHost_v2)                                                                           \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFree_v2)                                                                                \
    X(cuMemFreeHost)                                                                               \
    X(cuMemAllocAsync)                                                                             \
    X(cuMemAllocAsync_ptsz)                                                                        \
    X(cuMemAllocFromPoolAsync)                                                                     \
    X(cuMemAllocFromPoolAsync_ptsz)                                                                \
    X(cuMemFreeAsync)                                                                              \
    X(cuMemFreeAsync_ptsz)                                                                         \
    X(cuMemPoolCreate)                                                                             \
    X(cuMemPoolDestroy)                                                                            \
    X(cuMemPoolTrimTo)                                                                             \
    X(cuMemPoolSetAttribute)                                                                       \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemRetainAllocationHandle)                                                                 \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)                                                                              \
    X(cuDevicePrimaryCtxReset_v2)                                                                  \
    X(cuGetProcAddress)                                                                            \
    X(cuGetProcAddress_v2)

/* Called by the recorder, and handed to programs as they are. */
#define FRAG_HELPER_CALLS(X)                                                                       \
    X(cudaGetDevice)                                                                               \
    X(cudaMemGetInfo)                                                                              \
    X(cudaRuntimeGetVersion)                                                                       \
    X(cudaDriverGetVersion)                                                                        \
    X(cuCtxGetDevice)                                                                              \
    X(cuMemGetInfo_v2)                                                                             \
    X(cuDriverGetVersion)

typedef enum frag_real_id {
#define FRAG_REAL_ENUM(name) FRAG_REAL_##name,
    FRAG_RUNTIME_CALLS(FRAG_REAL_ENUM) FRAG_DRIVER_CALLS(FRAG_REAL_ENUM)
        FRAG_HELPER_CALLS(FRAG_REAL_ENUM)
#undef FRAG_REAL_ENUM
            FRAG_REAL_COUNT
} frag_real_id;

typedef void (*frag_code)(void);

/* The real function; one that answers FRAG_CUDA_UNKNOWN where there is none. */
frag_code frag_real(frag_real_id id);

/* found is what CUDA has under a name: what the program shall be given for it, which is found
 * itself for names that are not recorded. NULL stays NULL. */
void *frag_real_replace(const char *name, void *found);

/* ---- around a call */
typedef struct frag_call {
    uint64_t start_ns;
    uint64_t place; /* claimed before the call */
    bool is_recorded;
    bool is_claimed;
} frag_call;

/* is_giving_back: the call frees something, so that its place comes before that of whatever is
 * given the same address next. */
frag_call frag_call_begin(bool is_giving_back);

/* Fills time, duration and result and writes the record. For a call that asks for memory and is
 * refused, address holds the free bytes. */
void frag_call_end(const frag_call *call, int result, frag_device_record record);

/* FRAG_DEVICE_UNKNOWN where the thread has none. */
uint16_t frag_call_device_runtime(void);
uint16_t frag_call_device_driver(void);

/* The value handed to a pool's SetAttribute. */
uint64_t frag_call_attribute(int attribute, const void *value);

#endif
