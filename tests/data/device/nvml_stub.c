/* Stands in for libnvidia-ml.so.1 in tests/doctor.bats: one GPU of 24 GiB, used by the process that
 * asks (or NVML_STUB_PID) and by one that nobody sees. Built with -D so that newer functions are
 * left out under their names, as older drivers do. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct memory_new {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_new;

typedef struct memory_old {
    unsigned long long total, free, used;
} memory_old;

typedef struct process_new {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process_new;

typedef struct process_old {
    unsigned pid;
    unsigned long long used;
} process_old;

#define MIB ((unsigned long long)1 << 20)
#define HIDDEN_PID 4194303u

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *text, unsigned bytes);
int MEMORY_NEW(void *device, memory_new *memory);
int nvmlDeviceGetMemoryInfo(void *device, memory_old *memory);
int PROCESSES_3(void *device, unsigned *count, process_new *rows);
int PROCESSES_2(void *device, unsigned *count, process_new *rows);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, process_old *rows);
int nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *count, process_old *rows);
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **instance);

/* NVML_STUB names what is out of order. */
static int is(const char *what)
{
    const char *given = getenv("NVML_STUB");
    return given != NULL && strcmp(given, what) == 0;
}

static unsigned first_pid(void)
{
    const char *given = getenv("NVML_STUB_PID");
    return given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)getpid();
}

int nvmlInit_v2(void)
{
    return is("no driver") ? 9 : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "Some Reason";
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    return bytes < 10 ? 7 : (memcpy(text, "550.54.15", 10), 0);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 12040;
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = is("no gpu") ? 0 : 1;
    return is("lost") ? 15 : 0;
}

static char gpu, instance;

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &gpu;
    return index == 0 ? 0 : 2;
}

int nvmlDeviceGetName(void *device, char *text, unsigned bytes)
{
    const char *name = device == &gpu ? "NVIDIA Stub" : "NVIDIA Stub MIG 1g.6gb";
    return bytes <= strlen(name) ? 7 : (memcpy(text, name, strlen(name) + 1), 0);
}

int MEMORY_NEW(void *device, memory_new *memory)
{
    if (memory->version != (2u << 24 | sizeof *memory))
        return 2;
    unsigned long long total = device == &gpu ? 24576 * MIB : 6144 * MIB;
    *memory = (memory_new){memory->version, total, 600 * MIB, total - 3600 * MIB, 3000 * MIB};
    return is("no permission") && device == &gpu ? 4 : 0;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_old *memory)
{
    (void)device;
    *memory = (memory_old){24576 * MIB, 20976 * MIB, 3600 * MIB};
    return is("no permission") ? 4 : 0;
}

int PROCESSES_3(void *device, unsigned *count, process_new *rows)
{
    (void)device;
    rows[0] = (process_new){HIDDEN_PID, is("no amounts") ? ~0ull : 1024 * MIB, 0, 0};
    rows[1] = (process_new){first_pid(), 1500 * MIB, 0, 0};
    *count = 2;
    return is("no lists") ? 3 : 0;
}

int PROCESSES_2(void *device, unsigned *count, process_new *rows)
{
    return PROCESSES_3(device, count, rows);
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, process_old *rows)
{
    (void)device;
    rows[0] = (process_old){HIDDEN_PID, 1024 * MIB};
    rows[1] = (process_old){first_pid(), 1500 * MIB};
    *count = 2;
    return is("no lists") ? 3 : 0;
}

/* The same process draws too: it is listed once. */
int nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *count, process_old *rows)
{
    (void)device;
    rows[0] = (process_old){first_pid(), 1500 * MIB};
    *count = 1;
    return is("no lists") ? 3 : 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    (void)device;
    *current = *pending = is("mig") || is("no permission");
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
    (void)device;
    *count = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **handle)
{
    (void)device;
    *handle = &instance;
    return index == 2 ? 0 : 6;
}
