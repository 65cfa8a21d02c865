/* For dladdr; some builds define it for all files. */
#define _GNU_SOURCE 1

#include "base/system/object_path.h"

#include <dlfcn.h>
#include <stddef.h>

static const char of_ours;

const char *frag_object_path(const void *address)
{
    Dl_info ours;
    Dl_info theirs;
    if (dladdr(&of_ours, &ours) == 0 || dladdr(address, &theirs) == 0 ||
        ours.dli_fbase == theirs.dli_fbase)
        return NULL;
    return theirs.dli_fname;
}
