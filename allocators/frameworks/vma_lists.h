/* The free lists of the Vulkan Memory Allocator over the blocks of one segment (block_space.h).
 *
 * Two-level segregated fit with three rules of its own. The hole at the end of the segment is in no
 * list: it is taken when no hole of the lists above the request's own will do. A hole of the
 * request's own list is looked for last, even where it fits exactly. And offsets may be aligned: a
 * hole is then taken only if it is large enough behind the aligned place, and what lies before that
 * place becomes a hole of its own. Lists are 64 bytes apart up to 256 (8 in virtual blocks, whose
 * memory is the program's affair), then there are 32 to a power of two; within a list the newest
 * comes first. Source: Vulkan Memory Allocator 3.4.0,
 * VmaBlockMetadata_TLSF. */
#ifndef FRAG_FRAMEWORKS_VMA_LISTS_H
#define FRAG_FRAMEWORKS_VMA_LISTS_H

#include "allocators/index/bit_lists.h"

enum { FRAG_VMA_LIST_MAX = 1216 }; /* of a segment of 8 TiB */

/* In the order of FRAG_VMA_STRATEGIES. */
typedef enum frag_vma_strategy {
    FRAG_VMA_DEFAULT,
    FRAG_VMA_MIN_MEMORY, /* the own list first */
    FRAG_VMA_MIN_TIME,   /* one hole of the lists above, then the end; the rest if neither fits */
    FRAG_VMA_MIN_OFFSET  /* the lowest hole that fits, found by a walk over all */
} frag_vma_strategy;

#define FRAG_VMA_STRATEGIES "default|min_memory|min_time|min_offset"

/* Of one segment. */
typedef struct frag_vma_lists {
    frag_block_space *space; /* borrowed */
    uint32_t header;         /* of the segment, in space */
    uint32_t small_shift;    /* 6, or 3 */
    uint32_t small_lists;    /* 4, or 32: how many there are for up to 256 bytes */
    frag_bit_lists holes;    /* all but the one at the end */
} frag_vma_lists;

/* What is asked of one segment. */
typedef struct frag_vma_want {
    uint64_t bytes;
    uint64_t align; /* of the offset in the segment; a power of two */
    frag_vma_strategy strategy;
} frag_vma_want;

/* How many lists a segment of so many bytes has. */
uint32_t frag_vma_list_count(uint64_t bytes, bool is_virtual);

/* Empty lists of the segment of a header, which has one hole or none. The heads, as many as the
 * segment has lists, are zero. */
void frag_vma_lists_create(frag_vma_lists *lists, frag_block_space *space, frag_free_link *links,
                           uint32_t first_head, uint32_t header, bool is_virtual);

/* A search in two parts, for all that frag_vma_find does not decide at once: the lists that come
 * before the hole at the end, and that hole; then the lists that come after it. */
bool frag_vma_search_to_end(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole);
bool frag_vma_search_after_end(const frag_vma_lists *lists, const frag_vma_want *want,
                               uint32_t *hole);

/* Audits lists and bits; adds to *listed_count the holes in lists and the one at the end. */
bool frag_vma_lists_check(const frag_vma_lists *lists, uint64_t *listed_count, frag_error *error);

static inline uint32_t frag_vma_list_of(const frag_vma_lists *lists, uint64_t bytes)
{
    if (bytes <= 256)
        return (uint32_t)((bytes - 1) >> lists->small_shift);
    uint32_t high = frag_bit_high(bytes);
    return lists->small_lists + (high - 8) * 32 + ((uint32_t)(bytes >> (high - 5)) & 31);
}

/* The hole at the end of the segment, which is in no list; FRAG_BLOCK_NONE: there is none. */
static inline uint32_t frag_vma_end_of(const frag_vma_lists *lists)
{
    uint32_t last = lists->space->blocks[lists->header].previous;
    return lists->space->blocks[last].state == FRAG_BLOCK_HOLE ? last : FRAG_BLOCK_NONE;
}

/* Bytes from the start of a hole to the first aligned offset. */
static inline uint64_t frag_vma_gap(const frag_vma_lists *lists, uint64_t address, uint64_t align)
{
    uint64_t offset = address - lists->space->blocks[lists->header].address;
    return frag_align_up(offset, align) - offset;
}

static inline bool frag_vma_fits(const frag_vma_lists *lists, uint32_t hole,
                                 const frag_vma_want *want)
{
    const frag_block *block = &lists->space->blocks[hole];
    return block->bytes >= want->bytes + frag_vma_gap(lists, block->address, want->align);
}

/* The hole that is taken, if that at the end or one that comes before it in the search fits. */
static inline bool frag_vma_find(const frag_vma_lists *lists, const frag_vma_want *want,
                                 uint32_t *hole)
{
    uint32_t number = 0;
    if (want->strategy != FRAG_VMA_MIN_OFFSET && want->strategy != FRAG_VMA_MIN_MEMORY &&
        frag_bit_list_from(&lists->holes, frag_vma_list_of(lists, want->bytes) + 1, &number)) {
        *hole = frag_bit_list_first(&lists->holes, number);
        if (FRAG_LIKELY(frag_vma_fits(lists, *hole, want)))
            return true;
    }
    return frag_vma_search_to_end(lists, want, hole);
}

static inline void frag_vma_insert(frag_vma_lists *lists, uint32_t hole)
{
    uint32_t number = frag_vma_list_of(lists, lists->space->blocks[hole].bytes);
    frag_bit_list_insert(&lists->holes, number, hole);
}

/* Makes a block of a hole that fits; returns it. */
static inline uint32_t frag_vma_take(frag_vma_lists *lists, uint32_t hole,
                                     const frag_vma_want *want)
{
    frag_block_space *space = lists->space;
    bool is_end = space->blocks[hole].next == lists->header;
    if (!is_end)
        frag_bit_list_take_out(&lists->holes, hole);
    uint64_t gap = frag_vma_gap(lists, space->blocks[hole].address, want->align);
    if (gap != 0) {
        uint32_t before = frag_block_cut(space, hole, gap);
        space->blocks[before].state = FRAG_BLOCK_HOLE;
        frag_vma_insert(lists, before);
    }
    if (space->blocks[hole].bytes == want->bytes) {
        space->blocks[hole].state = FRAG_BLOCK_BUSY;
        return hole;
    }
    uint32_t granted = frag_block_cut(space, hole, want->bytes);
    if (!is_end)
        frag_vma_insert(lists, hole);
    return granted;
}

/* As frag_block_space_hooks has it. */
static inline void frag_vma_take_out(void *context, uint32_t hole)
{
    frag_vma_lists *lists = context;
    if (lists->space->blocks[hole].next != lists->header)
        frag_bit_list_take_out(&lists->holes, hole);
}

static inline void frag_vma_give(frag_vma_lists *lists, uint32_t block)
{
    uint32_t hole = frag_block_release(lists->space, block, frag_vma_take_out, lists);
    if (lists->space->blocks[hole].next != lists->header)
        frag_vma_insert(lists, hole);
}

#endif
