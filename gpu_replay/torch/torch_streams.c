#include "gpu_replay/torch/torch_streams.h"

#include <stdlib.h>

#include "base/memory.h"
#include "gpu_replay/device/cuda_device.h"

void frag_torch_streams_create(frag_torch_device *device)
{
    device->streams = frag_alloc(FRAG_TORCH_STREAM_MAX, sizeof *device->streams);
    device->unused_node = FRAG_TORCH_NONE;
    device->waiting_head = FRAG_TORCH_NONE;
    device->waiting_tail = FRAG_TORCH_NONE;
}

static frag_cuda_stream handle_of(const frag_torch_device *device, uint32_t stream)
{
    return (frag_cuda_stream)(uintptr_t)device->policy.stream_handles[stream];
}

bool frag_torch_stream_number(frag_torch_device *device, frag_cuda_stream stream, uint32_t *number)
{
    uint64_t handle = (uint64_t)(uintptr_t)stream;
    for (uint32_t i = 0; i < device->stream_count; i++)
        if (device->policy.stream_handles[i] == handle) {
            *number = i;
            return true;
        }
    if (device->stream_count == FRAG_TORCH_STREAM_NOBODY)
        return false;
    *number = device->stream_count++;
    device->policy.stream_handles[*number] = handle;
    device->streams[*number].queue_head = FRAG_TORCH_NONE;
    device->streams[*number].queue_tail = FRAG_TORCH_NONE;
    frag_cuda_device_set_stream(device->device, *number, stream);
    return true;
}

/* ---- nodes and events */

static uint32_t take_node(frag_torch_device *device, uint32_t value, uint32_t next)
{
    uint32_t node = device->unused_node;
    if (node != FRAG_TORCH_NONE) {
        device->unused_node = device->nodes[node].next;
    } else {
        device->nodes = frag_grow(device->nodes, &device->node_capacity,
                                  (size_t)device->node_count + 1, sizeof *device->nodes);
        node = device->node_count++;
    }
    device->nodes[node] = (frag_torch_node){.value = value, .next = next};
    return node;
}

/* Returns the node behind. */
static uint32_t give_node(frag_torch_device *device, uint32_t node)
{
    uint32_t next = device->nodes[node].next;
    device->nodes[node].next = device->unused_node;
    device->unused_node = node;
    return next;
}

static void give_event(frag_torch_device *device, frag_cuda_event event)
{
    if (event == NULL)
        return;
    *FRAG_APPEND(device->spare_events, device->spare_event_count, device->spare_event_capacity) =
        event;
}

/* An event behind the work of the stream so far. NULL: the driver has none to give, so the work was
 * waited for instead. */
static frag_cuda_event mark(frag_torch_device *device, uint32_t stream)
{
    const frag_cuda_runtime *cuda = &device->gpu->cuda;
    frag_cuda_event event = NULL;
    if (device->spare_event_count > 0)
        event = device->spare_events[--device->spare_event_count];
    else if (cuda->cudaEventCreateWithFlags(&event, FRAG_CUDA_EVENT_NO_TIMING) != FRAG_CUDA_OK)
        event = NULL;
    if (event != NULL && cuda->cudaEventRecord(event, handle_of(device, stream)) == FRAG_CUDA_OK)
        return event;
    give_event(device, event);
    cuda->cudaStreamSynchronize(handle_of(device, stream));
    cuda->cudaGetLastError();
    return NULL;
}

/* ---- blocks used by several streams */

void frag_torch_use_add(frag_torch_device *device, uint32_t block, uint32_t stream)
{
    frag_torch_block *at = &device->blocks[block];
    if (stream == at->stream)
        return;
    for (uint32_t node = at->first_use; node != FRAG_TORCH_NONE; node = device->nodes[node].next)
        if (device->nodes[node].value == stream)
            return;
    at->first_use = take_node(device, stream, at->first_use);
}

static void enqueue(frag_torch_device *device, uint32_t block, uint32_t stream)
{
    frag_cuda_event event = mark(device, stream);
    if (event == NULL)
        return;
    uint32_t node = take_node(device, block, FRAG_TORCH_NONE);
    device->nodes[node].event = event;
    frag_torch_stream *at = &device->streams[stream];
    if (at->queue_tail == FRAG_TORCH_NONE)
        at->queue_head = node;
    else
        device->nodes[at->queue_tail].next = node;
    at->queue_tail = node;
    device->blocks[block].event_count++;
}

static void record_events(frag_torch_device *device, uint32_t block)
{
    uint32_t node = device->blocks[block].first_use;
    device->blocks[block].first_use = FRAG_TORCH_NONE;
    for (; node != FRAG_TORCH_NONE; node = give_node(device, node))
        enqueue(device, block, device->nodes[node].value);
}

static void complete(frag_torch_device *device, uint32_t block)
{
    frag_torch_block *at = &device->blocks[block];
    if (at->before == FRAG_TORCH_NONE)
        device->waiting_head = at->next;
    else
        device->blocks[at->before].next = at->next;
    if (at->next == FRAG_TORCH_NONE)
        device->waiting_tail = at->before;
    else
        device->blocks[at->next].before = at->before;
    device->waiting_count--;
    frag_torch_block_complete(device, block);
}

bool frag_torch_wait_begin(frag_torch_device *device, uint32_t block)
{
    frag_torch_block *at = &device->blocks[block];
    if (at->first_use == FRAG_TORCH_NONE)
        return false;
    at->event_count = 0;
    at->is_unmarked = device->pools.scope_count > 0;
    if (!at->is_unmarked) {
        record_events(device, block);
        if (at->event_count == 0)
            return false;
    }
    device->unmarked_count += at->is_unmarked ? 1 : 0;
    at->is_waiting = true;
    at->before = device->waiting_tail;
    at->next = FRAG_TORCH_NONE;
    if (device->waiting_tail == FRAG_TORCH_NONE)
        device->waiting_head = block;
    else
        device->blocks[device->waiting_tail].next = block;
    device->waiting_tail = block;
    device->waiting_count++;
    return true;
}

/* Frees that came while a graph was captured. */
static void record_put_off(frag_torch_device *device)
{
    for (uint32_t block = device->waiting_head;
         block != FRAG_TORCH_NONE && device->unmarked_count > 0; block = device->blocks[block].next)
        if (device->blocks[block].is_unmarked) {
            record_events(device, block);
            device->blocks[block].is_unmarked = false;
            device->unmarked_count--;
        }
}

/* Takes the oldest event of a stream out of its queue. */
static void finish_head(frag_torch_device *device, frag_torch_stream *stream)
{
    uint32_t node = stream->queue_head;
    give_event(device, device->nodes[node].event);
    device->blocks[device->nodes[node].value].event_count--;
    stream->queue_head = give_node(device, node);
    if (stream->queue_head == FRAG_TORCH_NONE)
        stream->queue_tail = FRAG_TORCH_NONE;
}

/* In order of frees, so that what the policy is given does not depend on which stream was asked
 * first. */
static void complete_done(frag_torch_device *device)
{
    for (uint32_t block = device->waiting_head; block != FRAG_TORCH_NONE;) {
        uint32_t next = device->blocks[block].next;
        if (!device->blocks[block].is_unmarked && device->blocks[block].event_count == 0)
            complete(device, block);
        block = next;
    }
}

void frag_torch_wait_poll(frag_torch_device *device)
{
    if (device->waiting_count == 0 || device->pools.scope_count > 0)
        return;
    const frag_cuda_runtime *cuda = &device->gpu->cuda;
    bool is_any_done = device->unmarked_count > 0;
    record_put_off(device);
    for (uint32_t i = 0; i < device->stream_count; i++) {
        frag_torch_stream *stream = &device->streams[i];
        while (stream->queue_head != FRAG_TORCH_NONE) {
            int code = cuda->cudaEventQuery(device->nodes[stream->queue_head].event);
            if (code == FRAG_CUDA_NOT_READY) {
                cuda->cudaGetLastError();
                break;
            }
            finish_head(device, stream);
            is_any_done = true;
        }
    }
    if (is_any_done)
        complete_done(device);
}

void frag_torch_wait_all(frag_torch_device *device)
{
    if (device->waiting_count == 0 || device->pools.scope_count > 0)
        return;
    record_put_off(device);
    for (uint32_t i = 0; i < device->stream_count; i++) {
        frag_torch_stream *stream = &device->streams[i];
        while (stream->queue_head != FRAG_TORCH_NONE) {
            device->gpu->cuda.cudaEventSynchronize(device->nodes[stream->queue_head].event);
            finish_head(device, stream);
        }
    }
    complete_done(device);
}

/* ---- policies that ignore streams */

static bool ignores_streams(const frag_torch_device *device)
{
    return device->policy.ops->use == NULL;
}

void frag_torch_stream_join(frag_torch_device *device, uint32_t stream)
{
    if (device->stream_count == 1 || !ignores_streams(device))
        return;
    frag_torch_stream *own = &device->streams[stream];
    for (uint32_t i = 0; i < device->stream_count; i++) {
        if (i == stream || own->seen[i] == device->streams[i].free_count)
            continue;
        frag_cuda_event event = mark(device, i);
        if (event != NULL && device->gpu->cuda.cudaStreamWaitEvent(handle_of(device, stream), event,
                                                                   0) != FRAG_CUDA_OK)
            device->gpu->cuda.cudaEventSynchronize(event);
        give_event(device, event);
        own->seen[i] = device->streams[i].free_count;
    }
}
