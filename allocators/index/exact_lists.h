/* Free blocks by their exact size, the newest of each size first.
 *
 * A hash table from sizes to lists, which nobody walks but for checks, so that its order decides
 * nothing; it doubles in place of the arena. A size that was seen once keeps its place. Beside it
 * stand the sizes that were freed since everything was given back, in the order of the table that
 * the modelled pool keeps them in (walk_order.h). */
#ifndef FRAG_INDEX_EXACT_LISTS_H
#define FRAG_INDEX_EXACT_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/index/walk_order.h"
#include "base/memory.h"

typedef struct frag_exact_slot {
    uint64_t size; /* 0: the slot is empty */
    uint32_t first;
    uint32_t round; /* the last one in which a used block of the size was inserted */
} frag_exact_slot;

typedef struct frag_exact_link {
    uint32_t next;
    uint32_t previous;
} frag_exact_link;

typedef struct frag_exact_lists {
    frag_arena *arena;
    frag_exact_slot *slots;
    uint32_t slot_count; /* a power of two */
    uint32_t size_count;
    uint32_t round;         /* one more than how often everything was given back */
    frag_exact_link *links; /* by block */
    frag_walk_order order;  /* sizes of this round */
} frag_exact_lists;

/* Arena bytes for blocks with ids below id_count, of as many sizes. */
size_t frag_exact_lists_bytes(uint32_t id_count);
void frag_exact_lists_create(frag_exact_lists *lists, frag_arena *arena, uint32_t id_count);

/* A block that was used, or one that is fresh from the device: the modelled table sees the first
 * alone. size is not 0. */
void frag_exact_insert(frag_exact_lists *lists, uint32_t id, uint64_t size);
void frag_exact_insert_fresh(frag_exact_lists *lists, uint32_t id, uint64_t size);
void frag_exact_remove(frag_exact_lists *lists, uint32_t id, uint64_t size);
/* false: there is no block of the size. */
bool frag_exact_newest(const frag_exact_lists *lists, uint64_t size, uint32_t *id);

/* Every block, the sizes ascending or as a std::unordered_map walks them, the oldest of a size
 * first; of sizes that only fresh blocks have, none. A new round begins: whoever asks gives all
 * back. */
void frag_exact_visit_all(frag_exact_lists *lists, bool is_ascending,
                          void (*visit)(void *context, uint32_t id), void *context);

/* Every block, in no meaningful order. */
void frag_exact_visit(const frag_exact_lists *lists,
                      void (*visit)(void *context, uint32_t id, uint64_t size), void *context);

#endif
