/* The calls that a policy makes to a device: kinds and names. */
#ifndef FRAG_SIM_DEVICE_CALL_H
#define FRAG_SIM_DEVICE_CALL_H

#include <stdbool.h>

#define FRAG_DEVICE_CALLS(X)                                                                       \
    X(MALLOC, "malloc")       /* cudaMalloc */                                                     \
    X(FREE, "free")           /* cudaFree */                                                       \
    X(RESERVE, "reserve")     /* cuMemAddressReserve */                                            \
    X(UNRESERVE, "unreserve") /* cuMemAddressFree */                                               \
    X(MAP, "map")             /* cuMemCreate + cuMemMap + cuMemSetAccess, a range of pages */      \
    X(UNMAP, "unmap")         /* cuMemUnmap + cuMemRelease */                                      \
    X(MALLOC_ASYNC, "malloc_async") /* cudaMallocAsync */                                          \
    X(FREE_ASYNC, "free_async")     /* cudaFreeAsync */                                            \
    X(MEMORY_INFO, "memory_info")   /* cudaMemGetInfo */                                           \
    X(SYNCHRONIZE, "synchronize")   /* wait for the streams */                                     \
    X(EVENT_RECORD, "event_record") /* cudaEventRecord */                                          \
    X(EVENT_QUERY, "event_query")   /* cudaEventQuery that found it done */                        \
    X(EVENT_WAIT, "event_wait")     /* cudaEventSynchronize */                                     \
    X(STREAM_WAIT, "stream_wait")   /* cudaStreamSynchronize */

typedef enum frag_device_call {
#define FRAG_DEVICE_CALL_ENUM(name, text) FRAG_DEVICE_##name,
    FRAG_DEVICE_CALLS(FRAG_DEVICE_CALL_ENUM)
#undef FRAG_DEVICE_CALL_ENUM
        FRAG_DEVICE_CALL_COUNT
} frag_device_call;

/* A policy in a shared object may call this. */
#pragma GCC visibility push(default)
const char *frag_device_call_name(frag_device_call call);
#pragma GCC visibility pop

/* Does it ask for memory or address space, or give some back? The others look and wait. */
static inline bool frag_device_call_moves_memory(frag_device_call call)
{
    return call < FRAG_DEVICE_MEMORY_INFO;
}

#endif
