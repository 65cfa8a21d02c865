/* A policy whose decisions are functions of the program that uses the library, for teaching and for
 * trying an idea out. It is used as one that fraglab_policy_parse made. Every answer of the
 * functions is checked and costs a search, so it is slower than a policy in C behind sim/policy.h
 * (docs/adding-a-policy.md). What holds for all calls, fraglab.h says. */
#ifndef FRAG_INCLUDE_FRAGLAB_POLICY_H
#define FRAG_INCLUDE_FRAGLAB_POLICY_H

#include "fraglab.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct fraglab_device fraglab_device; /* of one run; nothing to give back */

typedef struct fraglab_policy_request {
    uint64_t bytes;
    uint32_t stream; /* counted from 0 */
    uint32_t pool;   /* 0, or a private pool */
} fraglab_policy_request;

typedef struct fraglab_policy_grant {
    uint64_t address; /* inside a segment that the policy holds */
    uint64_t bytes;   /* of the block; at least those of the request */
} fraglab_policy_grant;

enum {
    FRAGLAB_POLICY_GRANTED = 0,
    FRAGLAB_POLICY_OUT_OF_MEMORY = 1 /* after everything that the policy tries before */
};

/* The functions run in the thread that runs the policy, in the locale "C"; they may call the
 * functions of the device below and nothing else of the library, and must return. A negative answer
 * (of begin, free and empty_cache: any but 0) says that the function itself has failed: the run
 * ends, with FRAGLAB_E_SYSTEM and a sentence. With FRAGLAB_E_USAGE and a sentence ends the run of a
 * policy that grants what is not its own, or what overlaps a live block, or asks the device for
 * what makes no sense. Frees arrive once no stream uses the block any more. */
typedef struct fraglab_policy_functions {
    size_t size;
    const char *name; /* of rows: "my-policy" */
    void *user;       /* handed to begin */
    /* A run begins: *run is handed to the other functions. A search makes many runs of one policy,
     * and may leave one before its end. */
    int (*begin)(void *user, fraglab_device *device, void **run);
    int (*alloc)(void *run, const fraglab_policy_request *request, fraglab_policy_grant *grant);
    int (*free)(void *run, uint64_t address, uint32_t stream);
    int (*empty_cache)(void *run, uint32_t pool); /* UINT32_MAX: all pools; NULL: not cared for */
} fraglab_policy_functions;

int fraglab_policy_create(const fraglab_policy_functions *functions, fraglab_policy **policy,
                          fraglab_error *error);

/* One cudaMalloc and one cudaFree, of a whole segment. *address 0: the device is full. A policy may
 * hold one segment for each request of the trace and 4096 more at a time. FRAGLAB_E_USAGE: what is
 * asked makes no sense, or it is one segment more, and the run will end. */
int fraglab_device_malloc(fraglab_device *device, uint64_t bytes, uint64_t *address);
int fraglab_device_free(fraglab_device *device, uint64_t address);
/* Waits for all streams: frees that wait for one arrive (the function free is called) before it
 * returns. What a policy does before it gives up. */
int fraglab_device_synchronize(fraglab_device *device);
/* FRAGLAB_UNLIMITED: it has no limit. */
uint64_t fraglab_device_capacity(fraglab_device *device);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
