/* libnvidia-ml.so.1: what tools and PyTorch ask the management library, answered from the software
 * device of this process. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu_replay/software/soft_entry.h"
#include "gpu_replay/software/soft_processes.h"

enum {
    NVML_OK = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
};

/* Handles are the card's number + 1; those that the process does not see are there too. */
static bool find_device(const void *handle, uint32_t *device)
{
    uint64_t number = frag_soft_number(handle);
    *device = frag_soft_device_of_card((uint32_t)(number - 1));
    return number >= 1 && number <= frag_soft.card_count;
}

FRAG_ENTRY(int32_t, nvmlInit_v2, (void))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    frag_soft_leave();
    return result == FRAG_CUDA_OK || result == FRAG_CUDA_NO_DEVICE ? NVML_OK
                                                                   : NVML_DRIVER_NOT_LOADED;
}

FRAG_ENTRY(int32_t, nvmlInit, (void))
{
    return nvmlInit_v2();
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
    case NVML_NOT_FOUND:
        return "Not Found";
    case NVML_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    default:
        return "Unknown Error";
    }
}

static int32_t write_text(char *out, unsigned bytes, const char *text)
{
    bool fits = strlen(text) < bytes;
    if (bytes > 0)
        snprintf(out, bytes, "%s", text);
    return fits ? NVML_OK : NVML_INSUFFICIENT_SIZE;
}

/* The driver that came with a version of CUDA, marked as what it is. */
FRAG_ENTRY(int32_t, nvmlSystemGetDriverVersion, (char *text, unsigned bytes))
{
    enum { CUDA_13 = 13000 };
    int32_t result = 0;
    frag_soft_enter(&result);
    bool is_13 = frag_soft.settings.driver_version >= CUDA_13;
    frag_soft_leave();
    return write_text(text, bytes, is_13 ? "580.0+software" : "570.0+software");
}

FRAG_ENTRY(int32_t, nvmlSystemGetNVMLVersion, (char *text, unsigned bytes))
{
    return nvmlSystemGetDriverVersion(text, bytes);
}

FRAG_ENTRY(int32_t, nvmlSystemGetCudaDriverVersion_v2, (int32_t * version))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *version = (int32_t)frag_soft.settings.driver_version;
    frag_soft_leave();
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlSystemGetCudaDriverVersion, (int32_t * version))
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetCount_v2, (unsigned *count))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    *count = frag_soft.card_count;
    frag_soft_leave();
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **device))
{
    int32_t result = 0;
    frag_soft_enter(&result);
    bool is_there = index < frag_soft.card_count;
    frag_soft_leave();
    *device = is_there ? frag_soft_pointer((uint64_t)index + 1) : NULL;
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetCount, (unsigned *count))
{
    return nvmlDeviceGetCount_v2(count);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByIndex, (unsigned index, void **device))
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* "0000:01:00.0", as cudaDeviceGetPCIBusId writes it, or with eight digits before the colon. */
FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **device))
{
    *device = NULL;
    for (unsigned i = 0; i < FRAG_SOFT_DEVICES_MAX; i++) {
        char known[16];
        const char *colon = strchr(id, ':');
        snprintf(known, sizeof known, ":%02X:00", 1 + i);
        if (colon != NULL && strncmp(colon, known, strlen(known)) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByPciBusId, (const char *id, void **device))
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

/* The card of a handle; NULL: it is none. */
static const frag_software_card *card_of(const void *handle, uint32_t *device)
{
    int32_t result = 0;
    frag_soft_enter(&result);
    bool is_there = find_device(handle, device);
    frag_soft_leave();
    return is_there ? &frag_soft.cards[*device] : NULL;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetName, (void *handle, char *text, unsigned bytes))
{
    uint32_t device = 0;
    const frag_software_card *card = card_of(handle, &device);
    int32_t result = write_text(text, bytes, card != NULL ? card->name : "");
    return card != NULL ? result : NVML_INVALID_ARGUMENT;
}

/* The bytes that the runtime calls the UUID. */
FRAG_ENTRY(int32_t, nvmlDeviceGetUUID, (void *handle, char *text, unsigned bytes))
{
    enum { GROUP_ENDS = 1 << 3 | 1 << 5 | 1 << 7 | 1 << 9 };
    char all[64] = "GPU-";
    uint32_t device = 0;
    const frag_software_card *card = card_of(handle, &device);
    size_t used = strlen(all);
    for (unsigned i = 0; card != NULL && i < sizeof card->uuid; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%02x%s", card->uuid[i],
                                 (GROUP_ENDS >> i & 1) != 0 ? "-" : "");
    int32_t result = write_text(text, bytes, card != NULL ? all : "");
    return card != NULL ? result : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetHandleByUUID, (const char *uuid, void **device))
{
    for (unsigned i = 0; i < FRAG_SOFT_DEVICES_MAX; i++) {
        char known[64];
        if (nvmlDeviceGetHandleByIndex_v2(i, device) == NVML_OK &&
            nvmlDeviceGetUUID(*device, known, sizeof known) == NVML_OK && strcmp(known, uuid) == 0)
            return NVML_OK;
    }
    *device = NULL;
    return NVML_NOT_FOUND;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetIndex, (void *handle, unsigned *index))
{
    uint32_t device = 0;
    bool is_there = card_of(handle, &device) != NULL;
    *index = is_there ? device : 0;
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetMinorNumber, (void *handle, unsigned *number))
{
    return nvmlDeviceGetIndex(handle, number);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetCudaComputeCapability,
           (void *handle, int32_t *major, int32_t *minor))
{
    uint32_t device = 0;
    const frag_software_card *card = card_of(handle, &device);
    *major = card != NULL ? (int32_t)(card->compute_capability / 10) : 0;
    *minor = card != NULL ? (int32_t)(card->compute_capability % 10) : 0;
    return card != NULL ? NVML_OK : NVML_INVALID_ARGUMENT;
}

/* One number of a card, and what it is: 0 where the handle is none. */
#define NUMBER(name, type, value)                                                                  \
    FRAG_ENTRY(int32_t, name, (void *handle, type *out))                                           \
    {                                                                                              \
        uint32_t device = 0;                                                                       \
        const frag_software_card *card = card_of(handle, &device);                                 \
        *out = card != NULL ? (type)(value) : 0;                                                   \
        return card != NULL ? NVML_OK : NVML_INVALID_ARGUMENT;                                     \
    }

/* A card at rest: nothing computes. */
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, card->memory_bus_bits)
NUMBER(nvmlDeviceGetPowerUsage, unsigned, 50000)            /* mW */
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, 300000) /* mW */
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, 300000)   /* mW */
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, 0)
NUMBER(nvmlDeviceGetPerformanceState, unsigned, 0)
NUMBER(nvmlDeviceGetPowerState, unsigned, 0)
NUMBER(nvmlDeviceGetComputeMode, unsigned, 0)
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, 1)
NUMBER(nvmlDeviceGetDisplayMode, unsigned, 0)
NUMBER(nvmlDeviceGetDisplayActive, unsigned, 0)
NUMBER(nvmlDeviceGetBrand, unsigned, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 4)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 4)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, 0)

/* nvmlDeviceArchitecture_t: 7 is that of compute capability 8.0 to 8.7. */
static unsigned architecture_of(uint32_t capability)
{
    static const uint16_t starts[] = {30, 50, 60, 70, 75, 80, 89, 90, 100};
    unsigned found = 2;
    for (unsigned i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (capability >= starts[i])
            found = i + 2;
    return found;
}

NUMBER(nvmlDeviceGetArchitecture, unsigned, architecture_of(card->compute_capability))

FRAG_ENTRY(int32_t, nvmlDeviceGetTemperature, (void *handle, int32_t sensor, unsigned *out))
{
    uint32_t device = 0;
    bool is_there = card_of(handle, &device) != NULL;
    (void)sensor;
    *out = is_there ? 30 : 0;
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetFanSpeed, (void *handle, unsigned *out))
{
    (void)handle;
    *out = 0;
    return NVML_NOT_SUPPORTED;
}

/* In MHz: 0 graphics, 1 multiprocessors, 2 memory, 3 video. */
FRAG_ENTRY(int32_t, nvmlDeviceGetClockInfo, (void *handle, int32_t kind, unsigned *out))
{
    enum { MEMORY = 2, KHZ_PER_MHZ = 1000 };
    uint32_t device = 0;
    const frag_software_card *card = card_of(handle, &device);
    *out = 0;
    if (card != NULL)
        *out = (kind == MEMORY ? card->memory_clock_khz : card->clock_khz) / KHZ_PER_MHZ;
    return card != NULL ? NVML_OK : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetMaxClockInfo, (void *handle, int32_t kind, unsigned *out))
{
    return nvmlDeviceGetClockInfo(handle, kind, out);
}

typedef struct utilization {
    unsigned gpu;
    unsigned memory;
} utilization;

FRAG_ENTRY(int32_t, nvmlDeviceGetUtilizationRates, (void *handle, utilization *out))
{
    uint32_t device = 0;
    *out = (utilization){0, 0};
    return card_of(handle, &device) != NULL ? NVML_OK : NVML_INVALID_ARGUMENT;
}

/* nvmlPciInfo_t, which its second and third form have grown to. */
typedef struct pci_info {
    char short_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
} pci_info;

FRAG_ENTRY(int32_t, nvmlDeviceGetPciInfo_v3, (void *handle, pci_info *out))
{
    enum { NVIDIA = 0x10de };
    uint32_t device = 0;
    bool is_there = card_of(handle, &device) != NULL;
    *out = (pci_info){0};
    if (!is_there)
        return NVML_INVALID_ARGUMENT;
    out->bus = 1 + device;
    out->device_id = NVIDIA;
    snprintf(out->short_id, sizeof out->short_id, "0000:%02X:00.0", out->bus & 0xff);
    snprintf(out->id, sizeof out->id, "00000000:%02X:00.0", out->bus & 0xff);
    return NVML_OK;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetPciInfo_v2, (void *handle, pci_info *out))
{
    return nvmlDeviceGetPciInfo_v3(handle, out);
}

/* Every device reaches every other: 0 is "ok". */
FRAG_ENTRY(int32_t, nvmlDeviceGetP2PStatus,
           (void *handle, void *peer, int32_t what, int32_t *status))
{
    enum { UNKNOWN = 6 };
    uint32_t ignored = 0;
    bool is_there = card_of(handle, &ignored) != NULL && card_of(peer, &ignored) != NULL;
    (void)what;
    *status = is_there ? 0 : UNKNOWN;
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

/* Through one bridge. */
FRAG_ENTRY(int32_t, nvmlDeviceGetTopologyCommonAncestor, (void *handle, void *peer, int32_t *level))
{
    enum { SINGLE_BRIDGE = 10 };
    uint32_t ignored = 0;
    bool is_there = card_of(handle, &ignored) != NULL && card_of(peer, &ignored) != NULL;
    *level = SINGLE_BRIDGE;
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetEccMode, (void *handle, unsigned *current, unsigned *pending))
{
    uint32_t device = 0;
    bool is_there = card_of(handle, &device) != NULL;
    *current = is_there;
    *pending = is_there;
    return is_there ? NVML_OK : NVML_INVALID_ARGUMENT;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetMigMode, (void *handle, unsigned *current, unsigned *pending))
{
    (void)handle;
    *current = 0;
    *pending = 0;
    return NVML_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetSerial, (void *handle, char *text, unsigned bytes))
{
    (void)handle;
    write_text(text, bytes, "");
    return NVML_NOT_SUPPORTED;
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
    out[0] = figures.total;
    out[1] = figures.free;
    out[2] = figures.used + figures.reserved;
    return result;
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
    out->total = figures.total;
    out->reserved = figures.reserved;
    out->free = figures.free;
    out->used = figures.used;
    return result;
}

/* Processes are this one, if it holds anything, those that share the card with it, and one with
 * number 1 for what others are said to hold. */
enum { PROCESSES_MAX = FRAG_SOFT_PROCESSES_MAX + 2 };

static uint32_t list_processes(const void *handle, frag_soft_process out[PROCESSES_MAX])
{
    int32_t result = 0;
    uint32_t device = 0;
    uint32_t count = 0;
    frag_soft_enter(&result);
    if (find_device(handle, &device) && frag_soft.settings.shows_processes) {
        uint64_t own = frag_soft.devices[device].used_bytes;
        uint64_t left = frag_soft_free_bytes(device);
        uint64_t used = frag_soft.settings.capacity_bytes[device] - left;
        if (own > 0 || frag_soft.devices[device].has_context)
            out[count++] = (frag_soft_process){getpid(), own};
        count += frag_soft_processes_list(frag_soft.card_of[device], out + count);
        for (uint32_t i = 0; i < count; i++)
            used -= out[i].bytes < used ? out[i].bytes : used;
        if (used > 0)
            out[count++] = (frag_soft_process){1, used};
    }
    frag_soft_leave();
    return count;
}

/* Rows of 16 bytes (process, used) in the first form, 24 with two instance numbers later. */
static int32_t give_processes(const void *device, unsigned *count, unsigned char *rows,
                              size_t row_bytes)
{
    frag_soft_process found[PROCESSES_MAX];
    uint32_t found_count = list_processes(device, found);
    unsigned room = *count;
    *count = found_count;
    if (room < found_count)
        return NVML_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < found_count; i++) {
        memset(rows + i * row_bytes, 0xff, row_bytes); /* no instance */
        uint32_t id = (uint32_t)found[i].id;
        memcpy(rows + i * row_bytes, &id, sizeof id);
        memcpy(rows + i * row_bytes + 8, &found[i].bytes, sizeof found[i].bytes);
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

FRAG_ENTRY(int32_t, nvmlDeviceGetBAR1MemoryInfo, (void *handle, unsigned long long out[3]))
{
    return nvmlDeviceGetMemoryInfo(handle, out); /* the whole memory is visible */
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

FRAG_ENTRY(int32_t, nvmlDeviceGetGraphicsRunningProcesses,
           (void *device, unsigned *count, unsigned char *rows))
{
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, rows);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetGraphicsRunningProcesses_v2,
           (void *device, unsigned *count, unsigned char *rows))
{
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, rows);
}

FRAG_ENTRY(int32_t, nvmlDeviceGetMPSComputeRunningProcesses_v3,
           (void *device, unsigned *count, unsigned char *rows))
{
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, rows);
}

/* No links between cards, no fabric. */
FRAG_ENTRY(int32_t, nvmlDeviceGetNvLinkState, (void *device, unsigned link, unsigned *is_active))
{
    (void)device, (void)link;
    *is_active = 0;
    return NVML_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetNvLinkRemoteDeviceType,
           (void *device, unsigned link, unsigned *kind))
{
    enum { UNKNOWN = 255 };
    (void)device, (void)link;
    *kind = UNKNOWN;
    return NVML_NOT_SUPPORTED;
}

FRAG_ENTRY(int32_t, nvmlDeviceGetNvLinkRemotePciInfo_v2,
           (void *device, unsigned link, pci_info *out))
{
    (void)device, (void)link;
    *out = (pci_info){0};
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
