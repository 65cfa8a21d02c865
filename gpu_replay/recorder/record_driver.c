/* The driver's functions as a program under the recorder calls them itself. */
#include "gpu_replay/recorder/record_calls.h"

typedef int take_bytes(uint64_t *, size_t);
typedef int take_pitch(uint64_t *, size_t *, size_t, size_t, unsigned);
typedef int take_flags(uint64_t *, size_t, unsigned);
typedef int take_host(void **, size_t);
typedef int take_host_flags(void **, size_t, unsigned);
typedef int take_async(uint64_t *, size_t, void *);
typedef int take_from_pool(uint64_t *, size_t, void *, void *);
typedef int give_back(uint64_t);
typedef int give_back_host(void *);
typedef int give_back_async(uint64_t, void *);
typedef int create_pool(void **, const frag_cuda_pool_properties *);
typedef int destroy_pool(void *);
typedef int trim_pool(void *, size_t);
typedef int set_pool(void *, int, void *);
typedef int reserve_range(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
typedef int change_range(uint64_t, size_t);
typedef int create_memory(uint64_t *, size_t, const frag_cuda_memory_properties *,
                          unsigned long long);
typedef int retain_memory(uint64_t *, void *);
typedef int map_memory(uint64_t, size_t, size_t, uint64_t, unsigned long long);
typedef int set_access(uint64_t, size_t, const void *, size_t);
typedef int reset_device(int);

static void end_call(const frag_call *call, int result, frag_log_call kind,
                     frag_device_record record)
{
    record.call = (uint8_t)kind;
    record.flags |= FRAG_LOG_BY_DRIVER;
    frag_call_end(call, result, record);
}

static uint64_t taken(int result, const uint64_t *pointer)
{
    return result == FRAG_CUDA_OK && pointer != NULL ? *pointer : 0;
}

static uint64_t number_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

static void end_taking(const frag_call *call, int result, frag_log_call kind, uint64_t address,
                       uint64_t bytes)
{
    end_call(call, result, kind,
             (frag_device_record){
                 .device = frag_call_device_driver(), .address = address, .bytes = bytes});
}

static int take_async_on(frag_real_id id, uint64_t *pointer, size_t bytes, void *stream,
                         uint64_t default_stream)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_async *)frag_real(id))(pointer, bytes, stream);
    end_call(&call, result, FRAG_LOG_MALLOC_ASYNC,
             (frag_device_record){.device = frag_call_device_driver(),
                                  .address = taken(result, pointer),
                                  .bytes = bytes,
                                  .stream = stream != NULL ? number_of(stream) : default_stream});
    return result;
}

static int take_from_pool_on(frag_real_id id, uint64_t *pointer, size_t bytes, void *pool,
                             void *stream, uint64_t default_stream)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_from_pool *)frag_real(id))(pointer, bytes, pool, stream);
    end_call(&call, result, FRAG_LOG_MALLOC_ASYNC,
             (frag_device_record){.device = frag_call_device_driver(),
                                  .address = taken(result, pointer),
                                  .bytes = bytes,
                                  .other = number_of(pool),
                                  .stream = stream != NULL ? number_of(stream) : default_stream});
    return result;
}

static int give_back_on(frag_real_id id, uint64_t pointer, void *stream, uint64_t default_stream)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back_async *)frag_real(id))(pointer, stream);
    end_call(&call, result, FRAG_LOG_FREE_ASYNC,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN,
                                  .address = pointer,
                                  .stream = stream != NULL ? number_of(stream) : default_stream});
    return result;
}

#pragma GCC visibility push(default)

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_bytes *)frag_real(FRAG_REAL_cuMemAlloc_v2))(pointer, bytes);
    end_taking(&call, result, FRAG_LOG_MALLOC, taken(result, pointer), bytes);
    return result;
}

int cuMemAllocPitch_v2(uint64_t *pointer, size_t *pitch, size_t width, size_t height,
                       unsigned element_bytes)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_pitch *)frag_real(FRAG_REAL_cuMemAllocPitch_v2))(pointer, pitch, width,
                                                                         height, element_bytes);
    size_t row = result == FRAG_CUDA_OK && pitch != NULL ? *pitch : width;
    end_taking(&call, result, FRAG_LOG_MALLOC, taken(result, pointer), (uint64_t)row * height);
    return result;
}

int cuMemAllocManaged(uint64_t *pointer, size_t bytes, unsigned flags)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_flags *)frag_real(FRAG_REAL_cuMemAllocManaged))(pointer, bytes, flags);
    end_taking(&call, result, FRAG_LOG_MANAGED, taken(result, pointer), bytes);
    return result;
}

int cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_host *)frag_real(FRAG_REAL_cuMemAllocHost_v2))(pointer, bytes);
    end_taking(&call, result, FRAG_LOG_HOST_MALLOC,
               result == FRAG_CUDA_OK && pointer != NULL ? number_of(*pointer) : 0, bytes);
    return result;
}

int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_host_flags *)frag_real(FRAG_REAL_cuMemHostAlloc))(pointer, bytes, flags);
    end_taking(&call, result, FRAG_LOG_HOST_MALLOC,
               result == FRAG_CUDA_OK && pointer != NULL ? number_of(*pointer) : 0, bytes);
    return result;
}

int cuMemFree_v2(uint64_t pointer)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back *)frag_real(FRAG_REAL_cuMemFree_v2))(pointer);
    end_call(&call, result, FRAG_LOG_FREE,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .address = pointer});
    return result;
}

int cuMemFreeHost(void *pointer)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back_host *)frag_real(FRAG_REAL_cuMemFreeHost))(pointer);
    end_call(&call, result, FRAG_LOG_HOST_FREE,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .address = number_of(pointer)});
    return result;
}

int cuMemAllocAsync(uint64_t *pointer, size_t bytes, void *stream)
{
    return take_async_on(FRAG_REAL_cuMemAllocAsync, pointer, bytes, stream, 0);
}

int cuMemAllocAsync_ptsz(uint64_t *pointer, size_t bytes, void *stream)
{
    return take_async_on(FRAG_REAL_cuMemAllocAsync_ptsz, pointer, bytes, stream,
                         FRAG_CUDA_STREAM_PER_THREAD);
}

int cuMemAllocFromPoolAsync(uint64_t *pointer, size_t bytes, void *pool, void *stream)
{
    return take_from_pool_on(FRAG_REAL_cuMemAllocFromPoolAsync, pointer, bytes, pool, stream, 0);
}

int cuMemAllocFromPoolAsync_ptsz(uint64_t *pointer, size_t bytes, void *pool, void *stream)
{
    return take_from_pool_on(FRAG_REAL_cuMemAllocFromPoolAsync_ptsz, pointer, bytes, pool, stream,
                             FRAG_CUDA_STREAM_PER_THREAD);
}

int cuMemFreeAsync(uint64_t pointer, void *stream)
{
    return give_back_on(FRAG_REAL_cuMemFreeAsync, pointer, stream, 0);
}

int cuMemFreeAsync_ptsz(uint64_t pointer, void *stream)
{
    return give_back_on(FRAG_REAL_cuMemFreeAsync_ptsz, pointer, stream,
                        FRAG_CUDA_STREAM_PER_THREAD);
}

int cuMemPoolCreate(void **pool, const frag_cuda_pool_properties *properties)
{
    frag_call call = frag_call_begin(false);
    int result = ((create_pool *)frag_real(FRAG_REAL_cuMemPoolCreate))(pool, properties);
    bool is_on_device =
        properties != NULL && properties->location.type == FRAG_CUDA_LOCATION_DEVICE;
    end_call(&call, result, FRAG_LOG_POOL_CREATE,
             (frag_device_record){
                 .device = is_on_device ? (uint16_t)properties->location.id : FRAG_DEVICE_UNKNOWN,
                 .bytes = properties != NULL ? properties->size_max : 0,
                 .other = result == FRAG_CUDA_OK && pool != NULL ? number_of(*pool) : 0});
    return result;
}

int cuMemPoolDestroy(void *pool)
{
    frag_call call = frag_call_begin(true);
    int result = ((destroy_pool *)frag_real(FRAG_REAL_cuMemPoolDestroy))(pool);
    end_call(&call, result, FRAG_LOG_POOL_DESTROY,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .other = number_of(pool)});
    return result;
}

int cuMemPoolTrimTo(void *pool, size_t bytes)
{
    frag_call call = frag_call_begin(true);
    int result = ((trim_pool *)frag_real(FRAG_REAL_cuMemPoolTrimTo))(pool, bytes);
    end_call(&call, result, FRAG_LOG_POOL_TRIM,
             (frag_device_record){
                 .device = FRAG_DEVICE_UNKNOWN, .bytes = bytes, .other = number_of(pool)});
    return result;
}

int cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    frag_call call = frag_call_begin(false);
    int result = ((set_pool *)frag_real(FRAG_REAL_cuMemPoolSetAttribute))(pool, attribute, value);
    end_call(&call, result, FRAG_LOG_POOL_SET,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN,
                                  .address = (uint64_t)attribute,
                                  .bytes = frag_call_attribute(attribute, value),
                                  .other = number_of(pool)});
    return result;
}

int cuMemAddressReserve(uint64_t *pointer, size_t bytes, size_t alignment, uint64_t hint,
                        unsigned long long flags)
{
    frag_call call = frag_call_begin(false);
    int result = ((reserve_range *)frag_real(FRAG_REAL_cuMemAddressReserve))(
        pointer, bytes, alignment, hint, flags);
    end_call(&call, result, FRAG_LOG_RESERVE,
             (frag_device_record){
                 .device = FRAG_DEVICE_UNKNOWN, .address = taken(result, pointer), .bytes = bytes});
    return result;
}

int cuMemAddressFree(uint64_t pointer, size_t bytes)
{
    frag_call call = frag_call_begin(true);
    int result = ((change_range *)frag_real(FRAG_REAL_cuMemAddressFree))(pointer, bytes);
    end_call(
        &call, result, FRAG_LOG_UNRESERVE,
        (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .address = pointer, .bytes = bytes});
    return result;
}

int cuMemCreate(uint64_t *handle, size_t bytes, const frag_cuda_memory_properties *properties,
                unsigned long long flags)
{
    frag_call call = frag_call_begin(false);
    int result =
        ((create_memory *)frag_real(FRAG_REAL_cuMemCreate))(handle, bytes, properties, flags);
    bool is_on_device =
        properties != NULL && properties->location.type == FRAG_CUDA_LOCATION_DEVICE;
    end_call(&call, result, FRAG_LOG_CREATE,
             (frag_device_record){
                 .device = is_on_device ? (uint16_t)properties->location.id : FRAG_DEVICE_UNKNOWN,
                 .flags = is_on_device || properties == NULL ? 0 : FRAG_LOG_OF_HOST,
                 .bytes = bytes,
                 .other = taken(result, handle)});
    return result;
}

int cuMemRelease(uint64_t handle)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back *)frag_real(FRAG_REAL_cuMemRelease))(handle);
    end_call(&call, result, FRAG_LOG_RELEASE,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .other = handle});
    return result;
}

int cuMemRetainAllocationHandle(uint64_t *handle, void *pointer)
{
    frag_call call = frag_call_begin(false);
    int result =
        ((retain_memory *)frag_real(FRAG_REAL_cuMemRetainAllocationHandle))(handle, pointer);
    end_call(&call, result, FRAG_LOG_RETAIN,
             (frag_device_record){.device = FRAG_DEVICE_UNKNOWN,
                                  .address = number_of(pointer),
                                  .other = taken(result, handle)});
    return result;
}

int cuMemMap(uint64_t pointer, size_t bytes, size_t offset, uint64_t handle,
             unsigned long long flags)
{
    frag_call call = frag_call_begin(false);
    int result =
        ((map_memory *)frag_real(FRAG_REAL_cuMemMap))(pointer, bytes, offset, handle, flags);
    end_call(
        &call, result, FRAG_LOG_MAP,
        (frag_device_record){
            .device = FRAG_DEVICE_UNKNOWN, .address = pointer, .bytes = bytes, .other = handle});
    return result;
}

int cuMemUnmap(uint64_t pointer, size_t bytes)
{
    frag_call call = frag_call_begin(true);
    int result = ((change_range *)frag_real(FRAG_REAL_cuMemUnmap))(pointer, bytes);
    end_call(
        &call, result, FRAG_LOG_UNMAP,
        (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .address = pointer, .bytes = bytes});
    return result;
}

int cuMemSetAccess(uint64_t pointer, size_t bytes, const void *access, size_t count)
{
    frag_call call = frag_call_begin(false);
    int result = ((set_access *)frag_real(FRAG_REAL_cuMemSetAccess))(pointer, bytes, access, count);
    end_call(
        &call, result, FRAG_LOG_SET_ACCESS,
        (frag_device_record){.device = FRAG_DEVICE_UNKNOWN, .address = pointer, .bytes = bytes});
    return result;
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    frag_call call = frag_call_begin(true);
    int result = ((reset_device *)frag_real(FRAG_REAL_cuDevicePrimaryCtxReset_v2))(device);
    end_call(&call, result, FRAG_LOG_DEVICE_RESET,
             (frag_device_record){.device = (uint16_t)device});
    return result;
}

#pragma GCC visibility pop
