/* The CUDA functions that tests call, found in a libcudart by path or name. */
#ifndef FRAG_GPU_REPLAY_CUDA_ENTRIES_H
#define FRAG_GPU_REPLAY_CUDA_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CALL(field, function of the runtime, parameters) */
#define CUDA_RUNTIME_ENTRIES(CALL)                                                                 \
    CALL(get_device_count, cudaGetDeviceCount, (int *))                                            \
    CALL(set_device, cudaSetDevice, (int))                                                         \
    CALL(get_device, cudaGetDevice, (int *))                                                       \
    CALL(device_reset, cudaDeviceReset, (void))                                                    \
    CALL(device_synchronize, cudaDeviceSynchronize, (void))                                        \
    CALL(device_attribute, cudaDeviceGetAttribute, (int *, int, int))                              \
    CALL(get_last_error, cudaGetLastError, (void))                                                 \
    CALL(peek_last_error, cudaPeekAtLastError, (void))                                             \
    CALL(malloc, cudaMalloc, (void **, size_t))                                                    \
    CALL(free, cudaFree, (void *))                                                                 \
    CALL(get_info, cudaMemGetInfo, (size_t *, size_t *))                                           \
    CALL(memset, cudaMemset, (void *, int, size_t))                                                \
    CALL(memcpy, cudaMemcpy, (void *, const void *, size_t, int))                                  \
    CALL(host_alloc, cudaHostAlloc, (void **, size_t, unsigned))                                   \
    CALL(host_free, cudaFreeHost, (void *))                                                        \
    CALL(malloc_async, cudaMallocAsync, (void **, size_t, void *))                                 \
    CALL(malloc_from_pool, cudaMallocFromPoolAsync, (void **, size_t, void *, void *))             \
    CALL(free_async, cudaFreeAsync, (void *, void *))                                              \
    CALL(default_pool, cudaDeviceGetDefaultMemPool, (void **, int))                                \
    CALL(get_pool, cudaDeviceGetMemPool, (void **, int))                                           \
    CALL(set_pool, cudaDeviceSetMemPool, (int, void *))                                            \
    CALL(pool_create, cudaMemPoolCreate, (void **, const void *))                                  \
    CALL(pool_destroy, cudaMemPoolDestroy, (void *))                                               \
    CALL(pool_get, cudaMemPoolGetAttribute, (void *, int, void *))                                 \
    CALL(pool_set, cudaMemPoolSetAttribute, (void *, int, void *))                                 \
    CALL(pool_trim, cudaMemPoolTrimTo, (void *, size_t))                                           \
    CALL(stream_create, cudaStreamCreateWithFlags, (void **, unsigned))                            \
    CALL(stream_destroy, cudaStreamDestroy, (void *))                                              \
    CALL(stream_synchronize, cudaStreamSynchronize, (void *))                                      \
    CALL(stream_query, cudaStreamQuery, (void *))                                                  \
    CALL(stream_wait, cudaStreamWaitEvent, (void *, void *, unsigned))                             \
    CALL(begin_capture, cudaStreamBeginCapture, (void *, int))                                     \
    CALL(end_capture, cudaStreamEndCapture, (void *, void **))                                     \
    CALL(is_capturing, cudaStreamIsCapturing, (void *, int *))                                     \
    CALL(capture_mode, cudaThreadExchangeStreamCaptureMode, (int *))                               \
    CALL(graph_destroy, cudaGraphDestroy, (void *))                                                \
    CALL(event_create, cudaEventCreateWithFlags, (void **, unsigned))                              \
    CALL(event_destroy, cudaEventDestroy, (void *))                                                \
    CALL(event_record, cudaEventRecord, (void *, void *))                                          \
    CALL(event_query, cudaEventQuery, (void *))                                                    \
    CALL(event_synchronize, cudaEventSynchronize, (void *))                                        \
    CALL(event_elapsed, cudaEventElapsedTime, (float *, void *, void *))                           \
    CALL(entry_point, cudaGetDriverEntryPoint, (const char *, void **, unsigned long long, int *)) \
    CALL(pointer_attributes, cudaPointerGetAttributes, (void *, const void *))

/* CALL(field, name asked from the runtime, parameters) */
#define CUDA_DRIVER_ENTRIES(CALL)                                                                  \
    CALL(granularity, cuMemGetAllocationGranularity, (size_t *, const void *, int))                \
    CALL(reserve, cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long)) \
    CALL(unreserve, cuMemAddressFree, (uint64_t, size_t))                                          \
    CALL(create, cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long))              \
    CALL(release, cuMemRelease, (uint64_t))                                                        \
    CALL(map, cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long))                  \
    CALL(unmap, cuMemUnmap, (uint64_t, size_t))                                                    \
    CALL(set_access, cuMemSetAccess, (uint64_t, size_t, const void *, size_t))                     \
    CALL(retain, cuMemRetainAllocationHandle, (uint64_t *, void *))                                \
    CALL(address_range, cuMemGetAddressRange, (uint64_t *, size_t *, uint64_t))

typedef struct cuda_entries {
    void *library;
#define CUDA_FIELD(field, name, parameters) int(*field) parameters;
    CUDA_RUNTIME_ENTRIES(CUDA_FIELD)
    CUDA_DRIVER_ENTRIES(CUDA_FIELD)
#undef CUDA_FIELD
} cuda_entries;

/* false: the library cannot be loaded, or lacks a function, whose name *missing then is; NULL when
 * it is the library. Driver functions stay NULL until cuda_entries_load_driver. */
bool cuda_entries_load(cuda_entries *cuda, const char *library, const char **missing);
/* Needs a device. */
bool cuda_entries_load_driver(cuda_entries *cuda, const char **missing);

/* The folder software-cuda of the build that this program belongs to. */
void cuda_entries_software_folder(char *folder, size_t folder_bytes);

#endif
