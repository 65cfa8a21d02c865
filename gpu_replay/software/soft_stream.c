/* Streams, events, captures. Work takes no time but a lag: what is put on a stream is done after a
 * number of later pieces of work (or calls) anywhere, or when the host waits for it, or when a test
 * says so. The default stream of a device is a stream like others; it waits for none of them. */
#include "gpu_replay/software/graphs/soft_graph.h"

#include <stdlib.h>

#include "base/memory.h"

#define STREAM_HANDLE_BASE 0x510000000000u
#define EVENT_HANDLE_BASE 0x520000000000u
/* Handles 0, 1 and 2 name the default stream of the current device: as such, legacy, per thread. */
#define DEFAULT_HANDLE_MAX 2

static _Thread_local int32_t capture_mode;

static void start_stream(uint32_t stream, frag_soft_stream as)
{
    frag_soft.streams = frag_grow(frag_soft.streams, &frag_soft.stream_capacity, (size_t)stream + 1,
                                  sizeof frag_soft.streams[0]);
    if (stream < frag_soft.stream_count)
        free(frag_soft.streams[stream].waits);
    else
        frag_soft.stream_count = (size_t)stream + 1;
    as.is_live = true;
    as.capture = FRAG_SOFT_NO_CAPTURE;
    frag_soft.streams[stream] = as;
}

void frag_soft_streams_start(void)
{
    frag_soft.stream_handles.base = STREAM_HANDLE_BASE;
    frag_soft.event_handles.base = EVENT_HANDLE_BASE;
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++)
        start_stream(d, (frag_soft_stream){.device = d});
}

void frag_soft_streams_stop(void)
{
    for (size_t i = 0; i < frag_soft.stream_count; i++)
        free(frag_soft.streams[i].waits);
    free(frag_soft.streams);
    free(frag_soft.events);
    free(frag_soft.captures);
    frag_soft_graphs_stop();
    frag_soft_handles_destroy(&frag_soft.stream_handles);
    frag_soft_handles_destroy(&frag_soft.event_handles);
}

/* ---- progress */

frag_soft_point frag_soft_stream_work(uint32_t stream)
{
    frag_soft_stream *on = &frag_soft.streams[stream];
    if (!frag_soft.settings.lag_counts_calls)
        frag_soft.clock++;
    if (on->capture != FRAG_SOFT_NO_CAPTURE)
        frag_soft_graph_count(frag_soft.captures[on->capture].graph);
    on->position++;
    on->last_clock = frag_soft.clock;
    return (frag_soft_point){.stream = stream, .position = on->position, .clock = frag_soft.clock};
}

bool frag_soft_point_is_done(const frag_soft_point *point)
{
    uint64_t lag = frag_soft.settings.lag;
    if (point->stream == FRAG_SOFT_NO_STREAM || lag == 0 ||
        point->position <= frag_soft.streams[point->stream].completed)
        return true;
    return lag != FRAG_SOFT_LAG_TOLD && frag_soft.clock - point->clock >= lag;
}

void frag_soft_stream_complete(uint32_t stream, uint64_t position)
{
    frag_soft_stream *done = &frag_soft.streams[stream];
    if (position <= done->completed)
        return;
    done->completed = position;
    for (size_t i = 0; i < done->wait_count; i++)
        if (done->waits[i].at <= position)
            frag_soft_stream_complete(done->waits[i].point.stream, done->waits[i].point.position);
}

bool frag_soft_stream_is_idle(uint32_t stream)
{
    const frag_soft_stream *asked = &frag_soft.streams[stream];
    frag_soft_point last = {
        .stream = stream, .position = asked->position, .clock = asked->last_clock};
    return asked->position == 0 || frag_soft_point_is_done(&last);
}

void frag_soft_device_complete(uint32_t device)
{
    for (uint32_t i = 0; i < frag_soft.stream_count; i++)
        if (frag_soft.streams[i].device == device)
            frag_soft_stream_complete(i, frag_soft.streams[i].position);
}

void frag_soft_stream_wait(uint32_t stream, const frag_soft_point *point)
{
    frag_soft_stream *waiting = &frag_soft.streams[stream];
    if (point->stream == FRAG_SOFT_NO_STREAM || point->stream == stream)
        return;
    size_t i = 0;
    while (i < waiting->wait_count && waiting->waits[i].point.stream != point->stream)
        i++;
    if (i == waiting->wait_count) {
        waiting->waits = frag_grow(waiting->waits, &waiting->wait_capacity, waiting->wait_count + 1,
                                   sizeof waiting->waits[0]);
        waiting->wait_count++;
    } else if (waiting->waits[i].point.position >= point->position) {
        return;
    }
    waiting->waits[i] = (frag_soft_wait){.point = *point, .at = waiting->position + 1};
}

bool frag_soft_stream_follows(uint32_t stream, const frag_soft_point *point)
{
    const frag_soft_stream *asked = &frag_soft.streams[stream];
    for (size_t i = 0; i < asked->wait_count; i++)
        if (asked->waits[i].point.stream == point->stream &&
            asked->waits[i].point.position >= point->position)
            return true;
    return false;
}

/* ---- streams */

/* With streams=any a number that was never created is a stream of the current device. */
static bool find_any(uint64_t handle, uint32_t *stream)
{
    uint32_t device = frag_soft_device_current();
    for (uint32_t i = 0; i < frag_soft.stream_count; i++) {
        const frag_soft_stream *known = &frag_soft.streams[i];
        if (known->is_live && known->handle == handle && known->device == device) {
            *stream = i;
            return true;
        }
    }
    *stream = frag_soft_stream_new(0, 0);
    frag_soft.streams[*stream].handle = handle;
    return true;
}

bool frag_soft_stream_find(uint64_t handle, uint32_t *stream)
{
    uint32_t place = 0;
    if (handle <= DEFAULT_HANDLE_MAX) {
        *stream = frag_soft_device_current();
        return true;
    }
    if (frag_soft_handle_find(&frag_soft.stream_handles, handle, &place)) {
        *stream = FRAG_SOFT_DEVICES_MAX + place;
        return true;
    }
    return frag_soft.settings.takes_any_stream && find_any(handle, stream);
}

bool frag_soft_call_stream(frag_soft_call *call, bool may, const void *handle, uint32_t *stream)
{
    uint64_t number = (uint64_t)(uintptr_t)handle;
    frag_soft_note_address(call, "stream", number);
    if (may && frag_soft_stream_find(number, stream))
        return true;
    if (may)
        frag_soft_fail(call, FRAG_CUDA_INVALID_HANDLE);
    return false;
}

uint32_t frag_soft_stream_new(uint32_t flags, int32_t priority)
{
    uint32_t place = frag_soft_handle_take(&frag_soft.stream_handles);
    uint32_t stream = FRAG_SOFT_DEVICES_MAX + place;
    uint64_t position = 0;
    if (stream < frag_soft.stream_count)
        position = frag_soft.streams[stream].position; /* points of its earlier life stay done */
    start_stream(stream, (frag_soft_stream){
                             .device = frag_soft_device_current(),
                             .priority = priority,
                             .flags = flags,
                             .handle = frag_soft_handle_number(&frag_soft.stream_handles, place),
                             .position = position,
                             .completed = position,
                         });
    return stream;
}

/* Its work goes on to its end; that this is so at once is the simplest of the allowed orders. */
void frag_soft_stream_give(uint32_t stream)
{
    frag_soft_stream_complete(stream, frag_soft.streams[stream].position);
    frag_soft.streams[stream].is_live = false;
    frag_soft_handle_give(&frag_soft.stream_handles, stream - FRAG_SOFT_DEVICES_MAX);
}

/* ---- events */

bool frag_soft_event_find(uint64_t handle, frag_soft_event **event)
{
    uint32_t place = 0;
    if (!frag_soft_handle_find(&frag_soft.event_handles, handle, &place))
        return false;
    *event = &frag_soft.events[place];
    return true;
}

uint64_t frag_soft_event_new(uint32_t flags)
{
    uint32_t place = frag_soft_handle_take(&frag_soft.event_handles);
    frag_soft.events = frag_grow(frag_soft.events, &frag_soft.event_capacity, (size_t)place + 1,
                                 sizeof frag_soft.events[0]);
    frag_soft.events[place] = (frag_soft_event){
        .device = frag_soft_device_current(), .flags = flags, .capture = FRAG_SOFT_NO_CAPTURE};
    return frag_soft_handle_number(&frag_soft.event_handles, place);
}

/* ---- captures */

int32_t *frag_soft_capture_mode(void)
{
    return &capture_mode;
}

uint32_t frag_soft_capture_new(uint32_t stream, int32_t mode)
{
    uint64_t graph = frag_soft_graph_new();
    frag_soft.captures = frag_grow(frag_soft.captures, &frag_soft.capture_capacity,
                                   frag_soft.capture_count + 1, sizeof frag_soft.captures[0]);
    frag_soft.captures[frag_soft.capture_count] =
        (frag_soft_capture){.mode = mode, .is_open = true, .origin = stream, .graph = graph};
    frag_soft.open_capture_count++;
    return (uint32_t)frag_soft.capture_count++;
}

void frag_soft_capture_end(uint32_t capture)
{
    frag_soft.captures[capture].is_open = false;
    frag_soft.open_capture_count--;
    for (size_t i = 0; i < frag_soft.stream_count; i++)
        if (frag_soft.streams[i].capture == capture)
            frag_soft.streams[i].capture = FRAG_SOFT_NO_CAPTURE;
}

uint64_t frag_soft_stream_graph(uint32_t stream)
{
    uint32_t capture = frag_soft.streams[stream].capture;
    return capture == FRAG_SOFT_NO_CAPTURE ? 0 : frag_soft.captures[capture].graph;
}

/* Whose capture a block belongs to its allocator does not say. */
void frag_soft_captures_forget(uint64_t address, uint64_t bytes)
{
    frag_soft_step step = {.kind = FRAG_SOFT_STEP_FORGET, .area = {.to = address, .width = bytes}};
    size_t open = frag_soft.open_capture_count;
    for (size_t i = frag_soft.capture_count; open > 0 && i > 0; i--)
        if (frag_soft.captures[i - 1].is_open) {
            frag_soft_graph_add(frag_soft.captures[i - 1].graph, step);
            open--;
        }
}

int32_t frag_soft_capture_status(uint32_t stream)
{
    uint32_t capture = frag_soft.streams[stream].capture;
    if (capture == FRAG_SOFT_NO_CAPTURE)
        return frag_soft.capturing;
    return frag_soft.captures[capture].is_invalidated ? 2 : 1;
}

/* Modes: 0 global, 1 of the thread, 2 relaxed. Captures of other threads are told apart by their
 * mode alone. */
bool frag_soft_capture_forbids(frag_soft_call *call)
{
    if (capture_mode == 2 || frag_soft.open_capture_count == 0)
        return false;
    bool is_forbidden = false;
    for (size_t i = 0; i < frag_soft.capture_count; i++) {
        frag_soft_capture *capture = &frag_soft.captures[i];
        if (!capture->is_open || capture->mode == 2)
            continue;
        capture->is_invalidated = true;
        is_forbidden = true;
    }
    if (is_forbidden)
        frag_soft_fail(call, FRAG_CUDA_CAPTURE_UNSUPPORTED);
    return is_forbidden;
}
