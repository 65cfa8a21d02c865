/* libcudart: errors, devices, the way to the driver. */
#include "gpu_replay/software/runtime/soft_runtime.h"

#include <stdio.h>
#include <string.h>

static _Thread_local int32_t last_error;

int32_t frag_runtime_return(int32_t result)
{
    if (result != FRAG_CUDA_OK)
        last_error = result;
    return result;
}

int32_t frag_runtime_end(frag_soft_call *call)
{
    return frag_runtime_return(frag_soft_end(call));
}

/* ---- errors */

/* The thread's error, or the sticky one that nothing clears. */
static int32_t ask_error(frag_soft_call_id id, bool clears)
{
    frag_soft_call call;
    if (frag_soft_begin(&call, id)) {
        bool is_stuck = frag_soft.settings.sticky_from != 0 &&
                        frag_soft.sequence >= frag_soft.settings.sticky_from;
        frag_soft_fail(&call, is_stuck ? frag_soft.settings.sticky_code : last_error);
    }
    if (clears)
        last_error = FRAG_CUDA_OK;
    return frag_soft_end(&call);
}

FRAG_ENTRY(int32_t, cudaGetLastError, (void))
{
    return ask_error(FRAG_CALL_cudaGetLastError, true);
}

FRAG_ENTRY(int32_t, cudaPeekAtLastError, (void))
{
    return ask_error(FRAG_CALL_cudaPeekAtLastError, false);
}

FRAG_ENTRY(const char *, cudaGetErrorString, (int32_t code))
{
    const char *text = frag_soft_code_text(code);
    return text != NULL ? text : "unrecognized error code";
}

FRAG_ENTRY(const char *, cudaGetErrorName, (int32_t code))
{
    const char *name = frag_soft_code_name(code, false);
    return name != NULL ? name : "unrecognized error code";
}

/* ---- versions and the driver */

FRAG_ENTRY(int32_t, cudaDriverGetVersion, (int32_t * version))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *version = (int32_t)frag_soft.settings.driver_version;
    frag_soft_leave();
    return FRAG_CUDA_OK;
}

#define RUNTIME_VERSION (FRAG_CUDART >= 13 ? 13000 : 12080)

FRAG_ENTRY(int32_t, cudaRuntimeGetVersion, (int32_t * version))
{
    *version = RUNTIME_VERSION;
    return FRAG_CUDA_OK;
}

enum { ENTRY_FOUND = 0, ENTRY_UNKNOWN = 1 };

static int32_t find_entry(const char *name, void **function, int32_t version, int32_t *status)
{
    if (status != NULL)
        *status = ENTRY_UNKNOWN;
    if (name == NULL || function == NULL)
        return frag_runtime_return(FRAG_CUDA_INVALID_VALUE);
    *function = frag_soft_pointer(frag_soft_driver_entry(name, version));
    if (status != NULL)
        *status = *function != NULL ? ENTRY_FOUND : ENTRY_UNKNOWN;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaGetDriverEntryPoint,
           (const char *name, void **function, unsigned long long flags, int32_t *status))
{
    (void)flags;
    return find_entry(name, function, RUNTIME_VERSION, status);
}

FRAG_ENTRY(int32_t, cudaGetDriverEntryPointByVersion,
           (const char *name, void **function, unsigned version, unsigned long long flags,
            int32_t *status))
{
    int32_t driver_version = 0;
    (void)flags;
    cudaDriverGetVersion(&driver_version);
    if (function != NULL)
        *function = NULL;
    if (version > (unsigned)driver_version) {
        if (status != NULL)
            *status = ENTRY_UNKNOWN;
        return frag_runtime_return(FRAG_CUDA_INVALID_VALUE);
    }
    return find_entry(name, function, (int32_t)version, status);
}

/* The tables of the driver that only NVIDIA's own libraries know. */
FRAG_ENTRY(int32_t, cudaGetExportTable, (const void **out, const void *id))
{
    (void)id;
    *out = NULL;
    return frag_runtime_return(FRAG_CUDA_NOT_FOUND);
}

/* ---- devices */

FRAG_ENTRY(int32_t, cudaGetDeviceCount, (int32_t * count))
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cudaGetDeviceCount)) {
        *count = (int32_t)frag_soft.settings.device_count;
        frag_soft_note(&call, "count", frag_soft.settings.device_count);
        if (frag_soft.settings.driver_version == 0)
            frag_soft_fail(&call, FRAG_CUDA_INSUFFICIENT_DRIVER);
        else if (*count == 0)
            frag_soft_fail(&call, FRAG_CUDA_NO_DEVICE);
    } else {
        *count = 0;
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaGetDevice, (int32_t * device))
{
    frag_soft_call call;
    *device = 0;
    if (frag_soft_begin(&call, FRAG_CALL_cudaGetDevice)) {
        *device = (int32_t)frag_soft_device_current();
        frag_soft_note(&call, "device", frag_soft_device_current());
    }
    return frag_runtime_end(&call);
}

/* Makes the context of the chosen device, and of no other. */
static int32_t choose(frag_soft_call_id id, int32_t device)
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, id);
    frag_soft_note(&call, "device", (uint32_t)device);
    if (may) {
        frag_soft_fail(&call, frag_soft_device_choose(device));
        if (call.seen.result == FRAG_CUDA_OK)
            frag_soft_device_touch((uint32_t)device);
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaSetDevice, (int32_t device))
{
    return choose(FRAG_CALL_cudaSetDevice, device);
}

FRAG_ENTRY(int32_t, cudaInitDevice, (int32_t device, unsigned device_flags, unsigned flags))
{
    (void)device_flags, (void)flags;
    int32_t before = 0;
    cudaGetDevice(&before);
    int32_t result = choose(FRAG_CALL_cudaInitDevice, device);
    int32_t ignored = 0;
    if (frag_soft_enter(&ignored))
        frag_soft_device_choose(before);
    frag_soft_leave();
    return result;
}

FRAG_ENTRY(int32_t, cudaDeviceReset, (void))
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cudaDeviceReset)) {
        frag_soft_note(&call, "device", frag_soft_device_current());
        frag_soft_device_reset(frag_soft_device_current());
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaDeviceSynchronize, (void))
{
    frag_soft_call call;
    if (frag_soft_begin(&call, FRAG_CALL_cudaDeviceSynchronize)) {
        frag_soft_note(&call, "device", frag_soft_device_current());
        frag_soft_device_complete(frag_soft_device_current());
        frag_soft_pools_settle();
    }
    return frag_runtime_end(&call);
}

/* cudaDeviceProp by offsets, 12.x and 13.x: measured with offsetof on 12.8 and 13.0. */
#if FRAG_CUDART >= 13
#define PROPERTIES_BYTES 1008
#define OFFSET(of_12, of_13) (of_13)
#else
#define PROPERTIES_BYTES 1032
#define OFFSET(of_12, of_13) (of_12)
#endif
#define NAME_BYTES 256

typedef struct property {
    uint16_t offset;
    int16_t attribute; /* -1: the value is given */
    bool is_size;      /* 64 bits */
    uint64_t value;
} property;

static const property properties[] = {
    {296, 8, true, 0},
    {304, 12, false, 0},
    {308, 10, false, 0},
    {312, 11, true, 0},
    {320, 1, false, 0},
    {324, 2, false, 0},
    {328, 3, false, 0},
    {332, 4, false, 0},
    {336, 5, false, 0},
    {340, 6, false, 0},
    {344, 7, false, 0},
    {352, 9, true, 0},
    {360, 75, false, 0},
    {364, 76, false, 0},
    {368, 14, true, 0},
    {376, -1, true, 32},
#if FRAG_CUDART < 13
    {348, 13, false, 0},
    {608, 36, false, 0},
#endif
    {OFFSET(676, 656), 89, false, 0},
    {OFFSET(680, 660), 90, false, 0},
    {OFFSET(772, 748), 120, false, 0},
    {OFFSET(388, 384), 16, false, 0},
    {OFFSET(400, 392), 19, false, 0},
    {OFFSET(576, 560), 31, false, 0},
    {OFFSET(580, 564), 32, false, 0},
    {OFFSET(584, 568), 33, false, 0},
    {OFFSET(600, 584), 40, false, 0},
    {OFFSET(604, 588), 41, false, 0},
    {OFFSET(612, 592), 37, false, 0},
    {OFFSET(616, 596), 38, false, 0},
    {OFFSET(624, 604), 39, false, 0},
    {OFFSET(628, 608), 78, false, 0},
    {OFFSET(632, 612), 79, false, 0},
    {OFFSET(636, 616), 80, false, 0},
    {OFFSET(640, 624), 81, true, 0},
    {OFFSET(648, 632), 82, false, 0},
    {OFFSET(652, 636), 83, false, 0},
    {OFFSET(688, 668), 95, false, 0},
    {OFFSET(696, 672), 97, true, 0},
    {OFFSET(712, 688), 106, false, 0},
    {OFFSET(720, 696), -1, true, 1024},
    {OFFSET(728, 704), 99, false, 0},
    {OFFSET(744, 720), 115, false, 0},
};

static void describe(unsigned char *out, uint32_t device)
{
    const frag_software_card *card = &frag_soft.cards[device];
    memcpy(out, card->name, sizeof card->name);
    memcpy(out + NAME_BYTES, card->uuid, sizeof card->uuid);
    uint64_t total = frag_soft.settings.capacity_bytes[device];
    memcpy(out + 288, &total, sizeof total);
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
        const property *known = &properties[i];
        uint64_t value = known->attribute < 0
                             ? known->value
                             : (uint64_t)frag_soft_attribute(known->attribute, device);
        uint32_t small = (uint32_t)value;
        if (known->is_size)
            memcpy(out + known->offset, &value, sizeof value);
        else
            memcpy(out + known->offset, &small, sizeof small);
    }
}

static int32_t get_properties(unsigned char *out, int32_t device)
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaGetDeviceProperties);
    frag_soft_note(&call, "device", (uint32_t)device);
    memset(out, 0, PROPERTIES_BYTES);
    if (may && (device < 0 || device >= (int32_t)frag_soft.settings.device_count))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
    else if (may)
        describe(out, (uint32_t)device);
    return frag_runtime_end(&call);
}

#if FRAG_CUDART >= 13
FRAG_ENTRY(int32_t, cudaGetDeviceProperties, (void *out, int32_t device))
{
    return get_properties(out, device);
}
#else
FRAG_ENTRY(int32_t, cudaGetDeviceProperties_v2, (void *out, int32_t device))
{
    return get_properties(out, device);
}
#endif

FRAG_ENTRY(int32_t, cudaDeviceGetAttribute, (int32_t * value, int32_t attribute, int32_t device))
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, FRAG_CALL_cudaDeviceGetAttribute);
    *value = 0;
    frag_soft_note(&call, "attribute", (uint32_t)attribute);
    frag_soft_note(&call, "device", (uint32_t)device);
    if (may && (device < 0 || device >= (int32_t)frag_soft.settings.device_count))
        frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
    else if (may)
        *value = frag_soft_attribute(attribute, (uint32_t)device);
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaDeviceGetPCIBusId, (char *text, int32_t bytes, int32_t device))
{
    int32_t result = 0;
    if (bytes > 0)
        text[0] = '\0';
    if (frag_soft_enter(&result) &&
        (device < 0 || device >= (int32_t)frag_soft.settings.device_count))
        result = FRAG_CUDA_INVALID_DEVICE;
    frag_soft_leave();
    if (result == FRAG_CUDA_OK &&
        snprintf(text, (size_t)bytes, "0000:%02X:00.0", 1u + (unsigned)device) >= bytes)
        result = FRAG_CUDA_INVALID_VALUE;
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaDeviceGetByPCIBusId, (int32_t * device, const char *id))
{
    *device = 0;
    for (int32_t d = 0; id != NULL && d < FRAG_SOFT_DEVICES_MAX; d++) {
        char known[32];
        if (cudaDeviceGetPCIBusId(known, sizeof known, d) != FRAG_CUDA_OK)
            break;
        *device = d;
        if (strcmp(known, id) == 0)
            return FRAG_CUDA_OK;
    }
    *device = 0;
    return frag_runtime_return(id == NULL ? FRAG_CUDA_INVALID_VALUE : FRAG_CUDA_INVALID_DEVICE);
}

FRAG_ENTRY(int32_t, cudaDeviceGetStreamPriorityRange, (int32_t * least, int32_t *greatest))
{
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cudaDeviceGetLimit, (size_t * value, int32_t limit))
{
    return frag_runtime_return(frag_soft_limit_get(limit, value));
}

FRAG_ENTRY(int32_t, cudaDeviceSetLimit, (int32_t limit, size_t value))
{
    return frag_runtime_return(frag_soft_limit_set(limit, value));
}

/* ---- peers: every device reaches every other */

FRAG_ENTRY(int32_t, cudaDeviceCanAccessPeer, (int32_t * can, int32_t device, int32_t peer))
{
    int32_t result = 0;
    *can = 0;
    if (frag_soft_enter(&result)) {
        int32_t count = (int32_t)frag_soft.settings.device_count;
        if (device < 0 || device >= count || peer < 0 || peer >= count)
            result = FRAG_CUDA_INVALID_DEVICE;
        else
            *can = device != peer;
    }
    frag_soft_leave();
    return frag_runtime_return(result);
}

FRAG_ENTRY(int32_t, cudaDeviceGetP2PAttribute,
           (int32_t * value, int32_t attribute, int32_t device, int32_t peer))
{
    (void)attribute;
    return cudaDeviceCanAccessPeer(value, device, peer);
}

static int32_t change_peer(frag_soft_call_id id, int32_t peer, bool is_on)
{
    frag_soft_call call;
    bool may = frag_soft_begin(&call, id);
    frag_soft_note(&call, "peer", (uint32_t)peer);
    uint32_t device = frag_soft_device_current();
    if (may &&
        (peer < 0 || peer >= (int32_t)frag_soft.settings.device_count || peer == (int32_t)device)) {
        frag_soft_fail(&call, FRAG_CUDA_INVALID_DEVICE);
    } else if (may) {
        uint32_t bit = (uint32_t)1 << peer;
        uint32_t *peers = &frag_soft.devices[device].peers;
        if (((*peers & bit) != 0) == is_on)
            frag_soft_fail(&call, is_on ? FRAG_CUDA_PEER_ENABLED : FRAG_CUDA_PEER_NOT_ENABLED);
        *peers = is_on ? *peers | bit : *peers & ~bit;
    }
    return frag_runtime_end(&call);
}

FRAG_ENTRY(int32_t, cudaDeviceEnablePeerAccess, (int32_t peer, unsigned flags))
{
    (void)flags;
    return change_peer(FRAG_CALL_cudaDeviceEnablePeerAccess, peer, true);
}

FRAG_ENTRY(int32_t, cudaDeviceDisablePeerAccess, (int32_t peer))
{
    return change_peer(FRAG_CALL_cudaDeviceDisablePeerAccess, peer, false);
}
