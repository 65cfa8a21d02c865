#include "cli/machine/nvml.h"

#include <dlfcn.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "cli/machine/nvml_abi.h"

enum { PROCESSES_MAX = 1024, GPUS_MAX = 256, INSTANCES_MAX = 64 };

struct frag_nvml {
    void *library;
    char driver[80];
    int cuda;
    const char *(*nvmlErrorString)(int code);
#define POINTER(name, parameters) int(*name) parameters;
    FRAG_NVML_FUNCTIONS(POINTER)
#undef POINTER
};

/* dlsym gives an object pointer; C has no conversion of it into a function pointer. */
static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

static bool fail(const frag_nvml *nvml, const char *call, int code, frag_error *error)
{
    const char *words = nvml->nvmlErrorString != NULL ? nvml->nvmlErrorString(code) : NULL;
    return frag_fail(error, FRAG_E_SYSTEM, "%s: %s (%d)", call,
                     words != NULL ? words : "no reason given", code);
}

static bool start(frag_nvml *nvml, frag_error *error)
{
    if (nvml->nvmlInit_v2 == NULL || nvml->nvmlShutdown == NULL ||
        nvml->nvmlDeviceGetCount_v2 == NULL || nvml->nvmlDeviceGetHandleByIndex_v2 == NULL ||
        (nvml->nvmlDeviceGetMemoryInfo_v2 == NULL && nvml->nvmlDeviceGetMemoryInfo == NULL))
        return frag_fail(error, FRAG_E_SYSTEM,
                         "libnvidia-ml.so.1 lacks functions that every driver since 2013 has");
    int code = nvml->nvmlInit_v2();
    return code == FRAG_NVML_OK || fail(nvml, "nvmlInit_v2", code, error);
}

frag_nvml *frag_nvml_open(frag_error *error)
{
    /* It stays loaded: drivers' libraries have threads and exit handlers of their own. */
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        frag_fail(error, FRAG_E_SYSTEM,
                  "libnvidia-ml.so.1 is not found; it comes with the NVIDIA driver");
        return NULL;
    }
    frag_nvml *nvml = frag_alloc(1, sizeof *nvml);
    nvml->library = library;
    find(library, "nvmlErrorString", &nvml->nvmlErrorString);
#define FIND(name, parameters) find(library, #name, &nvml->name);
    FRAG_NVML_FUNCTIONS(FIND)
#undef FIND
    if (!start(nvml, error)) {
        dlclose(library);
        frag_free(nvml);
        return NULL;
    }
    if (nvml->nvmlSystemGetDriverVersion == NULL ||
        nvml->nvmlSystemGetDriverVersion(nvml->driver, sizeof nvml->driver) != FRAG_NVML_OK)
        snprintf(nvml->driver, sizeof nvml->driver, "unknown");
    if (nvml->nvmlSystemGetCudaDriverVersion_v2 == NULL ||
        nvml->nvmlSystemGetCudaDriverVersion_v2(&nvml->cuda) != FRAG_NVML_OK)
        nvml->cuda = 0;
    return nvml;
}

void frag_nvml_close(frag_nvml *nvml)
{
    if (nvml == NULL)
        return;
    nvml->nvmlShutdown();
    dlclose(nvml->library);
    frag_free(nvml);
}

const char *frag_nvml_driver(const frag_nvml *nvml)
{
    return nvml->driver;
}

int frag_nvml_cuda(const frag_nvml *nvml)
{
    return nvml->cuda;
}

/* ---- memory */

static bool read_memory(const frag_nvml *nvml, frag_nvml_device device, frag_gpu_view *view,
                        frag_error *error)
{
    frag_nvml_memory memory = {.version = FRAG_NVML_MEMORY_VERSION};
    frag_nvml_memory_old old = {0};
    if (nvml->nvmlDeviceGetMemoryInfo_v2 != NULL &&
        nvml->nvmlDeviceGetMemoryInfo_v2(device, &memory) == FRAG_NVML_OK) {
        view->total_bytes = memory.total;
        view->used_bytes = memory.used;
        view->reserved_bytes = memory.reserved;
        view->free_bytes = memory.free;
        return true;
    }
    int code = nvml->nvmlDeviceGetMemoryInfo != NULL ? nvml->nvmlDeviceGetMemoryInfo(device, &old)
                                                     : FRAG_NVML_NOT_SUPPORTED;
    if (code == FRAG_NVML_OK) {
        view->total_bytes = old.total;
        view->used_bytes = old.used;
        view->free_bytes = old.free;
        return true;
    }
    /* The memory of a divided GPU is that of its instances, unless one may see all. */
    if (code == FRAG_NVML_NO_PERMISSION || code == FRAG_NVML_NOT_SUPPORTED)
        return true;
    return fail(nvml, "nvmlDeviceGetMemoryInfo", code, error);
}

/* ---- processes */

static bool open_line(const char *form, uint32_t pid, FILE **stream)
{
    char path[64];
    snprintf(path, sizeof path, form, (unsigned)pid);
    *stream = fopen(path, "r");
    return *stream != NULL;
}

static bool has_pytorch(uint32_t pid)
{
    FILE *stream = NULL;
    char line[4352];
    bool is_found = false;
    if (!open_line("/proc/%u/maps", pid, &stream))
        return false;
    while (!is_found && fgets(line, sizeof line, stream) != NULL)
        is_found = strstr(line, "libc10_cuda.so") != NULL || strstr(line, "libtorch_cuda") != NULL;
    fclose(stream);
    return is_found;
}

static void ask_system(frag_gpu_process *process)
{
    FILE *stream = NULL;
    struct stat owner;
    if (!open_line("/proc/%u/comm", process->pid, &stream))
        return;
    if (fstat(fileno(stream), &owner) == 0) {
        const struct passwd *entry = getpwuid(owner.st_uid);
        if (entry != NULL)
            snprintf(process->user, sizeof process->user, "%s", entry->pw_name);
        else
            snprintf(process->user, sizeof process->user, "user %lu", (unsigned long)owner.st_uid);
        process->is_mine = owner.st_uid == geteuid();
    }
    if (fgets(process->name, sizeof process->name, stream) == NULL)
        process->name[0] = '\0';
    process->name[strcspn(process->name, "\n")] = '\0';
    fclose(stream);
    process->is_pytorch = has_pytorch(process->pid);
}

/* A process may compute and draw, and then is in both lists with all of its memory; twice in one
 * list are its parts on two instances. seen is how many processes the lists before this one had. */
static void add_process(frag_gpu_view *view, size_t seen, uint32_t pid, uint64_t bytes)
{
    for (size_t i = 0; i < view->process_count; i++) {
        frag_gpu_process *process = &view->processes[i];
        if (process->pid != pid)
            continue;
        if (process->bytes == FRAG_UNLIMITED)
            process->bytes = bytes;
        else if (i >= seen && bytes != FRAG_UNLIMITED)
            process->bytes += bytes;
        return;
    }
    view->processes =
        frag_realloc(view->processes, view->process_count + 1, sizeof *view->processes);
    frag_gpu_process *process = &view->processes[view->process_count++];
    *process = (frag_gpu_process){.pid = pid, .bytes = bytes};
    ask_system(process);
}

typedef int list(frag_nvml_device, unsigned *, void *);

/* Rows of every version begin as the old one's. */
static bool read_rows(frag_nvml_device device, list *ask, size_t row_bytes, frag_gpu_view *view)
{
    unsigned count = PROCESSES_MAX;
    size_t seen = view->process_count;
    if (ask == NULL)
        return false;
    char *rows = frag_alloc(PROCESSES_MAX, row_bytes);
    bool ok = ask(device, &count, rows) == FRAG_NVML_OK && count <= PROCESSES_MAX;
    for (unsigned i = 0; ok && i < count; i++) {
        frag_nvml_process_old row;
        memcpy(&row, rows + i * row_bytes, sizeof row);
        add_process(view, seen, row.pid, row.used);
    }
    frag_free(rows);
    return ok;
}

/* One list, by the newest of its functions that answers. */
static void read_list(frag_nvml_device device, list *third, list *second, list *first,
                      frag_gpu_view *view)
{
    if (read_rows(device, third, sizeof(frag_nvml_process), view) ||
        read_rows(device, second, sizeof(frag_nvml_process), view) ||
        read_rows(device, first, sizeof(frag_nvml_process_old), view))
        view->has_processes = true;
}

static int compare_processes(const void *left, const void *right)
{
    const frag_gpu_process *a = left, *b = right;
    return frag_compare(a->pid, b->pid);
}

static void read_processes(const frag_nvml *nvml, frag_nvml_device device, frag_gpu_view *view)
{
    read_list(device, nvml->nvmlDeviceGetComputeRunningProcesses_v3,
              nvml->nvmlDeviceGetComputeRunningProcesses_v2,
              nvml->nvmlDeviceGetComputeRunningProcesses, view);
    read_list(device, nvml->nvmlDeviceGetGraphicsRunningProcesses_v3,
              nvml->nvmlDeviceGetGraphicsRunningProcesses_v2,
              nvml->nvmlDeviceGetGraphicsRunningProcesses, view);
    if (view->process_count > 0)
        qsort(view->processes, view->process_count, sizeof *view->processes, compare_processes);
    for (size_t i = 0; i < view->process_count; i++) {
        const frag_gpu_process *process = &view->processes[i];
        if (process->bytes == FRAG_UNLIMITED)
            continue;
        *(process->is_pytorch ? &view->pytorch_bytes : &view->other_bytes) += process->bytes;
        view->not_mine_bytes += process->is_mine ? 0 : process->bytes;
    }
}

uint64_t frag_gpu_unlisted_bytes(const frag_gpu_view *view)
{
    if (!view->has_processes || view->used_bytes == FRAG_UNLIMITED)
        return FRAG_UNLIMITED;
    for (size_t i = 0; i < view->process_count; i++)
        if (view->processes[i].bytes == FRAG_UNLIMITED)
            return FRAG_UNLIMITED;
    uint64_t listed = view->pytorch_bytes + view->other_bytes;
    return view->used_bytes > listed ? view->used_bytes - listed : 0;
}

/* ---- all of them */

static frag_gpu_view *add_view(frag_gpu_view **views, size_t *count, uint32_t index,
                               uint32_t instance)
{
    *views = frag_realloc(*views, *count + 1, sizeof **views);
    frag_gpu_view *view = &(*views)[(*count)++];
    *view = (frag_gpu_view){
        .index = index,
        .instance = instance,
        .total_bytes = FRAG_UNLIMITED,
        .used_bytes = FRAG_UNLIMITED,
        .reserved_bytes = FRAG_UNLIMITED,
        .free_bytes = FRAG_UNLIMITED,
    };
    return view;
}

static bool read_gpu(const frag_nvml *nvml, frag_nvml_device device, frag_gpu_view *view,
                     frag_error *error)
{
    if (nvml->nvmlDeviceGetName == NULL ||
        nvml->nvmlDeviceGetName(device, view->name, sizeof view->name) != FRAG_NVML_OK)
        snprintf(view->name, sizeof view->name, "GPU of unknown name");
    if (!read_memory(nvml, device, view, error))
        return false;
    read_processes(nvml, device, view);
    return true;
}

static bool read_instances(const frag_nvml *nvml, frag_nvml_device device, uint32_t index,
                           frag_gpu_view **views, size_t *count, frag_error *error)
{
    unsigned current = 0;
    unsigned pending = 0;
    unsigned instances = 0;
    if (nvml->nvmlDeviceGetMigMode == NULL || nvml->nvmlDeviceGetMaxMigDeviceCount == NULL ||
        nvml->nvmlDeviceGetMigDeviceHandleByIndex == NULL ||
        nvml->nvmlDeviceGetMigMode(device, &current, &pending) != FRAG_NVML_OK || current == 0)
        return true;
    (*views)[*count - 1].has_mig = true;
    if (nvml->nvmlDeviceGetMaxMigDeviceCount(device, &instances) != FRAG_NVML_OK)
        return true;
    for (unsigned i = 0; i < instances && i < INSTANCES_MAX; i++) {
        frag_nvml_device instance = NULL;
        if (nvml->nvmlDeviceGetMigDeviceHandleByIndex(device, i, &instance) == FRAG_NVML_OK &&
            !read_gpu(nvml, instance, add_view(views, count, index, i), error))
            return false;
    }
    return true;
}

bool frag_nvml_look(frag_nvml *nvml, frag_gpu_view **views, size_t *count, frag_error *error)
{
    unsigned gpus = 0;
    *views = NULL;
    *count = 0;
    int code = nvml->nvmlDeviceGetCount_v2(&gpus);
    bool ok = code == FRAG_NVML_OK || fail(nvml, "nvmlDeviceGetCount_v2", code, error);
    for (unsigned i = 0; ok && i < gpus && i < GPUS_MAX; i++) {
        frag_nvml_device device = NULL;
        code = nvml->nvmlDeviceGetHandleByIndex_v2(i, &device);
        ok = (code == FRAG_NVML_OK || fail(nvml, "nvmlDeviceGetHandleByIndex_v2", code, error)) &&
             read_gpu(nvml, device, add_view(views, count, i, UINT32_MAX), error) &&
             read_instances(nvml, device, i, views, count, error);
    }
    if (!ok) {
        frag_nvml_views_destroy(*views, *count);
        *views = NULL;
        *count = 0;
    }
    return ok;
}

bool frag_nvml_find(const frag_nvml *nvml, const char *pci, uint32_t *index)
{
    frag_nvml_device wanted = NULL;
    unsigned gpus = 0;
    if (nvml->nvmlDeviceGetHandleByPciBusId_v2 == NULL ||
        nvml->nvmlDeviceGetHandleByPciBusId_v2(pci, &wanted) != FRAG_NVML_OK ||
        nvml->nvmlDeviceGetCount_v2(&gpus) != FRAG_NVML_OK)
        return false;
    /* A GPU has one handle, however it was asked for. */
    for (unsigned i = 0; i < gpus && i < GPUS_MAX; i++) {
        frag_nvml_device device = NULL;
        *index = i;
        if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) == FRAG_NVML_OK && device == wanted)
            return true;
    }
    return false;
}

void frag_nvml_views_destroy(frag_gpu_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frag_free(views[i].processes);
    frag_free(views);
}
