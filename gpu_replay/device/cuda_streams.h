/* Streams and events of a run: a CUDA stream for each stream of the trace, made when it is first
 * used, and an event for each mark that was recorded and not yet found done. All functions return
 * the code of the CUDA call that failed, or 0. */
#ifndef FRAG_DEVICE_CUDA_STREAMS_H
#define FRAG_DEVICE_CUDA_STREAMS_H

#include "gpu_replay/device/cuda_runtime.h"

typedef struct frag_cuda_mark {
    uint64_t mark; /* grows from event to event of a stream */
    frag_cuda_event event;
} frag_cuda_mark;

typedef struct frag_cuda_queue {
    frag_cuda_stream stream;
    bool is_there;
    bool is_borrowed;      /* the program's: not destroyed here */
    frag_cuda_mark *marks; /* from first on: not known to be done */
    size_t first;
    size_t end;
    size_t capacity;
} frag_cuda_queue;

typedef struct frag_cuda_streams {
    const frag_cuda_runtime *cuda;
    frag_cuda_queue *queues; /* by stream of the trace */
    size_t count;
    frag_cuda_event *spare;
    size_t spare_count;
    size_t spare_capacity;
    const char *call; /* the CUDA function that was called last */
} frag_cuda_streams;

int frag_cuda_streams_get(frag_cuda_streams *streams, uint32_t stream, frag_cuda_stream *handle);
/* The stream is one of the program's. */
void frag_cuda_streams_set(frag_cuda_streams *streams, uint32_t stream, frag_cuda_stream handle);
int frag_cuda_streams_record(frag_cuda_streams *streams, uint32_t stream, uint64_t mark);
int frag_cuda_streams_query(frag_cuda_streams *streams, uint32_t stream, uint64_t mark,
                            bool *is_done);
int frag_cuda_streams_wait(frag_cuda_streams *streams, uint32_t stream, uint64_t mark);
/* The stream waits for the last mark of the other; the program does not. */
int frag_cuda_streams_await(frag_cuda_streams *streams, uint32_t stream, uint32_t other);
int frag_cuda_streams_synchronize(frag_cuda_streams *streams, uint32_t stream);
void frag_cuda_streams_destroy(frag_cuda_streams *streams);

#endif
