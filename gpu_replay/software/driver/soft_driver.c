/* libcuda.so.1: the entry points of the driver that allocators and PyTorch look up. */
#include "gpu_replay/software/driver/soft_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- start, devices */

FRAG_ENTRY(int32_t, cuInit, (unsigned flags))
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cuInit)) {
        if (flags != 0)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        else if (frag_soft.settings.device_count == 0)
            frag_soft_fail(&call, FRAG_CUDA_NO_DEVICE);
    }
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuDriverGetVersion, (int32_t * version))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *version = (int32_t)frag_soft.settings.driver_version;
    frag_soft_leave();
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuDeviceGetCount, (int32_t * count))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *count = (int32_t)frag_soft.settings.device_count;
    frag_soft_leave();
    return result == FRAG_CUDA_NO_DEVICE ? FRAG_CUDA_OK : result;
}

FRAG_ENTRY(int32_t, cuDeviceGet, (int32_t * device, int32_t ordinal))
{
    int32_t result = 0;
    *device = 0;
    if (frag_driver_enter(ordinal, &result))
        *device = ordinal;
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetName, (char *name, int32_t bytes, int32_t device))
{
    int32_t result = 0;
    if (frag_soft_enter(&result))
        result =
            frag_driver_is_device(device) && bytes > 0 ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_VALUE;
    if (result == FRAG_CUDA_OK)
        snprintf(name, (size_t)bytes, "%s", frag_soft.cards[device].name);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetUuid_v2, (unsigned char *uuid, int32_t device))
{
    int32_t result = 0;
    memset(uuid, 0, sizeof frag_soft.cards[0].uuid);
    if (frag_driver_enter(device, &result))
        memcpy(uuid, frag_soft.cards[device].uuid, sizeof frag_soft.cards[device].uuid);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetUuid, (unsigned char *uuid, int32_t device))
{
    return cuDeviceGetUuid_v2(uuid, device);
}

FRAG_ENTRY(int32_t, cuDeviceComputeCapability, (int32_t * major, int32_t *minor, int32_t device))
{
    int32_t result = 0;
    uint32_t capability = 0;
    if (frag_driver_enter(device, &result))
        capability = frag_soft.cards[device].compute_capability;
    frag_soft_leave();
    *major = (int32_t)(capability / 10);
    *minor = (int32_t)(capability % 10);
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetPCIBusId, (char *text, int32_t bytes, int32_t device))
{
    int32_t result = 0;
    if (bytes > 0)
        text[0] = '\0';
    frag_driver_enter(device, &result);
    frag_soft_leave();
    if (result == FRAG_CUDA_OK && snprintf(text, bytes > 0 ? (size_t)bytes : 0, "0000:%02X:00.0",
                                           1u + (unsigned)device) >= bytes)
        result = FRAG_CUDA_INVALID_VALUE;
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetByPCIBusId, (int32_t * device, const char *id))
{
    *device = 0;
    for (int32_t d = 0; id != NULL && d < FRAG_SOFT_DEVICES_MAX; d++) {
        char known[32];
        if (cuDeviceGetPCIBusId(known, sizeof known, d) != FRAG_CUDA_OK || strcmp(known, id) != 0)
            continue;
        *device = d;
        return FRAG_CUDA_OK;
    }
    return id == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_INVALID_DEVICE;
}

FRAG_ENTRY(int32_t, cuDeviceTotalMem_v2, (size_t * bytes, int32_t device))
{
    int32_t result = 0;
    *bytes = 0;
    if (frag_driver_enter(device, &result))
        *bytes = frag_soft.settings.capacity_bytes[device];
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetAttribute, (int32_t * value, int32_t attribute, int32_t device))
{
    int32_t result = 0;
    *value = 0;
    if (frag_driver_enter(device, &result))
        *value = frag_soft_attribute(attribute, (uint32_t)device);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuGetErrorString, (int32_t code, const char **text))
{
    *text = frag_soft_code_text(code);
    return *text != NULL ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_VALUE;
}

FRAG_ENTRY(int32_t, cuGetErrorName, (int32_t code, const char **name))
{
    *name = frag_soft_code_name(code, true);
    return *name != NULL ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_VALUE;
}

/* ---- plain and stream-ordered memory */

FRAG_ENTRY(int32_t, cuMemAlloc_v2, (uint64_t * address, size_t bytes))
{
    frag_soft_call call;
    uint64_t given = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemAlloc);
    frag_soft_note(&call, "bytes", bytes);
    if (may && bytes == 0)
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    else if (may)
        frag_soft_malloc(&call, bytes, &given);
    frag_soft_note_address(&call, "address", given);
    if (address != NULL)
        *address = call.seen.result == FRAG_CUDA_OK ? given : 0;
    return frag_soft_end(&call);
}

/* Charged when it is asked for, unlike managed memory of a real device. */
FRAG_ENTRY(int32_t, cuMemAllocManaged, (uint64_t * address, size_t bytes, unsigned flags))
{
    (void)flags;
    return cuMemAlloc_v2(address, bytes);
}

FRAG_ENTRY(int32_t, cuMemAllocPitch_v2,
           (uint64_t * address, size_t *pitch, size_t width, size_t height, unsigned element))
{
    enum { PITCH_BYTES = 512 };
    (void)element;
    *pitch = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
    bool is_too_large = height != 0 && *pitch > SIZE_MAX / height;
    return cuMemAlloc_v2(address, is_too_large ? SIZE_MAX : *pitch * height);
}

FRAG_ENTRY(int32_t, cuMemFree_v2, (uint64_t address))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemFree);
    frag_soft_note_address(&call, "address", address);
    if (may)
        frag_soft_free(&call, address);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes))
{
    frag_soft_call call;
    *free_bytes = 0;
    *total_bytes = 0;
    if (frag_soft_begin(&call, FRAG_CALL_cuMemGetInfo)) {
        uint32_t device = frag_soft_device_current();
        *free_bytes = frag_soft_free_bytes(device);
        *total_bytes = frag_soft.settings.capacity_bytes[device];
        frag_soft_note(&call, "free", *free_bytes);
        frag_soft_note(&call, "total", *total_bytes);
    }
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemAllocAsync, (uint64_t * address, size_t bytes, void *stream))
{
    frag_soft_call call;
    uint64_t given = 0;
    uint32_t on = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemAllocAsync);
    frag_soft_note(&call, "bytes", bytes);
    if (frag_soft_call_stream(&call, may, stream, &on))
        frag_soft_pool_malloc(&call, frag_soft.devices[frag_soft.streams[on].device].pool, bytes,
                              on, &given);
    frag_soft_note_address(&call, "address", given);
    if (address != NULL)
        *address = call.seen.result == FRAG_CUDA_OK ? given : 0;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemFreeAsync, (uint64_t address, void *stream))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemFreeAsync);
    frag_soft_note_address(&call, "address", address);
    frag_soft_note_address(&call, "stream", frag_soft_number(stream));
    if (may)
        frag_soft_free_async(&call, address, frag_soft_number(stream));
    return frag_soft_end(&call);
}

/* ---- virtual memory management */

FRAG_ENTRY(int32_t, cuMemGetAllocationGranularity,
           (size_t * granularity, const int32_t *properties, int32_t option))
{
    frag_soft_call call;
    if (granularity != NULL)
        *granularity = 0;
    if (frag_soft_begin(&call, FRAG_CALL_cuMemGetAllocationGranularity)) {
        if (granularity == NULL || properties == NULL || option < 0 || option > 1 ||
            properties[0] != 1 || properties[2] != 1)
            frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
        else if (!frag_driver_is_device(properties[3]))
            frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
        else
            *granularity = frag_soft.settings.granularity_bytes;
        frag_soft_note(&call, "bytes", frag_soft.settings.granularity_bytes);
    }
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemAddressReserve,
           (uint64_t * address, size_t bytes, size_t alignment, uint64_t wanted,
            unsigned long long flags))
{
    frag_soft_call call;
    uint64_t given = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemAddressReserve);
    (void)wanted; /* a wish, which need not be granted */
    frag_soft_note(&call, "bytes", bytes);
    frag_soft_note(&call, "alignment", alignment);
    if (may && address == NULL)
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    else if (may)
        frag_soft_reserve(&call, bytes, alignment, flags, &given);
    frag_soft_note_address(&call, "address", given);
    if (address != NULL)
        *address = call.seen.result == FRAG_CUDA_OK ? given : 0;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemAddressFree, (uint64_t address, size_t bytes))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemAddressFree);
    frag_soft_note_address(&call, "address", address);
    frag_soft_note(&call, "bytes", bytes);
    if (may)
        frag_soft_unreserve(&call, address, bytes);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemCreate,
           (uint64_t * handle, size_t bytes, const int32_t *properties, unsigned long long flags))
{
    frag_soft_call call;
    uint64_t given = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemCreate);
    frag_soft_note(&call, "bytes", bytes);
    if (may && (handle == NULL || properties == NULL)) {
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    } else if (may) {
        frag_soft_note(&call, "device", (uint32_t)properties[3]);
        frag_soft_create(&call, bytes, properties, flags, &given);
    }
    frag_soft_note_address(&call, "handle", given);
    if (handle != NULL)
        *handle = call.seen.result == FRAG_CUDA_OK ? given : 0;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemRelease, (uint64_t handle))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemRelease);
    frag_soft_note_address(&call, "handle", handle);
    if (may)
        frag_soft_release(&call, handle);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemMap,
           (uint64_t address, size_t bytes, size_t offset, uint64_t handle,
            unsigned long long flags))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemMap);
    frag_soft_note_address(&call, "address", address);
    frag_soft_note(&call, "bytes", bytes);
    frag_soft_note_address(&call, "handle", handle);
    if (may)
        frag_soft_map(&call, (frag_soft_extent){.address = address, .bytes = bytes}, offset, handle,
                      flags);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemUnmap, (uint64_t address, size_t bytes))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemUnmap);
    frag_soft_note_address(&call, "address", address);
    frag_soft_note(&call, "bytes", bytes);
    if (may)
        frag_soft_unmap(&call, address, bytes);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemSetAccess,
           (uint64_t address, size_t bytes, const frag_soft_access *access, size_t count))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemSetAccess);
    frag_soft_note_address(&call, "address", address);
    frag_soft_note(&call, "bytes", bytes);
    if (may && access == NULL)
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    else if (may)
        frag_soft_set_access(&call, (frag_soft_extent){.address = address, .bytes = bytes}, access,
                             count);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemGetAccess,
           (unsigned long long *flags, const frag_soft_location *location, uint64_t address))
{
    frag_soft_call call;
    uint64_t given = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemGetAccess);
    frag_soft_note_address(&call, "address", address);
    if (may)
        frag_soft_get_access(&call, address, location, &given);
    *flags = call.seen.result == FRAG_CUDA_OK ? given : 0;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemGetAddressRange_v2, (uint64_t * base, size_t *bytes, uint64_t address))
{
    frag_soft_call call;
    frag_soft_extent extent = {0};
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemGetAddressRange);
    frag_soft_note_address(&call, "address", address);
    if (may && !frag_soft_extent_find(address, &extent))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_VALUE);
    if (call.seen.result != FRAG_CUDA_OK)
        extent = (frag_soft_extent){0};
    if (base != NULL)
        *base = extent.address;
    if (bytes != NULL)
        *bytes = extent.bytes;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemRetainAllocationHandle, (uint64_t * handle, void *address))
{
    frag_soft_call call;
    uint64_t given = 0;
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemRetainAllocationHandle);
    frag_soft_note_address(&call, "address", frag_soft_number(address));
    if (may)
        frag_soft_retain(&call, frag_soft_number(address), &given);
    if (handle != NULL)
        *handle = call.seen.result == FRAG_CUDA_OK ? given : 0;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemGetAllocationPropertiesFromHandle, (int32_t * properties, uint64_t handle))
{
    frag_soft_call call;
    int32_t given[8] = {0}; /* the whole structure */
    bool may = frag_soft_begin(&call, FRAG_CALL_cuMemGetAllocationPropertiesFromHandle);
    frag_soft_note_address(&call, "handle", handle);
    if (may)
        frag_soft_properties(&call, handle, given);
    memcpy(properties, given, sizeof given);
    return frag_soft_end(&call);
}

static int32_t refuse(frag_soft_call_id id)
{
    frag_soft_call call;
    if (frag_soft_begin(&call, id))
        frag_soft_fail(&call, FRAG_CUDA_NOT_SUPPORTED);
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cuMemExportToShareableHandle, (int32_t * out))
{
    *out = -1;
    return refuse(FRAG_CALL_cuMemExportToShareableHandle);
}

FRAG_ENTRY(int32_t, cuMemImportFromShareableHandle, (uint64_t * handle))
{
    *handle = 0;
    return refuse(FRAG_CALL_cuMemImportFromShareableHandle);
}

/* ---- memory and events of other processes */

FRAG_ENTRY(int32_t, cuIpcGetMemHandle, (frag_soft_ipc_handle * handle, uint64_t address))
{
    int32_t result = 0;
    memset(handle, 0, sizeof *handle);
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_export(address, handle);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuIpcOpenMemHandle_v2,
           (uint64_t * address, frag_soft_ipc_handle handle, unsigned flags))
{
    int32_t result = 0;
    (void)flags;
    *address = 0;
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_open(&handle, address);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuIpcCloseMemHandle, (uint64_t address))
{
    int32_t result = 0;
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_close(address);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuIpcGetEventHandle, (frag_soft_ipc_handle * handle, void *event))
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
    return result;
}

FRAG_ENTRY(int32_t, cuIpcOpenEventHandle, (void **out, frag_soft_ipc_handle handle))
{
    int32_t result = 0;
    uint64_t event = 0;
    if (frag_soft_enter(&result))
        result = frag_soft_ipc_open_event(&handle, &event);
    frag_soft_leave();
    *out = frag_soft_pointer(event);
    return result;
}

/* The tables of the driver that only NVIDIA's own libraries know. */
FRAG_ENTRY(int32_t, cuGetExportTable, (const void **table, const void *id))
{
    (void)id;
    *table = NULL;
    return FRAG_CUDA_NOT_FOUND;
}

FRAG_ENTRY(int32_t, cuFlushGPUDirectRDMAWrites, (int32_t target, int32_t scope))
{
    (void)target, (void)scope;
    return FRAG_CUDA_OK;
}

/* ---- looking up */

/* Forms whose parameters differ, and the version from which on a plain name stands for them. Rows
 * of one name in order. Source: the names of types in cudaTypedefs.h. */
typedef struct form {
    const char *name;
    int32_t version;
    const char *suffix;
} form;

static const form forms[] = {
    {"cuCtxCreate", 0, "_v2"},
    {"cuCtxCreate", 11040, "_v3"},
    {"cuCtxCreate", 12050, "_v4"},
    {"cuCtxGetDevice", 0, ""},
    {"cuCtxGetDevice", 13000, "_v2"},
    {"cuCtxSynchronize", 0, ""},
    {"cuCtxSynchronize", 13000, "_v2"},
    {"cuGetProcAddress", 0, ""},
    {"cuGetProcAddress", 12000, "_v2"},
    {"cuGraphAddDependencies", 0, ""},
    {"cuGraphAddDependencies", 12030, "_v2"},
    {"cuGraphAddNode", 0, ""},
    {"cuGraphAddNode", 12030, "_v2"},
    {"cuGraphGetEdges", 0, ""},
    {"cuGraphGetEdges", 12030, "_v2"},
    {"cuGraphNodeGetDependencies", 0, ""},
    {"cuGraphNodeGetDependencies", 12030, "_v2"},
    {"cuGraphNodeGetDependentNodes", 0, ""},
    {"cuGraphNodeGetDependentNodes", 12030, "_v2"},
    {"cuGraphRemoveDependencies", 0, ""},
    {"cuGraphRemoveDependencies", 12030, "_v2"},
    {"cuMemAdvise", 0, ""},
    {"cuMemAdvise", 12020, "_v2"},
    {"cuMemPrefetchAsync", 0, ""},
    {"cuMemPrefetchAsync", 12020, "_v2"},
    {"cuStreamGetCaptureInfo", 0, "_v2"},
    {"cuStreamGetCaptureInfo", 12030, "_v3"},
    {"cuStreamGetCtx", 0, ""},
    {"cuStreamGetCtx", 12050, "_v2"},
    {"cuStreamUpdateCaptureDependencies", 0, ""},
    {"cuStreamUpdateCaptureDependencies", 12030, "_v2"},
};

/* NULL: no form is named. */
static const char *suffix_of(const char *name, int32_t version)
{
    const char *suffix = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(forms[i].name, name) == 0 && version >= forms[i].version)
            suffix = forms[i].suffix;
    return suffix;
}

/* Of the others the newest form has the same parameters: _v2 before the plain one. */
uint64_t frag_soft_driver_entry(const char *name, int32_t version)
{
    char longer[128];
    if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0 ||
        strlen(name) + 4 > sizeof longer)
        return 0;
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (self == NULL)
        return 0;
    const char *suffix = suffix_of(name, version);
    snprintf(longer, sizeof longer, "%s%s", name, suffix != NULL ? suffix : "_v2");
    void *found = dlsym(self, longer);
    if (found == NULL)
        found = dlsym(self, name);
    dlclose(self);
    return frag_soft_number(found);
}

FRAG_ENTRY(int32_t, cuGetProcAddress_v2,
           (const char *name, void **function, int32_t version, uint64_t flags, int32_t *status))
{
    enum { FOUND = 0, UNKNOWN = 1 };
    (void)flags;
    if (status != NULL)
        *status = UNKNOWN;
    if (name == NULL || function == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    *function = frag_soft_pointer(frag_soft_driver_entry(name, version));
    if (status != NULL)
        *status = *function != NULL ? FOUND : UNKNOWN;
    return *function != NULL ? FRAG_CUDA_OK : FRAG_CUDA_NOT_FOUND;
}

FRAG_ENTRY(int32_t, cuGetProcAddress,
           (const char *name, void **function, int32_t version, uint64_t flags))
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* PyTorch resolves this one by its plain name, with the library's own dlsym. */
FRAG_ENTRY(int32_t, cuMemGetAddressRange, (uint64_t * base, size_t *bytes, uint64_t address))
{
    return cuMemGetAddressRange_v2(base, bytes, address);
}
