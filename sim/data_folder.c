/* For dladdr; some builds define it for all files. */
#define _GNU_SOURCE 1

#include "sim/data_folder.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/program_path.h"
#include "base/text.h"
#include "sim/version.h"

/* The path if it can be read, else NULL. */
static char *readable(const char *folder, const char *between, const char *relative)
{
    frag_text path = {.bytes = NULL};
    frag_text_add(&path, "%s%s%s", folder, between, relative);
    if (access(path.bytes, R_OK) == 0)
        return path.bytes;
    frag_text_destroy(&path);
    return NULL;
}

/* Beside a program or a library at path, which is cut off behind its folder. */
static char *find_beside(char *path, const char *relative)
{
    /* In its own folder, installed, and in a source tree: the program, and the library. */
    static const char *const beside[] = {"/", "/../share/fraglab/", "/../../", "/../../../"};
    char *found = NULL;
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return NULL;
    *slash = '\0';
    for (size_t i = 0; found == NULL && i < sizeof beside / sizeof beside[0]; i++)
        found = readable(path, beside[i], relative);
    return found;
}

/* The shared object that this function is in, or the program. */
static char *find_beside_library(const char *relative)
{
    static const char inside = 0;
    Dl_info object;
    if (dladdr(&inside, &object) == 0 || object.dli_fname == NULL)
        return NULL;
    char *path = frag_copy_text(object.dli_fname);
    char *found = find_beside(path, relative);
    frag_free(path);
    return found;
}

char *frag_data_find(const char *relative)
{
    char program[PATH_MAX];
    frag_program_path(program, sizeof program);
    char *found = find_beside_library(relative);
    found = found != NULL ? found : find_beside(program, relative);
    found = found != NULL ? found : readable(frag_data_folder(), "/", relative);
    return found != NULL ? found : readable(".", "/", relative);
}
