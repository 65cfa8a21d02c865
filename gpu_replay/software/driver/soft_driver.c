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
    if (frag_driver_enter(device, &result))
        memcpy(uuid, frag_soft.cards[device].uuid, sizeof frag_soft.cards[device].uuid);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceTotalMem_v2, (size_t * bytes, int32_t device))
{
    int32_t result = 0;
    if (frag_driver_enter(device, &result))
        *bytes = frag_soft.settings.capacity_bytes[device];
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cuDeviceGetAttribute, (int32_t * value, int32_t attribute, int32_t device))
{
    int32_t result = 0;
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
    if (call.seen.result == FRAG_CUDA_OK)
        *address = given;
    return frag_soft_end(&call);
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
    frag_soft_note_address(&call, "stream", frag_soft_number(stream));
    if (may && frag_soft_stream_find(frag_soft_number(stream), &on))
        frag_soft_pool_malloc(&call, frag_soft.devices[frag_soft.streams[on].device].pool, bytes,
                              on, &given);
    else if (may)
        frag_soft_fail(&call, FRAG_CUDA_INVALID_HANDLE);
    frag_soft_note_address(&call, "address", given);
    if (call.seen.result == FRAG_CUDA_OK)
        *address = given;
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
    if (call.seen.result == FRAG_CUDA_OK)
        *address = given;
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
    if (call.seen.result == FRAG_CUDA_OK)
        *handle = given;
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
    if (call.seen.result == FRAG_CUDA_OK)
        *flags = given;
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
    if (call.seen.result == FRAG_CUDA_OK) {
        if (base != NULL)
            *base = extent.address;
        if (bytes != NULL)
            *bytes = extent.bytes;
    }
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
    if (call.seen.result == FRAG_CUDA_OK)
        *handle = given;
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
    if (call.seen.result == FRAG_CUDA_OK)
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

FRAG_ENTRY(int32_t, cuMemExportToShareableHandle, (void))
{
    return refuse(FRAG_CALL_cuMemExportToShareableHandle);
}

FRAG_ENTRY(int32_t, cuMemImportFromShareableHandle, (void))
{
    return refuse(FRAG_CALL_cuMemImportFromShareableHandle);
}

/* Multicast objects need a switch between cards: there is none. */
FRAG_ENTRY(int32_t, cuMulticastCreate, (void))
{
    return FRAG_CUDA_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, cuMulticastAddDevice, (void))
{
    return FRAG_CUDA_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, cuMulticastBindMem, (void))
{
    return FRAG_CUDA_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, cuMulticastUnbind, (void))
{
    return FRAG_CUDA_NOT_SUPPORTED;
}

/* ---- looking up */

/* A base name stands for the newest form of a function: _v2 before the plain one. */
uint64_t frag_soft_driver_entry(const char *name)
{
    char longer[128];
    if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0 ||
        strlen(name) + 4 > sizeof longer)
        return 0;
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (self == NULL)
        return 0;
    snprintf(longer, sizeof longer, "%s_v2", name);
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
    (void)version, (void)flags;
    if (name == NULL || function == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    *function = frag_soft_pointer(frag_soft_driver_entry(name));
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
