/* Versions, handles and messages. */
#include "gpu_replay/software/libraries/cudnn/cudnn_types.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/libraries/standin_version.h"
#include "gpu_replay/software/software_cuda.h"

/* Newer than any PyTorch was built for, with the same leading figure: it refuses older ones. */
static const frag_standin_version fallback_version = {9, 99, 0};

static frag_standin_version get_version(const void *caller)
{
    return frag_standin_find_version("cudnn", caller, fallback_version);
}

FRAG_CUDNN_CALL(size_t, cudnnGetVersion, (void))
{
    frag_standin_version version = get_version(FRAG_CALLER());
    return (size_t)(version.major * 10000 + version.minor * 100 + version.patch);
}

FRAG_CUDNN_CALL(size_t, cudnnGetMaxDeviceVersion, (void))
{
    return SIZE_MAX; /* any device will do */
}

FRAG_CUDNN_CALL(size_t, cudnnGetCudartVersion, (void))
{
    return frag_standin_cuda_version();
}

FRAG_CUDNN_CALL(int, cudnnGetProperty, (int type, int *value))
{
    frag_standin_version version = get_version(FRAG_CALLER());
    if (value == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *value = 0;
    if (type < 0 || type > 2)
        return FRAG_CUDNN_BAD_PARAM;
    *value = type == 0 ? version.major : type == 1 ? version.minor : version.patch;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(const char *, cudnnGetErrorString, (int status))
{
    switch (status) {
    case FRAG_CUDNN_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case FRAG_CUDNN_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case FRAG_CUDNN_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case FRAG_CUDNN_NULL_POINTER:
        return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case FRAG_CUDNN_NOT_FINALIZED:
        return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case FRAG_CUDNN_OUT_OF_BOUND:
        return "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND";
    case FRAG_CUDNN_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case FRAG_CUDNN_HOST_ALLOCATION_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    default:
        return "CUDNN_UNKNOWN_STATUS";
    }
}

FRAG_CUDNN_CALL(void, cudnnGetLastErrorString, (char *message, size_t bytes))
{
    if (message != NULL && bytes > 0)
        message[0] = '\0';
}

FRAG_CUDNN_CALL(int, cudnnCreate, (frag_cudnn_handle * *handle))
{
    return frag_cudnn_make((void **)handle, FRAG_CUDNN_HANDLE, sizeof **handle);
}

FRAG_CUDNN_CALL(int, cudnnDestroy, (frag_cudnn_handle * handle))
{
    return frag_cudnn_end(handle, FRAG_CUDNN_HANDLE);
}

FRAG_CUDNN_CALL(int, cudnnSetStream, (frag_cudnn_handle * handle, void *stream))
{
    if (!frag_cudnn_is(handle, FRAG_CUDNN_HANDLE))
        return FRAG_CUDNN_BAD_PARAM;
    handle->stream = stream;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetStream, (frag_cudnn_handle * handle, void **stream))
{
    bool is_handle = frag_cudnn_is(handle, FRAG_CUDNN_HANDLE);
    if (stream == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *stream = is_handle ? handle->stream : NULL;
    return is_handle ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnQueryRuntimeError,
                (frag_cudnn_handle * handle, int *status, int mode, void *tag))
{
    (void)handle, (void)mode, (void)tag;
    if (status == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *status = FRAG_CUDNN_SUCCESS;
    return FRAG_CUDNN_SUCCESS;
}

int frag_cudnn_make(void **object, frag_cudnn_kind kind, size_t bytes)
{
    if (object == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    frag_cudnn_kind *made = calloc(1, bytes);
    *object = made;
    if (made == NULL)
        return FRAG_CUDNN_HOST_ALLOCATION_FAILED;
    *made = kind;
    return FRAG_CUDNN_SUCCESS;
}

bool frag_cudnn_is(const void *object, frag_cudnn_kind kind)
{
    const frag_cudnn_kind *is = object;
    return is != NULL && *is == kind;
}

int frag_cudnn_end(void *object, frag_cudnn_kind kind)
{
    if (object == NULL)
        return FRAG_CUDNN_SUCCESS;
    if (!frag_cudnn_is(object, kind))
        return FRAG_CUDNN_BAD_PARAM;
    *(frag_cudnn_kind *)object = (frag_cudnn_kind)0;
    free(object);
    return FRAG_CUDNN_SUCCESS;
}

const frag_software_card *frag_cudnn_card(void)
{
    int device = 0;
    int (*get)(int *) = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "cudaGetDevice");
    if (get == NULL || get(&device) != 0)
        device = 0;
    return frag_software_get_card(device);
}

uint32_t frag_cudnn_compute_capability(void)
{
    const frag_software_card *card = frag_cudnn_card();
    return card != NULL ? card->compute_capability : 80;
}

uint32_t frag_cudnn_multiprocessor_count(void)
{
    const frag_software_card *card = frag_cudnn_card();
    return card != NULL ? card->multiprocessor_count : 108;
}

frag_cudnn_range frag_cudnn_convolution_range(const frag_convolution *problem)
{
    return (frag_cudnn_range){
        .low_bytes = 0,
        .high_bytes = frag_convolution_workspace(problem, frag_cudnn_compute_capability(),
                                                 frag_cudnn_multiprocessor_count())};
}

const char *frag_cudnn_pass_name(frag_convolution_pass pass)
{
    static const char *const names[] = {"forward", "backward data", "backward filter"};
    return names[pass];
}

uint64_t frag_cudnn_choose(const char *function, const char *what, frag_cudnn_range range)
{
    if (range.high_bytes == 0)
        return 0;
    return frag_software_note_uncertain(function, what, range.low_bytes, range.high_bytes);
}
