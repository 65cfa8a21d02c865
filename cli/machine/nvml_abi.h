/* The part of NVML's binary interface that fraglab reads, declared here so that no header of the
 * driver is needed. Names, sizes and values are those of nvml.h. Functions that changed are known
 * by suffixes (_v3, _v2, none); the structures of each are below. */
#ifndef FRAG_MACHINE_NVML_ABI_H
#define FRAG_MACHINE_NVML_ABI_H

#include <stdint.h>

/* nvmlReturn_t */
enum {
    FRAG_NVML_OK = 0,
    FRAG_NVML_NOT_SUPPORTED = 3,
    FRAG_NVML_NO_PERMISSION = 4,
    FRAG_NVML_INSUFFICIENT_SIZE = 7
};

typedef struct nvmlDevice_st *frag_nvml_device;

/* nvmlMemory_v2_t: used is without what the driver reserves */
typedef struct frag_nvml_memory {
    unsigned version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} frag_nvml_memory;

#define FRAG_NVML_MEMORY_VERSION ((unsigned)sizeof(frag_nvml_memory) | 2u << 24)

/* nvmlMemory_t: used holds what the driver reserves too */
typedef struct frag_nvml_memory_old {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} frag_nvml_memory_old;

/* nvmlProcessInfo_t of _v2 and _v3 */
typedef struct frag_nvml_process {
    unsigned pid;
    unsigned long long used; /* FRAG_NVML_UNKNOWN where the driver does not say */
    unsigned gpu_instance;
    unsigned compute_instance;
} frag_nvml_process;

#define FRAG_NVML_UNKNOWN UINT64_MAX

/* nvmlProcessInfo_t before that */
typedef struct frag_nvml_process_old {
    unsigned pid;
    unsigned long long used;
} frag_nvml_process_old;

/* X(name, parameters): found under that name; each returns nvmlReturn_t. Some may be missing. */
#define FRAG_NVML_FUNCTIONS(X)                                                                     \
    X(nvmlInit_v2, (void))                                                                         \
    X(nvmlShutdown, (void))                                                                        \
    X(nvmlSystemGetDriverVersion, (char *, unsigned))                                              \
    X(nvmlSystemGetCudaDriverVersion_v2, (int *))                                                  \
    X(nvmlDeviceGetCount_v2, (unsigned *))                                                         \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned, frag_nvml_device *))                               \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, frag_nvml_device *))                        \
    X(nvmlDeviceGetName, (frag_nvml_device, char *, unsigned))                                     \
    X(nvmlDeviceGetMemoryInfo_v2, (frag_nvml_device, frag_nvml_memory *))                          \
    X(nvmlDeviceGetMemoryInfo, (frag_nvml_device, frag_nvml_memory_old *))                         \
    X(nvmlDeviceGetComputeRunningProcesses_v3, (frag_nvml_device, unsigned *, void *))             \
    X(nvmlDeviceGetComputeRunningProcesses_v2, (frag_nvml_device, unsigned *, void *))             \
    X(nvmlDeviceGetComputeRunningProcesses, (frag_nvml_device, unsigned *, void *))                \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3, (frag_nvml_device, unsigned *, void *))            \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2, (frag_nvml_device, unsigned *, void *))            \
    X(nvmlDeviceGetGraphicsRunningProcesses, (frag_nvml_device, unsigned *, void *))               \
    X(nvmlDeviceGetMigMode, (frag_nvml_device, unsigned *, unsigned *))                            \
    X(nvmlDeviceGetMaxMigDeviceCount, (frag_nvml_device, unsigned *))                              \
    X(nvmlDeviceGetMigDeviceHandleByIndex, (frag_nvml_device, unsigned, frag_nvml_device *))

#endif
