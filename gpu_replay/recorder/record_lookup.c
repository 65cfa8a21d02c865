/* The ways in which a program comes to a function other than by linking: dlsym, the runtime's
 * cudaGetDriverEntryPoint and the driver's cuGetProcAddress. Whatever they find under a recorded
 * name is replaced by the recorder's function. As the runtime itself looks its driver up by dlsym,
 * this reaches a runtime that is linked statically as well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu_replay/recorder/record_calls.h"
#include "gpu_replay/recorder/record_dlsym.h"
#include "gpu_replay/recorder/record_log.h"

/* The last call must stay a jump: what RTLD_NEXT means depends on who calls the real function.
 * tests/gpu_replay/record.bats would notice. */
__attribute__((visibility("default"))) void *dlsym(void *restrict library,
                                                   const char *restrict name)
{
    frag_dlsym *real = frag_dlsym_real();
    if (real == NULL)
        return NULL;
    if (name[0] == 'c' && name[1] == 'u' && library != RTLD_NEXT) {
        void *found = frag_real_replace(name, real(library, name));
        if (found != NULL)
            return found;
    }
    return real(library, name);
}

/* A driver's name without its version, as the two functions below are asked for it. */
static void replace_entry(const char *name, void **entry, unsigned version, bool is_per_thread)
{
    static const char *const endings[] = {"_v2", ""};
    if (name == NULL || entry == NULL || *entry == NULL)
        return;
    /* Before CUDA 3.2 sizes had 32 bits, and before 12.0 cuGetProcAddress had no status. */
    unsigned needed = strcmp(name, "cuGetProcAddress") == 0 ? 12000 : 3020;
    char full[64];
    if (is_per_thread) {
        snprintf(full, sizeof full, "%s_ptsz", name);
        void *ours = frag_real_replace(full, *entry);
        if (ours != *entry) {
            *entry = ours;
            return;
        }
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (i == 0 && version < needed)
            continue;
        snprintf(full, sizeof full, "%s%s", name, endings[i]);
        void *ours = frag_real_replace(full, *entry);
        if (ours != NULL && ours != *entry) {
            *entry = ours;
            return;
        }
    }
}

typedef int get_entry(const char *, void **, unsigned long long, int *);
typedef int get_entry_by_version(const char *, void **, unsigned, unsigned long long, int *);
typedef int get_address(const char *, void **, int, uint64_t);
typedef int get_address_v2(const char *, void **, int, uint64_t, int *);

static int entry_point(frag_real_id id, const char *name, void **entry, unsigned long long flags,
                       int *status)
{
    int result = ((get_entry *)frag_real(id))(name, entry, flags, status);
    bool is_per_thread =
        id == FRAG_REAL_cudaGetDriverEntryPoint_ptsz || (flags & FRAG_CUDA_ENTRY_PER_THREAD) != 0;
    if (result == 0)
        replace_entry(name, entry, 12000, is_per_thread);
    return result;
}

static int entry_point_by_version(frag_real_id id, const char *name, void **entry, unsigned version,
                                  unsigned long long flags, int *status)
{
    int result = ((get_entry_by_version *)frag_real(id))(name, entry, version, flags, status);
    bool is_per_thread = id == FRAG_REAL_cudaGetDriverEntryPointByVersion_ptsz ||
                         (flags & FRAG_CUDA_ENTRY_PER_THREAD) != 0;
    if (result == 0)
        replace_entry(name, entry, version, is_per_thread);
    return result;
}

#pragma GCC visibility push(default)

int cudaGetDriverEntryPoint(const char *name, void **entry, unsigned long long flags, int *status)
{
    return entry_point(FRAG_REAL_cudaGetDriverEntryPoint, name, entry, flags, status);
}

int cudaGetDriverEntryPoint_ptsz(const char *name, void **entry, unsigned long long flags,
                                 int *status)
{
    return entry_point(FRAG_REAL_cudaGetDriverEntryPoint_ptsz, name, entry, flags, status);
}

int cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                     unsigned long long flags, int *status)
{
    return entry_point_by_version(FRAG_REAL_cudaGetDriverEntryPointByVersion, name, entry, version,
                                  flags, status);
}

int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **entry, unsigned version,
                                          unsigned long long flags, int *status)
{
    return entry_point_by_version(FRAG_REAL_cudaGetDriverEntryPointByVersion_ptsz, name, entry,
                                  version, flags, status);
}

int cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags)
{
    int result =
        ((get_address *)frag_real(FRAG_REAL_cuGetProcAddress))(name, entry, version, flags);
    if (result == 0 && version > 0)
        replace_entry(name, entry, (unsigned)version, (flags & FRAG_CUDA_ENTRY_PER_THREAD) != 0);
    return result;
}

int cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status)
{
    int result = ((get_address_v2 *)frag_real(FRAG_REAL_cuGetProcAddress_v2))(name, entry, version,
                                                                              flags, status);
    if (result == 0 && version > 0)
        replace_entry(name, entry, (unsigned)version, (flags & FRAG_CUDA_ENTRY_PER_THREAD) != 0);
    return result;
}

#pragma GCC visibility pop

/* ---- beginning and end of the program */

__attribute__((constructor)) static void begin(void)
{
    frag_record_start(FRAG_RECORDED_BY_PRELOAD);
}

__attribute__((destructor)) static void end(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    frag_record_end(driver != NULL);
    if (driver != NULL)
        dlclose(driver);
}
