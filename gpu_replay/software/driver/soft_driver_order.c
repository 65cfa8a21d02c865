/* libcuda.so.1: streams, events, captures and graphs. */
#include "gpu_replay/software/driver/soft_driver.h"

/* ---- streams */

FRAG_ENTRY(int32_t, cuStreamCreate, (void **stream, unsigned flags))
{
    return frag_soft_order_create(FRAG_CALL_cuStreamCreate, stream, flags, 0);
}

FRAG_ENTRY(int32_t, cuStreamCreateWithPriority, (void **stream, unsigned flags, int32_t priority))
{
    return frag_soft_order_create(FRAG_CALL_cuStreamCreate, stream, flags, priority);
}

FRAG_ENTRY(int32_t, cuStreamDestroy_v2, (void *stream))
{
    return frag_soft_order_destroy(FRAG_CALL_cuStreamDestroy, stream);
}

FRAG_ENTRY(int32_t, cuStreamSynchronize, (void *stream))
{
    return frag_soft_order_synchronize(FRAG_CALL_cuStreamSynchronize, stream);
}

FRAG_ENTRY(int32_t, cuStreamQuery, (void *stream))
{
    return frag_soft_order_query(FRAG_CALL_cuStreamQuery, stream);
}

FRAG_ENTRY(int32_t, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))
{
    (void)flags;
    return frag_soft_order_wait(FRAG_CALL_cuStreamWaitEvent, stream, event);
}

FRAG_ENTRY(int32_t, cuStreamGetCtx, (void *handle, void **context))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *context = result == FRAG_CUDA_OK ? frag_driver_context(stream.device) : NULL;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamGetCtx_v2, (void *handle, void **context, void **green))
{
    *green = NULL;
    return cuStreamGetCtx(handle, context);
}

FRAG_ENTRY(int32_t, cuStreamGetGreenCtx, (void *handle, void **green))
{
    frag_soft_stream stream;
    *green = NULL;
    return frag_soft_order_look(handle, &stream);
}

FRAG_ENTRY(int32_t, cuStreamGetPriority, (void *handle, int32_t *priority))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *priority = stream.priority;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamGetFlags, (void *handle, unsigned *flags))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *flags = stream.flags;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamGetId, (void *handle, unsigned long long *id))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *id = stream.handle;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamGetDevice, (void *handle, int32_t *device))
{
    frag_soft_stream stream;
    int32_t result = frag_soft_order_look(handle, &stream);
    *device = (int32_t)stream.device;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamCopyAttributes, (void *to, void *from))
{
    (void)to, (void)from;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuStreamAddCallback,
           (void *stream, void (*function)(void *, int32_t, void *), void *data, unsigned flags))
{
    (void)flags;
    function(stream, FRAG_CUDA_OK, data);
    return FRAG_CUDA_OK;
}

/* ---- values in memory, by which streams of several devices talk */

typedef struct written {
    uint64_t address;
    uint64_t value;
    size_t bytes;
} written;

static int32_t write_value(const void *stream, written what)
{
    int32_t result = FRAG_CUDA_OK;
    for (size_t done = 0; result == FRAG_CUDA_OK && done < what.bytes; done += sizeof(uint32_t))
        result = frag_soft_fill_area(FRAG_CALL_cuStreamWriteValue32,
                                     frag_soft_row(what.address + done, 0, sizeof(uint32_t)),
                                     (uint32_t)(what.value >> 8 * done), sizeof(uint32_t), stream);
    return result;
}

FRAG_ENTRY(int32_t, cuStreamWriteValue32_v2,
           (void *stream, uint64_t address, uint32_t value, unsigned flags))
{
    (void)flags;
    return write_value(stream, (written){address, value, sizeof value});
}

FRAG_ENTRY(int32_t, cuStreamWriteValue64_v2,
           (void *stream, uint64_t address, uint64_t value, unsigned flags))
{
    (void)flags;
    return write_value(stream, (written){address, value, sizeof value});
}

/* PyTorch resolves this one by its plain name, with the library's own dlsym. */
FRAG_ENTRY(int32_t, cuStreamWriteValue32,
           (void *stream, uint64_t address, uint32_t value, unsigned flags))
{
    return cuStreamWriteValue32_v2(stream, address, value, flags);
}

/* What is waited for has happened: nothing runs that could be behind. */
FRAG_ENTRY(int32_t, cuStreamWaitValue32_v2,
           (void *handle, uint64_t address, uint32_t value, unsigned flags))
{
    frag_soft_stream stream;
    (void)address, (void)value, (void)flags;
    return frag_soft_order_look(handle, &stream);
}

FRAG_ENTRY(int32_t, cuStreamWaitValue64_v2,
           (void *handle, uint64_t address, uint64_t value, unsigned flags))
{
    frag_soft_stream stream;
    (void)address, (void)value, (void)flags;
    return frag_soft_order_look(handle, &stream);
}

/* ---- events */

FRAG_ENTRY(int32_t, cuEventCreate, (void **event, unsigned flags))
{
    return frag_soft_order_event_create(FRAG_CALL_cuEventCreate, event, flags);
}

FRAG_ENTRY(int32_t, cuEventDestroy_v2, (void *event))
{
    return frag_soft_order_event_destroy(FRAG_CALL_cuEventDestroy, event);
}

FRAG_ENTRY(int32_t, cuEventRecord, (void *event, void *stream))
{
    return frag_soft_order_event_record(FRAG_CALL_cuEventRecord, event, stream);
}

FRAG_ENTRY(int32_t, cuEventRecordWithFlags, (void *event, void *stream, unsigned flags))
{
    (void)flags;
    return cuEventRecord(event, stream);
}

FRAG_ENTRY(int32_t, cuEventQuery, (void *event))
{
    return frag_soft_order_event_query(FRAG_CALL_cuEventQuery, event);
}

FRAG_ENTRY(int32_t, cuEventSynchronize, (void *event))
{
    return frag_soft_order_event_synchronize(FRAG_CALL_cuEventSynchronize, event);
}

FRAG_ENTRY(int32_t, cuEventElapsedTime, (float *milliseconds, void *from, void *to))
{
    return frag_soft_order_event_elapsed(FRAG_CALL_cuEventElapsedTime, milliseconds, from, to);
}

FRAG_ENTRY(int32_t, cuEventElapsedTime_v2, (float *milliseconds, void *from, void *to))
{
    return cuEventElapsedTime(milliseconds, from, to);
}

/* ---- captures */

FRAG_ENTRY(int32_t, cuStreamBeginCapture_v2, (void *stream, int32_t mode))
{
    return frag_soft_order_capture_begin(FRAG_CALL_cuStreamBeginCapture, stream, mode);
}

FRAG_ENTRY(int32_t, cuStreamEndCapture, (void *stream, void **graph))
{
    return frag_soft_order_capture_end(FRAG_CALL_cuStreamEndCapture, stream, graph);
}

FRAG_ENTRY(int32_t, cuStreamIsCapturing, (void *stream, int32_t *status))
{
    frag_soft_capture_seen seen;
    int32_t result = frag_soft_order_capture_look(FRAG_CALL_cuStreamIsCapturing, stream, &seen);
    *status = seen.status;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamGetCaptureInfo_v2,
           (void *stream, int32_t *status, uint64_t *id, void **graph, const void **dependencies,
            size_t *count))
{
    static const void *const no_dependencies[1];
    frag_soft_capture_seen seen;
    int32_t result = frag_soft_order_capture_look(FRAG_CALL_cuStreamGetCaptureInfo, stream, &seen);
    *status = seen.status;
    if (id != NULL)
        *id = seen.id;
    if (graph != NULL)
        *graph = seen.graph;
    if (dependencies != NULL)
        *dependencies = no_dependencies;
    if (count != NULL)
        *count = 0;
    return result;
}

FRAG_ENTRY(int32_t, cuStreamGetCaptureInfo_v3,
           (void *stream, int32_t *status, uint64_t *id, void **graph, const void **dependencies,
            const void **edges, size_t *count))
{
    if (edges != NULL)
        *edges = NULL;
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

FRAG_ENTRY(int32_t, cuThreadExchangeStreamCaptureMode, (int32_t * mode))
{
    return frag_soft_order_capture_mode(FRAG_CALL_cuThreadExchangeStreamCaptureMode, mode);
}
