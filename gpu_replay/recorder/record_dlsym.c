#define _GNU_SOURCE
#include "gpu_replay/recorder/record_dlsym.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static _Atomic(frag_dlsym *) known;

frag_dlsym *frag_dlsym_real(void)
{
    frag_dlsym *real = atomic_load_explicit(&known, memory_order_acquire);
    /* Its version tells glibc's releases and machines apart. */
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions && real == NULL; i++) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&real, &found, sizeof real);
    }
    atomic_store_explicit(&known, real, memory_order_release);
    return real;
}
