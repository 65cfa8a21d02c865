#include "base/system/program_path.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#include <stdint.h>

bool frag_program_path(char *path, size_t size)
{
    uint32_t room = (uint32_t)size;
    bool ok = _NSGetExecutablePath(path, &room) == 0;
    if (!ok)
        path[0] = '\0';
    return ok;
}

#else
#include <unistd.h>

bool frag_program_path(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}
#endif
