/* What runtime and driver both offer of streams, events and captures: each function is a whole call
 * under the name it is given. */
#include "gpu_replay/software/soft_order.h"

#include "gpu_replay/software/graphs/soft_graph.h"

#include <stddef.h>

#define ILLEGAL_STATE 401
#define NOTHING_MS 0.002f

static bool find_event(frag_soft_call *call, bool may, const void *handle, frag_soft_event **event)
{
    uint64_t number = (uint64_t)(uintptr_t)handle;
    frag_soft_note_address(call, "event", number);
    if (may && frag_soft_event_find(number, event))
        return true;
    if (may)
        frag_soft_fail(call, FRAG_CUDA_INVALID_HANDLE);
    return false;
}

static void *pointer(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

/* ---- streams */

int32_t frag_soft_order_create(frag_soft_call_id id, void **out, uint32_t flags, int32_t priority)
{
    frag_soft_call call;
    uint64_t made = 0;
    bool may = frag_soft_begin(&call, id);
    if (out != NULL)
        *out = NULL;
    if (may && out == NULL) {
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    } else if (may) {
        uint32_t stream = frag_soft_stream_new(flags, priority); /* which may move the streams */
        made = frag_soft.streams[stream].handle;
        frag_soft_note_address(&call, "stream", made);
        *out = pointer(made);
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_destroy(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        if (stream < FRAG_SOFT_DEVICES_MAX)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_HANDLE);
        else
            frag_soft_stream_give(stream);
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_synchronize(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        if (frag_soft.streams[stream].capture != FRAG_SOFT_NO_CAPTURE) {
            frag_soft.captures[frag_soft.streams[stream].capture].is_invalidated = true;
            frag_soft_fail(&call, FRAG_CUDA_CAPTURE_UNSUPPORTED);
        } else {
            frag_soft_stream_complete(stream, frag_soft.streams[stream].position);
            frag_soft_pools_settle();
        }
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_query(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream) && !frag_soft_stream_is_idle(stream))
        frag_soft_fail(&call, FRAG_CUDA_NOT_READY);
    return frag_soft_end(&call);
}

int32_t frag_soft_order_look(const void *handle, frag_soft_stream *out)
{
    int32_t result = 0;
    uint32_t stream = 0;
    *out = (frag_soft_stream){0};
    if (frag_soft_enter(&result)) {
        if (frag_soft_stream_find((uint64_t)(uintptr_t)handle, &stream))
            *out = frag_soft.streams[stream];
        else
            result = FRAG_CUDA_INVALID_HANDLE;
    }
    frag_soft_leave();
    return result;
}

/* A stream that waits for an event of a capture takes part in the capture. */
int32_t frag_soft_order_wait(frag_soft_call_id id, const void *stream_handle, const void *handle)
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    may = find_event(&call, may, handle, &event);
    if (frag_soft_call_stream(&call, may, stream_handle, &stream) && event->is_recorded) {
        bool is_open =
            event->capture != FRAG_SOFT_NO_CAPTURE && frag_soft.captures[event->capture].is_open;
        if (is_open && frag_soft.streams[stream].capture == FRAG_SOFT_NO_CAPTURE)
            frag_soft.streams[stream].capture = event->capture;
        frag_soft_stream_wait(stream, &event->point);
    }
    return frag_soft_end(&call);
}

/* ---- events */

int32_t frag_soft_order_event_create(frag_soft_call_id id, void **out, uint32_t flags)
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, id);
    if (out != NULL)
        *out = NULL;
    if (may && out == NULL) {
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    } else if (may) {
        uint64_t number = frag_soft_event_new(flags);
        *out = pointer(number);
        frag_soft_note_address(&call, "event", number);
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_event_destroy(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    bool may = frag_soft_begin(&call, id);
    if (find_event(&call, may, handle, &event))
        frag_soft_handle_give(&frag_soft.event_handles, (uint32_t)(event - frag_soft.events));
    return frag_soft_end(&call);
}

int32_t frag_soft_order_event_record(frag_soft_call_id id, const void *handle,
                                     const void *stream_handle)
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    may = find_event(&call, may, handle, &event);
    if (frag_soft_call_stream(&call, may, stream_handle, &stream)) {
        event->is_recorded = true;
        event->capture = frag_soft.streams[stream].capture;
        event->point = frag_soft_stream_work(stream);
    }
    return frag_soft_end(&call);
}

/* The stream that an event was recorded on, for the log: 0 when on none. */
static void note_stream(frag_soft_call *call, const frag_soft_event *event)
{
    frag_soft_note_address(call, "stream",
                           event->is_recorded ? frag_soft.streams[event->point.stream].handle : 0);
}

int32_t frag_soft_order_event_query(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    bool may = frag_soft_begin(&call, id);
    if (find_event(&call, may, handle, &event)) {
        note_stream(&call, event);
        if (event->is_recorded && !frag_soft_point_is_done(&event->point))
            frag_soft_fail(&call, FRAG_CUDA_NOT_READY);
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_event_synchronize(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    frag_soft_event *event = NULL;
    bool may = frag_soft_begin(&call, id);
    if (find_event(&call, may, handle, &event)) {
        note_stream(&call, event);
        if (event->is_recorded)
            frag_soft_stream_complete(event->point.stream, event->point.position);
        frag_soft_pools_settle();
    }
    return frag_soft_end(&call);
}

/* A millisecond for each piece of work between the two, whatever the clock says: what is tuned by
 * measuring comes out the same every time, and soon. Two events with nothing between them are
 * NOTHING_MS apart, about what a card shows: programs divide by times. */
int32_t frag_soft_order_event_elapsed(frag_soft_call_id id, float *milliseconds, const void *from,
                                      const void *to)
{
    frag_soft_call call;
    frag_soft_event *first = NULL;
    frag_soft_event *second = NULL;
    float elapsed = 0;
    bool may = frag_soft_begin(&call, id);
    may = find_event(&call, may, from, &first);
    if (find_event(&call, may, to, &second)) {
        if (!first->is_recorded || !second->is_recorded)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_HANDLE);
        else if (!frag_soft_point_is_done(&first->point) ||
                 !frag_soft_point_is_done(&second->point))
            frag_soft_fail(&call, FRAG_CUDA_NOT_READY);
        else
            elapsed = first != second && second->point.clock == first->point.clock
                          ? NOTHING_MS
                          : (float)((double)second->point.clock - (double)first->point.clock);
    }
    if (milliseconds != NULL)
        *milliseconds = elapsed;
    return frag_soft_end(&call);
}

/* ---- captures */

int32_t frag_soft_order_capture_begin(frag_soft_call_id id, const void *handle, int32_t mode)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    frag_soft_note(&call, "mode", (uint32_t)mode);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        if (stream < FRAG_SOFT_DEVICES_MAX)
            frag_soft_fail(&call, FRAG_CUDA_CAPTURE_UNSUPPORTED); /* as the legacy stream */
        else if (frag_soft.streams[stream].capture != FRAG_SOFT_NO_CAPTURE)
            frag_soft_fail(&call, ILLEGAL_STATE);
        else
            frag_soft.streams[stream].capture = frag_soft_capture_new(stream, mode);
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_capture_end(frag_soft_call_id id, const void *handle, void **graph)
{
    frag_soft_call call;
    uint32_t stream = 0;
    uint64_t made = 0;
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        uint32_t capture = frag_soft.streams[stream].capture;
        if (capture == FRAG_SOFT_NO_CAPTURE) {
            frag_soft_fail(&call, ILLEGAL_STATE);
        } else if (frag_soft.captures[capture].origin != stream) {
            frag_soft_fail(&call, FRAG_CUDA_CAPTURE_UNMATCHED);
        } else {
            made = frag_soft.captures[capture].graph;
            if (frag_soft.captures[capture].is_invalidated) {
                frag_soft_fail(&call, FRAG_CUDA_CAPTURE_INVALIDATED);
                frag_soft_graph_give(made);
                made = 0;
            }
            frag_soft_capture_end(capture);
        }
    }
    if (graph != NULL)
        *graph = pointer(made);
    return frag_soft_end(&call);
}

int32_t frag_soft_order_capture_look(frag_soft_call_id id, const void *handle,
                                     frag_soft_capture_seen *seen)
{
    frag_soft_call call;
    uint32_t stream = 0;
    *seen = (frag_soft_capture_seen){0};
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        uint32_t capture = frag_soft.streams[stream].capture;
        seen->status = frag_soft_capture_status(stream);
        seen->id = capture == FRAG_SOFT_NO_CAPTURE ? 1 : (uint64_t)capture + 1;
        seen->graph = pointer(frag_soft_stream_graph(stream));
        frag_soft_note(&call, "status", (uint32_t)seen->status);
    }
    return frag_soft_end(&call);
}

int32_t frag_soft_order_capture_mode(frag_soft_call_id id, int32_t *mode)
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, id);
    if (may && mode == NULL) {
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    } else if (may) {
        int32_t *own = frag_soft_capture_mode();
        int32_t before = *own;
        *own = *mode;
        *mode = before;
        frag_soft_note(&call, "mode", (uint32_t)*own);
    }
    return frag_soft_end(&call);
}

/* ---- work that does nothing */

int32_t frag_soft_order_launch(frag_soft_call_id id, const void *handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        if (frag_soft_stream_graph(stream) == 0)
            frag_soft_shadow_launch();
        frag_soft_stream_work(stream);
    }
    return frag_soft_end(&call);
}

/* The function is called at once, which a stream without waiting work may do, or at each launch of
 * the graph that is captured. */
int32_t frag_soft_order_host(frag_soft_call_id id, const void *handle, void (*function)(void *),
                             void *data)
{
    frag_soft_call call;
    uint32_t stream = 0;
    bool is_captured = false;
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        frag_soft_step step = {.kind = FRAG_SOFT_STEP_HOST, .function = function, .data = data};
        is_captured = frag_soft_graph_add(frag_soft_stream_graph(stream), step) != 0;
        frag_soft_stream_work(stream);
    }
    int32_t result = frag_soft_end(&call);
    if (result == FRAG_CUDA_OK && !is_captured)
        function(data);
    return result;
}
