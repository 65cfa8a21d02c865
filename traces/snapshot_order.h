/* Free blocks in the order in which PyTorch looks for one: by size, then by address.
 *
 * Kept in pages of some dozen blocks, so that adding and removing stays cheap with any number. */
#ifndef FRAG_TRACES_SNAPSHOT_ORDER_H
#define FRAG_TRACES_SNAPSHOT_ORDER_H

#include <stddef.h>
#include <stdint.h>

typedef struct frag_free_key {
    uint64_t bytes;
    uint64_t address;
    uint32_t block; /* the caller's number, not 0 */
} frag_free_key;

typedef struct frag_free_page frag_free_page;

/* Start from {0}. */
typedef struct frag_free_order {
    frag_free_page **pages; /* none is empty */
    size_t page_count;
    size_t page_capacity;
    size_t found_page; /* where the last search ended: what was found is mostly removed */
    size_t found_index;
} frag_free_order;

/* No two keys are of the same size and address. */
void frag_free_order_add(frag_free_order *order, const frag_free_key *key);
/* Removes the key of that size and address, which must be there. */
void frag_free_order_remove(frag_free_order *order, uint64_t bytes, uint64_t address);
/* The block of the first key at or behind a size and an address, or 0. */
uint32_t frag_free_order_from(frag_free_order *order, uint64_t bytes, uint64_t address);
void frag_free_order_destroy(frag_free_order *order);

#endif
