#include "sim/cli/gpu_load.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODULE_FILE "fraglab_cuda.so"

/* The folder of the program itself. */
static bool program_folder(char folder[4096], frag_error *error)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return frag_fail(error, FRAG_E_SYSTEM, "the program's own folder is not known");
    path[length] = '\0';
    snprintf(folder, 4096, "%s", dirname(path));
    return true;
}

static const frag_gpu_module *take(void *object, const char *path, frag_error *error)
{
    const frag_gpu_module *module = dlsym(object, FRAG_GPU_MODULE_SYMBOL);
    if (module != NULL && module->abi == FRAG_GPU_MODULE_ABI)
        return module;
    frag_fail(error, FRAG_E_SYSTEM, "%s is of another fraglab; build or install both anew", path);
    return NULL;
}

const frag_gpu_module *frag_gpu_module_load(frag_error *error)
{
    static const char *const places[] = {MODULE_FILE, "../lib/fraglab/" MODULE_FILE};
    char folder[4096];
    if (!program_folder(folder, error))
        return NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", folder, places[i]);
        if (access(path, F_OK) != 0)
            continue;
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (object != NULL)
            return take(object, path, error);
        frag_fail(error, FRAG_E_SYSTEM, "the GPU module cannot be loaded: %s", dlerror());
        return NULL;
    }
    frag_fail(error, FRAG_E_SYSTEM,
              "there is no " MODULE_FILE
              " in %s or its ../lib/fraglab: this fraglab was built with "
              "CUDA=no",
              folder);
    return NULL;
}
