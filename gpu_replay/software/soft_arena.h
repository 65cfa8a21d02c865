/* Ranges of device addresses: live ones in order of address, each with what it stands for. */
#ifndef FRAG_SOFTWARE_SOFT_ARENA_H
#define FRAG_SOFTWARE_SOFT_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct frag_soft_range {
    uint64_t address;
    uint64_t bytes;       /* of addresses */
    uint64_t asked_bytes; /* what the caller named */
    uint32_t tag;         /* the owner's */
} frag_soft_range;

typedef struct frag_soft_arena {
    frag_soft_range *ranges; /* by address, no overlap */
    size_t count;
    size_t capacity;
    uint64_t base;
    uint64_t window_bytes; /* addresses from base that are its own */
    uint64_t next;         /* above every address ever given */
} frag_soft_arena;

void frag_soft_arena_start(frag_soft_arena *arena, uint64_t base, uint64_t window_bytes);
void frag_soft_arena_destroy(frag_soft_arena *arena);

/* Adds a range of bytes at the lowest gap that holds it (is_bump: above everything given before,
 * until the window is used up), at a multiple of alignment, a power of two. The pointer is good
 * until the next addition. */
frag_soft_range *frag_soft_arena_add(frag_soft_arena *arena, uint64_t bytes, uint64_t alignment,
                                     bool is_bump);

/* Adds a range at a place that the caller knows to be free. */
frag_soft_range *frag_soft_arena_add_at(frag_soft_arena *arena, uint64_t address, uint64_t bytes);

/* The place of the first range that ends above address; count when there is none. */
size_t frag_soft_arena_place(const frag_soft_arena *arena, uint64_t address);

/* The range that holds address, NULL when none does. */
frag_soft_range *frag_soft_arena_find(const frag_soft_arena *arena, uint64_t address);

void frag_soft_arena_remove(frag_soft_arena *arena, size_t place);

#endif
