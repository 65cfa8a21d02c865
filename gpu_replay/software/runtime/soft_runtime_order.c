/* libcudart: streams, events, captures and graphs. */
#include "gpu_replay/software/runtime/soft_runtime.h"

/* ---- streams */

static int32_t create_stream(frag_soft_call_id id, void **out, unsigned flags, int32_t priority)
{
    frag_soft_call call;
    if (frag_soft_begin(&call, id)) {
        uint32_t stream = frag_soft_stream_new(flags, priority);
        *out = frag_soft_pointer(frag_soft.streams[stream].handle);
        frag_soft_note_address(&call, "stream", frag_soft.streams[stream].handle);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaStreamCreate, (void **out))
{
    return create_stream(FRAG_CALL_cudaStreamCreate, out, 0, 0);
}

FRAG_ENTRY(int32_t, cudaStreamCreateWithFlags, (void **out, unsigned flags))
{
    return create_stream(FRAG_CALL_cudaStreamCreateWithFlags, out, flags, 0);
}

FRAG_ENTRY(int32_t, cudaStreamCreateWithPriority, (void **out, unsigned flags, int32_t priority))
{
    return create_stream(FRAG_CALL_cudaStreamCreateWithPriority, out, flags, priority);
}

FRAG_ENTRY(int32_t, cudaStreamDestroy, (void *handle))
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamDestroy);
    if (frag_runtime_stream(&call, may, handle, &stream)) {
        if (stream < FRAG_SOFT_DEVICES_MAX)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_HANDLE);
        else
            frag_soft_stream_give(stream);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaStreamSynchronize, (void *handle))
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamSynchronize);
    if (frag_runtime_stream(&call, may, handle, &stream)) {
        if (frag_soft.streams[stream].capture != FRAG_SOFT_NO_CAPTURE) {
            frag_soft.captures[frag_soft.streams[stream].capture].is_invalidated = true;
            frag_soft_fail(&call, FRAG_CUDA_CAPTURE_UNSUPPORTED);
        } else {
            frag_soft_stream_complete(stream, frag_soft.streams[stream].position);
            frag_soft_pools_settle();
        }
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaStreamQuery, (void *handle))
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamQuery);
    if (frag_runtime_stream(&call, may, handle, &stream) && !frag_soft_stream_is_idle(stream))
        frag_soft_fail(&call, FRAG_CUDA_NOT_READY);
    return frag_runtime_end(&call);
}

/* What a stream is, asked without a call in the log. */
static int32_t look(const void *handle, frag_soft_stream *out)
{
    int32_t result = 0;
    uint32_t stream = 0;
    if (frag_soft_enter(&result)) {
        if (frag_soft_stream_find(frag_soft_number(handle), &stream))
            *out = frag_soft.streams[stream];
        else
            result = FRAG_CUDA_INVALID_HANDLE;
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaStreamGetPriority, (void *handle, int32_t *priority))
{
    frag_soft_stream stream = {0};
    int32_t result = look(handle, &stream);
    *priority = stream.priority;
    return result;
}

FRAG_ENTRY(int32_t, cudaStreamGetFlags, (void *handle, unsigned *flags))
{
    frag_soft_stream stream = {0};
    int32_t result = look(handle, &stream);
    *flags = stream.flags;
    return result;
}

FRAG_ENTRY(int32_t, cudaStreamGetDevice, (void *handle, int32_t *device))
{
    frag_soft_stream stream = {0};
    int32_t result = look(handle, &stream);
    *device = (int32_t)stream.device;
    return result;
}

FRAG_ENTRY(int32_t, cudaStreamGetId, (void *handle, unsigned long long *id))
{
    frag_soft_stream stream = {0};
    int32_t result = look(handle, &stream);
    *id = stream.handle;
    return result;
}

/* ---- events */

static int32_t create_event(void **out, unsigned flags)
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cudaEventCreate)) {
        uint64_t number = frag_soft_event_new(flags);
        *out = frag_soft_pointer(number);
        frag_soft_note_address(&call, "event", number);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaEventCreate, (void **out))
{
    return create_event(out, 0);
}

FRAG_ENTRY(int32_t, cudaEventCreateWithFlags, (void **out, unsigned flags))
{
    return create_event(out, flags);
}

static bool find_event(frag_soft_call *call, bool may, const void *handle, frag_soft_event **event)
{
    frag_soft_note_address(call, "event", frag_soft_number(handle));
    if (may && frag_soft_event_find(frag_soft_number(handle), event))
        return true;
    if (may)
        frag_soft_fail(call, FRAG_CUDA_INVALID_HANDLE);
    return false;
}

/* The stream that an event was recorded on, for the log: 0 when on none. */
static void note_stream(frag_soft_call *call, const frag_soft_event *event)
{
    frag_soft_note_address(call, "stream",
                           event->is_recorded ? frag_soft.streams[event->point.stream].handle : 0);
}

FRAG_ENTRY(int32_t, cudaEventDestroy, (void *handle))
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaEventDestroy);
    if (find_event(&call, may, handle, &event))
        frag_soft_handle_give(&frag_soft.event_handles, (uint32_t)(event - frag_soft.events));
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaEventRecord, (void *handle, void *stream_handle))
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaEventRecord);
    may = find_event(&call, may, handle, &event);
    if (frag_runtime_stream(&call, may, stream_handle, &stream)) {
        event->is_recorded = true;
        event->capture = frag_soft.streams[stream].capture;
        event->point = frag_soft_stream_work(stream);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaEventRecordWithFlags, (void *handle, void *stream, unsigned flags))
{
    (void)flags;
    return cudaEventRecord(handle, stream);
}

FRAG_ENTRY(int32_t, cudaEventQuery, (void *handle))
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaEventQuery);
    if (find_event(&call, may, handle, &event)) {
        note_stream(&call, event);
        if (event->is_recorded && !frag_soft_point_is_done(&event->point))
            frag_soft_fail(&call, FRAG_CUDA_NOT_READY);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaEventSynchronize, (void *handle))
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaEventSynchronize);
    if (find_event(&call, may, handle, &event)) {
        note_stream(&call, event);
        if (event->is_recorded)
            frag_soft_stream_complete(event->point.stream, event->point.position);
        frag_soft_pools_settle();
    }
    return frag_runtime_end(&call);
}

/* A thousandth of a millisecond for each piece of work between the two. */
FRAG_ENTRY(int32_t, cudaEventElapsedTime, (float *milliseconds, void *from, void *to))
{
    frag_soft_call call;
    frag_soft_event *first = NULL;
    frag_soft_event *second = NULL;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaEventElapsedTime);
    may = find_event(&call, may, from, &first);
    if (find_event(&call, may, to, &second)) {
        if (!first->is_recorded || !second->is_recorded)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_HANDLE);
        else if (!frag_soft_point_is_done(&first->point) ||
                 !frag_soft_point_is_done(&second->point))
            frag_soft_fail(&call, FRAG_CUDA_NOT_READY);
        else
            *milliseconds =
                (float)((double)second->point.clock - (double)first->point.clock) / 1000.0f;
    }
    return frag_runtime_end(&call);
}

/* A stream that waits for an event of a capture takes part in the capture. */
FRAG_ENTRY(int32_t, cudaStreamWaitEvent, (void *stream_handle, void *handle, unsigned flags))
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    uint32_t stream = 0;
    (void)flags;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamWaitEvent);
    may = find_event(&call, may, handle, &event);
    if (frag_runtime_stream(&call, may, stream_handle, &stream) && event->is_recorded) {
        bool is_open =
            event->capture != FRAG_SOFT_NO_CAPTURE && frag_soft.captures[event->capture].is_open;
        if (is_open && frag_soft.streams[stream].capture == FRAG_SOFT_NO_CAPTURE)
            frag_soft.streams[stream].capture = event->capture;
        frag_soft_stream_wait(stream, &event->point);
    }
    return frag_runtime_end(&call);
}

/* ---- captures */

/* Graphs are numbers: the capture that made one, or none. */
#define GRAPH_BASE 0x540000000000u
#define EXECUTABLE_NUMBER 0x550000000000u
#define STEP_BYTES 16

static uint64_t graph_number(uint32_t capture)
{
    return GRAPH_BASE + ((uint64_t)capture + 1) * STEP_BYTES;
}

FRAG_ENTRY(int32_t, cudaStreamBeginCapture, (void *handle, int32_t mode))
{
    enum { LEGACY_STREAM_REFUSES = FRAG_CUDA_CAPTURE_UNSUPPORTED, ILLEGAL_STATE = 401 };
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamBeginCapture);
    frag_soft_note(&call, "mode", (uint32_t)mode);
    if (frag_runtime_stream(&call, may, handle, &stream)) {
        if (stream < FRAG_SOFT_DEVICES_MAX) {
            frag_soft_fail(&call, LEGACY_STREAM_REFUSES);
        } else if (frag_soft.streams[stream].capture != FRAG_SOFT_NO_CAPTURE) {
            frag_soft_fail(&call, ILLEGAL_STATE);
        } else {
            frag_soft.streams[stream].capture = frag_soft_capture_new(stream, mode);
        }
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaStreamEndCapture, (void *handle, void **graph))
{
    enum { ILLEGAL_STATE = 401 };
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamEndCapture);
    if (frag_runtime_stream(&call, may, handle, &stream)) {
        uint32_t capture = frag_soft.streams[stream].capture;
        *graph = NULL;
        if (capture == FRAG_SOFT_NO_CAPTURE) {
            frag_soft_fail(&call, ILLEGAL_STATE);
        } else if (frag_soft.captures[capture].origin != stream) {
            frag_soft_fail(&call, FRAG_CUDA_CAPTURE_UNMATCHED);
        } else {
            if (frag_soft.captures[capture].is_invalidated)
                frag_soft_fail(&call, FRAG_CUDA_CAPTURE_INVALIDATED);
            else
                *graph = frag_soft_pointer(graph_number(capture));
            frag_soft_capture_end(capture);
        }
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaStreamIsCapturing, (void *handle, int32_t *status))
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamIsCapturing);
    if (frag_runtime_stream(&call, may, handle, &stream)) {
        *status = frag_soft_capture_status(stream);
        frag_soft_note(&call, "status", (uint32_t)*status);
    }
    return frag_runtime_end(&call);
}

typedef struct capture_info {
    int32_t *status;
    unsigned long long *id;
    void **graph;
    const void **dependencies;
    size_t *dependency_count;
} capture_info;

static int32_t get_capture_info(const void *handle, capture_info out)
{
    static const void *const no_dependencies[1];
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaStreamGetCaptureInfo);
    if (frag_runtime_stream(&call, may, handle, &stream)) {
        uint32_t capture = frag_soft.streams[stream].capture;
        bool is_own = capture != FRAG_SOFT_NO_CAPTURE;
        *out.status = frag_soft_capture_status(stream);
        if (out.id != NULL)
            *out.id = is_own ? (unsigned long long)capture + 1 : 1;
        if (out.graph != NULL)
            *out.graph = frag_soft_pointer(is_own ? graph_number(capture) : GRAPH_BASE);
        if (out.dependencies != NULL)
            *out.dependencies = no_dependencies;
        if (out.dependency_count != NULL)
            *out.dependency_count = 0;
        frag_soft_note(&call, "status", (uint32_t)*out.status);
    }
    return frag_runtime_end(&call);
}

#if FRAG_CUDART >= 13
FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo,
           (void *handle, int32_t *status, unsigned long long *id, void **graph,
            const void **dependencies, const void **edges, size_t *count))
{
    if (edges != NULL)
        *edges = NULL;
    return get_capture_info(handle, (capture_info){status, id, graph, dependencies, count});
}
#else
FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo,
           (void *handle, int32_t *status, unsigned long long *id))
{
    return get_capture_info(handle, (capture_info){status, id, NULL, NULL, NULL});
}

FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo_v2,
           (void *handle, int32_t *status, unsigned long long *id, void **graph,
            const void **dependencies, size_t *count))
{
    return get_capture_info(handle, (capture_info){status, id, graph, dependencies, count});
}

FRAG_ENTRY(int32_t, cudaStreamGetCaptureInfo_v3,
           (void *handle, int32_t *status, unsigned long long *id, void **graph,
            const void **dependencies, const void **edges, size_t *count))
{
    if (edges != NULL)
        *edges = NULL;
    return get_capture_info(handle, (capture_info){status, id, graph, dependencies, count});
}
#endif

FRAG_ENTRY(int32_t, cudaThreadExchangeStreamCaptureMode, (int32_t * mode))
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cudaThreadExchangeStreamCaptureMode)) {
        int32_t *own = frag_soft_capture_mode();
        int32_t before = *own;
        *own = *mode;
        *mode = before;
        frag_soft_note(&call, "mode", (uint32_t)*own);
    }
    return frag_runtime_end(&call);
}

/* ---- graphs: as many nodes as there was work, and nothing to run */

FRAG_ENTRY(int32_t, cudaGraphCreate, (void **graph, unsigned flags))
{
    (void)flags;
    *graph = frag_soft_pointer(GRAPH_BASE);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaGraphGetNodes, (void *graph, void **nodes, size_t *count))
{
    int32_t result = 0;
    uint64_t capture = (frag_soft_number(graph) - GRAPH_BASE) / STEP_BYTES;
    if (frag_soft_enter(&result)) {
        uint64_t work = capture >= 1 && capture <= frag_soft.capture_count
                            ? frag_soft.captures[capture - 1].work_count
                            : 0;
        if (nodes == NULL)
            *count = work;
        for (size_t i = 0; nodes != NULL && i < *count; i++)
            nodes[i] = NULL;
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaGraphInstantiate, (void **executable, void *graph))
{
    (void)graph;
    *executable = frag_soft_pointer(EXECUTABLE_NUMBER);
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaGraphInstantiateWithFlags, (void **executable, void *graph))
{
    return cudaGraphInstantiate(executable, graph);
}

FRAG_ENTRY(int32_t, cudaGraphInstantiateWithParams, (void **executable, void *graph))
{
    return cudaGraphInstantiate(executable, graph);
}

FRAG_ENTRY(int32_t, cudaGraphLaunch, (void *executable, void *stream_handle))
{
    frag_soft_call call;
    uint32_t stream = 0;
    (void)executable;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaGraphLaunch);
    if (frag_runtime_stream(&call, may, stream_handle, &stream)) {
        frag_soft_shadow_launch();
        frag_soft_stream_work(stream);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaGraphNodeGetDependencies,
           (void *node, void **dependencies, void *edges_or_count, size_t *count))
{
    (void)node, (void)dependencies, (void)edges_or_count, (void)count;
    return frag_runtime_return(FRAG_CUDA_NOT_SUPPORTED);
}

/* Graphs have no memory of their own here. */
FRAG_ENTRY(int32_t, cudaDeviceGetGraphMemAttribute,
           (int32_t device, int32_t attribute, uint64_t *value))
{
    (void)device, (void)attribute;
    *value = 0;
    return FRAG_CUDA_OK;
}
