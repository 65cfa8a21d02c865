/* The runtime's functions as a program under the recorder calls them. */
#include "gpu_replay/recorder/record_calls.h"

typedef int take_bytes(void **, size_t);
typedef int take_pitch(void **, size_t *, size_t, size_t);
typedef int take_extent(frag_cuda_pitched *, frag_cuda_extent);
typedef int take_flags(void **, size_t, unsigned);
typedef int take_async(void **, size_t, void *);
typedef int take_from_pool(void **, size_t, void *, void *);
typedef int give_back(void *);
typedef int give_back_async(void *, void *);
typedef int create_pool(void **, const frag_cuda_pool_properties *);
typedef int trim_pool(void *, size_t);
typedef int set_pool(void *, int, void *);
typedef int reset_device(void);

/* What a call took: nothing when it failed. */
static uint64_t taken(int result, void *const *pointer)
{
    return result == FRAG_CUDA_OK && pointer != NULL ? (uint64_t)(uintptr_t)*pointer : 0;
}

static void end_taking(const frag_call *call, int result, frag_log_call kind, void *const *pointer,
                       uint64_t bytes)
{
    frag_call_end(call, result,
                  (frag_device_record){.call = (uint8_t)kind,
                                       .device = frag_call_device_runtime(),
                                       .address = taken(result, pointer),
                                       .bytes = bytes});
}

static int take_async_on(frag_real_id id, void **pointer, size_t bytes, void *stream,
                         uint64_t default_stream)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_async *)frag_real(id))(pointer, bytes, stream);
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_MALLOC_ASYNC,
                                       .device = frag_call_device_runtime(),
                                       .address = taken(result, pointer),
                                       .bytes = bytes,
                                       .stream = stream != NULL ? (uint64_t)(uintptr_t)stream
                                                                : default_stream});
    return result;
}

static int take_from_pool_on(frag_real_id id, void **pointer, size_t bytes, void *pool,
                             void *stream, uint64_t default_stream)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_from_pool *)frag_real(id))(pointer, bytes, pool, stream);
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_MALLOC_ASYNC,
                                       .device = frag_call_device_runtime(),
                                       .address = taken(result, pointer),
                                       .bytes = bytes,
                                       .other = (uint64_t)(uintptr_t)pool,
                                       .stream = stream != NULL ? (uint64_t)(uintptr_t)stream
                                                                : default_stream});
    return result;
}

static int give_back_on(frag_real_id id, void *pointer, void *stream, uint64_t default_stream)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back_async *)frag_real(id))(pointer, stream);
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_FREE_ASYNC,
                                       .device = FRAG_DEVICE_UNKNOWN,
                                       .address = (uint64_t)(uintptr_t)pointer,
                                       .stream = stream != NULL ? (uint64_t)(uintptr_t)stream
                                                                : default_stream});
    return result;
}

static int give_back_now(frag_real_id id, frag_log_call kind, void *pointer)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back *)frag_real(id))(pointer);
    frag_call_end(&call, result,
                  (frag_device_record){.call = (uint8_t)kind,
                                       .device = FRAG_DEVICE_UNKNOWN,
                                       .address = (uint64_t)(uintptr_t)pointer});
    return result;
}

#pragma GCC visibility push(default)

int cudaMalloc(void **pointer, size_t bytes)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_bytes *)frag_real(FRAG_REAL_cudaMalloc))(pointer, bytes);
    end_taking(&call, result, FRAG_LOG_MALLOC, pointer, bytes);
    return result;
}

int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    frag_call call = frag_call_begin(false);
    int result =
        ((take_pitch *)frag_real(FRAG_REAL_cudaMallocPitch))(pointer, pitch, width, height);
    size_t row = result == FRAG_CUDA_OK && pitch != NULL ? *pitch : width;
    end_taking(&call, result, FRAG_LOG_MALLOC, pointer, (uint64_t)row * height);
    return result;
}

int cudaMalloc3D(frag_cuda_pitched *pitched, frag_cuda_extent extent)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_extent *)frag_real(FRAG_REAL_cudaMalloc3D))(pitched, extent);
    bool is_taken = result == FRAG_CUDA_OK && pitched != NULL;
    size_t row = is_taken ? pitched->pitch : extent.width;
    end_taking(&call, result, FRAG_LOG_MALLOC, is_taken ? &pitched->pointer : NULL,
               (uint64_t)row * extent.height * extent.depth);
    return result;
}

int cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_flags *)frag_real(FRAG_REAL_cudaMallocManaged))(pointer, bytes, flags);
    end_taking(&call, result, FRAG_LOG_MANAGED, pointer, bytes);
    return result;
}

int cudaMallocHost(void **pointer, size_t bytes)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_bytes *)frag_real(FRAG_REAL_cudaMallocHost))(pointer, bytes);
    end_taking(&call, result, FRAG_LOG_HOST_MALLOC, pointer, bytes);
    return result;
}

int cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    frag_call call = frag_call_begin(false);
    int result = ((take_flags *)frag_real(FRAG_REAL_cudaHostAlloc))(pointer, bytes, flags);
    end_taking(&call, result, FRAG_LOG_HOST_MALLOC, pointer, bytes);
    return result;
}

int cudaFree(void *pointer)
{
    return give_back_now(FRAG_REAL_cudaFree, FRAG_LOG_FREE, pointer);
}

int cudaFreeHost(void *pointer)
{
    return give_back_now(FRAG_REAL_cudaFreeHost, FRAG_LOG_HOST_FREE, pointer);
}

int cudaMallocAsync(void **pointer, size_t bytes, void *stream)
{
    return take_async_on(FRAG_REAL_cudaMallocAsync, pointer, bytes, stream, 0);
}

int cudaMallocAsync_ptsz(void **pointer, size_t bytes, void *stream)
{
    return take_async_on(FRAG_REAL_cudaMallocAsync_ptsz, pointer, bytes, stream,
                         FRAG_CUDA_STREAM_PER_THREAD);
}

int cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *pool, void *stream)
{
    return take_from_pool_on(FRAG_REAL_cudaMallocFromPoolAsync, pointer, bytes, pool, stream, 0);
}

int cudaMallocFromPoolAsync_ptsz(void **pointer, size_t bytes, void *pool, void *stream)
{
    return take_from_pool_on(FRAG_REAL_cudaMallocFromPoolAsync_ptsz, pointer, bytes, pool, stream,
                             FRAG_CUDA_STREAM_PER_THREAD);
}

int cudaFreeAsync(void *pointer, void *stream)
{
    return give_back_on(FRAG_REAL_cudaFreeAsync, pointer, stream, 0);
}

int cudaFreeAsync_ptsz(void *pointer, void *stream)
{
    return give_back_on(FRAG_REAL_cudaFreeAsync_ptsz, pointer, stream, FRAG_CUDA_STREAM_PER_THREAD);
}

int cudaMemPoolCreate(void **pool, const frag_cuda_pool_properties *properties)
{
    frag_call call = frag_call_begin(false);
    int result = ((create_pool *)frag_real(FRAG_REAL_cudaMemPoolCreate))(pool, properties);
    bool is_on_device =
        properties != NULL && properties->location.type == FRAG_CUDA_LOCATION_DEVICE;
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_POOL_CREATE,
                                       .device = is_on_device ? (uint16_t)properties->location.id
                                                              : FRAG_DEVICE_UNKNOWN,
                                       .bytes = properties != NULL ? properties->size_max : 0,
                                       .other = taken(result, pool)});
    return result;
}

int cudaMemPoolDestroy(void *pool)
{
    frag_call call = frag_call_begin(true);
    int result = ((give_back *)frag_real(FRAG_REAL_cudaMemPoolDestroy))(pool);
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_POOL_DESTROY,
                                       .device = FRAG_DEVICE_UNKNOWN,
                                       .other = (uint64_t)(uintptr_t)pool});
    return result;
}

int cudaMemPoolTrimTo(void *pool, size_t bytes)
{
    frag_call call = frag_call_begin(true);
    int result = ((trim_pool *)frag_real(FRAG_REAL_cudaMemPoolTrimTo))(pool, bytes);
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_POOL_TRIM,
                                       .device = FRAG_DEVICE_UNKNOWN,
                                       .bytes = bytes,
                                       .other = (uint64_t)(uintptr_t)pool});
    return result;
}

int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    frag_call call = frag_call_begin(false);
    int result = ((set_pool *)frag_real(FRAG_REAL_cudaMemPoolSetAttribute))(pool, attribute, value);
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_POOL_SET,
                                       .device = FRAG_DEVICE_UNKNOWN,
                                       .address = (uint64_t)attribute,
                                       .bytes = frag_call_attribute(attribute, value),
                                       .other = (uint64_t)(uintptr_t)pool});
    return result;
}

int cudaDeviceReset(void)
{
    uint16_t device = frag_call_device_runtime();
    frag_call call = frag_call_begin(true);
    int result = ((reset_device *)frag_real(FRAG_REAL_cudaDeviceReset))();
    frag_call_end(&call, result,
                  (frag_device_record){.call = FRAG_LOG_DEVICE_RESET, .device = device});
    return result;
}

#pragma GCC visibility pop
