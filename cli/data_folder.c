#include "cli/data_folder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

char *frag_data_find(const char *relative)
{
    static const char *const beside[] = {"/", "/../share/fraglab/", "/../../"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *found = NULL;
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL) {
        *slash = '\0';
        for (size_t i = 0; found == NULL && i < sizeof beside / sizeof beside[0]; i++)
            found = readable(program, beside[i], relative);
    }
    found = found != NULL ? found : readable(frag_data_folder(), "/", relative);
    return found != NULL ? found : readable(".", "/", relative);
}
