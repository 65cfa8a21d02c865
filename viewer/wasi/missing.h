/* What the C library of WASI lacks and fraglab's code names, included in front of every file of the
 * viewer. Nothing of it is there in a page: each function fails as the system call would. */
#ifndef FRAG_WASI_MISSING_H
#define FRAG_WASI_MISSING_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- files that are written: a page hands out memory instead */

#define F_DUPFD_CLOEXEC 0

static inline int mkstemp(char *name)
{
    (void)name;
    errno = ENOSYS;
    return -1;
}

static inline mode_t umask(mode_t mask)
{
    return mask;
}

static inline int fchmod(int descriptor, mode_t mode)
{
    (void)descriptor, (void)mode;
    errno = ENOSYS;
    return -1;
}

/* ---- shared objects: there are none */

typedef struct Dl_info {
    const char *dli_fname;
} Dl_info;

static inline int dladdr(const void *address, Dl_info *info)
{
    (void)address, (void)info;
    return 0;
}

#endif
