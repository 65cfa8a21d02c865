#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/bits.h"
#include "base/scope.h"
#include "base/system/pages.h"
#include "base/system/spill.h"

/* Spare memory beyond this goes back to the system. */
#define SPARE_BYTES_MAX ((size_t)64 << 20)

/* Arrays of this size grow eightfold: moving them over and over costs more than pages that may stay
 * untouched. */
#define GROW_FAST_FROM_BYTES ((size_t)4 << 10)
#define GROW_FAST_TO_BYTES ((size_t)256 << 10)
#ifdef __SANITIZE_ADDRESS__
#define EXACT_MAX ((size_t)1 << 10) /* items */
#endif

#define KEPT_BYTES (64 << 20)
#define KEPT_ARRAY_BYTES (32 << 20) /* the most that glibc takes for an answer */

#define LARGE_PAGE ((uintptr_t)2 << 20)
/* From here on a large page at the end that is not filled does not matter. */
#define LARGE_ARRAY_BYTES ((size_t)8 << 20)

typedef struct page_run {
    unsigned char *start;
    size_t bytes;
} page_run;

struct frag_arena_spare {
    unsigned char *base; /* NULL: none */
    size_t reserved_bytes;
    page_run *runs; /* pages that may not be zero, in order of address */
    size_t run_count;
    size_t run_capacity;
};

static void unmap(void *base, size_t bytes)
{
    munmap(base, bytes);
}

static void unmap_owned(void *base, size_t bytes)
{
    frag_scope_disown(base);
    unmap(base, bytes);
}

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
    frag_scope_own(base, whole, unmap);
    return true;
}

/* Calls add for each run of pages in memory, in order; false: the system does not tell. */
static bool visit_touched(const frag_arena *arena,
                          void add(void *context, unsigned char *start, size_t bytes),
                          void *context)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (arena->used_bytes + page - 1) / page;
    size_t run = 0;
    unsigned char seen[1024];
    for (size_t first = 0; first < pages; first += sizeof seen) {
        size_t count = pages - first < sizeof seen ? pages - first : sizeof seen;
        if (!frag_pages_seen(arena->base + first * page, count * page, seen))
            return false;
        for (size_t i = 0; i < count; i++) {
            bool is_touched = (seen[i] & 1u) != 0;
            bool is_end = !is_touched || i + 1 == count;
            run += is_touched ? 1 : 0;
            if (is_end && run > 0) {
                add(context, arena->base + (first + i + (is_touched ? 1 : 0) - run) * page,
                    run * page);
                run = 0;
            }
        }
    }
    return true;
}

static void add_run(void *context, unsigned char *start, size_t bytes)
{
    frag_arena_spare *spare = context;
    *FRAG_APPEND(spare->runs, spare->run_count, spare->run_capacity) = (page_run){start, bytes};
}

static void drop(frag_arena_spare *spare)
{
    if (spare->base != NULL)
        unmap_owned(spare->base, spare->reserved_bytes);
    spare->base = NULL;
    spare->run_count = 0;
}

/* What lies between the runs is zero, also where the system had moved it out of memory. */
static bool empty_rest(const frag_arena_spare *spare)
{
    unsigned char *at = spare->base;
    unsigned char *end = spare->base + spare->reserved_bytes;
    size_t kept = 0;
    for (size_t i = 0; i <= spare->run_count; i++) {
        unsigned char *next = i < spare->run_count ? spare->runs[i].start : end;
        if (next > at && !frag_pages_zero(at, (size_t)(next - at)))
            return false;
        if (i < spare->run_count) {
            at = next + spare->runs[i].bytes;
            kept += spare->runs[i].bytes;
        }
    }
    return kept <= SPARE_BYTES_MAX;
}

void frag_arena_destroy(frag_arena *arena)
{
    frag_arena_spare *spare = arena->spare;
    if (arena->base != NULL && spare != NULL) {
        drop(spare);
        spare->base = arena->base;
        spare->reserved_bytes = arena->reserved_bytes;
        if (!visit_touched(arena, add_run, spare) || !empty_rest(spare))
            drop(spare);
    } else if (arena->base != NULL) {
        unmap_owned(arena->base, arena->reserved_bytes);
    }
    *arena = (frag_arena){0};
}

frag_arena_spare *frag_arena_spare_create(void)
{
    return frag_alloc(1, sizeof(frag_arena_spare));
}

void frag_arena_spare_destroy(frag_arena_spare *spare)
{
    if (spare == NULL)
        return;
    drop(spare);
    frag_free(spare->runs);
    frag_free(spare);
}

bool frag_arena_create_from(frag_arena_spare *spare, frag_arena *arena, size_t bytes,
                            frag_error *error)
{
    if (spare != NULL && spare->base != NULL && bytes <= spare->reserved_bytes) {
        for (size_t i = 0; i < spare->run_count; i++)
            memset(spare->runs[i].start, 0, spare->runs[i].bytes);
        *arena = (frag_arena){.base = spare->base, .reserved_bytes = spare->reserved_bytes};
        spare->base = NULL;
        spare->run_count = 0;
    } else if (!frag_arena_create(arena, bytes, error)) {
        return false;
    }
    arena->spare = spare;
    return true;
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

static void add_bytes(void *context, unsigned char *start, size_t bytes)
{
    size_t *sum = context;
    (void)start;
    *sum += bytes;
}

size_t frag_arena_touched_bytes(const frag_arena *arena)
{
    size_t touched = 0;
    return visit_touched(arena, add_bytes, &touched) ? touched : arena->used_bytes;
}

void *frag_alloc(size_t count, size_t item_bytes)
{
    uint64_t bytes = 0;
    bool is_large =
        frag_multiply(count, item_bytes, &bytes) && frag_spill_concerns(NULL, (size_t)bytes);
    void *memory = is_large ? frag_spill_resize(NULL, (size_t)bytes)
                            : calloc(count == 0 ? 1 : count, item_bytes == 0 ? 1 : item_bytes);
    if (memory == NULL)
        frag_scope_fail(count, item_bytes);
    frag_scope_add(memory);
    if (bytes >= LARGE_ARRAY_BYTES)
        frag_memory_will_fill(memory, (size_t)bytes);
    return memory;
}

void *frag_realloc(void *memory, size_t count, size_t item_bytes)
{
    uint64_t bytes = 0;
    if (!frag_multiply(count, item_bytes, &bytes))
        frag_scope_fail(count, item_bytes);
    uintptr_t from = (uintptr_t)memory;
    void *moved = frag_spill_concerns(memory, (size_t)bytes)
                      ? frag_spill_resize(memory, (size_t)bytes)
                      : realloc(memory, bytes == 0 ? 1 : (size_t)bytes);
    if (moved == NULL)
        frag_scope_fail(count, item_bytes);
    frag_scope_moved(from, moved);
    return moved;
}

char *frag_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = frag_alloc(bytes, 1);
    memcpy(copy, text, bytes);
    return copy;
}

void frag_free(void *memory)
{
    frag_scope_remove(memory);
    frag_spill_free(memory);
}

/* The large pages that lie within some memory, perhaps none. */
static page_run large_pages_in(void *memory, size_t bytes)
{
    uintptr_t start = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(LARGE_PAGE - 1);
    return (page_run){(unsigned char *)memory + (start - (uintptr_t)memory),
                      end > start ? end - start : 0};
}

void frag_memory_will_fill(void *memory, size_t bytes)
{
    page_run run = large_pages_in(memory, bytes);
    if (run.bytes > 0)
        frag_pages_prefer_large(run.start, run.bytes);
}

void frag_memory_forget(void *memory, size_t bytes)
{
    page_run run = large_pages_in(memory, bytes);
    if (run.bytes > 0)
        (void)frag_pages_zero(run.start, run.bytes);
}

void *frag_memory_large(size_t bytes)
{
    void *memory = frag_realloc(NULL, bytes, 1);
    frag_memory_will_fill(memory, bytes);
    return memory;
}

#if defined(__GLIBC__)
void frag_memory_keep(void)
{
    mallopt(M_MMAP_THRESHOLD, KEPT_ARRAY_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}
#else
void frag_memory_keep(void)
{
}
#endif

void *frag_grow(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count <= *capacity)
        return items;
#ifdef __SANITIZE_ADDRESS__
    /* Nothing behind the last item, so that what reads one too many is found. */
    if (count <= EXACT_MAX) {
        *capacity = count;
        return frag_realloc(items, count, item_bytes);
    }
#endif
    size_t wanted = *capacity < 16 ? 16 : *capacity;
    size_t bytes = wanted * item_bytes;
    bool is_growing = *capacity > 0 && bytes >= GROW_FAST_FROM_BYTES && bytes < GROW_FAST_TO_BYTES;
    wanted *= is_growing ? 8 : 1;
    while (wanted < count)
        wanted *= 2;
    *capacity = wanted;
    return frag_realloc(items, wanted, item_bytes);
}
