/* Free blocks, found by size.
 *
 * Blocks are kept in logarithmic bins of their size, 16 to an octave (exact below 32 bytes), each a
 * list linked both ways in order of (size, tie). Best fit is the first block of the wanted size's
 * bin that is large enough, or the head of the next bin that a two-level bitmap shows. On
 * allocation traces bins are short and most searches end at the head of a list, which is what the
 * processor guesses; insertions walk half a block on average. This beats balanced trees 4 to 5
 * times.
 *
 * Many indexes (one per pool and stream, say) share one store, which holds the places of all blocks
 * and recycles the memory of bins; an index that holds nothing costs nothing. Blocks are named by
 * ids below the store's id_count, and a block is in at most one index at a time. Ties of size break
 * by the least tie key, usually the address; (size, tie) of the blocks of one index must differ. */
#ifndef FRAG_ALLOCATORS_FREE_INDEX_H
#define FRAG_ALLOCATORS_FREE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/bits.h"
#include "sim/base/error.h"
#include "sim/base/memory.h"

enum {
    FRAG_FREE_BIN_COUNT = 1024,
    FRAG_FREE_OCTAVE_COUNT = 64,
    FRAG_FREE_OCTAVE_STEP = 4,
    FRAG_FREE_WORD_COUNT = 16
};

/* A block as it is shown. */
typedef struct frag_free_entry {
    uint64_t size;
    uint64_t tie;
    uint32_t id;
} frag_free_entry;

/* What is known of a block. Blocks are named by places, id + 1; 0 is no block, and larger than any,
 * so that walks end at it. */
typedef struct frag_free_node {
    uint64_t size;
    uint64_t tie;
} frag_free_node;

/* The places of its neighbours in the bin. Before the first block of a bin lies its head, which has
 * a place behind those of all blocks, so that no link is a special case. */
typedef struct frag_free_link {
    uint32_t next;
    uint32_t previous;
} frag_free_link;

/* The least tie key of each bin and of each octave, for searches by address. */
typedef struct frag_free_least {
    uint64_t bin_ties[FRAG_FREE_OCTAVE_COUNT * 16]; /* UINT64_MAX: empty */
    uint32_t bin_ids[FRAG_FREE_OCTAVE_COUNT * 16];
    /* Octaves are looked at several at a time, beyond the last one too. */
    uint64_t octave_ties[FRAG_FREE_OCTAVE_COUNT + FRAG_FREE_OCTAVE_STEP];
    uint32_t octave_ids[FRAG_FREE_OCTAVE_COUNT + FRAG_FREE_OCTAVE_STEP];
} frag_free_least;

typedef struct frag_free_table {
    uint64_t summary;                     /* bit w: words[w] is not 0 */
    uint64_t words[FRAG_FREE_WORD_COUNT]; /* bit b of the whole: bin b is not empty */
    frag_free_least *least;               /* NULL unless the store keeps it */
    struct frag_free_table *next_spare;
    uint32_t first_head; /* the place of the first bin's head; those of the others follow */
} frag_free_table;

typedef struct frag_free_index_store {
    frag_arena *arena;
    frag_free_node *nodes; /* id_count + 1 */
    frag_free_link *links; /* the same, and FRAG_FREE_BIN_COUNT for each table */
    uint32_t table_count;  /* tables made */
    uint32_t id_count;
    bool keeps_least;
    frag_free_table *spare_tables;
} frag_free_index_store;

/* Start from {.store = store}. */
typedef struct frag_free_index {
    frag_free_index_store *store;
    frag_free_table *table; /* NULL while the index is empty */
} frag_free_index;

/* Arena bytes that a store and the index_count indexes on it may take at most. */
size_t frag_free_index_store_bytes(uint32_t id_count, uint64_t index_count, bool keeps_least);

/* keeps_least: for first fit. Bins are then not sorted, but know their least ties; only first, next
 * and visit (in no meaningful order) work on such a store, and the others on one without. */
void frag_free_index_store_create(frag_free_index_store *store, frag_arena *arena,
                                  uint32_t id_count, uint64_t index_count, bool keeps_least);

/* ---- searches; false: no block of the index will do */

/* The least (tie) of all blocks of at least size: address-ordered first fit. */
bool frag_free_index_first(const frag_free_index *index, uint64_t size, uint32_t *id);

/* As first, but the least tie at or above from; when there is none, the least of all: next fit.
 * Looks at every block of at least size. */
bool frag_free_index_next(const frag_free_index *index, uint64_t size, uint64_t from, uint32_t *id);

/* The largest block, provided that it is at least size: worst fit. */
bool frag_free_index_worst(const frag_free_index *index, uint64_t size, uint32_t *id);

typedef void frag_free_index_visitor(void *context, const frag_free_entry *entry);

/* Every block, in order of (size, tie). The visitor must not change the index. */
void frag_free_index_visit(const frag_free_index *index, frag_free_index_visitor *visit,
                           void *context);

/* How many blocks it holds; counts them. */
uint32_t frag_free_index_count(const frag_free_index *index);

/* Audits every invariant. false: FRAG_E_INPUT with what is broken. */
bool frag_free_index_check(const frag_free_index *index, frag_error *error);

/* ---- the slow halves of the functions below */
frag_free_table *frag_free_table_open(frag_free_index *index);
void frag_free_table_close(frag_free_index *index);
void frag_free_least_insert(frag_free_least *least, uint32_t bin, uint64_t tie, uint32_t id);
void frag_free_least_repair(const frag_free_index *index, uint32_t bin, uint32_t id);

/* The exponent of a double and the first four bits of its fraction are the number of a bin, 16 to
 * an octave; the conversion is faster than finding the highest bit. size is 1 to 2^62. */
static inline uint32_t frag_free_bin_of(uint64_t size)
{
    union {
        double value;
        uint64_t bits;
    } number = {.value = (double)(int64_t)size};
    return (uint32_t)(number.bits >> 48) - 0x3ff0u;
}

/* The first place of a bin; 0: the bin is empty. */
static inline uint32_t frag_free_bin_first(const frag_free_index *index, uint32_t number)
{
    return index->store->links[index->table->first_head + number].next;
}

static inline bool frag_free_comes_before(const frag_free_node *node, uint64_t size, uint64_t tie)
{
    return node->size < size || (node->size == size && node->tie < tie);
}

static inline void frag_free_index_insert(frag_free_index *index, uint32_t id, uint64_t size,
                                          uint64_t tie)
{
    frag_free_index_store *store = index->store;
    frag_free_node *nodes = store->nodes;
    frag_free_link *links = store->links;
    frag_free_table *table = index->table;
    if (FRAG_UNLIKELY(table == NULL))
        table = frag_free_table_open(index);
    uint32_t number = frag_free_bin_of(size);
    uint32_t place = id + 1;
    uint32_t previous = table->first_head + number;
    uint32_t next = links[previous].next;
    while (!store->keeps_least && frag_free_comes_before(&nodes[next], size, tie)) {
        previous = next;
        next = links[next].next;
    }
    nodes[place] = (frag_free_node){size, tie};
    links[place] = (frag_free_link){next, previous};
    links[next].previous = place;
    links[previous].next = place;
    table->words[number / 64] |= (uint64_t)1 << (number % 64);
    table->summary |= (uint64_t)1 << (number / 64);
    if (FRAG_UNLIKELY(store->keeps_least) && tie < table->least->bin_ties[number])
        frag_free_least_insert(table->least, number, tie, id);
}

/* As frag_free_index_remove, but an index that is empty then keeps its table. */
static inline void frag_free_index_take_out(frag_free_index *index, uint32_t id, uint64_t size)
{
    frag_free_index_store *store = index->store;
    frag_free_link *links = store->links;
    frag_free_table *table = index->table;
    uint32_t number = frag_free_bin_of(size);
    frag_free_link link = links[id + 1];
    FRAG_ASSERT(links[link.previous].next == id + 1);
    links[link.previous].next = link.next;
    links[link.next].previous = link.previous;
    bool is_empty = frag_free_bin_first(index, number) == 0;
    uint64_t word = table->words[number / 64] & ~((uint64_t)is_empty << (number % 64));
    table->words[number / 64] = word;
    table->summary &= ~((uint64_t)(word == 0) << (number / 64));
    if (FRAG_UNLIKELY(store->keeps_least) && table->least->bin_ids[number] == id)
        frag_free_least_repair(index, number, id);
}

/* size is the one the block was inserted with. */
static inline void frag_free_index_remove(frag_free_index *index, uint32_t id, uint64_t size)
{
    frag_free_index_take_out(index, id, size);
    if (index->table->summary == 0)
        frag_free_table_close(index);
}

/* Gives a block of the index a new size and tie. A block that became smaller and is still behind
 * the one before it stays where it is: what follows it in its bin was larger already. */
static inline void frag_free_index_change(frag_free_index *index, uint32_t id, uint64_t old_size,
                                          uint64_t size, uint64_t tie)
{
    const frag_free_index_store *store = index->store;
    uint32_t number = frag_free_bin_of(size);
    uint32_t previous = store->links[id + 1].previous;
    if (size < old_size && number == frag_free_bin_of(old_size) && !store->keeps_least &&
        (previous == index->table->first_head + number ||
         frag_free_comes_before(&store->nodes[previous], size, tie))) {
        store->nodes[id + 1] = (frag_free_node){size, tie};
        return;
    }
    frag_free_index_take_out(index, id, old_size);
    frag_free_index_insert(index, id, size, tie);
}

/* The number of the first bin from the given one on that is not empty, or FRAG_FREE_BIN_COUNT. */
static inline uint32_t frag_free_bin_from(const frag_free_table *table, uint32_t number)
{
    uint32_t at = number / 64;
    uint64_t word = table->words[at] & (~(uint64_t)0 << (number % 64));
    if (word == 0) {
        uint64_t above = table->summary & (~(uint64_t)1 << at);
        if (above == 0)
            return FRAG_FREE_BIN_COUNT;
        at = frag_bit_low(above);
        word = table->words[at];
    }
    return at * 64 + frag_bit_low(word);
}

/* As frag_free_bin_from, but above the given one. */
static inline uint32_t frag_free_bin_above(const frag_free_table *table, uint32_t number)
{
    return number + 1 < FRAG_FREE_BIN_COUNT ? frag_free_bin_from(table, number + 1)
                                            : FRAG_FREE_BIN_COUNT;
}

/* The least (size, tie) that is not before the given pair. */
static inline bool frag_free_index_from(const frag_free_index *index, uint64_t size, uint64_t tie,
                                        uint32_t *id)
{
    if (index->table == NULL)
        return false;
    const frag_free_index_store *store = index->store;
    uint32_t number = frag_free_bin_of(size);
    uint32_t place = frag_free_bin_first(index, number);
    while (frag_free_comes_before(&store->nodes[place], size, tie))
        place = store->links[place].next;
    if (place == 0) {
        number = frag_free_bin_above(index->table, number);
        if (number == FRAG_FREE_BIN_COUNT)
            return false;
        place = frag_free_bin_first(index, number);
    }
    *id = place - 1;
    return true;
}

/* The least (size, tie) of at least size: best fit. false: there is none. */
static inline bool frag_free_index_best(const frag_free_index *index, uint64_t size, uint32_t *id)
{
    return frag_free_index_from(index, size, 0, id);
}

/* The least (size, tie) above the given pair: walks the index in best-fit order, step by step. */
static inline bool frag_free_index_above(const frag_free_index *index, uint64_t size, uint64_t tie,
                                         uint32_t *id)
{
    FRAG_ASSERT(tie != UINT64_MAX);
    return frag_free_index_from(index, size, tie + 1, id);
}

#endif
