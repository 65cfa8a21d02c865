/* libnvidia-ml.so.1: what tools and PyTorch ask the management library, answered from the software
 * device of this process. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu_replay/software/soft_entry.h"

enum {
    NVML_OK = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
};

/* Handles are the device's place + 1. */
static bool find_device(const void *handle, uint32_t *device)
{
    uint64_t number = frag_soft_number(handle);
    *device = (uint32_t)(number - 1);
    return number >= 1 && number <= frag_soft.settings.device_count;
}

FRAG_ENTRY(int32_t, nvmlInit_v2, (void))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    frag_soft_leave();
    return result == FRAG_CUDA_OK || result == FRAG_CUDA_NO_DEVICE ? NVML_OK
                                                                   : NVML_DRIVER_NOT_LOADED;
}

FRAG_ENTRY(int32_t, nvmlInitWithFlags, (unsigned flags))
{
    (void)flags;
    return nvmlInit_v2();
}

FRAG_ENTRY(int32_t, nvmlShutdown, (void))
{
    return NVML_OK;
}

FRAG_ENTRY(const char *, nvmlErrorString, (int32_t code))
{
    switch (code) {
    case NVML_OK:
        return "Success";
    case NVML_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    default:
        return "Unknown Error";
    }
}

FRAG_ENTRY(int32_t, nvmlSystemGetDriverVersion, (char *text, unsigned bytes))
{
    return snprintf(text, bytes, "software") < (int)bytes ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

FRAG_ENTRY(int32_t, nvmlSystemGetCudaDriverVersion_v2, (int32_t * version))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *version = (int32_t)frag_soft.settings.driver_version;
    frag_soft_leave();
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetCount_v2, (unsigned *count))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *count = frag_soft.settings.device_count;
    frag_soft_leave();
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **device))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    bool is_there = index < frag_soft.settings.device_count;
    frag_soft_leave();
    if (!is_there)
        return NVML_INVALID_ARGUMENT;
    *device = frag_soft_pointer((uint64_t)index + 1);
    return NVML_OK;
}

/* "0000:01:00.0", as cudaDeviceGetPCIBusId writes it, or with eight digits before the colon. */
FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **device))
{
    for (unsigned i = 0; i < FRAG_SOFT_DEVICES_MAX; i++) {
        char known[16];
        const char *colon = strchr(id, ':');
        snprintf(known, sizeof known, ":%02X:00", 1 + i);
        if (colon != NULL && strncmp(colon, known, strlen(known)) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetName, (void *device, char *text, unsigned bytes))
{
    int32_t result = 0;
    uint32_t which = 0;
    frag_soft_enter(&result);
    bool is_there = find_device(device, &which);
    frag_soft_leave();
    if (!is_there)
        return NVML_INVALID_ARGUMENT;
    return snprintf(text, bytes, "%s", frag_soft.cards[which].name) < (int)bytes
               ? NVML_OK
               : NVML_INSUFFICIENT_SIZE;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetUUID, (void *device, char *text, unsigned bytes))
{
    int length = snprintf(text, bytes, "GPU-00000000-0000-0000-0000-%012llx",
                          (unsigned long long)frag_soft_number(device));
    return length < (int)bytes ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

typedef struct memory_figures {
    uint64_t total, reserved, free, used;
} memory_figures;

static int32_t measure(const void *handle, memory_figures *figures)
{
    int32_t result = 0;
    uint32_t device = 0;
    frag_soft_enter(&result);
    bool is_there = find_device(handle, &device);
    if (is_there) {
        uint64_t capacity = frag_soft.settings.capacity_bytes[device];
        uint64_t reserved = frag_soft.settings.reserved_bytes;
        uint64_t left = frag_soft_free_bytes(device);
        *figures = (memory_figures){capacity + reserved, reserved, left, capacity - left};
    }
    frag_soft_leave();
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

/* total, free, used; what is reserved counts as used. */
FRAG_ENTRY(int32_t, nvmlDeviceGetMemoryInfo, (void *device, unsigned long long out[3]))
{
    memory_figures figures = {0};
    int32_t result = measure(device, &figures);
    if (result != NVML_OK)
        return result;
    out[0] = figures.total;
    out[1] = figures.free;
    out[2] = figures.used + figures.reserved;
    return NVML_OK;
}

typedef struct memory_info {
    unsigned version;
    unsigned padding;
    unsigned long long total, reserved, free, used;
} memory_info;

FRAG_ENTRY(int32_t, nvmlDeviceGetMemoryInfo_v2, (void *device, memory_info *out))
{
    memory_figures figures = {0};
    int32_t result = measure(device, &figures);
    if (result != NVML_OK)
        return result;
    out->total = figures.total;
    out->reserved = figures.reserved;
    out->free = figures.free;
    out->used = figures.used;
    return NVML_OK;
}

/* Processes are this one, if it holds anything, and one with number 1 for what others hold. */
typedef struct process {
    uint32_t id;
    uint64_t used;
} process;

static uint32_t list_processes(const void *handle, process out[2])
{
    int32_t result = 0;
    uint32_t device = 0;
    uint32_t count = 0;
    frag_soft_enter(&result);
    if (find_device(handle, &device) && frag_soft.settings.shows_processes) {
        uint64_t own = frag_soft.devices[device].used_bytes;
        uint64_t left = frag_soft_free_bytes(device);
        uint64_t others = frag_soft.settings.capacity_bytes[device] - left - own;
        if (own > 0 || frag_soft.devices[device].has_context)
            out[count++] = (process){(uint32_t)getpid(), own};
        if (others > 0)
            out[count++] = (process){1, others};
    }
    frag_soft_leave();
    return count;
}

/* Rows of 16 bytes (process, used) in the first form, 24 with two instance numbers later. */
static int32_t give_processes(const void *device, unsigned *count, unsigned char *rows,
                              size_t row_bytes)
{
    process found[2];
    uint32_t found_count = list_processes(device, found);
    unsigned room = *count;
    *count = found_count;
    if (room < found_count)
        return NVML_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < found_count; i++) {
        memset(rows + i * row_bytes, 0xff, row_bytes); /* no instance */
        memcpy(rows + i * row_bytes, &found[i].id, sizeof found[i].id);
        memcpy(rows + i * row_bytes + 8, &found[i].used, sizeof found[i].used);
    }
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetComputeRunningProcesses,
           (void *device, unsigned *count, unsigned char *rows))
{
    return give_processes(device, count, rows, 16);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetComputeRunningProcesses_v2,
           (void *device, unsigned *count, unsigned char *rows))
{
    return give_processes(device, count, rows, 24);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetComputeRunningProcesses_v3,
           (void *device, unsigned *count, unsigned char *rows))
{
    return give_processes(device, count, rows, 24);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetGraphicsRunningProcesses_v3,
           (void *device, unsigned *count, unsigned char *rows))
{
    (void)device, (void)rows;
    *count = 0;
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlSystemGetProcessName, (unsigned id, char *text, unsigned bytes))
{
    int length = snprintf(text, bytes, id == 1 ? "others" : "process %u", id);
    return length < (int)bytes ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

/* No links between cards, no fabric. */
FRAG_ENTRY(int32_t, nvmlDeviceGetNvLinkRemoteDeviceType, (void))
{
    return NVML_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetNvLinkRemotePciInfo_v2, (void))
{
    return NVML_NOT_SUPPORTED;
}

/* nvmlGpuFabricInfoV_t keeps its version word; state 0 is "not supported". */
FRAG_ENTRY(int32_t, nvmlDeviceGetGpuFabricInfoV, (void *device, unsigned char *out))
{
    enum { VERSION_BYTES = 4, BYTES = 32 };
    (void)device;
    memset(out + VERSION_BYTES, 0, BYTES - VERSION_BYTES);
    return NVML_OK;
}
