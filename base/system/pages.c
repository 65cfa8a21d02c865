#include "base/system/pages.h"

#include <errno.h>
#include <unistd.h>

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>

bool frag_pages_zero(void *start, size_t bytes)
{
    return madvise(start, bytes, MADV_DONTNEED) == 0;
}

bool frag_pages_seen(void *start, size_t bytes, unsigned char *seen)
{
    return mincore(start, bytes, seen) == 0;
}

void frag_pages_prefer_large(void *start, size_t bytes)
{
    (void)madvise(start, bytes, MADV_HUGEPAGE);
}

int frag_pages_take_room(int file, size_t bytes)
{
    return ftruncate(file, (off_t)bytes) != 0 ? errno : posix_fallocate(file, 0, (off_t)bytes);
}

#else
bool frag_pages_zero(void *start, size_t bytes)
{
    (void)start, (void)bytes;
    return false;
}

bool frag_pages_seen(void *start, size_t bytes, unsigned char *seen)
{
    (void)start, (void)bytes, (void)seen;
    return false;
}

void frag_pages_prefer_large(void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

int frag_pages_take_room(int file, size_t bytes)
{
    return ftruncate(file, (off_t)bytes) != 0 ? errno : 0;
}
#endif
