/* libcuda.so.1: contexts. A device has one, its primary one; whatever else is created is another
 * name for it, so that memory belongs to the device whichever is current. A green context too is
 * all of the device, with the multiprocessors it was promised. */
#include <string.h>

#include "gpu_replay/software/driver/soft_driver.h"

#define STACK_MAX 64

/* What is below the current context of a thread. */
static _Thread_local struct {
    void *contexts[STACK_MAX];
    uint32_t count;
} below;

bool frag_driver_is_device(int32_t device)
{
    return device >= 0 && device < (int32_t)frag_soft.settings.device_count;
}

bool frag_driver_enter(int32_t device, int32_t *result)
{
    if (frag_soft_enter(result) && !frag_driver_is_device(device))
        *result = FRAG_CUDA_INVALID_DEVICE;
    return *result == FRAG_CUDA_OK;
}

void *frag_driver_context(uint32_t device)
{
    return frag_soft_pointer(FRAG_DRIVER_CONTEXT_BASE + (uint64_t)device);
}

/* ---- primary contexts */

FRAG_ENTRY(int32_t, cuDevicePrimaryCtxGetState,
           (int32_t device, unsigned *flags, int32_t *is_active))
{
    int32_t result = 0;
    bool has_context = frag_driver_enter(device, &result) && frag_soft.devices[device].has_context;
    frag_soft_leave();
    if (flags != NULL)
        *flags = 0;
    if (is_active != NULL)
        *is_active = has_context;
    return result;
}

static int32_t make_context(void **context, int32_t device)
{
    int32_t result = 0;
    *context = NULL;
    if (frag_driver_enter(device, &result)) {
        frag_soft.is_used = true;
        frag_soft_device_touch((uint32_t)device);
        *context = frag_driver_context((uint32_t)device);
    }
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDevicePrimaryCtxRetain, (void **context, int32_t device))
{
    return make_context(context, device);
}

FRAG_ENTRY(int32_t, cuDevicePrimaryCtxRelease_v2, (int32_t device))
{
    int32_t result = 0;
    frag_driver_enter(device, &result);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDevicePrimaryCtxSetFlags_v2, (int32_t device, unsigned flags))
{
    (void)flags;
    return cuDevicePrimaryCtxRelease_v2(device);
}

FRAG_ENTRY(int32_t, cuDevicePrimaryCtxReset_v2, (int32_t device))
{
    int32_t result = 0;
    if (frag_driver_enter(device, &result))
        frag_soft_device_reset((uint32_t)device);
    frag_soft_leave();
    return result;
}

/* ---- the current one */

/* None until the device of the thread has been used, as before the first call of NVIDIA's runtime.
 */
FRAG_ENTRY(int32_t, cuCtxGetCurrent, (void **context))
{
    int32_t result = 0;
    *context = NULL;
    if (frag_soft_enter(&result) && frag_soft.devices[frag_soft_device_current()].has_context)
        *context = frag_driver_context(frag_soft_device_current());
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuCtxSetCurrent, (void *context))
{
    int32_t result = 0;
    uint64_t number = frag_soft_number(context);
    if (frag_soft_enter(&result) && context != NULL)
        result = number >= FRAG_DRIVER_CONTEXT_BASE
                     ? frag_soft_device_choose((int64_t)(number - FRAG_DRIVER_CONTEXT_BASE))
                     : FRAG_CUDA_INVALID_VALUE;
    if (result == FRAG_CUDA_INVALID_DEVICE)
        result = FRAG_DRIVER_INVALID_CONTEXT;
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuCtxPushCurrent_v2, (void *context))
{
    void *before = NULL;
    int32_t result = cuCtxGetCurrent(&before);
    if (result == FRAG_CUDA_OK)
        result = context == NULL ? FRAG_CUDA_INVALID_VALUE : cuCtxSetCurrent(context);
    if (result == FRAG_CUDA_OK && below.count < STACK_MAX)
        below.contexts[below.count++] = before;
    return result;
}

FRAG_ENTRY(int32_t, cuCtxPopCurrent_v2, (void **context))
{
    void *popped = NULL;
    int32_t result = cuCtxGetCurrent(&popped);
    if (context != NULL)
        *context = popped;
    if (result == FRAG_CUDA_OK && below.count > 0)
        result = cuCtxSetCurrent(below.contexts[--below.count]);
    return result;
}

FRAG_ENTRY(int32_t, cuCtxCreate_v2, (void **context, unsigned flags, int32_t device))
{
    (void)flags;
    int32_t result = make_context(context, device);
    return result != FRAG_CUDA_OK ? result : cuCtxPushCurrent_v2(*context);
}

FRAG_ENTRY(int32_t, cuCtxCreate_v3,
           (void **context, void *affinities, int32_t count, unsigned flags, int32_t device))
{
    (void)affinities, (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

FRAG_ENTRY(int32_t, cuCtxCreate_v4,
           (void **context, void *parameters, unsigned flags, int32_t device))
{
    (void)parameters;
    return cuCtxCreate_v2(context, flags, device);
}

FRAG_ENTRY(int32_t, cuCtxDestroy_v2, (void *context))
{
    return context == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxGetDevice, (int32_t * device))
{
    int32_t result = 0;
    *device = 0;
    if (frag_soft_enter(&result))
        *device = (int32_t)frag_soft_device_current();
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuCtxGetDevice_v2, (int32_t * device, void *context))
{
    uint64_t place = frag_soft_number(context) - FRAG_DRIVER_CONTEXT_BASE;
    if (context == NULL)
        return cuCtxGetDevice(device);
    *device = place < FRAG_SOFT_DEVICES_MAX ? (int32_t)place : 0;
    return place < FRAG_SOFT_DEVICES_MAX ? FRAG_CUDA_OK : FRAG_DRIVER_INVALID_CONTEXT;
}

FRAG_ENTRY(int32_t, cuCtxSynchronize, (void))
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cuCtxSynchronize)) {
        frag_soft_note(&call, "device", frag_soft_device_current());
        frag_soft_device_complete(frag_soft_device_current());
        frag_soft_pools_settle();
    }
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuCtxSynchronize_v2, (void *context))
{
    (void)context;
    return cuCtxSynchronize();
}

/* ---- properties */

FRAG_ENTRY(int32_t, cuCtxGetLimit, (size_t * value, int32_t limit))
{
    return frag_soft_limit_get(limit, value);
}

FRAG_ENTRY(int32_t, cuCtxSetLimit, (int32_t limit, size_t value))
{
    return frag_soft_limit_set(limit, value);
}

FRAG_ENTRY(int32_t, cuCtxGetStreamPriorityRange, (int32_t * least, int32_t *greatest))
{
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxGetFlags, (unsigned *flags))
{
    *flags = 0;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxSetFlags, (unsigned flags))
{
    (void)flags;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxGetId, (void *context, unsigned long long *id))
{
    int32_t device = 0;
    int32_t result = cuCtxGetDevice_v2(&device, context);
    *id = (unsigned long long)device + 1;
    return result;
}

FRAG_ENTRY(int32_t, cuCtxGetApiVersion, (void *context, unsigned *version))
{
    (void)context;
    *version = frag_soft.settings.driver_version;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxGetCacheConfig, (int32_t * configuration))
{
    *configuration = 0;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxSetCacheConfig, (int32_t configuration))
{
    (void)configuration;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxGetSharedMemConfig, (int32_t * configuration))
{
    return cuCtxGetCacheConfig(configuration);
}

FRAG_ENTRY(int32_t, cuCtxSetSharedMemConfig, (int32_t configuration))
{
    return cuCtxSetCacheConfig(configuration);
}

FRAG_ENTRY(int32_t, cuCtxResetPersistingL2Cache, (void))
{
    return FRAG_CUDA_OK;
}

/* ---- peers: every device reaches every other */

FRAG_ENTRY(int32_t, cuDeviceCanAccessPeer, (int32_t * can, int32_t device, int32_t peer))
{
    int32_t result = 0;
    *can = 0;
    if (frag_driver_enter(device, &result)) {
        if (frag_driver_is_device(peer))
            *can = device != peer;
        else
            result = FRAG_CUDA_INVALID_DEVICE;
    }
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetP2PAttribute,
           (int32_t * value, int32_t attribute, int32_t device, int32_t peer))
{
    (void)attribute;
    return cuDeviceCanAccessPeer(value, device, peer);
}

static int32_t change_peer(const void *context, bool is_on)
{
    int32_t result = 0;
    uint64_t peer = frag_soft_number(context) - FRAG_DRIVER_CONTEXT_BASE;
    if (frag_soft_enter(&result)) {
        uint32_t device = frag_soft_device_current();
        if (peer >= frag_soft.settings.device_count || peer == device) {
            result = FRAG_DRIVER_INVALID_CONTEXT;
        } else {
            uint32_t bit = (uint32_t)1 << peer;
            uint32_t *peers = &frag_soft.devices[device].peers;
            if (((*peers & bit) != 0) == is_on)
                result = is_on ? FRAG_CUDA_PEER_ENABLED : FRAG_CUDA_PEER_NOT_ENABLED;
            *peers = is_on ? *peers | bit : *peers & ~bit;
        }
    }
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuCtxEnablePeerAccess, (void *context, unsigned flags))
{
    (void)flags;
    return change_peer(context, true);
}

FRAG_ENTRY(int32_t, cuCtxDisablePeerAccess, (void *context))
{
    return change_peer(context, false);
}

/* ---- green contexts */

/* CUdevResource: a kind, 92 bytes, then what the kind has (at least 40 bytes). */
typedef struct resource {
    int32_t kind;
    unsigned char padding[92];
    uint32_t multiprocessors;
    uint32_t smallest;
    uint32_t alignment;
    unsigned char rest[36];
} resource;

enum { KIND_NONE = 0, KIND_MULTIPROCESSORS = 1 };

static resource some_multiprocessors(uint32_t count)
{
    return (resource){
        .kind = KIND_MULTIPROCESSORS, .multiprocessors = count, .smallest = 8, .alignment = 8};
}

static int32_t all_multiprocessors(resource *out, int32_t device, int32_t kind)
{
    int32_t result = 0;
    *out = (resource){0};
    if (frag_driver_enter(device, &result)) {
        if (kind == KIND_MULTIPROCESSORS)
            *out = some_multiprocessors(frag_soft.cards[device].multiprocessor_count);
        else
            result = FRAG_CUDA_INVALID_VALUE;
    }
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetDevResource, (int32_t device, resource *out, int32_t kind))
{
    return all_multiprocessors(out, device, kind);
}

FRAG_ENTRY(int32_t, cuCtxGetDevResource, (void *context, resource *out, int32_t kind))
{
    int32_t device = 0;
    int32_t result = cuCtxGetDevice_v2(&device, context);
    return result != FRAG_CUDA_OK ? result : all_multiprocessors(out, device, kind);
}

FRAG_ENTRY(int32_t, cuGreenCtxGetDevResource, (void *context, resource *out, int32_t kind))
{
    return cuCtxGetDevResource(context, out, kind);
}

/* Groups of at least so many multiprocessors, in steps of 8; with no room for groups, only their
 * number. */
FRAG_ENTRY(int32_t, cuDevSmResourceSplitByCount,
           (resource * groups, unsigned *count, const resource *whole, resource *rest,
            unsigned flags, unsigned least))
{
    enum { STEP = 8 };
    (void)flags;
    if (whole == NULL || count == NULL || whole->kind != KIND_MULTIPROCESSORS)
        return FRAG_CUDA_INVALID_VALUE;
    uint32_t size = (least < STEP ? STEP : least + STEP - 1) / STEP * STEP;
    uint32_t most = whole->multiprocessors / size;
    uint32_t made = groups != NULL && *count < most ? *count : most;
    for (uint32_t i = 0; groups != NULL && i < made; i++)
        groups[i] = some_multiprocessors(size);
    if (rest != NULL) {
        uint32_t left = whole->multiprocessors - made * size;
        *rest = left > 0 ? some_multiprocessors(left) : (resource){.kind = KIND_NONE};
    }
    *count = made;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuDevResourceGenerateDesc,
           (void **description, resource *resources, unsigned count))
{
    enum { NUMBER = 0x6000 };
    bool is_there = resources != NULL && count > 0;
    *description = is_there ? frag_soft_pointer(NUMBER) : NULL;
    return is_there ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_VALUE;
}

FRAG_ENTRY(int32_t, cuGreenCtxCreate,
           (void **context, void *description, int32_t device, unsigned flags))
{
    (void)description, (void)flags;
    return make_context(context, device);
}

FRAG_ENTRY(int32_t, cuGreenCtxDestroy, (void *context))
{
    return context == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuCtxFromGreenCtx, (void **context, void *green))
{
    *context = green;
    return green == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuGreenCtxStreamCreate,
           (void **stream, void *green, unsigned flags, int32_t priority))
{
    (void)green;
    return frag_soft_order_create(FRAG_CALL_cuStreamCreate, stream, flags, priority);
}

FRAG_ENTRY(int32_t, cuGreenCtxRecordEvent, (void *green, void *event))
{
    (void)green;
    return frag_soft_order_event_record(FRAG_CALL_cuEventRecord, event, NULL);
}

FRAG_ENTRY(int32_t, cuGreenCtxWaitEvent, (void *green, void *event))
{
    (void)green;
    return frag_soft_order_wait(FRAG_CALL_cuStreamWaitEvent, NULL, event);
}
