/* Compiled only where the CUDA toolkit's headers are found: our declarations against the real ones.
 * Nothing of it is linked. */
#include "gpu_replay/device/cuda_abi.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)

SAME(FRAG_CUDA_OK, cudaSuccess);
SAME(FRAG_CUDA_INVALID_VALUE, cudaErrorInvalidValue);
SAME(FRAG_CUDA_OUT_OF_MEMORY, cudaErrorMemoryAllocation);
SAME(FRAG_CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(FRAG_CUDA_NOT_INITIALIZED, cudaErrorInitializationError);
SAME(FRAG_CUDA_STUB_LIBRARY, cudaErrorStubLibrary);
SAME(FRAG_CUDA_INSUFFICIENT_DRIVER, cudaErrorInsufficientDriver);
SAME(FRAG_CUDA_NO_DEVICE, cudaErrorNoDevice);
SAME(FRAG_CUDA_INVALID_DEVICE, cudaErrorInvalidDevice);
SAME(FRAG_CUDA_INVALID_HANDLE, cudaErrorInvalidResourceHandle);
SAME(FRAG_CUDA_SYMBOL_NOT_FOUND, cudaErrorSymbolNotFound);
SAME(FRAG_CUDA_NOT_READY, cudaErrorNotReady);
SAME(FRAG_CUDA_ILLEGAL_ADDRESS, cudaErrorIllegalAddress);
SAME(FRAG_CUDA_NOT_SUPPORTED, cudaErrorNotSupported);
SAME(FRAG_CUDA_UNKNOWN, cudaErrorUnknown);
SAME(FRAG_CUDA_STREAM_NON_BLOCKING, cudaStreamNonBlocking);
SAME(FRAG_CUDA_EVENT_NO_TIMING, cudaEventDisableTiming);
SAME(FRAG_CUDA_ATTRIBUTE_ECC, cudaDevAttrEccEnabled);
SAME(FRAG_CUDA_ATTRIBUTE_MAJOR, cudaDevAttrComputeCapabilityMajor);
SAME(FRAG_CUDA_ATTRIBUTE_MINOR, cudaDevAttrComputeCapabilityMinor);
SAME(FRAG_CUDA_ATTRIBUTE_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(FRAG_CUDA_ATTRIBUTE_POOLS, cudaDevAttrMemoryPoolsSupported);
SAME(FRAG_CUDA_POOL_REUSE_FOLLOW_EVENTS, cudaMemPoolReuseFollowEventDependencies);
SAME(FRAG_CUDA_POOL_REUSE_OPPORTUNISTIC, cudaMemPoolReuseAllowOpportunistic);
SAME(FRAG_CUDA_POOL_REUSE_INTERNAL, cudaMemPoolReuseAllowInternalDependencies);
SAME(FRAG_CUDA_POOL_RELEASE_THRESHOLD, cudaMemPoolAttrReleaseThreshold);
SAME(FRAG_CUDA_POOL_RESERVED, cudaMemPoolAttrReservedMemCurrent);
SAME(FRAG_CUDA_POOL_RESERVED_HIGH, cudaMemPoolAttrReservedMemHigh);
SAME(FRAG_CUDA_POOL_USED, cudaMemPoolAttrUsedMemCurrent);
SAME(FRAG_CUDA_POOL_USED_HIGH, cudaMemPoolAttrUsedMemHigh);
SAME(FRAG_CUDA_LOCATION_DEVICE, cudaMemLocationTypeDevice);
SAME(FRAG_CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(FRAG_CUDA_PINNED, cudaMemAllocationTypePinned);
SAME(FRAG_CUDA_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(FRAG_CUDA_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(FRAG_CUDA_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(FRAG_CUDA_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

SAME(sizeof(frag_cuda_address), sizeof(CUdeviceptr));
SAME(sizeof(frag_cuda_handle), sizeof(CUmemGenericAllocationHandle));
SAME(sizeof(frag_cuda_access), sizeof(CUmemAccessDesc));
SAME(sizeof(frag_cuda_pool_properties), sizeof(struct cudaMemPoolProps));
SAME(offsetof(frag_cuda_pool_properties, location), offsetof(struct cudaMemPoolProps, location));
SAME(offsetof(frag_cuda_pool_properties, size_max), offsetof(struct cudaMemPoolProps, maxSize));
SAME(offsetof(frag_cuda_pool_properties, usage), offsetof(struct cudaMemPoolProps, usage));
SAME(sizeof(frag_cuda_memory_properties), sizeof(CUmemAllocationProp));
SAME(offsetof(frag_cuda_memory_properties, location), offsetof(CUmemAllocationProp, location));
SAME(offsetof(frag_cuda_memory_properties, compression),
     offsetof(CUmemAllocationProp, allocFlags.compressionType));
SAME(offsetof(frag_cuda_memory_properties, usage), offsetof(CUmemAllocationProp, allocFlags.usage));
