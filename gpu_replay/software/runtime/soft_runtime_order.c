/* libcudart: streams, events, captures and graphs. */
#include "gpu_replay/software/runtime/soft_runtime.h"
#include "gpu_replay/software/soft_order.h"

/* ---- streams */

FRAG_ENTRY(int32_t, cudaStreamCreate, (void **out))
{
    return frag_runtime_return(frag_soft_order_create(FRAG_CALL_cudaStreamCreate, out, 0, 0));
}

FRAG_ENTRY(int32_t, cudaStreamCreateWithFlags, (void **out, unsigned flags))
{
    return frag_runtime_return(
        frag_soft_order_create(FRAG_CALL_cudaStreamCreateWithFlags, out, flags, 0));
}

FRAG_ENTRY(int32_t, cudaStreamCreateWithPriority, (void **out, unsigned flags, int32_t priority))
{
    return frag_runtime_return(
        frag_soft_order_create(FRAG_CALL_cudaStreamCreateWithPriority, out, flags, priority));
}

FRAG_ENTRY(int32_t, cudaStreamDestroy, (void *handle))
{
    return frag_runtime_return(frag_soft_order_destroy(FRAG_CALL_cudaStreamDestroy, handle));
}

FRAG_ENTRY(int32_t, cudaStreamSynchronize, (void *handle))
{
    return frag_runtime_return(
        frag_soft_order_synchronize(FRAG_CALL_cudaStreamSynchronize, handle));
}

FRAG_ENTRY(int32_t, cudaStreamQuery, (void *handle))
{
    return frag_runtime_return(frag_soft_order_query(FRAG_CALL_cudaStreamQuery, handle));
}

FRAG_ENTRY(int32_t, cudaStreamGetPriority, (void *handle, int32_t *priority))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *priority = stream.priority;
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaStreamGetFlags, (void *handle, unsigned *flags))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *flags = stream.flags;
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaStreamGetDevice, (void *handle, int32_t *device))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *device = (int32_t)stream.device;
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaStreamGetId, (void *handle, unsigned long long *id))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *id = stream.handle;
    return frag_runtime_return(result);
}

/* ---- events */

FRAG_ENTRY(int32_t, cudaEventCreate, (void **out))
{
    return frag_runtime_return(frag_soft_order_event_create(FRAG_CALL_cudaEventCreate, out, 0));
}

FRAG_ENTRY(int32_t, cudaEventCreateWithFlags, (void **out, unsigned flags))
{
    return frag_runtime_return(frag_soft_order_event_create(FRAG_CALL_cudaEventCreate, out, flags));
}

FRAG_ENTRY(int32_t, cudaEventDestroy, (void *handle))
{
    return frag_runtime_return(frag_soft_order_event_destroy(FRAG_CALL_cudaEventDestroy, handle));
}

FRAG_ENTRY(int32_t, cudaEventRecord, (void *handle, void *stream))
{
    return frag_runtime_return(
        frag_soft_order_event_record(FRAG_CALL_cudaEventRecord, handle, stream));
}

FRAG_ENTRY(int32_t, cudaEventRecordWithFlags, (void *handle, void *stream, unsigned flags))
{
    (void)flags;
    return cudaEventRecord(handle, stream);
}

FRAG_ENTRY(int32_t, cudaEventQuery, (void *handle))
{
    return frag_runtime_return(frag_soft_order_event_query(FRAG_CALL_cudaEventQuery, handle));
}

FRAG_ENTRY(int32_t, cudaEventSynchronize, (void *handle))
{
    return frag_runtime_return(
        frag_soft_order_event_synchronize(FRAG_CALL_cudaEventSynchronize, handle));
}

FRAG_ENTRY(int32_t, cudaEventElapsedTime, (float *milliseconds, void *from, void *to))
{
    return frag_runtime_return(
        frag_soft_order_event_elapsed(FRAG_CALL_cudaEventElapsedTime, milliseconds, from, to));
}

FRAG_ENTRY(int32_t, cudaStreamWaitEvent, (void *stream, void *event, unsigned flags))
{
    (void)flags;
    return frag_runtime_return(frag_soft_order_wait(FRAG_CALL_cudaStreamWaitEvent, stream, event));
}

/* ---- captures */

FRAG_ENTRY(int32_t, cudaStreamBeginCapture, (void *handle, int32_t mode))
{
    return frag_runtime_return(
        frag_soft_order_capture_begin(FRAG_CALL_cudaStreamBeginCapture, handle, mode));
}

FRAG_ENTRY(int32_t, cudaStreamEndCapture, (void *handle, void **graph))
{
    return frag_runtime_return(
        frag_soft_order_capture_end(FRAG_CALL_cudaStreamEndCapture, handle, graph));
}

FRAG_ENTRY(int32_t, cudaStreamIsCapturing, (void *handle, int32_t *status))
{
    frag_soft_capture_seen seen;
    int32_t result = frag_soft_order_capture_look(FRAG_CALL_cudaStreamIsCapturing, handle, &seen);
    *status = seen.status;
    return frag_runtime_return(result);
}

typedef struct capture_info {
    int32_t *status;
    unsigned long long *id;
    void **graph;
    const void **dependencies;
    const void **edges;
    size_t *dependency_count;
} capture_info;

static int32_t get_capture_info(const void *handle, capture_info out)
{
    static const void *const no_dependencies[1];
    frag_soft_capture_seen seen;
    int32_t result =
        frag_soft_order_capture_look(FRAG_CALL_cudaStreamGetCaptureInfo, handle, &seen);
    *out.status = seen.status;
    if (out.id != NULL)
        *out.id = seen.id;
    if (out.graph != NULL)
        *out.graph = seen.graph;
    if (out.dependencies != NULL)
        *out.dependencies = no_dependencies;
    if (out.edges != NULL)
        *out.edges = NULL;
    if (out.dependency_count != NULL)
        *out.dependency_count = 0;
    return frag_runtime_return(result);
}

#if FRAG_CUDART >= 13
FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo,
           (void *handle, int32_t *status, unsigned long long *id, void **graph,
            const void **dependencies, const void **edges, size_t *count))
{
    return get_capture_info(handle, (capture_info){status, id, graph, dependencies, edges, count});
}
#else
FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo,
           (void *handle, int32_t *status, unsigned long long *id))
{
    return get_capture_info(handle, (capture_info){status, id, NULL, NULL, NULL, NULL});
}

FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo_v2,
           (void *handle, int32_t *status, unsigned long long *id, void **graph,
            const void **dependencies, size_t *count))
{
    return get_capture_info(handle, (capture_info){status, id, graph, dependencies, NULL, count});
}

FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo_v3,
           (void *handle, int32_t *status, unsigned long long *id, void **graph,
            const void **dependencies, const void **edges, size_t *count))
{
    return get_capture_info(handle, (capture_info){status, id, graph, dependencies, edges, count});
}
#endif

FRAG_ENTRY(int32_t, cudaThreadExchangeStreamCaptureMode, (int32_t * mode))
{
    return frag_runtime_return(
        frag_soft_order_capture_mode(FRAG_CALL_cudaThreadExchangeStreamCaptureMode, mode));
}
