/* Handles given to programs: numbers that stand for places in a table. A place is used again, its
 * handle is not, so that a handle that was destroyed is known as such. */
#ifndef FRAG_SOFTWARE_SOFT_HANDLES_H
#define FRAG_SOFTWARE_SOFT_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct frag_soft_slot {
    uint32_t generation;
    uint32_t next; /* free slot, when this one is free */
    bool is_live;
} frag_soft_slot;

typedef struct frag_soft_handles {
    frag_soft_slot *slots;
    size_t capacity;
    uint32_t count;     /* slots ever used */
    uint32_t free_head; /* place + 1; 0: none */
    uint32_t live_count;
    uint64_t base; /* of the numbers of this kind */
} frag_soft_handles;

/* Gives a place; its handle is frag_soft_handle_number. Places count up from 0. */
uint32_t frag_soft_handle_take(frag_soft_handles *handles);
uint64_t frag_soft_handle_number(const frag_soft_handles *handles, uint32_t place);
/* false: the number is no live handle of this kind. */
bool frag_soft_handle_find(const frag_soft_handles *handles, uint64_t number, uint32_t *place);
void frag_soft_handle_give(frag_soft_handles *handles, uint32_t place);
void frag_soft_handles_destroy(frag_soft_handles *handles);

#endif
