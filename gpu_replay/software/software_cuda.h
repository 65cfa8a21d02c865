/* Software CUDA: shared objects with the names, version nodes and entry points of NVIDIA's runtime
 * (libcudart.so.12 and .13), driver (libcuda.so.1) and management library (libnvidia-ml.so.1) that
 * account for memory and compute nothing. A program that links to the shared runtime runs on them
 * unchanged, with no GPU, driver or toolkit. `make software-cuda` builds them;
 * docs/software-cuda.md tells how to use them, and lists the settings.
 *
 * All state is one per process and lives in libcuda.so.1, however many of the libraries are loaded.
 * Settings are read at the first call from the environment variable FRAGLAB_SOFTWARE_CUDA, a list
 * such as "capacity=8GiB,devices=2,lag=3,fail=malloc:5:2". With a list that is wrong every call
 * fails with 3 (not initialised), and one line on stderr says what is wrong.
 *
 * This header is the control interface for tests. The functions are exported by libcuda.so.1: link
 * to it, or find them by dlsym. They may be called from any thread at any time. */
#ifndef FRAG_SOFTWARE_SOFTWARE_CUDA_H
#define FRAG_SOFTWARE_SOFTWARE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FRAG_SOFTWARE_ARGUMENTS_MAX 6

/* One argument, or one value that the call gave back. */
typedef struct frag_software_argument {
    const char *name; /* "bytes", "address", "stream", ... */
    uint64_t value;
    bool is_address; /* written as 0x... in the log */
} frag_software_argument;

typedef struct frag_software_call {
    uint64_t sequence; /* counts all calls of the process from 1 */
    uint32_t thread;   /* counts threads from 0 in the order of their first calls */
    const char *name;  /* "cudaMalloc", "cuMemMap", ... */
    int32_t result;    /* what the call returned */
    bool is_memory;    /* belongs to log-calls=memory */
    uint32_t argument_count;
    frag_software_argument arguments[FRAG_SOFTWARE_ARGUMENTS_MAX];
} frag_software_call;

/* What is held and not given back; bytes of device memory unless said otherwise. */
typedef struct frag_software_held {
    uint64_t malloc_count, malloc_bytes; /* cudaMalloc and its kin, by what was asked for */
    uint64_t pool_count, pool_bytes;     /* stream-ordered allocations */
    uint64_t handle_count, handle_bytes; /* physical memory of cuMemCreate: handles or mappings */
    uint64_t mapping_count, mapping_bytes;
    uint64_t reservation_count, reservation_bytes; /* of address space */
    uint64_t stream_count, event_count;
    uint64_t created_pool_count;     /* pools of cudaMemPoolCreate */
    uint64_t host_count, host_bytes; /* pinned host memory */
} frag_software_held;

typedef struct frag_software_usage {
    uint64_t capacity_bytes; /* the total of cudaMemGetInfo */
    uint64_t used_bytes;     /* charged to this process: context, segments, pools, handles */
    uint64_t used_bytes_max;
    uint64_t others_bytes; /* taken by other processes: as set, and by those that share the card */
    /* Of processes that share cards by the setting cards=FILE; 0 without it. */
    uint64_t refused_others_bytes; /* what others held when the last request was refused */
    uint64_t card_bytes_max;       /* the most that all together held */
    uint32_t process_count_max;    /* of those, how many at the same time */
    uint32_t card;                 /* of the machine, as CUDA_VISIBLE_DEVICES numbers them */
} frag_software_usage;

/* Forgets everything, as if the process began: allocations, streams, call counts, faults. Settings
 * are then those of the list, or of the environment when it is NULL. false: the list is wrong,
 * sentence (of sentence_bytes) says why, every call fails until a reset with a right one. */
bool frag_software_reset(const char *settings, char *sentence, size_t sentence_bytes);

/* Adds settings to those in force, from the next call on: capacity, others, lag, lag-unit, fail,
 * random, sticky, max-mappings, processes, log-calls and leaks; the rest only with a reset. false
 * as above, then nothing is changed. */
bool frag_software_set(const char *settings, char *sentence, size_t sentence_bytes);

/* Everything put so far on streams of this handle, on all devices, is done; UINT64_MAX: on every
 * stream. The way forward under lag=told. */
void frag_software_complete(uint64_t stream);

/* What cudaStreamIsCapturing answers for streams that no capture was begun on: 0, 1 or 2. */
void frag_software_set_capturing(int status);

/* How often a function was called, and how often with a result that is not 0. A function that was
 * never called, or is none: 0. name as in fail=: "cudaMalloc" or "malloc". */
uint64_t frag_software_call_count(const char *name);
uint64_t frag_software_failure_count(const char *name);
/* All calls of the process: the sequence of the last one. */
uint64_t frag_software_sequence(void);

void frag_software_get_held(frag_software_held *held);
/* false: there is no such device. */
bool frag_software_get_usage(int device, frag_software_usage *usage);

/* Writes the buffered lines of the log, and what the report has new. Done at exit; needed before
 * _exit or a crash. */
void frag_software_flush(void);

/* Sees every call after it was answered, under the lock of the software device: the observer must
 * not call CUDA, or any function of this header. NULL ends it. */
typedef void frag_software_observer(const frag_software_call *call, void *context);
void frag_software_observe(frag_software_observer *observer, void *context);

/* ---- for the stand-ins of the other libraries and for what drives a dry run */

typedef struct frag_software_card {
    char name[96];
    unsigned char uuid[16];
    uint32_t compute_capability; /* times ten */
    uint32_t multiprocessor_count;
    uint32_t threads_per_multiprocessor;
    uint32_t blocks_per_multiprocessor;
    uint32_t registers_per_multiprocessor;
    uint32_t shared_bytes_per_block;        /* without opting in */
    uint32_t shared_bytes_per_block_opt_in; /* at most */
    uint32_t shared_bytes_per_multiprocessor;
    uint32_t clock_khz;
    uint32_t memory_clock_khz;
    uint32_t memory_bus_bits;
    uint64_t l2_bytes;
    uint64_t capacity_bytes; /* what cudaMemGetInfo calls the total */
    uint64_t context_bytes;
    uint64_t reserved_bytes; /* beyond capacity_bytes: only NVML tells */
} frag_software_card;

/* NULL: there is no such device. The card stays as it is until frag_software_reset. */
const frag_software_card *frag_software_get_card(int device);

/* The report is a file of JSON lines (setting report=FILE), one line for each kind and place, with
 * how often; docs/software-cuda.md lists its kinds. */

/* A function was called that does nothing here but return. caller: where that function
 * returns to. */
void frag_software_note_unknown(const char *library, const char *function, const void *caller);

/* A size that the real library decides and that lies between low and high. Returns the bytes to
 * answer: those of the end that workspaces=low|high chooses, changed within their block of 512 so
 * that no other size of the process looks like it; 0 stays 0. */
uint64_t frag_software_note_uncertain(const char *function, const char *what, uint64_t low,
                                      uint64_t high);

/* Something the reader of the report should know, said once however often it is noted. */
void frag_software_note(const char *kind, const char *sentence);

/* A value was read from the device that only a kernel could know. where: "train.py:17". */
void frag_software_note_value(const char *where);

/* Bytes that the host wrote to a device, or that were copied or filled from such, can be read back;
 * the rest is unknown and reads as zeros. Both the pointers of devices and their ranges may lie in
 * memory of any device; what is not held is unknown, and not written. */

/* Returns how many of the bytes are known; the others of out become 0. */
size_t frag_software_read(const void *device_address, void *out, size_t bytes);
void frag_software_write(void *device_address, const void *from, size_t bytes);
/* What is known of from is then known of to, and nothing else. */
void frag_software_copy(void *to, const void *from, size_t bytes);
/* The largest piece written by the host whose bytes are kept (setting shadow=). */
uint64_t frag_software_get_kept_max(void);
/* The bytes are unknown from now on. */
void frag_software_forget(void *device_address, size_t bytes);

/* Work that is captured: at each launch of the graph function is called with data, with no lock
 * held, after what was captured before and before what is captured next. Returns 0 where the stream
 * is not captured; 2 where nothing was captured since the last note of the same function, which
 * stands for this one too (its data, not this); else 1. */
int frag_software_graph_note(const void *stream, void (*function)(void *data), void *data);

/* Random numbers as kernels of PyTorch draw them with curand's Philox generator. */
typedef struct frag_software_draws {
    uint64_t seed;
    uint64_t offset; /* words that each thread has drawn before, a multiple of 4 */
    uint64_t
        thread_count; /* of which each draws a number in turn; 0: each draws a block in a row */
    uint64_t range;   /* numbers are taken modulo it; 0: as they are */
    bool is_wide;     /* of 64 bits, two to a block, instead of 32, four to a block */
} frag_software_draws;
void frag_software_draw(const frag_software_draws *draws, uint64_t *out, size_t count);

/* A copy of at most 16 bytes to the host of which some are not known (they are 0 now), or all are
 * but a kernel was launched since they were written (known_bytes == bytes). */
typedef struct frag_software_scalar {
    const void *device_address;
    void *host_address; /* the handler may write there */
    size_t bytes;
    size_t known_bytes;
    uint64_t count; /* such copies so far, with this one */
    const void *caller;
    char *where; /* "", for the handler to name the place: at most where_bytes with the 0 */
    size_t where_bytes;
} frag_software_scalar;

/* Called at each of them by the thread that copies, with no lock held: it may call CUDA. true: the
 * value is right now. false: if it is unknown it is noted in the report, as of where or, when that
 * is empty, of the calling library. One handler a process; NULL ends it. */
typedef bool frag_software_scalar_handler(const frag_software_scalar *scalar, void *context);
void frag_software_handle_scalars(frag_software_scalar_handler *handler, void *context);

/* The sparse tensor (an at::Tensor) whose equal elements PyTorch is adding up in this thread. If
 * that function ended by an exception it is the last one. NULL: none. On x86_64 alone. */
const void *frag_software_get_sum(void);

/* Called, with no lock held, before bytes of a device are read (is_read) or written by a copy or a
 * fill: who put off a write to them does it now, or leaves it. One handler a process. */
typedef void frag_software_late_handler(const void *device_address, size_t bytes, bool is_read);
void frag_software_handle_late(frag_software_late_handler *handler);

#ifdef __cplusplus
}
#endif

#endif
