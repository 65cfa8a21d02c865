#include "base/system/pages.h"

#ifdef __linux__
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
#endif
