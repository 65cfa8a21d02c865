#include "cli/module_load.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system/program_path.h"

/* The folder of the program itself. */
static bool program_folder(char folder[4096], frag_error *error)
{
    char path[4096];
    if (!frag_program_path(path, sizeof path))
        return frag_fail(error, FRAG_E_SYSTEM, "the program's own folder is not known");
    snprintf(folder, 4096, "%s", dirname(path));
    return true;
}

void *frag_module_open(const char *file, bool is_global, const char *without, frag_error *error)
{
    static const char *const places[] = {"", "../lib/fraglab/"};
    char folder[4096];
    if (!program_folder(folder, error))
        return NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[8192];
        snprintf(path, sizeof path, "%s/%s%s", folder, places[i], file);
        if (access(path, F_OK) != 0)
            continue;
        void *object = dlopen(path, RTLD_NOW | (is_global ? RTLD_GLOBAL : RTLD_LOCAL));
        if (object == NULL)
            frag_fail(error, FRAG_E_SYSTEM, "%s cannot be loaded: %s", file, dlerror());
        return object;
    }
    frag_fail(error, FRAG_E_SYSTEM, "there is no %s in %s or its ../lib/fraglab: %s", file, folder,
              without);
    return NULL;
}

const void *frag_module_table(void *object, const char *file, const char *symbol, uint32_t abi,
                              frag_error *error)
{
    const uint32_t *table = dlsym(object, symbol);
    if (table != NULL && *table == abi)
        return table;
    frag_fail(error, FRAG_E_SYSTEM, "%s is of another fraglab; build or install both anew", file);
    return NULL;
}
