/* Holes of a block space in the order of their addresses, found by size.
 *
 * A B+-tree of 5 to 16 entries to a node, whose inner nodes know the largest hole below each child:
 * the first entry that is large enough, node by node from the root, leads to the lowest hole that
 * is. Addresses stay in the block records. A hole that is split, or coalesced with its neighbours,
 * keeps its place among the others, so most changes write one size, and the largest of a node in
 * the node above. Only a hole between two busy blocks is new to the order and placed by addresses.
 * The sizes of a node lie side by side and are compared all at once, so that no branch has to be
 * guessed.
 *
 * With n holes, a search or a change looks at O(log n) nodes; placing a new hole, and next fit, at
 * O(log^2 n). Sizes of 2^31 units and more count as equal until they are looked at, one by one.
 * Source: Bayer and McCreight, Acta Informatica 1, 1972, for the tree; Stephenson, SOSP 1983, for
 * first fit by the largest hole of a subtree.
 *
 * Many indexes share one store, which holds the places of all holes and recycles nodes; an index
 * that holds nothing costs nothing. A hole is named by the id of its block record, and is in at
 * most one index at a time. */
#ifndef FRAG_INDEX_ADDRESS_INDEX_H
#define FRAG_INDEX_ADDRESS_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/index/block_space.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/lanes.h"
#include "base/memory.h"

enum { FRAG_ADDRESS_NODE_WIDTH = FRAG_LANE_COUNT };

#define FRAG_ADDRESS_NONE UINT32_MAX
#define FRAG_ADDRESS_SIZE_MAX INT32_MAX

/* Entries in the order of addresses, without gaps; a size of 0 is no entry. */
typedef struct frag_address_node {
    frag_lanes sizes;                       /* in units, of the hole or the largest below */
    uint32_t refs[FRAG_ADDRESS_NODE_WIDTH]; /* nodes; from node_max on: holes, node_max + id */
} frag_address_node;

typedef struct frag_address_index_store {
    const frag_block *blocks; /* addresses and bytes of holes, by id */
    frag_address_node *nodes;
    uint32_t *places; /* by ref: node * 16 + slot of its entry; of a root FRAG_ADDRESS_NONE */
    uint32_t node_max;
    uint32_t node_count; /* nodes ever used */
    uint32_t spare;      /* recycled nodes, linked by their first refs; FRAG_ADDRESS_NONE: none */
    uint32_t unit_log2;
    uint32_t id_count;
} frag_address_index_store;

/* Start from {.store = store, .root = FRAG_ADDRESS_NONE}. */
typedef struct frag_address_index {
    frag_address_index_store *store;
    uint32_t root; /* FRAG_ADDRESS_NONE while the index is empty */
} frag_address_index;

/* Arena bytes that a store for id_count records and index_count indexes takes. */
size_t frag_address_index_store_bytes(uint32_t id_count, uint64_t index_count);

/* blocks is lent, and has id_count records. All sizes are multiples of unit, a power of two. */
void frag_address_index_store_create(frag_address_index_store *store, frag_arena *arena,
                                     const frag_block *blocks, uint32_t id_count,
                                     uint64_t index_count, uint64_t unit);

/* Address and bytes of the hole, and of all holes in the index, are those of their records. */
void frag_address_index_insert(frag_address_index *index, uint32_t id);

/* Whatever the record says by now. */
void frag_address_index_remove(frag_address_index *index, uint32_t id);

/* ---- searches, for a multiple of unit above 0; false: no hole of the index will do, and *id is
 * anything */

/* The lowest hole of at least bytes above a hole of the index. */
bool frag_address_index_above(const frag_address_index *index, uint64_t bytes, uint32_t id,
                              uint32_t *found);

/* As frag_address_index_first, but the lowest hole that begins at or above from; when there is
 * none, the lowest of all: next fit. */
bool frag_address_index_next(const frag_address_index *index, uint64_t bytes, uint64_t from,
                             uint32_t *id);

/* The largest hole, provided that it is of at least bytes; of equal ones the lowest: worst fit. */
bool frag_address_index_largest(const frag_address_index *index, uint64_t bytes, uint32_t *id);

typedef void frag_address_index_visitor(void *context, uint32_t id);

/* Every hole, in the order of addresses. The visitor must not change the index. */
void frag_address_index_visit(const frag_address_index *index, frag_address_index_visitor *visit,
                              void *context);

/* Audits every invariant, the order and the sizes of the block records among them.
 * false: FRAG_E_INPUT with what is broken. */
bool frag_address_index_check(const frag_address_index *index, frag_error *error);

static inline int32_t frag_address_size_of(const frag_address_index_store *store, uint64_t bytes)
{
    uint64_t units = bytes >> store->unit_log2;
    return units < FRAG_ADDRESS_SIZE_MAX ? (int32_t)units : FRAG_ADDRESS_SIZE_MAX;
}

/* The lowest hole of at least bytes: address-ordered first fit. */
static inline bool frag_address_index_first(const frag_address_index *index, uint64_t bytes,
                                            uint32_t *id)
{
    const frag_address_index_store *store = index->store;
    if (index->root == FRAG_ADDRESS_NONE)
        return false;
    int32_t size = frag_address_size_of(store, bytes);
    FRAG_ASSERT(size > 0);
    uint32_t ref = index->root;
    do {
        const frag_address_node *node = &store->nodes[ref];
        uint32_t mask = frag_lanes_above(&node->sizes, size - 1);
        if (mask == 0)
            return false;
        ref = node->refs[frag_bit_low(mask)];
    } while (ref < store->node_max);
    *id = ref - store->node_max;
    if (FRAG_UNLIKELY(size == FRAG_ADDRESS_SIZE_MAX) && store->blocks[*id].bytes < bytes)
        return frag_address_index_above(index, bytes, *id, id);
    return true;
}

/* The largest size of the node may have changed: sees that all above know it. */
static inline void frag_address_node_raise(frag_address_index_store *store, uint32_t at)
{
    uint32_t place = 0;
    while ((place = store->places[at]) != FRAG_ADDRESS_NONE) {
        int32_t largest = frag_lanes_largest(&store->nodes[at].sizes);
        at = place / FRAG_ADDRESS_NODE_WIDTH;
        frag_address_node *node = &store->nodes[at];
        uint32_t slot = place % FRAG_ADDRESS_NODE_WIDTH;
        if (node->sizes.values[slot] == largest)
            break;
        frag_lanes_set(&node->sizes, slot, largest);
    }
}

/* The record of a hole has other bytes now, and perhaps another address, between the same
 * neighbours in the index. */
static inline void frag_address_index_change(frag_address_index *index, uint32_t id)
{
    frag_address_index_store *store = index->store;
    uint32_t place = store->places[store->node_max + id];
    uint32_t at = place / FRAG_ADDRESS_NODE_WIDTH;
    uint32_t slot = place % FRAG_ADDRESS_NODE_WIDTH;
    FRAG_ASSERT(store->nodes[at].refs[slot] == store->node_max + id);
    frag_lanes_set(&store->nodes[at].sizes, slot,
                   frag_address_size_of(store, store->blocks[id].bytes));
    frag_address_node_raise(store, at);
}

#endif
