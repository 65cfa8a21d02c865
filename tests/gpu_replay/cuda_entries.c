#include "tests/gpu_replay/cuda_entries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cuda_entries_load(cuda_entries *cuda, const char *library, const char **missing)
{
    memset(cuda, 0, sizeof *cuda);
    *missing = NULL;
    cuda->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (cuda->library == NULL)
        return false;
    void *found = NULL;
#define CUDA_FIND(field, name, parameters)                                                         \
    found = dlsym(cuda->library, #name);                                                           \
    memcpy(&cuda->field, &found, sizeof found);                                                    \
    if (found == NULL)                                                                             \
        *missing = #name;
    CUDA_RUNTIME_ENTRIES(CUDA_FIND)
#undef CUDA_FIND
    return *missing == NULL;
}

bool cuda_entries_load_driver(cuda_entries *cuda, const char **missing)
{
    void *found = NULL;
    int status = 0;
    *missing = NULL;
#define CUDA_FIND(field, name, parameters)                                                         \
    found = NULL;                                                                                  \
    if (cuda->entry_point(#name, &found, 0, &status) != 0 || status != 0 || found == NULL)         \
        *missing = #name;                                                                          \
    memcpy(&cuda->field, &found, sizeof found);
    CUDA_DRIVER_ENTRIES(CUDA_FIND)
#undef CUDA_FIND
    return *missing == NULL;
}

/* The program lies in BUILD/tests. */
void cuda_entries_software_folder(char *folder, size_t folder_bytes)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    snprintf(folder, folder_bytes, "%s/software-cuda", path);
}
