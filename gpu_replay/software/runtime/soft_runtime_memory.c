/* libcudart: memory of devices, pools and hosts, and what lies where. */
#include <string.h>

#include "gpu_replay/software/runtime/soft_runtime.h"

/* ---- device memory */

/* NULL when the call fails, as NVIDIA's runtime does of memory. */
static int32_t give(frag_soft_call *call, uint64_t address, void **out)
{
    frag_soft_note_address(call, "address", address);
    if (out != NULL)
        *out = call->seen.result == FRAG_CUDA_OK ? frag_soft_pointer(address) : NULL;
    return frag_runtime_end(call);
}

static int32_t allocate(frag_soft_call_id id, void **out, size_t bytes)
{
    frag_soft_call call;
    uint64_t address = 0;
    bool may = frag_soft_begin(&call, id);
    frag_soft_note(&call, "bytes", bytes);
    if (may && out == NULL)
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    else if (may)
        frag_soft_malloc(&call, bytes, &address);
    return give(&call, address, out);
}

FRAG_ENTRY(int32_t, cudaMalloc, (void **out, size_t bytes))
{
    return allocate(FRAG_CALL_cudaMalloc, out, bytes);
}

/* Charged when it is asked for, unlike managed memory of a real device. */
FRAG_ENTRY(int32_t, cudaMallocManaged, (void **out, size_t bytes, unsigned flags))
{
    (void)flags;
    return allocate(FRAG_CALL_cudaMallocManaged, out, bytes);
}

FRAG_ENTRY(int32_t, cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height))
{
    enum { PITCH_BYTES = 512 };
    *pitch = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
    bool is_too_large = height != 0 && *pitch > SIZE_MAX / height;
    return allocate(FRAG_CALL_cudaMallocPitch, out, is_too_large ? SIZE_MAX : *pitch * height);
}

typedef struct pitched {
    void *address;
    size_t pitch;
    size_t width;
    size_t height;
} pitched;

typedef struct box {
    size_t width, height, depth;
} box;

FRAG_ENTRY(int32_t, cudaMalloc3D, (pitched * out, box of))
{
    size_t rows =
        of.depth != 0 && of.height > SIZE_MAX / of.depth ? SIZE_MAX : of.height * of.depth;
    *out = (pitched){.width = of.width, .height = of.height};
    return cudaMallocPitch(&out->address, &out->pitch, of.width, rows);
}

FRAG_ENTRY(int32_t, cudaFree, (void *address))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaFree);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    if (may)
        frag_soft_free(&call, frag_soft_number(address));
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaMemGetInfo, (size_t * free_bytes, size_t *total_bytes))
{
    frag_soft_call call;
    *free_bytes = 0;
    *total_bytes = 0;
    if (frag_soft_begin(&call, FRAG_CALL_cudaMemGetInfo)) {
        uint32_t device = frag_soft_device_current();
        *free_bytes = frag_soft_free_bytes(device);
        *total_bytes = frag_soft.settings.capacity_bytes[device];
        frag_soft_note(&call, "free", *free_bytes);
        frag_soft_note(&call, "total", *total_bytes);
    }
    return frag_runtime_end(&call);
}

/* ---- pools */

static bool find_pool(frag_soft_call *call, bool may, const void *handle, uint32_t *pool)
{
    frag_soft_note_address(call, "pool", frag_soft_number(handle));
    if (may && frag_soft_pool_find(frag_soft_number(handle), pool))
        return true;
    if (may)
        frag_soft_fail(call, FRAG_CUDA_INVALID_VALUE);
    return false;
}

FRAG_ENTRY(int32_t, cudaMallocAsync, (void **out, size_t bytes, void *stream))
{
    frag_soft_call call;
    uint64_t address = 0;
    uint32_t on = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMallocAsync);
    frag_soft_note(&call, "bytes", bytes);
    if (frag_soft_call_stream(&call, may, stream, &on))
        frag_soft_pool_malloc(&call, frag_soft.devices[frag_soft.streams[on].device].pool, bytes,
                              on, &address);
    return give(&call, address, out);
}

FRAG_ENTRY(int32_t, cudaMallocFromPoolAsync,
           (void **out, size_t bytes, void *pool_handle, void *stream))
{
    frag_soft_call call;
    uint64_t address = 0;
    uint32_t on = 0;
    uint32_t pool = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMallocFromPoolAsync);
    frag_soft_note(&call, "bytes", bytes);
    may = find_pool(&call, may, pool_handle, &pool);
    if (frag_soft_call_stream(&call, may, stream, &on))
        frag_soft_pool_malloc(&call, pool, bytes, on, &address);
    return give(&call, address, out);
}

FRAG_ENTRY(int32_t, cudaFreeAsync, (void *address, void *stream))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaFreeAsync);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    frag_soft_note_address(&call, "stream", frag_soft_number(stream));
    if (may)
        frag_soft_free_async(&call, frag_soft_number(address), frag_soft_number(stream));
    return frag_runtime_end(&call);
}

/* cudaMemPoolProps by words: kind of memory, handle types, location, then at byte 24 the limit. */
FRAG_ENTRY(int32_t, cudaMemPoolCreate, (void **out, const int32_t *properties))
{
    enum { KIND = 0, LOCATION_TYPE = 2, LOCATION_ID = 3, LIMIT = 6, PINNED = 1, ON_DEVICE = 1 };
    frag_soft_call call;
    if (out != NULL)
        *out = NULL;
    if (frag_soft_begin(&call, FRAG_CALL_cudaMemPoolCreate)) {
        if (out == NULL || properties == NULL || properties[KIND] != PINNED ||
            properties[LOCATION_TYPE] != ON_DEVICE) {
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        } else if (properties[LOCATION_ID] < 0 ||
                   properties[LOCATION_ID] >= (int32_t)frag_soft.settings.device_count) {
            frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
        } else {
            uint32_t pool = frag_soft_pool_new((uint32_t)properties[LOCATION_ID]);
            memcpy(&frag_soft.pools[pool].max_bytes, properties + LIMIT, sizeof(uint64_t));
            uint64_t number = frag_soft_handle_number(&frag_soft.pool_handles, pool);
            *out = frag_soft_pointer(number);
            frag_soft_note_address(&call, "pool", number);
        }
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaMemPoolDestroy, (void *handle))
{
    frag_soft_call call;
    uint32_t pool = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMemPoolDestroy);
    if (find_pool(&call, may, handle, &pool)) {
        if (frag_soft.pools[pool].is_default)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        else
            frag_soft_pool_give(pool);
    }
    return frag_runtime_end(&call);
}

enum {
    REUSE_FIRST = 1,
    REUSE_LAST = 3,
    RELEASE_THRESHOLD = 4,
    RESERVED_CURRENT = 5,
    RESERVED_HIGH = 6,
    USED_CURRENT = 7,
    USED_HIGH = 8,
};

/* The high-water marks take nothing but 0, which sets them to what is current. */
static int32_t set_attribute(frag_soft_pool *pool, int32_t attribute, const void *value)
{
    uint64_t wide = 0;
    if (value == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST) {
        memcpy(&pool->reuse[attribute - REUSE_FIRST], value, sizeof pool->reuse[0]);
        return FRAG_CUDA_OK;
    }
    memcpy(&wide, value, sizeof wide);
    if (attribute == RELEASE_THRESHOLD) {
        pool->threshold_bytes = wide;
        return FRAG_CUDA_OK;
    }
    if (wide != 0)
        return FRAG_CUDA_INVALID_VALUE;
    if (attribute == RESERVED_HIGH)
        pool->reserved_bytes_max = pool->reserved_bytes;
    else if (attribute == USED_HIGH)
        pool->used_bytes_max = pool->used_bytes;
    else
        return FRAG_CUDA_INVALID_VALUE;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaMemPoolSetAttribute, (void *handle, int32_t attribute, void *value))
{
    frag_soft_call call;
    uint32_t pool = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMemPoolSetAttribute);
    if (find_pool(&call, may, handle, &pool)) {
        frag_soft_note(&call, "attribute", (uint32_t)attribute);
        frag_soft_fail(&call, set_attribute(&frag_soft.pools[pool], attribute, value));
    }
    return frag_runtime_end(&call);
}

static bool get_attribute(const frag_soft_pool *pool, int32_t attribute, uint64_t *value)
{
    const uint64_t wide[] = {pool->threshold_bytes, pool->reserved_bytes, pool->reserved_bytes_max,
                             pool->used_bytes, pool->used_bytes_max};
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
        *value = pool->reuse[attribute - REUSE_FIRST];
    else if (attribute >= RELEASE_THRESHOLD && attribute <= USED_HIGH)
        *value = wide[attribute - RELEASE_THRESHOLD];
    else
        return false;
    return true;
}

FRAG_ENTRY(int32_t, cudaMemPoolGetAttribute, (void *handle, int32_t attribute, void *out))
{
    frag_soft_call call;
    uint32_t pool = 0;
    uint64_t value = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMemPoolGetAttribute);
    if (out != NULL)
        memset(out, 0, attribute <= REUSE_LAST ? sizeof(uint32_t) : sizeof value);
    if (find_pool(&call, may, handle, &pool)) {
        frag_soft_note(&call, "attribute", (uint32_t)attribute);
        if (out == NULL || !get_attribute(&frag_soft.pools[pool], attribute, &value)) {
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        } else {
            uint32_t small = (uint32_t)value;
            frag_soft_note(&call, "value", value);
            if (attribute <= REUSE_LAST)
                memcpy(out, &small, sizeof small);
            else
                memcpy(out, &value, sizeof value);
        }
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaMemPoolTrimTo, (void *handle, size_t keep))
{
    frag_soft_call call;
    uint32_t pool = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMemPoolTrimTo);
    if (find_pool(&call, may, handle, &pool)) {
        frag_soft_note(&call, "bytes", keep);
        frag_soft_pool_trim(pool, keep);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaMemPoolSetAccess,
           (void *handle, const frag_soft_access *access, size_t count))
{
    frag_soft_call call;
    uint32_t pool = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMemPoolSetAccess);
    if (find_pool(&call, may, handle, &pool))
        for (size_t i = 0; i < count; i++)
            if (access[i].location.type != 1 || access[i].location.id < 0 ||
                access[i].location.id >= (int32_t)frag_soft.settings.device_count)
                frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaMemPoolGetAccess,
           (int32_t * flags, void *handle, const frag_soft_location *location))
{
    enum { READ_WRITE = 3 };
    frag_soft_call call;
    uint32_t pool = 0;
    (void)location;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaMemPoolGetAccess);
    *flags = 0;
    if (find_pool(&call, may, handle, &pool))
        *flags = READ_WRITE;
    return frag_runtime_end(&call);
}

static int32_t get_pool(frag_soft_call_id id, void **out, int32_t device, bool is_default)
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, id);
    *out = NULL;
    frag_soft_note(&call, "device", (uint32_t)device);
    if (may && (device < 0 || device >= (int32_t)frag_soft.settings.device_count)) {
        frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
    } else if (may) {
        uint32_t pool =
            is_default ? frag_soft.devices[device].default_pool : frag_soft.devices[device].pool;
        *out = frag_soft_pointer(frag_soft_handle_number(&frag_soft.pool_handles, pool));
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaDeviceGetDefaultMemPool, (void **out, int32_t device))
{
    return get_pool(FRAG_CALL_cudaDeviceGetDefaultMemPool, out, device, true);
}

FRAG_ENTRY(int32_t, cudaDeviceGetMemPool, (void **out, int32_t device))
{
    return get_pool(FRAG_CALL_cudaDeviceGetMemPool, out, device, false);
}

/* Only devices have pools here, and one default each. */
static int32_t get_pool_at(void **out, const frag_soft_location *location, bool is_default)
{
    enum { ON_DEVICE = 1 };
    if (out != NULL)
        *out = NULL;
    if (out == NULL || location == NULL || location->type != ON_DEVICE)
        return frag_runtime_return(location == NULL || out == NULL ? FRAG_CUDA_INVALID_VALUE
                                                                   : FRAG_CUDA_NOT_SUPPORTED);
    return get_pool(is_default ? FRAG_CALL_cudaDeviceGetDefaultMemPool
                               : FRAG_CALL_cudaDeviceGetMemPool,
                    out, location->id, is_default);
}

FRAG_ENTRY(int32_t, cudaMemGetDefaultMemPool,
           (void **out, const frag_soft_location *location, int32_t kind))
{
    (void)kind;
    return get_pool_at(out, location, true);
}

FRAG_ENTRY(int32_t, cudaMemGetMemPool,
           (void **out, const frag_soft_location *location, int32_t kind))
{
    (void)kind;
    return get_pool_at(out, location, false);
}

FRAG_ENTRY(int32_t, cudaDeviceSetMemPool, (int32_t device, void *handle))
{
    frag_soft_call call;
    uint32_t pool = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaDeviceSetMemPool);
    frag_soft_note(&call, "device", (uint32_t)device);
    if (find_pool(&call, may, handle, &pool)) {
        if (device < 0 || device >= (int32_t)frag_soft.settings.device_count)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
        else if (frag_soft.pools[pool].device != (uint32_t)device)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        else
            frag_soft.devices[device].pool = pool;
    }
    return frag_runtime_end(&call);
}

/* ---- pinned host memory */

static int32_t allocate_host(frag_soft_call_id id, void **out, size_t bytes)
{
    frag_soft_call call;
    uint64_t address = 0;
    bool may = frag_soft_begin(&call, id);
    frag_soft_note(&call, "bytes", bytes);
    if (may)
        frag_soft_fail(&call, frag_soft_host_new(bytes, &address));
    return give(&call, address, out);
}

FRAG_ENTRY(int32_t, cudaHostAlloc, (void **out, size_t bytes, unsigned flags))
{
    (void)flags;
    return allocate_host(FRAG_CALL_cudaHostAlloc, out, bytes);
}

FRAG_ENTRY(int32_t, cudaMallocHost, (void **out, size_t bytes))
{
    return allocate_host(FRAG_CALL_cudaMallocHost, out, bytes);
}

FRAG_ENTRY(int32_t, cudaFreeHost, (void *address))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaFreeHost);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    if (may && address != NULL && !frag_soft_host_give(frag_soft_number(address)))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaHostRegister, (void *address, size_t bytes, unsigned flags))
{
    frag_soft_call call;
    (void)flags;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaHostRegister);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    frag_soft_note(&call, "bytes", bytes);
    if (may && (address == NULL || bytes == 0))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    else if (may && !frag_soft_host_register(frag_soft_number(address), bytes))
        frag_soft_fail(&call, FRAG_CUDA_HOST_REGISTERED);
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaHostUnregister, (void *address))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaHostUnregister);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    if (may && !frag_soft_host_unregister(frag_soft_number(address)))
        frag_soft_fail(&call, FRAG_CUDA_HOST_NOT_REGISTERED);
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaHostGetDevicePointer, (void **out, void *address, unsigned flags))
{
    (void)flags;
    *out = address;
    return FRAG_CUDA_OK;
}

/* ---- memory and events of other processes */

FRAG_ENTRY(int32_t, cudaIpcGetMemHandle, (frag_soft_ipc_handle * handle, void *address))
{
    int32_t result = 0;
    memset(handle, 0, sizeof *handle);
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_export(frag_soft_number(address), handle);
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaIpcOpenMemHandle, (void **out, frag_soft_ipc_handle handle, unsigned flags))
{
    int32_t result = 0;
    uint64_t address = 0;
    (void)flags;
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_open(&handle, &address);
    frag_soft_leave();
    *out = frag_soft_pointer(address);
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaIpcCloseMemHandle, (void *address))
{
    int32_t result = 0;
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_close(frag_soft_number(address));
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaIpcGetEventHandle, (frag_soft_ipc_handle * handle, void *event))
{
    int32_t result = 0;
    frag_soft_event *known = NULL;
    memset(handle, 0, sizeof *handle);
    if (frag_soft_enter(&result)) {
        if (frag_soft_event_find(frag_soft_number(event), &known))
            frag_soft_ipc_export_event(handle);
        else
            result = FRAG_CUDA_INVALID_HANDLE;
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaIpcOpenEventHandle, (void **out, frag_soft_ipc_handle handle))
{
    int32_t result = 0;
    uint64_t event = 0;
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_open_event(&handle, &event);
    frag_soft_leave();
    *out = frag_soft_pointer(event);
    return frag_runtime_return(result);
}

/* ---- what lies where */

#if FRAG_CUDART >= 13
#define POINTER_ATTRIBUTES_BYTES 88
#else
#define POINTER_ATTRIBUTES_BYTES 24
#endif

typedef struct pointer_attributes {
    int32_t type;
    int32_t device;
    void *device_address;
    void *host_address;
} pointer_attributes;

FRAG_ENTRY(int32_t, cudaPointerGetAttributes, (unsigned char *out, void *address))
{
    enum { UNREGISTERED = 0, HOST = 1, DEVICE = 2, NO_DEVICE = -2 };
    int32_t result = 0;
    frag_soft_extent extent;
    frag_soft_host host;
    uint64_t number = frag_soft_number(address);
    pointer_attributes known = {.type = UNREGISTERED, .device = NO_DEVICE, .host_address = address};
    memset(out, 0, POINTER_ATTRIBUTES_BYTES);
    if (frag_soft_enter(&result)) {
        if (frag_soft_extent_find(number, &extent))
            known = (pointer_attributes){
                .type = DEVICE, .device = (int32_t)extent.device, .device_address = address};
        else if (frag_soft_host_find(number, &host))
            known = (pointer_attributes){.type = HOST,
                                         .device = (int32_t)frag_soft_device_current(),
                                         .device_address = address,
                                         .host_address = address};
        memcpy(out, &known, sizeof known);
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}
