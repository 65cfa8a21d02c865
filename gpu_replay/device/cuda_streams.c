#include "gpu_replay/device/cuda_streams.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static frag_cuda_queue *queue_of(frag_cuda_streams *streams, uint32_t stream)
{
    size_t old = streams->count;
    if (stream >= old) {
        streams->queues = frag_grow(streams->queues, &streams->count, (size_t)stream + 1,
                                    sizeof *streams->queues);
        memset(streams->queues + old, 0, (streams->count - old) * sizeof *streams->queues);
    }
    return &streams->queues[stream];
}

int frag_cuda_streams_get(frag_cuda_streams *streams, uint32_t stream, frag_cuda_stream *handle)
{
    frag_cuda_queue *queue = queue_of(streams, stream);
    if (!queue->is_there) {
        streams->call = "cudaStreamCreateWithFlags";
        int code =
            streams->cuda->cudaStreamCreateWithFlags(&queue->stream, FRAG_CUDA_STREAM_NON_BLOCKING);
        if (code != FRAG_CUDA_OK)
            return code;
        queue->is_there = true;
    }
    *handle = queue->stream;
    return FRAG_CUDA_OK;
}

void frag_cuda_streams_set(frag_cuda_streams *streams, uint32_t stream, frag_cuda_stream handle)
{
    frag_cuda_queue *queue = queue_of(streams, stream);
    queue->stream = handle;
    queue->is_there = true;
    queue->is_borrowed = true;
}

static int take_event(frag_cuda_streams *streams, frag_cuda_event *event)
{
    if (streams->spare_count > 0) {
        *event = streams->spare[--streams->spare_count];
        return FRAG_CUDA_OK;
    }
    streams->call = "cudaEventCreateWithFlags";
    return streams->cuda->cudaEventCreateWithFlags(event, FRAG_CUDA_EVENT_NO_TIMING);
}

static void give_event(frag_cuda_streams *streams, frag_cuda_event event)
{
    *FRAG_APPEND(streams->spare, streams->spare_count, streams->spare_capacity) = event;
}

/* The work of a stream is done in order: with a mark, all before it are done. */
static void drop_done(frag_cuda_streams *streams, frag_cuda_queue *queue, uint64_t mark)
{
    while (queue->first < queue->end && queue->marks[queue->first].mark <= mark)
        give_event(streams, queue->marks[queue->first++].event);
}

static const frag_cuda_mark *find_mark(const frag_cuda_queue *queue, uint64_t mark)
{
    for (size_t i = queue->first; i < queue->end; i++)
        if (queue->marks[i].mark == mark)
            return &queue->marks[i];
    return NULL;
}

/* Marks that nobody asks for would pile up; from so many on those that are done are dropped. */
#define MARKS_MANY 64

static int drop_old(frag_cuda_streams *streams, frag_cuda_queue *queue)
{
    streams->call = "cudaEventQuery";
    while (queue->end - queue->first >= MARKS_MANY) {
        int code = streams->cuda->cudaEventQuery(queue->marks[queue->first].event);
        if (code == FRAG_CUDA_NOT_READY) {
            streams->cuda->cudaGetLastError();
            break;
        }
        if (code != FRAG_CUDA_OK)
            return code;
        drop_done(streams, queue, queue->marks[queue->first].mark);
    }
    return FRAG_CUDA_OK;
}

int frag_cuda_streams_record(frag_cuda_streams *streams, uint32_t stream, uint64_t mark)
{
    frag_cuda_stream handle = NULL;
    frag_cuda_event event = NULL;
    int code = frag_cuda_streams_get(streams, stream, &handle);
    if (code == FRAG_CUDA_OK)
        code = drop_old(streams, queue_of(streams, stream));
    if (code == FRAG_CUDA_OK)
        code = take_event(streams, &event);
    if (code != FRAG_CUDA_OK)
        return code;
    frag_cuda_queue *queue = queue_of(streams, stream);
    /* What is done at the front makes room before more is taken. */
    if (queue->end == queue->capacity && queue->first > queue->end / 2) {
        memmove(queue->marks, queue->marks + queue->first,
                (queue->end - queue->first) * sizeof *queue->marks);
        queue->end -= queue->first;
        queue->first = 0;
    }
    *FRAG_APPEND(queue->marks, queue->end, queue->capacity) = (frag_cuda_mark){mark, event};
    streams->call = "cudaEventRecord";
    return streams->cuda->cudaEventRecord(event, handle);
}

int frag_cuda_streams_query(frag_cuda_streams *streams, uint32_t stream, uint64_t mark,
                            bool *is_done)
{
    frag_cuda_queue *queue = queue_of(streams, stream);
    const frag_cuda_mark *found = find_mark(queue, mark);
    *is_done = found == NULL;
    if (found == NULL)
        return FRAG_CUDA_OK;
    streams->call = "cudaEventQuery";
    int code = streams->cuda->cudaEventQuery(found->event);
    if (code == FRAG_CUDA_NOT_READY) {
        /* No failure, but it would be found as one by whoever asks for the last error. */
        streams->cuda->cudaGetLastError();
        return FRAG_CUDA_OK;
    }
    if (code == FRAG_CUDA_OK) {
        *is_done = true;
        drop_done(streams, queue, mark);
    }
    return code;
}

int frag_cuda_streams_wait(frag_cuda_streams *streams, uint32_t stream, uint64_t mark)
{
    frag_cuda_queue *queue = queue_of(streams, stream);
    const frag_cuda_mark *found = find_mark(queue, mark);
    if (found == NULL)
        return FRAG_CUDA_OK;
    streams->call = "cudaEventSynchronize";
    int code = streams->cuda->cudaEventSynchronize(found->event);
    if (code == FRAG_CUDA_OK)
        drop_done(streams, queue, mark);
    return code;
}

int frag_cuda_streams_await(frag_cuda_streams *streams, uint32_t stream, uint32_t other)
{
    frag_cuda_stream handle = NULL;
    int code = frag_cuda_streams_get(streams, stream, &handle);
    const frag_cuda_queue *queue = queue_of(streams, other);
    /* No mark is left: all the work that it could wait for is done. */
    if (code != FRAG_CUDA_OK || queue->first == queue->end)
        return code;
    streams->call = "cudaStreamWaitEvent";
    return streams->cuda->cudaStreamWaitEvent(handle, queue->marks[queue->end - 1].event, 0);
}

int frag_cuda_streams_synchronize(frag_cuda_streams *streams, uint32_t stream)
{
    frag_cuda_stream handle = NULL;
    int code = frag_cuda_streams_get(streams, stream, &handle);
    if (code != FRAG_CUDA_OK)
        return code;
    streams->call = "cudaStreamSynchronize";
    code = streams->cuda->cudaStreamSynchronize(handle);
    if (code == FRAG_CUDA_OK)
        drop_done(streams, queue_of(streams, stream), UINT64_MAX);
    return code;
}

void frag_cuda_streams_destroy(frag_cuda_streams *streams)
{
    for (size_t i = 0; i < streams->count; i++) {
        frag_cuda_queue *queue = &streams->queues[i];
        drop_done(streams, queue, UINT64_MAX);
        free(queue->marks);
        if (queue->is_there && !queue->is_borrowed)
            streams->cuda->cudaStreamDestroy(queue->stream);
    }
    for (size_t i = 0; i < streams->spare_count; i++)
        streams->cuda->cudaEventDestroy(streams->spare[i]);
    free(streams->queues);
    free(streams->spare);
    *streams = (frag_cuda_streams){.cuda = streams->cuda};
}
