#include "sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/bits.h"

bool frag_arena_create(frag_arena *arena, size_t bytes, frag_error *error)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (size_t)frag_round_up(bytes == 0 ? 1 : bytes, page);
    void *base = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return frag_fail(error, FRAG_E_SYSTEM,
                         "the system refused %zu bytes of address space; raise 'ulimit -v' or "
                         "replay a shorter trace",
                         whole);
    *arena = (frag_arena){.base = base, .used_bytes = 0, .reserved_bytes = whole};
    return true;
}

void frag_arena_destroy(frag_arena *arena)
{
    if (arena->base != NULL)
        munmap(arena->base, arena->reserved_bytes);
    *arena = (frag_arena){0};
}

void *frag_arena_take(frag_arena *arena, size_t count, size_t item_bytes)
{
    uint64_t bytes = 0;
    FRAG_ASSERT(frag_multiply(count, item_bytes, &bytes));
    size_t start = (size_t)frag_align_up(arena->used_bytes, 64);
    FRAG_ASSERT(bytes <= arena->reserved_bytes && start <= arena->reserved_bytes - bytes);
    arena->used_bytes = start + (size_t)bytes;
    return arena->base + start;
}

size_t frag_arena_touched_bytes(const frag_arena *arena)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (arena->used_bytes + page - 1) / page;
    size_t touched = 0;
    unsigned char seen[1024];
    for (size_t first = 0; first < pages; first += sizeof seen) {
        size_t count = pages - first < sizeof seen ? pages - first : sizeof seen;
        if (mincore(arena->base + first * page, count * page, seen) != 0)
            return arena->used_bytes;
        for (size_t i = 0; i < count; i++)
            touched += (seen[i] & 1u) != 0 ? page : 0;
    }
    return touched;
}

static _Noreturn void out_of_host_memory(size_t count, size_t item_bytes)
{
    fprintf(stderr,
            "fraglab: out of host memory for %zu items of %zu bytes; free some or use a smaller "
            "input\n",
            count, item_bytes);
    exit(FRAG_E_SYSTEM);
}

void *frag_alloc(size_t count, size_t item_bytes)
{
    void *memory = calloc(count == 0 ? 1 : count, item_bytes == 0 ? 1 : item_bytes);
    if (memory == NULL)
        out_of_host_memory(count, item_bytes);
    return memory;
}

void *frag_realloc(void *memory, size_t count, size_t item_bytes)
{
    uint64_t bytes = 0;
    if (!frag_multiply(count, item_bytes, &bytes))
        out_of_host_memory(count, item_bytes);
    void *moved = realloc(memory, bytes == 0 ? 1 : (size_t)bytes);
    if (moved == NULL)
        out_of_host_memory(count, item_bytes);
    return moved;
}

char *frag_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = frag_alloc(bytes, 1);
    memcpy(copy, text, bytes);
    return copy;
}

void frag_memory_will_fill(void *memory, size_t bytes)
{
    const uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(page - 1);
    if (end > start)
        (void)madvise((unsigned char *)memory + (start - (uintptr_t)memory), end - start,
                      MADV_HUGEPAGE);
}

void *frag_grow(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count <= *capacity)
        return items;
    size_t wanted = *capacity < 16 ? 16 : *capacity;
    while (wanted < count)
        wanted *= 2;
    *capacity = wanted;
    return frag_realloc(items, wanted, item_bytes);
}
