/* The CUDA runtime and driver as tables of functions, found when the program runs.
 *
 * The shared libcudart is opened by name (13, then 12) or by path; nothing of CUDA is linked, so
 * one module works with every toolkit, and tests put a software runtime of the same interface in
 * its place. Driver functions (virtual memory) come through cudaGetDriverEntryPointByVersion, or
 * cudaGetDriverEntryPoint where that is all there is (before 12.5). */
#ifndef FRAG_DEVICE_CUDA_RUNTIME_H
#define FRAG_DEVICE_CUDA_RUNTIME_H

#include <stdbool.h>

#include "base/error.h"
#include "gpu_replay/device/cuda_abi.h"

typedef struct frag_cuda_runtime {
    void *library;
    char path[256];      /* the file that was opened */
    int runtime_version; /* 13000 is 13.0 */
    int driver_version;
    bool has_driver; /* the driver functions below are there; else they are NULL */
    const char *(*cudaGetErrorName)(int code);
    const char *(*cudaGetErrorString)(int code);
#define FRAG_CUDA_POINTER(name, parameters) int(*name) parameters;
    FRAG_CUDA_RUNTIME(FRAG_CUDA_POINTER)
    FRAG_CUDA_DRIVER(FRAG_CUDA_POINTER)
#undef FRAG_CUDA_POINTER
} frag_cuda_runtime;

/* By which the loader finds a runtime, the newest first; ends with NULL. */
extern const char *const frag_cuda_runtime_names[];

/* The loader finds none. Returns false. */
bool frag_cuda_runtime_fail_missing(frag_error *error);

/* A file, or a name that the loader finds. No context is made. false: FRAG_E_SYSTEM. The caller
 * closes. */
bool frag_cuda_runtime_open(const char *path, frag_cuda_runtime *runtime, frag_error *error);

/* Looks up the driver functions; needs a context (cudaSetDevice). false: one is missing. */
bool frag_cuda_runtime_find_driver(frag_cuda_runtime *runtime, frag_error *error);

void frag_cuda_runtime_close(frag_cuda_runtime *runtime);

/* "cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)", in the driver's words. Returns
 * false. */
bool frag_cuda_fail(const frag_cuda_runtime *runtime, const char *call, int code,
                    frag_error *error);
/* The same as text, cut to size - 1 characters. */
void frag_cuda_words(const frag_cuda_runtime *runtime, const char *call, int code, char *text,
                     size_t size);

#endif
