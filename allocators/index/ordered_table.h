/* A hash table whose order of iteration is a rule: open addressing with Robin Hood displacement,
 * Fibonacci hashing, walked by ascending slot. PyTorch keeps streams and pools in such tables, and
 * the order in which it walks them decides which block becomes free first. Source: the order of the
 * library's calls in its logs; the same table is known as ska::flat_hash_map. */
#ifndef FRAG_INDEX_ORDERED_TABLE_H
#define FRAG_INDEX_ORDERED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

#define FRAG_ORDERED_END UINT32_MAX

typedef struct frag_ordered_entry {
    uint64_t key;
    uint32_t value;
    int32_t distance; /* from the slot its key hashes to; negative: the slot is empty */
} frag_ordered_entry;

typedef struct frag_ordered_table {
    frag_ordered_entry *entries; /* slot_max + key_max + 1 */
    frag_ordered_entry *moved;   /* key_max: on their way to more slots */
    uint32_t slot_max;           /* power of two; the table grows no further */
    uint32_t key_max;
    uint32_t slot_count; /* 0 until the first insert */
    uint32_t count;
} frag_ordered_table;

/* Arena bytes of a table that key_count keys fit into. */
size_t frag_ordered_table_bytes(uint32_t key_count);
void frag_ordered_table_create(frag_ordered_table *table, frag_arena *arena, uint32_t key_count);

/* At most key_count entries at a time. The key decides the place; entries are distinguished by key
 * and value, and one that is there already is not inserted again. */
void frag_ordered_insert(frag_ordered_table *table, uint64_t key, uint32_t value);
bool frag_ordered_has(const frag_ordered_table *table, uint64_t key, uint32_t value);
bool frag_ordered_erase(frag_ordered_table *table, uint64_t key, uint32_t value);
/* Erases the entry of a slot; what came behind may move into it, so look at the slot again. */
void frag_ordered_erase_at(frag_ordered_table *table, uint32_t slot);
/* Forgets all entries, keeps the number of slots. */
void frag_ordered_clear(frag_ordered_table *table);
/* Forgets the slots, too. */
void frag_ordered_reset(frag_ordered_table *table);
/* The first slot in use from slot on; FRAG_ORDERED_END: none. */
uint32_t frag_ordered_next(const frag_ordered_table *table, uint32_t slot);

#endif
