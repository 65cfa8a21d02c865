/* The calls that are counted, logged and can be made to fail: name, and what they are about.
 * MEMORY gives or takes memory or address space, or asks about it; ORDER is about streams and
 * events; WORK is put on a stream; QUERY has no effect and works without a context. */
#ifndef FRAG_SOFTWARE_SOFT_CALLS_H
#define FRAG_SOFTWARE_SOFT_CALLS_H

#define FRAG_SOFT_CALLS(CALL)                                                                      \
    CALL(cudaMalloc, MEMORY)                                                                       \
    CALL(cudaMallocManaged, MEMORY)                                                                \
    CALL(cudaMallocPitch, MEMORY)                                                                  \
    CALL(cudaFree, MEMORY)                                                                         \
    CALL(cudaMemGetInfo, MEMORY)                                                                   \
    CALL(cudaMallocAsync, MEMORY)                                                                  \
    CALL(cudaMallocFromPoolAsync, MEMORY)                                                          \
    CALL(cudaFreeAsync, MEMORY)                                                                    \
    CALL(cudaHostAlloc, MEMORY)                                                                    \
    CALL(cudaMallocHost, MEMORY)                                                                   \
    CALL(cudaFreeHost, MEMORY)                                                                     \
    CALL(cudaHostRegister, MEMORY)                                                                 \
    CALL(cudaHostUnregister, MEMORY)                                                               \
    CALL(cudaMemPoolCreate, MEMORY)                                                                \
    CALL(cudaMemPoolDestroy, MEMORY)                                                               \
    CALL(cudaMemPoolSetAttribute, MEMORY)                                                          \
    CALL(cudaMemPoolGetAttribute, MEMORY)                                                          \
    CALL(cudaMemPoolTrimTo, MEMORY)                                                                \
    CALL(cudaMemPoolSetAccess, MEMORY)                                                             \
    CALL(cudaMemPoolGetAccess, MEMORY)                                                             \
    CALL(cudaDeviceGetDefaultMemPool, QUERY)                                                       \
    CALL(cudaDeviceGetMemPool, QUERY)                                                              \
    CALL(cudaDeviceSetMemPool, MEMORY)                                                             \
    CALL(cudaDeviceReset, MEMORY)                                                                  \
    CALL(cudaGetDeviceCount, QUERY)                                                                \
    CALL(cudaGetDevice, QUERY)                                                                     \
    CALL(cudaSetDevice, ORDER)                                                                     \
    CALL(cudaInitDevice, ORDER)                                                                    \
    CALL(cudaGetDeviceProperties, QUERY)                                                           \
    CALL(cudaDeviceGetAttribute, QUERY)                                                            \
    CALL(cudaDeviceSynchronize, ORDER)                                                             \
    CALL(cudaDeviceEnablePeerAccess, ORDER)                                                        \
    CALL(cudaDeviceDisablePeerAccess, ORDER)                                                       \
    CALL(cudaGetLastError, QUERY)                                                                  \
    CALL(cudaPeekAtLastError, QUERY)                                                               \
    CALL(cudaStreamCreate, ORDER)                                                                  \
    CALL(cudaStreamCreateWithFlags, ORDER)                                                         \
    CALL(cudaStreamCreateWithPriority, ORDER)                                                      \
    CALL(cudaStreamDestroy, ORDER)                                                                 \
    CALL(cudaStreamSynchronize, ORDER)                                                             \
    CALL(cudaStreamQuery, ORDER)                                                                   \
    CALL(cudaStreamWaitEvent, ORDER)                                                               \
    CALL(cudaStreamBeginCapture, ORDER)                                                            \
    CALL(cudaStreamEndCapture, ORDER)                                                              \
    CALL(cudaStreamIsCapturing, ORDER)                                                             \
    CALL(cudaStreamGetCaptureInfo, ORDER)                                                          \
    CALL(cudaThreadExchangeStreamCaptureMode, ORDER)                                               \
    CALL(cudaEventCreate, ORDER)                                                                   \
    CALL(cudaEventDestroy, ORDER)                                                                  \
    CALL(cudaEventRecord, ORDER)                                                                   \
    CALL(cudaEventQuery, ORDER)                                                                    \
    CALL(cudaEventSynchronize, ORDER)                                                              \
    CALL(cudaEventElapsedTime, ORDER)                                                              \
    CALL(cudaLaunchKernel, WORK)                                                                   \
    CALL(cudaLaunchHostFunc, WORK)                                                                 \
    CALL(cudaGraphLaunch, WORK)                                                                    \
    CALL(cudaMemcpy, WORK)                                                                         \
    CALL(cudaMemcpyAsync, WORK)                                                                    \
    CALL(cudaMemcpyPeer, WORK)                                                                     \
    CALL(cudaMemcpyPeerAsync, WORK)                                                                \
    CALL(cudaMemset, WORK)                                                                         \
    CALL(cudaMemsetAsync, WORK)                                                                    \
    CALL(cuInit, QUERY)                                                                            \
    CALL(cuLaunchKernel, WORK)                                                                     \
    CALL(cuMemAlloc, MEMORY)                                                                       \
    CALL(cuMemFree, MEMORY)                                                                        \
    CALL(cuMemGetInfo, MEMORY)                                                                     \
    CALL(cuMemAllocAsync, MEMORY)                                                                  \
    CALL(cuMemFreeAsync, MEMORY)                                                                   \
    CALL(cuMemsetD8, WORK)                                                                         \
    CALL(cuMemsetD32, WORK)                                                                        \
    CALL(cuMemGetAllocationGranularity, MEMORY)                                                    \
    CALL(cuMemAddressReserve, MEMORY)                                                              \
    CALL(cuMemAddressFree, MEMORY)                                                                 \
    CALL(cuMemCreate, MEMORY)                                                                      \
    CALL(cuMemRelease, MEMORY)                                                                     \
    CALL(cuMemMap, MEMORY)                                                                         \
    CALL(cuMemUnmap, MEMORY)                                                                       \
    CALL(cuMemSetAccess, MEMORY)                                                                   \
    CALL(cuMemGetAccess, MEMORY)                                                                   \
    CALL(cuMemGetAddressRange, MEMORY)                                                             \
    CALL(cuMemRetainAllocationHandle, MEMORY)                                                      \
    CALL(cuMemGetAllocationPropertiesFromHandle, MEMORY)                                           \
    CALL(cuMemExportToShareableHandle, MEMORY)                                                     \
    CALL(cuMemImportFromShareableHandle, MEMORY)                                                   \
    CALL(cuStreamWriteValue32, WORK)                                                               \
    CALL(cuStreamSynchronize, ORDER)                                                               \
    CALL(cuStreamCreate, ORDER)                                                                    \
    CALL(cuStreamDestroy, ORDER)                                                                   \
    CALL(cuMemcpy, WORK)                                                                           \
    CALL(cuMemcpyAsync, WORK)                                                                      \
    CALL(cuMemsetD16, WORK)                                                                        \
    CALL(cuLaunchHostFunc, WORK)                                                                   \
    CALL(cuStreamQuery, ORDER)                                                                     \
    CALL(cuStreamWaitEvent, ORDER)                                                                 \
    CALL(cuStreamBeginCapture, ORDER)                                                              \
    CALL(cuStreamEndCapture, ORDER)                                                                \
    CALL(cuStreamIsCapturing, ORDER)                                                               \
    CALL(cuStreamGetCaptureInfo, ORDER)                                                            \
    CALL(cuThreadExchangeStreamCaptureMode, ORDER)                                                 \
    CALL(cuEventCreate, ORDER)                                                                     \
    CALL(cuEventDestroy, ORDER)                                                                    \
    CALL(cuEventRecord, ORDER)                                                                     \
    CALL(cuEventQuery, ORDER)                                                                      \
    CALL(cuEventSynchronize, ORDER)                                                                \
    CALL(cuEventElapsedTime, ORDER)                                                                \
    CALL(cuGraphLaunch, WORK)                                                                      \
    CALL(cuMemHostAlloc, MEMORY)                                                                   \
    CALL(cuMemFreeHost, MEMORY)                                                                    \
    CALL(cuMemHostRegister, MEMORY)                                                                \
    CALL(cuMemHostUnregister, MEMORY)                                                              \
    CALL(cuCtxSynchronize, ORDER)

typedef enum frag_soft_call_id {
#define FRAG_SOFT_CALL_ID(name, about) FRAG_CALL_##name,
    FRAG_SOFT_CALLS(FRAG_SOFT_CALL_ID)
#undef FRAG_SOFT_CALL_ID
        FRAG_SOFT_CALL_COUNT,
} frag_soft_call_id;

typedef enum frag_soft_about {
    FRAG_ABOUT_QUERY,
    FRAG_ABOUT_MEMORY,
    FRAG_ABOUT_ORDER,
    FRAG_ABOUT_WORK,
} frag_soft_about;

#endif
