/* Mapped memory for WebAssembly: zeroed blocks of the heap. Pages cannot be asked about: callers do
 * without where that fails. */
#ifndef FRAG_SYS_MMAN_H
#define FRAG_SYS_MMAN_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_SHARED 1 /* there are no files to map */
#define MAP_ANONYMOUS 32
#define MAP_NORESERVE 0
#define MAP_FAILED ((void *)-1)

static inline void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor,
                         off_t offset)
{
    (void)address, (void)protection, (void)flags, (void)descriptor, (void)offset;
    void *memory = calloc(1, bytes);
    return memory != NULL ? memory : MAP_FAILED;
}

static inline int munmap(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
    return 0;
}

#endif
