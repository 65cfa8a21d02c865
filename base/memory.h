/* Host memory of fraglab itself.
 *
 * An arena reserves one range of address space and hands out zeroed pieces of it; pages cost memory
 * only once they are touched. Everything of a run lives in one arena, taken at the start and
 * dropped whole at its end: the hot loop never calls malloc, and the memory of a policy's metadata
 * is measured at no extra cost. */
#ifndef FRAG_BASE_MEMORY_H
#define FRAG_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A policy in a shared object may call these. */
#pragma GCC visibility push(default)

typedef struct frag_arena_spare frag_arena_spare;

typedef struct frag_arena {
    unsigned char *base;
    size_t used_bytes;
    size_t reserved_bytes;
    frag_arena_spare *spare; /* who gets the memory at the end; NULL: the system */
} frag_arena;

/* Reserves address space for at most bytes (rounded up to pages). FRAG_E_SYSTEM when refused. */
bool frag_arena_create(frag_arena *arena, size_t bytes, frag_error *error);
void frag_arena_destroy(frag_arena *arena);

/* The memory of an arena that has ended, for the next one: pages that were touched before cost far
 * less than fresh ones from the system. For runs one after the other, on one thread. */
frag_arena_spare *frag_arena_spare_create(void);
/* After the arenas that were created from it. NULL is allowed. */
void frag_arena_spare_destroy(frag_arena_spare *spare);

/* As frag_arena_create, with the spare memory where it is large enough; the arena's memory becomes
 * the spare one when it is destroyed. spare NULL: frag_arena_create. */
bool frag_arena_create_from(frag_arena_spare *spare, frag_arena *arena, size_t bytes,
                            frag_error *error);

/* count zeroed items of item_bytes each, aligned to 64. Running over the reserved range is a bug of
 * the caller's bound and asserts. */
void *frag_arena_take(frag_arena *arena, size_t count, size_t item_bytes);

/* Bytes of host memory the arena has touched so far (whole pages; the measure of metadata cost). Of
 * an arena that began with spare memory they include what was touched before it. */
size_t frag_arena_touched_bytes(const frag_arena *arena);

/* malloc/realloc that never return NULL: out of host memory ends the call of the library that the
 * thread is in (base/scope.h), else the program, with exit code 4 and one sentence. For bookkeeping
 * outside runs; sizes taken from input are bounded before they get here. What they return, and what
 * the C library returns to be freed, is given back by frag_free.
 */
void *frag_alloc(size_t count, size_t item_bytes); /* zeroed; much of it in large pages */
void *frag_realloc(void *memory, size_t count, size_t item_bytes);
char *frag_copy_text(const char *text);
void frag_free(void *memory); /* NULL is allowed */

/* Says that all of some large malloc'ed memory will be written: the system may use large pages for
 * it, which makes the first touch several times cheaper. Does nothing where there are none. */
void frag_memory_will_fill(void *memory, size_t bytes);

/* Memory for an array that will be filled in order, perhaps not to its end; not zeroed, freed by
 * frag_free(). Large pages are asked for where they fit. */
void *frag_memory_large(size_t bytes);

/* What lies there is not needed again: the system may take back the pages that it fills. The memory
 * stays allocated, with anything in it. */
void frag_memory_forget(void *memory, size_t bytes);

/* From now on the process keeps what it frees, up to 64 MiB, for what it takes next: pages that are
 * fresh from the system cost more than reading a recording into them. For a program's main. */
void frag_memory_keep(void);

/* Grows *items (capacity *capacity) so that it holds at least count; at least doubles, but under
 * the address sanitizer, where small arrays are as long as they have to be. */
void *frag_grow(void *items, size_t *capacity, size_t count, size_t item_bytes);
/* Appends an item, which is not set yet, to items (count, of capacity): a pointer to it. */
#define FRAG_APPEND(items, count, capacity)                                                        \
    ((items) = frag_grow((items), &(capacity), (size_t)(count) + 1, sizeof *(items)),              \
     &(items)[(count)++])

#pragma GCC visibility pop

#endif
