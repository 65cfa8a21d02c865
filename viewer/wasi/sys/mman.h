/* Mapped memory for WebAssembly, which has one memory that only grows, in pages of 64 KiB: a
 * mapping is a stretch of pages of its own, and is used again once it was given back. The heap
 * would not do: it may round a large block up to a power of two, which a memory of 4 GB has no room
 * for. Pages cannot be asked about: callers do without where that fails. */
#ifndef FRAG_SYS_MMAN_H
#define FRAG_SYS_MMAN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_NORESERVE 0
#define MAP_FAILED ((void *)-1)

#define WASM_PAGE_BYTES ((size_t)65536)

enum { WASM_FREE_MAX = 64 };

/* Stretches that were given back. One file of the program maps memory. */
static struct {
    unsigned char *base;
    size_t bytes;
} wasm_free[WASM_FREE_MAX];
static size_t wasm_free_count;

static inline size_t wasm_pages(size_t bytes)
{
    return bytes / WASM_PAGE_BYTES + (bytes % WASM_PAGE_BYTES != 0);
}

/* Never of a file: address, protection, flags, descriptor and offset are not looked at. */
static inline void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor,
                         off_t offset)
{
    size_t pages = wasm_pages(bytes);
    (void)address, (void)protection, (void)flags, (void)descriptor, (void)offset;
    for (size_t i = 0; i < wasm_free_count; i++)
        if (wasm_free[i].bytes / WASM_PAGE_BYTES >= pages) {
            unsigned char *base = wasm_free[i].base;
            wasm_free[i].base += pages * WASM_PAGE_BYTES;
            wasm_free[i].bytes -= pages * WASM_PAGE_BYTES;
            if (wasm_free[i].bytes == 0)
                wasm_free[i] = wasm_free[--wasm_free_count];
            return memset(base, 0, pages * WASM_PAGE_BYTES);
        }
    return pages > INT32_MAX / WASM_PAGE_BYTES ? MAP_FAILED
                                               : sbrk((intptr_t)(pages * WASM_PAGE_BYTES));
}

/* Joins what lies side by side; what finds no place in the list is lost. */
static inline int munmap(void *memory, size_t bytes)
{
    unsigned char *base = memory;
    size_t whole = wasm_pages(bytes) * WASM_PAGE_BYTES;
    for (size_t i = 0; i < wasm_free_count;) {
        unsigned char *other = wasm_free[i].base;
        if (other + wasm_free[i].bytes != base && base + whole != other) {
            i++;
            continue;
        }
        base = other < base ? other : base;
        whole += wasm_free[i].bytes;
        wasm_free[i] = wasm_free[--wasm_free_count];
        i = 0;
    }
    if (wasm_free_count < WASM_FREE_MAX) {
        wasm_free[wasm_free_count].base = base;
        wasm_free[wasm_free_count++].bytes = whole;
    }
    return 0;
}

#endif
