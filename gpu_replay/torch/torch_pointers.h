/* From the address of a block to its number: what a free brings is a pointer.
 *
 * Open addressing with linear probing; what is taken out closes its gap, so that searches stay
 * short however long the program runs. */
#ifndef FRAG_TORCH_TORCH_POINTERS_H
#define FRAG_TORCH_TORCH_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct frag_torch_pointer {
    uint64_t address; /* 0: empty */
    uint32_t block;
} frag_torch_pointer;

/* Start from {0}. */
typedef struct frag_torch_pointers {
    frag_torch_pointer *places;
    size_t capacity; /* 0 or a power of two */
    size_t count;
} frag_torch_pointers;

/* address is not 0 and not in it. */
void frag_torch_pointers_add(frag_torch_pointers *pointers, uint64_t address, uint32_t block);
bool frag_torch_pointers_find(const frag_torch_pointers *pointers, uint64_t address,
                              uint32_t *block);
/* As find, and takes it out. */
bool frag_torch_pointers_take(frag_torch_pointers *pointers, uint64_t address, uint32_t *block);

#endif
