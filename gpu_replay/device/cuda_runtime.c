#include "gpu_replay/device/cuda_runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define DRIVER_API 12000u /* the version of the driver's interface that is asked for */

typedef int entry_by_version(const char *name, void **function, unsigned version,
                             unsigned long long flags, int *status);
typedef int entry_query(const char *name, void **function, unsigned long long flags, int *status);

/* A function pointer may not be cast from void * in ISO C; its bytes may be copied. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

void frag_cuda_words(const frag_cuda_runtime *runtime, const char *call, int code, char *text,
                     size_t size)
{
    snprintf(text, size, "%s: %s (%s, %d)", call, runtime->cudaGetErrorString(code),
             runtime->cudaGetErrorName(code), code);
}

bool frag_cuda_fail(const frag_cuda_runtime *runtime, const char *call, int code, frag_error *error)
{
    char words[256];
    frag_cuda_words(runtime, call, code, words, sizeof words);
    return frag_fail(error, FRAG_E_SYSTEM, "%s", words);
}

const char *const frag_cuda_runtime_names[] = {"libcudart.so.13", "libcudart.so.12", NULL};

bool frag_cuda_runtime_fail_missing(frag_error *error)
{
    return frag_fail(error, FRAG_E_SYSTEM,
                     "no CUDA runtime is found (libcudart.so.13, libcudart.so.12); install one, or "
                     "name its file with --cudart");
}

static bool open_library(const char *path, frag_cuda_runtime *runtime, frag_error *error)
{
    runtime->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(runtime->path, sizeof runtime->path, "%s", path);
    return runtime->library != NULL ||
           frag_fail(error, FRAG_E_SYSTEM, "the CUDA runtime cannot be opened: %s", dlerror());
}

static bool find_functions(frag_cuda_runtime *runtime, frag_error *error)
{
    const char *missing = NULL;
#define FIND(name, parameters)                                                                     \
    if (!find(runtime->library, #name, &runtime->name))                                            \
        missing = #name;
    FRAG_CUDA_RUNTIME(FIND)
    FIND(cudaGetErrorName, )
    FIND(cudaGetErrorString, )
#undef FIND
    if (missing == NULL)
        return true;
    return frag_fail(error, FRAG_E_SYSTEM, "%s has no %s; expected a CUDA runtime of 12 or 13",
                     runtime->path, missing);
}

/* The file that the loader chose for the name. */
static void keep_path(frag_cuda_runtime *runtime)
{
    Dl_info place;
    void *function = NULL;
    memcpy(&function, &runtime->cudaMalloc, sizeof function);
    if (dladdr(function, &place) != 0 && place.dli_fname != NULL)
        snprintf(runtime->path, sizeof runtime->path, "%s", place.dli_fname);
}

bool frag_cuda_runtime_open(const char *path, frag_cuda_runtime *runtime, frag_error *error)
{
    *runtime = (frag_cuda_runtime){0};
    if (!open_library(path, runtime, error))
        return false;
    if (!find_functions(runtime, error)) {
        frag_cuda_runtime_close(runtime);
        return false;
    }
    keep_path(runtime);
    runtime->cudaRuntimeGetVersion(&runtime->runtime_version);
    runtime->cudaDriverGetVersion(&runtime->driver_version);
    return true;
}

bool frag_cuda_runtime_find_driver(frag_cuda_runtime *runtime, frag_error *error)
{
    entry_by_version *by_version = NULL;
    entry_query *query = NULL;
    if (!find(runtime->library, "cudaGetDriverEntryPointByVersion", &by_version) &&
        !find(runtime->library, "cudaGetDriverEntryPoint", &query))
        return frag_fail(error, FRAG_E_SYSTEM, "%s has no way to the driver's functions",
                         runtime->path);
    const char *missing = NULL;
    void *found = NULL;
    int status = 0;
    int code = 0;
#define FIND(name, parameters)                                                                     \
    found = NULL;                                                                                  \
    code = by_version != NULL ? by_version(#name, &found, DRIVER_API, 0, &status)                  \
                              : query(#name, &found, 0, &status);                                  \
    if (code != FRAG_CUDA_OK || status != 0 || found == NULL)                                      \
        missing = #name;                                                                           \
    memcpy(&runtime->name, &found, sizeof found);
    FRAG_CUDA_DRIVER(FIND)
#undef FIND
    runtime->cudaGetLastError();
    runtime->has_driver = missing == NULL;
    if (missing == NULL)
        return true;
    return frag_fail(error, FRAG_E_SYSTEM, "the driver has no %s", missing);
}

void frag_cuda_runtime_close(frag_cuda_runtime *runtime)
{
    if (runtime->library != NULL)
        dlclose(runtime->library);
    *runtime = (frag_cuda_runtime){0};
}
