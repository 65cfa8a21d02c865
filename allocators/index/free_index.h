/* Free blocks, found by size.
 *
 * Blocks are kept in logarithmic bins of their size, 16 to an octave (exact below 32 bytes), each a
 * list linked both ways in order of (size, rank, address). Best fit is the first block of the
 * wanted size's bin that is large enough, or the head of the next bin that a bitmap shows.
 *
 * A list is sorted only when a search reaches it: until then new blocks lie at its front in order
 * of arrival, and its head counts them. On allocation traces most bins hold one block at most, and
 * most blocks have merged with a neighbour before anything looks for them. So inserting or removing
 * a block touches no other block and has no branch to predict, and a search mostly ends at the head
 * of a list, which is predicted. This is 4 to 5 times as fast as balanced trees.
 *
 * Where a walk along a list is long nevertheless, blocks on its way whose id is a multiple of
 * FRAG_FREE_LANE_EVERY are linked to a second list, the lane of the bin, which later walks take as
 * far as it leads them.
 *
 * Many indexes (one per pool and stream, say) share one store, which holds the links of all blocks
 * and recycles the memory of bins; an empty index takes no memory. Blocks are records of the
 * caller's, named by ids from 1 to below the store's id_count, and a block is in at most one index
 * at a time. The index reads sizes and addresses where they are, so they must not change while the
 * block is held, but for frag_free_index_change. Blocks of one size are in the order of their
 * ranks, where the caller has some, and then of their addresses, which must differ in one index. */
#ifndef FRAG_INDEX_FREE_INDEX_H
#define FRAG_INDEX_FREE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"

enum { FRAG_FREE_BIN_COUNT = 1024, FRAG_FREE_WORD_COUNT = 16 };

/* What records look like, of whatever type of the caller's they are. */
typedef struct frag_free_record {
    uint64_t address;
    uint64_t bytes;
    uint32_t own[3]; /* the caller's */
    uint32_t rank;   /* the caller's, too, in a store without ranks */
} frag_free_record;

enum {
    FRAG_FREE_RECORD_WORDS = sizeof(frag_free_record) / sizeof(uint64_t),
    FRAG_FREE_RANK_WORD = offsetof(frag_free_record, rank) / sizeof(uint32_t)
};

/* Sends searches out of line. */
#define FRAG_FREE_HAS_LANE ((uint32_t)1 << 31)

/* Neighbours in the bin: places. The place of a block is its id; place 0 is no block, and larger
 * than any, so that walks end at it. Before the first block of a bin lies its head, which has a
 * place behind those of all blocks, so that no link is a special case. */
typedef struct frag_free_link {
    uint32_t next;
    uint32_t previous; /* heads of bins: how many blocks in front may be out of order, and
                          FRAG_FREE_HAS_LANE; an empty list may have either left */
} frag_free_link;

/* What an index that holds something has among the links: a bitmap, of which bit b says that bin b
 * is not empty, a word that is full, so that searches end there, and the number of blocks in lanes;
 * then the heads of the bins, of which the first is always empty, and where their lanes begin. It
 * begins where a page of 4 KiB does, so that one page
 * is all it takes while no block is of 1 GiB or more. */
enum {
    FRAG_FREE_PAGE_LINKS = 512,
    FRAG_FREE_LANE_WORD = FRAG_FREE_WORD_COUNT + 1,
    FRAG_FREE_TABLE_WORDS = FRAG_FREE_LANE_WORD + 1,
    FRAG_FREE_TABLE_LINKS = 3 * FRAG_FREE_PAGE_LINKS,
    /* The bins that can have a lane; no block is as large as those of the rest. */
    FRAG_FREE_LANE_COUNT = 2 * (FRAG_FREE_TABLE_LINKS - FRAG_FREE_TABLE_WORDS - FRAG_FREE_BIN_COUNT)
};

/* Ids in lanes are multiples of it; a walk of more steps makes a lane. */
enum { FRAG_FREE_LANE_EVERY = 64, FRAG_FREE_STEPS_NEAR = 32 };

_Static_assert(sizeof(frag_free_link) == sizeof(uint64_t), "a word lies where a link would");
_Static_assert(FRAG_FREE_TABLE_WORDS + FRAG_FREE_BIN_COUNT <= FRAG_FREE_TABLE_LINKS,
               "a table holds all of its parts");

typedef struct frag_free_index_store {
    void *records;         /* by id: FRAG_FREE_RECORD_WORDS for each */
    bool is_ranked;        /* blocks of one size are in the order of their ranks first */
    frag_free_link *links; /* of all blocks, and FRAG_FREE_TABLE_LINKS for each table */
    frag_free_link *lanes; /* of every FRAG_FREE_LANE_EVERYth id; previous 0: it is in none */
    uint32_t spare_table;  /* as frag_free_index names it; the others follow as its heads' links */
    uint32_t first_table;  /* where tables begin */
    uint32_t table_count;  /* tables made */
    uint32_t id_count;
} frag_free_index_store;

/* Starts as zero. */
typedef struct frag_free_index {
    uint32_t heads; /* the place of the first bin's head; 0: it has no table and is empty */
} frag_free_index;

/* Arena bytes that count records and a store of so many indexes on them may take at most. */
size_t frag_free_records_bytes(uint32_t count);
size_t frag_free_index_store_bytes(uint32_t id_count, uint64_t index_count);

/* Records as a store wants them: all zero, but for [0], which stands for no block and is larger
 * than any. */
void *frag_free_records_take(frag_arena *arena, uint32_t count);

/* records: id_count of them, from frag_free_records_take. */
void frag_free_index_store_create(frag_free_index_store *store, frag_arena *arena, void *records,
                                  uint32_t id_count, uint64_t index_count, bool is_ranked);

/* ---- searches; false: no block of the index will do */

/* The last block in order: the largest, and the last of those of its size. */
bool frag_free_index_last(const frag_free_index_store *store, const frag_free_index *index,
                          uint32_t *id);

typedef void frag_free_index_visitor(void *context, uint32_t id);

/* Every block, in that order. The visitor must not change the index. */
void frag_free_index_visit(const frag_free_index_store *store, const frag_free_index *index,
                           frag_free_index_visitor *visit, void *context);

/* How many blocks it holds; counts them. */
uint32_t frag_free_index_count(const frag_free_index_store *store, const frag_free_index *index);

/* Audits every invariant. false: FRAG_E_INPUT with what is broken. */
bool frag_free_index_check(const frag_free_index_store *store, const frag_free_index *index,
                           frag_error *error);

/* ---- the slow halves of the functions below */

/* Gives an index a table; it has none yet. Returns its heads. */
uint32_t frag_free_table_open(frag_free_index_store *store, frag_free_index *index);
void frag_free_table_close_if_empty(frag_free_index_store *store, frag_free_index *index);

/* Puts the list of a head in order, which is not empty. Returns its first place, or, where it has a
 * lane, the first of at least so many bytes; 0: there is none. */
uint32_t frag_free_list_settle(const frag_free_index_store *store, uint32_t head, uint64_t bytes);

/* Takes a block out of its lane, where it is in one. */
void frag_free_lane_leave(const frag_free_index_store *store, uint32_t heads, uint32_t id);

/* The bitmap of the table with those heads. */
static inline uint64_t *frag_free_words(const frag_free_index_store *store, uint32_t heads)
{
    return (uint64_t *)(void *)(store->links + heads) - FRAG_FREE_TABLE_WORDS;
}

/* The number of a bin, 16 to an octave, from 1 on. size is 1 to 2^62. */
static inline uint32_t frag_free_bin_of(uint64_t size)
{
    return frag_octave_step(size, 4) + 1;
}

static inline void frag_free_link_behind(frag_free_link *links, uint32_t previous, uint32_t place)
{
    uint32_t next = links[previous].next;
    links[place].next = next;
    links[place].previous = previous;
    links[next].previous = place;
    links[previous].next = place;
}

/* Was that the link of the only block behind its head, one of so many from first_head on? 1 or 0,
 * by computing: a branch would often be guessed wrong, and what follows from this nobody waits for.
 */
static inline uint64_t frag_free_was_only(frag_free_link link, uint32_t first_head,
                                          uint32_t head_count)
{
    uint32_t number = link.previous - first_head;
    return ((uint64_t)link.next << 32 | number) < head_count;
}

/* Returns what the place was linked to. */
static inline frag_free_link frag_free_unlink(frag_free_link *links, uint32_t place)
{
    frag_free_link link = links[place];
    FRAG_ASSERT(links[link.previous].next == place);
    links[link.previous].next = link.next;
    links[link.next].previous = link.previous;
    return link;
}

static inline uint64_t frag_free_bytes_at(const frag_free_index_store *store, uint32_t place)
{
    const uint64_t *records = store->records;
    return records[(size_t)place * FRAG_FREE_RECORD_WORDS + 1];
}

/* Where to look in a head's list, which is in order then, for so many bytes; 0: it has no place. */
FRAG_INLINE uint32_t frag_free_list_from(const frag_free_index_store *store, uint32_t head,
                                         uint64_t bytes)
{
    if (FRAG_UNLIKELY(store->links[head].previous != 0))
        return frag_free_list_settle(store, head, bytes);
    return store->links[head].next;
}

/* The first place of a head's list; 0: it is empty. */
FRAG_INLINE uint32_t frag_free_list_first(const frag_free_index_store *store, uint32_t head)
{
    return frag_free_list_from(store, head, 0);
}

/* ---- steps with the table of an index, named by its heads. An index has one while it holds
 * something; a policy of few indexes may open their tables at the start and keep them. */

/* Puts a block in, whose record has so many bytes. */
FRAG_INLINE void frag_free_table_insert(const frag_free_index_store *store, uint32_t heads,
                                        uint32_t id, uint64_t bytes)
{
    frag_free_link *links = store->links;
    uint32_t number = frag_free_bin_of(bytes);
    uint32_t head = heads + number;
    FRAG_ASSERT_SLOW(id != 0 && id < store->id_count && links[head].next != id);
    uint32_t unsorted = links[head].previous + 1; /* without a branch */
    links[head].previous = links[head].next != 0 ? unsorted : 0;
    frag_free_link_behind(links, head, id);
    frag_free_words(store, heads)[number / 64] |= (uint64_t)1 << (number % 64);
}

/* Takes a block out. true: the table may be empty now. */
FRAG_INLINE bool frag_free_table_take_out(const frag_free_index_store *store, uint32_t heads,
                                          uint32_t id)
{
    if (FRAG_UNLIKELY(id % FRAG_FREE_LANE_EVERY == 0))
        frag_free_lane_leave(store, heads, id);
    frag_free_link link = frag_free_unlink(store->links, id);
    uint64_t is_only = frag_free_was_only(link, heads, FRAG_FREE_BIN_COUNT);
    uint32_t number = link.previous - heads;
    uint64_t *word = &frag_free_words(store, heads)[number / 64 % FRAG_FREE_WORD_COUNT];
    uint64_t left = *word & ~(is_only << (number % 64));
    *word = left;
    return (left | (is_only - 1)) == 0;
}

/* A block has got another address in its record, and bytes, so many. */
FRAG_INLINE void frag_free_table_change(const frag_free_index_store *store, uint32_t heads,
                                        uint32_t id, uint64_t bytes)
{
    (void)frag_free_table_take_out(store, heads, id);
    frag_free_table_insert(store, heads, id, bytes);
}

/* ---- the same with an index, whose table comes and goes */

/* The heads of an index that is about to hold something. */
FRAG_INLINE uint32_t frag_free_index_heads(frag_free_index_store *store, frag_free_index *index)
{
    return FRAG_LIKELY(index->heads != 0) ? index->heads : frag_free_table_open(store, index);
}

static inline void frag_free_index_insert(frag_free_index_store *store, frag_free_index *index,
                                          uint32_t id)
{
    frag_free_table_insert(store, frag_free_index_heads(store, index), id,
                           frag_free_bytes_at(store, id));
}

static inline void frag_free_index_remove(frag_free_index_store *store, frag_free_index *index,
                                          uint32_t id)
{
    if (frag_free_table_take_out(store, index->heads, id))
        frag_free_table_close_if_empty(store, index);
}

static inline void frag_free_index_change(const frag_free_index_store *store,
                                          const frag_free_index *index, uint32_t id)
{
    frag_free_table_change(store, index->heads, id, frag_free_bytes_at(store, id));
}

/* The number of the first bin from the given one on that is not empty, or FRAG_FREE_BIN_COUNT. */
static inline uint32_t frag_free_bin_from(const frag_free_index_store *store, uint32_t heads,
                                          uint32_t number)
{
    const uint64_t *words = frag_free_words(store, heads);
    uint32_t at = number / 64;
    uint64_t word = words[at] & (~(uint64_t)0 << (number % 64));
    while (word == 0)
        word = words[++at];
    return at * 64 + frag_bit_low(word);
}

/* The first place of the bins behind the given one; 0: they are empty, as bin 0 is. */
FRAG_INLINE uint32_t frag_free_place_above(const frag_free_index_store *store, uint32_t heads,
                                           uint32_t number)
{
    uint32_t above = frag_free_bin_from(store, heads, number + 1);
    return frag_free_list_first(store, heads + above % FRAG_FREE_BIN_COUNT);
}

/* The place of the smallest block of at least size, of those the first in order; 0: there is none.
 */
FRAG_INLINE uint32_t frag_free_place_best(const frag_free_index_store *store, uint32_t heads,
                                          uint64_t size)
{
    uint32_t number = frag_free_bin_of(size);
    if (store->links[heads + number].next != 0) {
        uint32_t place = frag_free_list_from(store, heads + number, size);
        while (frag_free_bytes_at(store, place) < size)
            place = store->links[place].next;
        if (FRAG_LIKELY(place != 0))
            return place;
    }
    return frag_free_place_above(store, heads, number);
}

/* The smallest block of at least size, of those the first in order: best fit. */
static inline bool frag_free_index_best(const frag_free_index_store *store,
                                        const frag_free_index *index, uint64_t size, uint32_t *id)
{
    uint32_t place = index->heads != 0 ? frag_free_place_best(store, index->heads, size) : 0;
    *id = place != 0 ? place : *id;
    return place != 0;
}

/* The block behind one that the index holds: walks it in best-fit order, step by step. */
static inline bool frag_free_index_after(const frag_free_index_store *store,
                                         const frag_free_index *index, uint32_t held, uint32_t *id)
{
    uint32_t number = frag_free_bin_of(frag_free_bytes_at(store, held));
    (void)frag_free_list_first(store, index->heads + number);
    uint32_t place = store->links[held].next;
    if (place == 0)
        place = frag_free_place_above(store, index->heads, number);
    *id = place != 0 ? place : *id;
    return place != 0;
}

#endif
