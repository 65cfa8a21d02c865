/* Lists of free blocks with numbers, and bitmaps on two levels that find the first one from a
 * number on that is not empty, in constant time: what two-level segregated fit is made of. Blocks
 * are records of block_space.h, named by ids; a list's head has a place behind those of all blocks,
 * as in free_index.h. Within a list the newest comes first. What a
 * number means is the caller's. */
#ifndef FRAG_INDEX_BIT_LISTS_H
#define FRAG_INDEX_BIT_LISTS_H

#include "allocators/index/block_space.h"

enum { FRAG_BIT_LIST_WORDS = 64, FRAG_BIT_LIST_MAX = FRAG_BIT_LIST_WORDS * 64 };

/* Starts as zero but for the first two. */
typedef struct frag_bit_lists {
    frag_free_link *links;               /* of all blocks by place, and of the heads; borrowed */
    uint32_t first_head;                 /* the place of list 0 */
    uint64_t summary;                    /* bit w: words[w] is not 0 */
    uint64_t words[FRAG_BIT_LIST_WORDS]; /* bit n of the whole: list n is not empty */
} frag_bit_lists;

/* The number of the list that a block of so many bytes belongs in. */
typedef uint32_t frag_bit_list_number(const void *context, uint64_t bytes);

/* Audits links and bits, and that the blocks are holes of the space, each in the list of its bytes;
 * adds their number to *listed_count. */
bool frag_bit_lists_check(const frag_bit_lists *lists, const frag_block_space *space,
                          frag_bit_list_number *number_of, const void *context,
                          uint64_t *listed_count, frag_error *error);

static inline void frag_bit_list_insert(frag_bit_lists *lists, uint32_t number, uint32_t id)
{
    frag_free_link_behind(lists->links, lists->first_head + number, id);
    lists->words[number / 64] |= (uint64_t)1 << (number % 64);
    lists->summary |= (uint64_t)1 << (number / 64);
}

static inline void frag_bit_list_take_out(frag_bit_lists *lists, uint32_t id)
{
    frag_free_link link = frag_free_unlink(lists->links, id);
    uint64_t is_only = frag_free_was_only(link, lists->first_head, FRAG_BIT_LIST_MAX);
    uint32_t number = link.previous - lists->first_head;
    uint32_t at = number / 64 % FRAG_BIT_LIST_WORDS;
    uint64_t word = lists->words[at] & ~(is_only << (number % 64));
    lists->words[at] = word;
    lists->summary &= ~((uint64_t)(word == 0) << at);
}

/* The first list from a number on that is not empty; false: there is none. */
static inline bool frag_bit_list_from(const frag_bit_lists *lists, uint32_t number, uint32_t *found)
{
    uint32_t at = number / 64;
    uint64_t word = lists->words[at] & (~(uint64_t)0 << (number % 64));
    if (word == 0) {
        uint64_t above = lists->summary & (~(uint64_t)1 << at);
        if (above == 0)
            return false;
        at = frag_bit_low(above);
        word = lists->words[at];
    }
    *found = at * 64 + frag_bit_low(word);
    return true;
}

/* The newest block of a list; 0: it is empty. */
static inline uint32_t frag_bit_list_first(const frag_bit_lists *lists, uint32_t number)
{
    return lists->links[lists->first_head + number].next;
}

#endif
