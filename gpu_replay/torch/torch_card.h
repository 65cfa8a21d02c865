/* What is known of one card of the running program: its blocks, streams, pools and counts, and how
 * blocks go back to the policy. */
#ifndef FRAG_TORCH_TORCH_CARD_H
#define FRAG_TORCH_TORCH_CARD_H

#include "gpu_replay/device/cuda_gpu.h"
#include "gpu_replay/torch/torch_counts.h"
#include "gpu_replay/torch/torch_pointers.h"
#include "gpu_replay/torch/torch_policy.h"
#include "gpu_replay/torch/torch_pools.h"
#include "gpu_replay/torch/torch_record.h"

#define FRAG_TORCH_NONE UINT32_MAX

typedef struct frag_torch_block {
    uint64_t address;
    uint64_t requested_bytes;
    uint64_t block_bytes;
    frag_handle handle;
    uint32_t first_use;   /* node: another stream that uses it; NONE: no other does */
    uint32_t event_count; /* events it still waits for */
    uint32_t before;      /* while it waits: its neighbours in order of frees */
    uint32_t next;        /* the same; of an unused record: the next unused one */
    uint16_t stream;
    uint16_t freed_on; /* the stream that the program named at the free */
    uint16_t pool;
    bool is_waiting;  /* freed by the program, still in use by a stream */
    bool is_unmarked; /* waiting, but its events are yet to be recorded */
} frag_torch_block;

/* A stream that uses a block, or a block that waits in the queue of a stream. */
typedef struct frag_torch_node {
    uint32_t value;
    uint32_t next;
    frag_cuda_event event;
} frag_torch_node;

/* What is known of a stream, by number; see torch_streams.h. */
typedef struct frag_torch_stream {
    uint32_t queue_head; /* nodes: blocks that wait for it, oldest first */
    uint32_t queue_tail;
    uint64_t free_count;                  /* frees of its blocks so far */
    uint64_t seen[FRAG_TORCH_STREAM_MAX]; /* free_count of others that it has waited for */
} frag_torch_stream;

/* Functions of the runtime that only this library needs; each may be missing. */
typedef struct frag_torch_calls {
    int (*cudaGetDevice)(int *device);
    int (*cudaThreadExchangeStreamCaptureMode)(int *mode);
} frag_torch_calls;

typedef struct frag_torch_device {
    uint32_t ordinal;
    frag_gpu *gpu;
    frag_torch_calls calls;
    frag_device *device;
    const frag_device_ops *card_ops; /* the device's own functions, */
    frag_device_ops ops;             /* and those with what a running program needs beside */
    bool has_waited;                 /* the policy has waited for a stream since the last unmap */
    frag_torch_policy policy;
    frag_torch_log *log; /* NULL: nothing is recorded */
    frag_torch_counts counts;
    frag_torch_pools pools;
    frag_torch_pointers pointers;
    /* ---- blocks by number, which is also their slot in the recording */
    frag_torch_block *blocks;
    size_t block_capacity;
    uint32_t block_count; /* records ever used */
    uint32_t unused_block;
    uint32_t held_count; /* live or waiting */
    /* ---- streams */
    frag_torch_stream *streams;
    uint32_t stream_count;
    frag_torch_node *nodes;
    size_t node_capacity;
    uint32_t node_count;
    uint32_t unused_node;
    frag_cuda_event *spare_events;
    size_t spare_event_capacity;
    size_t spare_event_count;
    uint32_t waiting_head; /* blocks that wait, in order of their frees */
    uint32_t waiting_tail;
    uint32_t waiting_count;
    uint32_t unmarked_count;
    bool is_closed; /* its memory was given back at the end of the program */
} frag_torch_device;

/* The number of a record for one more block. */
uint32_t frag_torch_block_take(frag_torch_device *device);
/* The memory of a block that nobody uses any more goes back to the policy. */
void frag_torch_block_release(frag_torch_device *device, uint32_t number);
/* The same for a block whose wait for streams is over. */
void frag_torch_block_complete(frag_torch_device *device, uint32_t number);

#endif
