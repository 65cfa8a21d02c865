// One spelling of PyTorch's caching allocator for releases 2.1 to 2.15. TORCH_NUMBER is major * 100
// + minor of the headers in use. A function that a release lacks returns false.
#ifndef FRAG_ORACLE_TORCH_ALLOCATOR_HPP
#define FRAG_ORACLE_TORCH_ALLOCATOR_HPP

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#if TORCH_NUMBER >= 202
#include <c10/cuda/CUDAAllocatorConfig.h>
#endif
#if TORCH_NUMBER >= 209
#include <c10/core/AllocatorConfig.h>
#endif
#if TORCH_NUMBER >= 213
#include <c10/cuda/PeerToPeerAccess.h>
#endif

#include <cstdint>
#include <stdexcept>
#include <string>

// Exported by libc10_cuda, declared in no public header. Without libtorch_cuda nobody else says
// whether a device has a context, and the library would refuse to make streams.
namespace c10::cuda::_internal
{
void setHasPrimaryContext(bool (*function)(c10::DeviceIndex));
}

namespace oracle
{
namespace caching = c10::cuda::CUDACachingAllocator;
using Allocator = caching::CUDAAllocator;
using Pool = c10::cuda::MempoolId_t;
#if TORCH_NUMBER >= 203
using DeviceNumber = c10::DeviceIndex;
#else
using DeviceNumber = int;
#endif

inline bool has_context(c10::DeviceIndex)
{
    return true;
}

inline Allocator *start_allocator(int device_count)
{
    c10::cuda::_internal::setHasPrimaryContext(has_context);
    if (c10::cuda::device_count() != device_count)
        throw std::runtime_error("the software CUDA shows another number of devices");
#if TORCH_NUMBER >= 213
    c10::cuda::detail::init_p2p_access_cache(device_count); // else done by libtorch_cuda
#endif
    Allocator *allocator = caching::get();
    allocator->init(device_count);
    return allocator;
}

inline void *allocate(Allocator *allocator, uint64_t bytes, uint64_t stream)
{
    return allocator->raw_alloc_with_stream(bytes, reinterpret_cast<cudaStream_t>(stream));
}

inline void record_stream(Allocator *allocator, void *memory, int device, uint64_t stream)
{
    auto index = static_cast<c10::DeviceIndex>(device);
    c10::DataPtr held(memory, memory, allocator->raw_deleter(),
                      c10::Device(c10::DeviceType::CUDA, index));
    allocator->recordStream(held, stream == 0 ? c10::cuda::getDefaultCUDAStream(index)
                                              : c10::cuda::getStreamFromExternal(
                                                    reinterpret_cast<cudaStream_t>(stream), index));
    held.release_context();
}

inline bool empty_cache(Allocator *allocator, Pool pool)
{
#if TORCH_NUMBER >= 208
    allocator->emptyCache(pool);
#else
    if (pool.first != 0 || pool.second != 0)
        return false;
    allocator->emptyCache();
#endif
    return true;
}

// takes_all: requests of every stream go to the pool, as under torch.cuda.use_mem_pool; otherwise
// those of one stream, as in the capture of a graph.
inline bool begin_pool(Allocator *allocator, int device, Pool pool, bool takes_all, uint64_t stream)
{
#if TORCH_NUMBER >= 203
    allocator->beginAllocateToPool(
        static_cast<DeviceNumber>(device), pool, [=](cudaStream_t asked) {
            return takes_all || reinterpret_cast<uint64_t>(asked) == stream;
        });
#else
    if (takes_all)
        return false;
    allocator->beginAllocateStreamToPool(device, reinterpret_cast<cudaStream_t>(stream), pool);
#endif
    return true;
}

inline void end_pool(Allocator *allocator, int device, Pool pool, uint64_t stream)
{
#if TORCH_NUMBER >= 203
    (void)stream;
    allocator->endAllocateToPool(static_cast<DeviceNumber>(device), pool);
#else
    (void)pool;
    allocator->endAllocateStreamToPool(device, reinterpret_cast<cudaStream_t>(stream));
#endif
}

inline bool create_pool(Allocator *allocator, int device, Pool pool)
{
#if TORCH_NUMBER >= 208
    allocator->createOrIncrefPool(static_cast<DeviceNumber>(device), pool);
    return true;
#elif TORCH_NUMBER >= 206
    allocator->ensureExistsAndIncrefPool(static_cast<DeviceNumber>(device), pool);
    return true;
#else
    (void)allocator, (void)device, (void)pool;
    return false;
#endif
}

inline void release_pool(Allocator *allocator, int device, Pool pool)
{
    allocator->releasePool(static_cast<DeviceNumber>(device), pool);
}

inline bool use_pool_on_oom(Allocator *allocator, int device, Pool pool, bool is_on)
{
#if TORCH_NUMBER >= 211
    allocator->setUseOnOOM(static_cast<DeviceNumber>(device), pool, is_on);
    return true;
#elif TORCH_NUMBER >= 208
    if (is_on) // before 2.11 it cannot be taken back
        allocator->setUseOnOOM(static_cast<DeviceNumber>(device), pool);
    return true;
#else
    (void)allocator, (void)device, (void)pool, (void)is_on;
    return false;
#endif
}

inline bool forbid_splits(Allocator *allocator, int device, Pool pool)
{
#if TORCH_NUMBER >= 210
    allocator->setNoSplit(static_cast<DeviceNumber>(device), pool);
    return true;
#else
    (void)allocator, (void)device, (void)pool;
    return false;
#endif
}

inline void mark_capture(Allocator *allocator, int device, bool begins)
{
#if TORCH_NUMBER >= 213
    if (begins)
        allocator->markCaptureBegin(static_cast<DeviceNumber>(device));
    else
        allocator->markCaptureEnd(static_cast<DeviceNumber>(device));
#else
    (void)allocator, (void)device, (void)begins;
#endif
}

inline void change_settings(const std::string &text)
{
#if TORCH_NUMBER >= 210
    c10::CachingAllocator::setAllocatorSettings(text);
#else
    caching::setAllocatorSettings(text);
#endif
}
} // namespace oracle

#endif
