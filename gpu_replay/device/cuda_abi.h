/* The part of the CUDA runtime's and driver's binary interface that fraglab uses, declared here so
 * that everything builds where no toolkit is and one binary drives CUDA 12 and 13 alike. All names
 * keep the meaning, size and values they have in cuda_runtime_api.h and cuda.h; gpu_replay/
 * cuda_abi_check.c compares them with the real headers wherever these are found. Left out on
 * purpose: cudaDeviceProp, whose size and symbol differ between 12 and 13. */
#ifndef FRAG_DEVICE_CUDA_ABI_H
#define FRAG_DEVICE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* cudaError_t and CUresult: the codes used here are the same in both. */
enum {
    FRAG_CUDA_OK = 0,
    FRAG_CUDA_INVALID_VALUE = 1,
    FRAG_CUDA_OUT_OF_MEMORY = 2,
    FRAG_CUDA_NOT_INITIALIZED = 3,
    FRAG_CUDA_STUB_LIBRARY = 34,
    FRAG_CUDA_INSUFFICIENT_DRIVER = 35,
    FRAG_CUDA_NO_DEVICE = 100,
    FRAG_CUDA_INVALID_DEVICE = 101,
    FRAG_CUDA_INVALID_HANDLE = 400,
    FRAG_CUDA_SYMBOL_NOT_FOUND = 500,
    FRAG_CUDA_NOT_READY = 600,
    FRAG_CUDA_ILLEGAL_ADDRESS = 700,
    FRAG_CUDA_NOT_SUPPORTED = 801,
    FRAG_CUDA_UNKNOWN = 999
};

typedef struct CUstream_st *frag_cuda_stream;
typedef struct CUevent_st *frag_cuda_event;
typedef struct CUmemPoolHandle_st *frag_cuda_pool;
typedef uint64_t frag_cuda_address;          /* CUdeviceptr */
typedef unsigned long long frag_cuda_handle; /* CUmemGenericAllocationHandle */

enum { FRAG_CUDA_STREAM_NON_BLOCKING = 1, FRAG_CUDA_EVENT_NO_TIMING = 2 };

/* cudaDeviceAttr and CUdevice_attribute */
enum {
    FRAG_CUDA_ATTRIBUTE_ECC = 32,
    FRAG_CUDA_ATTRIBUTE_MAJOR = 75,
    FRAG_CUDA_ATTRIBUTE_MINOR = 76,
    FRAG_CUDA_ATTRIBUTE_VMM = 102, /* driver only */
    FRAG_CUDA_ATTRIBUTE_POOLS = 115
};

/* cudaMemPoolAttr; the reuse flags are int, the others uint64_t */
enum {
    FRAG_CUDA_POOL_REUSE_FOLLOW_EVENTS = 1,
    FRAG_CUDA_POOL_REUSE_OPPORTUNISTIC = 2,
    FRAG_CUDA_POOL_REUSE_INTERNAL = 3,
    FRAG_CUDA_POOL_RELEASE_THRESHOLD = 4,
    FRAG_CUDA_POOL_RESERVED = 5,
    FRAG_CUDA_POOL_RESERVED_HIGH = 6,
    FRAG_CUDA_POOL_USED = 7,
    FRAG_CUDA_POOL_USED_HIGH = 8
};

typedef struct frag_cuda_location {
    int type; /* 1: device */
    int id;
} frag_cuda_location;

enum { FRAG_CUDA_LOCATION_DEVICE = 1, FRAG_CUDA_PINNED = 1, FRAG_CUDA_READ_WRITE = 3 };

/* cudaMemAccessDesc, CUmemAccessDesc */
typedef struct frag_cuda_access {
    frag_cuda_location location;
    int flags;
} frag_cuda_access;

/* cudaMemPoolProps */
typedef struct frag_cuda_pool_properties {
    int allocation_type;
    int handle_types;
    frag_cuda_location location;
    void *windows_attributes;
    size_t size_max; /* bytes; 0: the system's limit */
    unsigned short usage;
    unsigned char reserved[54];
} frag_cuda_pool_properties;

/* CUmemAllocationProp */
typedef struct frag_cuda_memory_properties {
    int type;
    int handle_types; /* 0: none */
    frag_cuda_location location;
    void *windows_attributes;
    unsigned char compression;
    unsigned char is_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
} frag_cuda_memory_properties;

enum { FRAG_CUDA_GRANULARITY_MINIMUM = 0, FRAG_CUDA_GRANULARITY_RECOMMENDED = 1 };

/* X(name, parameters): functions of libcudart.so that the module cannot do without. Each returns a
 * code. */
#define FRAG_CUDA_RUNTIME(X)                                                                       \
    X(cudaGetDeviceCount, (int *))                                                                 \
    X(cudaSetDevice, (int))                                                                        \
    X(cudaDeviceGetAttribute, (int *, int, int))                                                   \
    X(cudaDeviceGetPCIBusId, (char *, int, int))                                                   \
    X(cudaDriverGetVersion, (int *))                                                               \
    X(cudaRuntimeGetVersion, (int *))                                                              \
    X(cudaGetLastError, (void))                                                                    \
    X(cudaMalloc, (void **, size_t))                                                               \
    X(cudaFree, (void *))                                                                          \
    X(cudaMemGetInfo, (size_t *, size_t *))                                                        \
    X(cudaMemset, (void *, int, size_t))                                                           \
    X(cudaMemsetAsync, (void *, int, size_t, frag_cuda_stream))                                    \
    X(cudaDeviceSynchronize, (void))                                                               \
    X(cudaDeviceReset, (void))                                                                     \
    X(cudaStreamCreateWithFlags, (frag_cuda_stream *, unsigned))                                   \
    X(cudaStreamDestroy, (frag_cuda_stream))                                                       \
    X(cudaStreamSynchronize, (frag_cuda_stream))                                                   \
    X(cudaStreamQuery, (frag_cuda_stream))                                                         \
    X(cudaStreamWaitEvent, (frag_cuda_stream, frag_cuda_event, unsigned))                          \
    X(cudaEventCreateWithFlags, (frag_cuda_event *, unsigned))                                     \
    X(cudaEventRecord, (frag_cuda_event, frag_cuda_stream))                                        \
    X(cudaEventQuery, (frag_cuda_event))                                                           \
    X(cudaEventSynchronize, (frag_cuda_event))                                                     \
    X(cudaEventDestroy, (frag_cuda_event))                                                         \
    X(cudaEventElapsedTime, (float *, frag_cuda_event, frag_cuda_event))                           \
    X(cudaDeviceGetDefaultMemPool, (frag_cuda_pool *, int))                                        \
    X(cudaMemPoolCreate, (frag_cuda_pool *, const frag_cuda_pool_properties *))                    \
    X(cudaMemPoolDestroy, (frag_cuda_pool))                                                        \
    X(cudaMemPoolSetAttribute, (frag_cuda_pool, int, void *))                                      \
    X(cudaMemPoolGetAttribute, (frag_cuda_pool, int, void *))                                      \
    X(cudaMemPoolTrimTo, (frag_cuda_pool, size_t))                                                 \
    X(cudaMallocAsync, (void **, size_t, frag_cuda_stream))                                        \
    X(cudaMallocFromPoolAsync, (void **, size_t, frag_cuda_pool, frag_cuda_stream))                \
    X(cudaFreeAsync, (void *, frag_cuda_stream))

/* Functions of the driver, found through the runtime's entry point query. */
#define FRAG_CUDA_DRIVER(X)                                                                        \
    X(cuDeviceGetName, (char *, int, int))                                                         \
    X(cuDeviceGetAttribute, (int *, int, int))                                                     \
    X(cuMemGetAllocationGranularity, (size_t *, const frag_cuda_memory_properties *, int))         \
    X(cuMemAddressReserve,                                                                         \
      (frag_cuda_address *, size_t, size_t, frag_cuda_address, unsigned long long))                \
    X(cuMemAddressFree, (frag_cuda_address, size_t))                                               \
    X(cuMemCreate,                                                                                 \
      (frag_cuda_handle *, size_t, const frag_cuda_memory_properties *, unsigned long long))       \
    X(cuMemMap, (frag_cuda_address, size_t, size_t, frag_cuda_handle, unsigned long long))         \
    X(cuMemSetAccess, (frag_cuda_address, size_t, const frag_cuda_access *, size_t))               \
    X(cuMemUnmap, (frag_cuda_address, size_t))                                                     \
    X(cuMemRelease, (frag_cuda_handle))

#endif
