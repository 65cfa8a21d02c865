/* The state of the software device, and what its parts offer each other and the libraries around
 * it. One lock guards everything: an entry point takes it with frag_soft_begin, which also counts
 * the call, and gives it back with frag_soft_end, which writes the log. Functions that take a call
 * set its result and note its arguments; they run only between the two. */
#ifndef FRAG_SOFTWARE_SOFT_STATE_H
#define FRAG_SOFTWARE_SOFT_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_replay/software/soft_arena.h"
#include "gpu_replay/software/soft_calls.h"
#include "gpu_replay/software/soft_handles.h"
#include "gpu_replay/software/soft_settings.h"
#include "gpu_replay/software/software_cuda.h"

/* Result codes; runtime and driver agree on those used here. */
enum {
    FRAG_CUDA_OK = 0,
    FRAG_CUDA_INVALID_VALUE = 1,
    FRAG_CUDA_OUT_OF_MEMORY = 2,
    FRAG_CUDA_NOT_INITIALIZED = 3,
    FRAG_CUDA_INSUFFICIENT_DRIVER = 35,
    FRAG_CUDA_NO_DEVICE = 100,
    FRAG_CUDA_INVALID_DEVICE = 101,
    FRAG_CUDA_INVALID_HANDLE = 400,
    FRAG_CUDA_NOT_FOUND = 500,
    FRAG_CUDA_NOT_READY = 600,
    FRAG_CUDA_ILLEGAL_ADDRESS = 700,
    FRAG_CUDA_PEER_ENABLED = 704,
    FRAG_CUDA_PEER_NOT_ENABLED = 705,
    FRAG_CUDA_HOST_REGISTERED = 712,
    FRAG_CUDA_HOST_NOT_REGISTERED = 713,
    FRAG_CUDA_NOT_SUPPORTED = 801,
    FRAG_CUDA_CAPTURE_UNSUPPORTED = 900,
    FRAG_CUDA_CAPTURE_INVALIDATED = 901,
    FRAG_CUDA_CAPTURE_UNMATCHED = 903,
    FRAG_CUDA_CAPTURE_IMPLICIT = 906,
};

#define FRAG_SOFT_NO_STREAM UINT32_MAX
#define FRAG_SOFT_NO_CAPTURE UINT32_MAX

/* A place in the work of a stream: done once the stream has got there. */
typedef struct frag_soft_point {
    uint32_t stream;
    uint64_t position;
    uint64_t clock;
} frag_soft_point;

/* Work of one stream after at is ordered behind a point of another. */
typedef struct frag_soft_wait {
    frag_soft_point point;
    uint64_t at;
} frag_soft_wait;

typedef struct frag_soft_stream {
    bool is_live;
    uint32_t device;
    int32_t priority;
    uint32_t flags;
    uint64_t handle;       /* what programs call it */
    uint64_t position;     /* of the last work put on it */
    uint64_t last_clock;   /* when that was */
    uint64_t completed;    /* everything up to this position is done */
    uint32_t capture;      /* FRAG_SOFT_NO_CAPTURE: none */
    frag_soft_wait *waits; /* for other streams, the latest of each */
    size_t wait_count;
    size_t wait_capacity;
} frag_soft_stream;

typedef struct frag_soft_event {
    bool is_recorded;
    uint32_t device;
    uint32_t flags;
    uint32_t capture; /* recorded inside one */
    frag_soft_point point;
} frag_soft_event;

typedef struct frag_soft_capture {
    int32_t mode;
    bool is_invalidated;
    bool is_open;
    uint32_t origin; /* the stream it was begun on */
    uint64_t graph;  /* what it notes (graphs/soft_graph.h) */
} frag_soft_capture;

/* A piece of a pool's memory. */
typedef struct frag_soft_block {
    uint64_t address;
    uint64_t bytes;
    uint64_t asked_bytes;
    uint64_t chunk; /* address of the chunk it lies in */
    bool is_free;
    frag_soft_point point; /* of the free */
} frag_soft_block;

typedef struct frag_soft_pool {
    bool is_default;
    uint32_t device;
    uint64_t threshold_bytes;
    uint32_t reuse[3];  /* event dependencies, opportunistic, internal dependencies */
    uint64_t max_bytes; /* 0: no limit */
    uint64_t reserved_bytes, reserved_bytes_max;
    uint64_t used_bytes, used_bytes_max;
    frag_soft_block *blocks; /* by address; they fill the chunks */
    size_t block_count;
    size_t block_capacity;
    bool is_dying; /* destroyed while allocations are live: goes with the last of them */
} frag_soft_pool;

/* Physical memory of cuMemCreate. */
typedef struct frag_soft_memory {
    uint64_t bytes;
    uint32_t device;
    uint32_t handle_types;
    uint64_t open_count; /* handles that the program holds */
    uint64_t map_count;
} frag_soft_memory;

typedef struct frag_soft_mapping {
    uint64_t address;
    uint64_t bytes;
    uint32_t memory; /* place of its handle */
    unsigned char access[FRAG_SOFT_DEVICES_MAX];
} frag_soft_mapping;

typedef struct frag_soft_host {
    uint64_t address;
    uint64_t bytes;
    bool is_registered; /* the program's own memory */
} frag_soft_host;

typedef struct frag_soft_device {
    bool has_context;
    uint64_t used_bytes;
    uint64_t used_bytes_max;
    frag_soft_arena pages; /* segments in whole pages; tag 0, or place of a pool + 1 */
    frag_soft_arena small; /* with classes: what is smaller than 1 MiB */
    uint32_t default_pool;
    uint32_t pool;  /* the current one */
    uint32_t peers; /* bit for each device it may access */
} frag_soft_device;

typedef struct frag_soft_state {
    frag_soft_settings settings;
    bool is_started;
    bool is_broken; /* the settings are wrong, or this is a forked child */
    bool is_used;   /* something beyond queries was called */
    uint64_t sequence;
    uint64_t clock;
    uint64_t chance_state;
    uint64_t call_counts[FRAG_SOFT_CALL_COUNT];
    uint64_t failure_counts[FRAG_SOFT_CALL_COUNT];
    int32_t capturing; /* the answer set from outside */
    frag_soft_device devices[FRAG_SOFT_DEVICES_MAX];
    frag_soft_arena reservations; /* of addresses, for all devices */
    frag_soft_handles memory_handles;
    frag_soft_memory *memories;
    size_t memory_capacity;
    frag_soft_mapping *mappings; /* by address */
    size_t mapping_count;
    size_t mapping_capacity;
    frag_soft_handles pool_handles;
    frag_soft_pool *pools;
    size_t pool_capacity;
    frag_soft_handles stream_handles;
    frag_soft_stream *streams; /* the first FRAG_SOFT_DEVICES_MAX: default streams */
    size_t stream_count;
    size_t stream_capacity;
    frag_soft_handles event_handles;
    frag_soft_event *events;
    size_t event_capacity;
    frag_soft_capture *captures;
    size_t capture_count;
    size_t capture_capacity;
    size_t open_capture_count;
    frag_soft_host *hosts; /* by address */
    size_t host_count;
    size_t host_capacity;
    frag_software_observer *observer;
    void *observer_context;
    frag_software_scalar_handler *scalar_handler;
    void *scalar_context;
    _Atomic(frag_software_late_handler *) late_handler;
    uint64_t scalar_count; /* small copies to the host of what is not known */
    frag_software_card cards[FRAG_SOFT_DEVICES_MAX];
    /* Cards of the machine by device; those that CUDA_VISIBLE_DEVICES hides come behind the devices
     * of this process. */
    uint32_t card_of[FRAG_SOFT_DEVICES_MAX];
    uint32_t card_count;
} frag_soft_state;

typedef struct frag_soft_call {
    frag_soft_call_id id;
    frag_software_call seen;
} frag_soft_call;

extern frag_soft_state frag_soft;

/* Takes the lock. true: go on; false: the call fails with the result that is already set. Either
 * way frag_soft_end has to follow; it returns the result. */
bool frag_soft_begin(frag_soft_call *call, frag_soft_call_id id);
int32_t frag_soft_end(frag_soft_call *call);
/* The same for calls that are neither counted nor logged: false as above, and *result is set. */
bool frag_soft_enter(int32_t *result);
void frag_soft_leave(void);

void frag_soft_note(frag_soft_call *call, const char *name, uint64_t value);
void frag_soft_note_address(frag_soft_call *call, const char *name, uint64_t value);
void frag_soft_fail(frag_soft_call *call, int32_t code);

/* The current device of the calling thread. */
uint32_t frag_soft_device_current(void);
/* 0 or FRAG_CUDA_INVALID_DEVICE. */
int32_t frag_soft_device_choose(int64_t device);
void frag_soft_device_touch(uint32_t device); /* makes its context */
int32_t frag_soft_attribute(int32_t attribute, uint32_t device);

/* Every "%p" of a path becomes the process id. */
void frag_soft_expand_path(const char *path, char *out, size_t out_bytes);
void frag_soft_write_all(int file, const char *bytes, size_t count);

/* ---- soft_card.c */
enum { FRAG_ATTRIBUTE_MULTIPROCESSORS = 16 };
enum { /* of functions, as the driver numbers them */
       FRAG_FUNCTION_THREADS = 0,
       FRAG_FUNCTION_REGISTERS = 4,
       FRAG_FUNCTION_PTX = 5,
       FRAG_FUNCTION_BINARY = 6,
       FRAG_FUNCTION_DYNAMIC_SHARED = 8,
};
void frag_soft_cards_start(void);
/* Which cards are devices of this process: as CUDA_VISIBLE_DEVICES says. A card that it names is
 * there, however few the settings have. */
void frag_soft_cards_choose(const char *visible);
uint32_t frag_soft_device_of_card(uint32_t card);
/* Whole calls, of runtime and driver alike. */
int32_t frag_soft_limit_get(int32_t limit, size_t *value);
int32_t frag_soft_limit_set(int32_t limit, size_t value);
int32_t frag_soft_function_attribute(int32_t attribute);
/* Blocks of a multiprocessor of the current device, by threads, registers and shared memory. */
int32_t frag_soft_occupancy(int32_t threads, uint64_t shared_bytes);
/* Dynamic shared memory of a block when so many share a multiprocessor. */
uint64_t frag_soft_shared_left(int32_t block_count);

/* ---- soft_report.c */
/* "libtorch_cuda.so+0x1234": the library of an address and where in it. */
void frag_soft_place_text(const void *address, char *out, size_t out_bytes);
void frag_soft_report_flush(void);
void frag_soft_report_stop(void);

/* ---- soft_shadow.c: what is known of the memory of devices */
typedef struct frag_soft_known {
    uint64_t bytes;
    bool is_older; /* some of them than the last launch of a kernel */
} frag_soft_known;
frag_soft_known frag_soft_shadow_read(uint64_t address, unsigned char *out, uint64_t bytes);
void frag_soft_shadow_write(uint64_t address, const void *from, uint64_t bytes);
/* count values of 1, 2 or 4 bytes */
void frag_soft_shadow_fill(uint64_t address, uint32_t value, uint32_t value_bytes, uint64_t count);
void frag_soft_shadow_copy(uint64_t to, uint64_t from, uint64_t bytes);
void frag_soft_shadow_forget(uint64_t address, uint64_t bytes);
void frag_soft_shadow_launch(void); /* a kernel may have written anything */
/* A block of an allocator above the driver begins at address, or the one that does so ends its
 * life. Its bytes are unknown from now on. */
void frag_soft_shadow_toggle(uint64_t address);
void frag_soft_shadow_stop(void);

/* A small copy to the host, to be asked about after the lock is given back. */
typedef struct frag_soft_scalar {
    uint64_t to, from, bytes, known_bytes, count;
    bool is_asked;
    frag_software_scalar_handler *handler;
    void *context;
} frag_soft_scalar;
/* Under the lock. */
void frag_soft_scalar_note(frag_soft_scalar *read, frag_soft_known known);
/* Without it. */
/* No lock may be held: who put off a write may wait for its bytes. */
void frag_soft_late_ask(uint64_t address, uint64_t bytes, bool is_read);
void frag_soft_scalar_ask(const frag_soft_scalar *read, const void *caller);

/* ---- soft_memory.c: capacity, cudaMalloc */
uint64_t frag_soft_free_bytes(uint32_t device);
/* false: there is not so much. */
bool frag_soft_charge(uint32_t device, uint64_t bytes);
void frag_soft_uncharge(uint32_t device, uint64_t bytes);
void frag_soft_malloc(frag_soft_call *call, uint64_t bytes, uint64_t *address);
void frag_soft_free(frag_soft_call *call, uint64_t address);
/* cudaFreeAsync: memory of a pool, or of cudaMalloc. */
void frag_soft_free_async(frag_soft_call *call, uint64_t address, uint64_t stream_handle);
/* The allocation, mapping or pool block that holds an address. false: none does. */
typedef struct frag_soft_extent {
    uint64_t address;
    uint64_t bytes;
    uint32_t device;
} frag_soft_extent;
bool frag_soft_extent_find(uint64_t address, frag_soft_extent *extent);
/* Every byte of the range is held, and mapped memory may be written. */
bool frag_soft_range_is_usable(uint64_t address, uint64_t bytes);
/* Is it an address of a device at all, live or not? */
bool frag_soft_is_device_address(uint64_t address);
void frag_soft_memory_start(void);
void frag_soft_memory_stop(void);
void frag_soft_device_reset(uint32_t device);

/* ---- soft_symbol.c */
/* Takes and gives the lock by itself. */
void frag_soft_symbol_add(uint64_t host, uint64_t bytes);
bool frag_soft_symbol_find(uint64_t host, frag_soft_extent *extent);
bool frag_soft_symbol_at(uint64_t address, frag_soft_extent *extent);

/* ---- soft_ipc.c */
typedef struct frag_soft_ipc_handle {
    unsigned char bytes[64];
} frag_soft_ipc_handle;
int32_t frag_soft_ipc_export(uint64_t address, frag_soft_ipc_handle *out);
void frag_soft_ipc_export_event(frag_soft_ipc_handle *out);
int32_t frag_soft_ipc_open(const frag_soft_ipc_handle *handle, uint64_t *address);
int32_t frag_soft_ipc_open_event(const frag_soft_ipc_handle *handle, uint64_t *event);
int32_t frag_soft_ipc_close(uint64_t address);
bool frag_soft_ipc_at(uint64_t address, frag_soft_extent *extent);
bool frag_soft_ipc_is_address(uint64_t address); /* held or not */
void frag_soft_ipc_stop(void);

/* ---- soft_vmm.c */
typedef struct frag_soft_location {
    int32_t type;
    int32_t id;
} frag_soft_location;
typedef struct frag_soft_access {
    frag_soft_location location;
    int32_t flags;
} frag_soft_access;
void frag_soft_reserve(frag_soft_call *call, uint64_t bytes, uint64_t alignment, uint64_t flags,
                       uint64_t *address);
void frag_soft_unreserve(frag_soft_call *call, uint64_t address, uint64_t bytes);
void frag_soft_create(frag_soft_call *call, uint64_t bytes, const int32_t properties[4],
                      uint64_t flags, uint64_t *handle);
void frag_soft_release(frag_soft_call *call, uint64_t handle);
void frag_soft_map(frag_soft_call *call, frag_soft_extent range, uint64_t offset, uint64_t handle,
                   uint64_t flags);
void frag_soft_unmap(frag_soft_call *call, uint64_t address, uint64_t bytes);
void frag_soft_set_access(frag_soft_call *call, frag_soft_extent range,
                          const frag_soft_access *access, uint64_t count);
void frag_soft_get_access(frag_soft_call *call, uint64_t address,
                          const frag_soft_location *location, uint64_t *flags);
void frag_soft_retain(frag_soft_call *call, uint64_t address, uint64_t *handle);
void frag_soft_properties(frag_soft_call *call, uint64_t handle, int32_t properties[4]);
bool frag_soft_mapping_find(uint64_t address, frag_soft_extent *extent);
void frag_soft_vmm_start(void);
void frag_soft_vmm_stop(void);

/* ---- soft_pool.c */
void frag_soft_pool_malloc(frag_soft_call *call, uint32_t pool, uint64_t bytes, uint32_t stream,
                           uint64_t *address);
/* false: the address is no live allocation of a pool. */
bool frag_soft_pool_free(uint32_t pool, uint64_t address, uint32_t stream);
bool frag_soft_pool_block_find(uint32_t pool, uint64_t address, frag_soft_extent *extent);
bool frag_soft_pool_find(uint64_t handle, uint32_t *pool);
uint32_t frag_soft_pool_new(uint32_t device);
void frag_soft_pool_give(uint32_t pool);
/* Gives back to the device what is free and above keep bytes, in whole chunks. */
void frag_soft_pool_trim(uint32_t pool, uint64_t keep);
/* Drops everything of a pool, live allocations too. */
void frag_soft_pool_empty(uint32_t pool);
/* The host waited for something: pools keep no more than their thresholds. */
void frag_soft_pools_settle(void);
void frag_soft_pools_start(void);
void frag_soft_pools_stop(void);

/* ---- soft_stream.c */
bool frag_soft_stream_find(uint64_t handle, uint32_t *stream);
/* The stream behind a handle, noted as an argument; a bad handle fails the call. may: the call may
 * go on. Returns whether it still may. */
bool frag_soft_call_stream(frag_soft_call *call, bool may, const void *handle, uint32_t *stream);
uint32_t frag_soft_stream_new(uint32_t flags, int32_t priority);
void frag_soft_stream_give(uint32_t stream);
frag_soft_point frag_soft_stream_work(uint32_t stream); /* puts one piece of work on it */
bool frag_soft_point_is_done(const frag_soft_point *point);
/* stream is ordered after point by the events that it waited for. */
bool frag_soft_stream_follows(uint32_t stream, const frag_soft_point *point);
void frag_soft_stream_complete(uint32_t stream, uint64_t position);
bool frag_soft_stream_is_idle(uint32_t stream);
void frag_soft_device_complete(uint32_t device);
void frag_soft_stream_wait(uint32_t stream, const frag_soft_point *point);
bool frag_soft_event_find(uint64_t handle, frag_soft_event **event);
uint64_t frag_soft_event_new(uint32_t flags);
/* A capture in global mode forbids what would break it. true: refused, result set. */
bool frag_soft_capture_forbids(frag_soft_call *call);
uint32_t frag_soft_capture_new(uint32_t stream, int32_t mode);
void frag_soft_capture_end(uint32_t capture); /* for every stream that takes part */
/* Each launch of what is captured now makes these bytes unknown at this place. */
void frag_soft_captures_forget(uint64_t address, uint64_t bytes);
/* Of the capture that a stream takes part in; 0: none. */
uint64_t frag_soft_stream_graph(uint32_t stream);
int32_t frag_soft_capture_status(uint32_t stream);
int32_t *frag_soft_capture_mode(void); /* of the calling thread */
void frag_soft_streams_start(void);
void frag_soft_streams_stop(void);

/* ---- soft_host.c: pinned memory and copies */
int32_t frag_soft_host_new(uint64_t bytes, uint64_t *address);
bool frag_soft_host_give(uint64_t address);
bool frag_soft_host_register(uint64_t address, uint64_t bytes);
bool frag_soft_host_unregister(uint64_t address);
bool frag_soft_host_find(uint64_t address, frag_soft_host *host);
/* bytes from one place to another; what is not known of a device reads as zeros. */
frag_soft_known frag_soft_copy(uint64_t to, uint64_t from, uint64_t bytes);
/* A box of bytes: planes of rows. */
typedef struct frag_soft_area {
    uint64_t to, to_pitch, to_plane;
    uint64_t from, from_pitch, from_plane;
    uint64_t width, height, depth;
} frag_soft_area;
/* Who copies how: the stream's handle, whether the host waits, and where the call came from. */
typedef struct frag_soft_way {
    const void *stream;
    bool waits;
    const void *caller;
} frag_soft_way;
/* The whole call: what a small one read is asked about at its end. */
int32_t frag_soft_copy_area(frag_soft_call_id id, frag_soft_area area, frag_soft_way how);
/* Fills rows of to with values of 1, 2 or 4 bytes; the width is in bytes too. */
int32_t frag_soft_fill_area(frag_soft_call_id id, frag_soft_area area, uint32_t value,
                            uint32_t value_bytes, const void *stream);
/* cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS */
typedef struct frag_soft_filling {
    uint64_t address;
    size_t pitch;
    uint32_t value;
    uint32_t value_bytes;
    size_t width; /* in values */
    size_t height;
} frag_soft_filling;
static inline frag_soft_area frag_soft_filled(const frag_soft_filling *what)
{
    return (frag_soft_area){.to = what->address,
                            .to_pitch = what->pitch,
                            .width = what->width * what->value_bytes,
                            .height = what->height,
                            .depth = 1};
}
typedef struct frag_soft_filler {
    uint32_t value;
    uint32_t value_bytes;
} frag_soft_filler;
/* The same at a launch of the graph that it was captured in: no call, and what cannot be reached is
 * left. Takes and gives the lock by itself. */
void frag_soft_area_carry_out(bool is_copy, const frag_soft_area *area, frag_soft_filler with,
                              const void *caller);
static inline frag_soft_area frag_soft_row(uint64_t to, uint64_t from, uint64_t bytes)
{
    return (frag_soft_area){.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
}
void frag_soft_hosts_stop(void);

/* ---- soft_torch.c */
/* Listens to the caching allocator of PyTorch, once it is loaded. */
void frag_soft_torch_find(void);

/* The function of libcuda.so.1 that a base name such as cuMemGetInfo stands for in a version of
 * CUDA (12080); 0 when there is none. */
uint64_t frag_soft_driver_entry(const char *name, int32_t version);

/* Names and sentences of result codes. */
const char *frag_soft_code_name(int32_t code, bool is_driver);
const char *frag_soft_code_text(int32_t code);

#endif
