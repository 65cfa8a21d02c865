#include "allocators/frameworks/vma_lists.h"

uint32_t frag_vma_list_count(uint64_t bytes, bool is_virtual)
{
    const frag_vma_lists shape = {.small_shift = is_virtual ? 3 : 6,
                                  .small_lists = is_virtual ? 32 : 4};
    return frag_vma_list_of(&shape, bytes) + 2;
}

void frag_vma_lists_create(frag_vma_lists *lists, frag_block_space *space, frag_free_link *links,
                           uint32_t first_head, uint32_t header, bool is_virtual)
{
    *lists = (frag_vma_lists){.space = space,
                              .header = header,
                              .small_shift = is_virtual ? 3 : 6,
                              .small_lists = is_virtual ? 32 : 4,
                              .holes = {.links = links, .first_head = first_head}};
}

static bool search_list(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t number,
                        uint32_t *hole)
{
    uint32_t place = frag_bit_list_first(&lists->holes, number);
    while (place != 0 && !frag_vma_fits(lists, place, want))
        place = lists->holes.links[place].next;
    *hole = place;
    return place != 0;
}

static bool try_end(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole)
{
    *hole = frag_vma_end_of(lists);
    return *hole != FRAG_BLOCK_NONE && frag_vma_fits(lists, *hole, want);
}

/* The first list from the request's own on that has a hole, whether one of it fits or not. */
static bool search_own(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole)
{
    uint32_t number = 0;
    return frag_bit_list_from(&lists->holes, frag_vma_list_of(lists, want->bytes), &number) &&
           search_list(lists, want, number, hole);
}

/* The same above the request's own. */
static bool search_above(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole)
{
    uint32_t number = 0;
    return frag_bit_list_from(&lists->holes, frag_vma_list_of(lists, want->bytes) + 1, &number) &&
           search_list(lists, want, number, hole);
}

/* Of the lists above the request's own all but the first, which has been searched: only offsets
 * that are aligned ever make it necessary. */
static bool search_rest(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole)
{
    uint32_t number = 0;
    if (!frag_bit_list_from(&lists->holes, frag_vma_list_of(lists, want->bytes) + 1, &number))
        return false;
    while (frag_bit_list_from(&lists->holes, number + 1, &number))
        if (search_list(lists, want, number, hole))
            return true;
    return false;
}

static bool search_by_offset(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole)
{
    const frag_block *blocks = lists->space->blocks;
    for (uint32_t at = blocks[lists->header].next; at != lists->header; at = blocks[at].next)
        if (blocks[at].state == FRAG_BLOCK_HOLE && frag_vma_fits(lists, at, want)) {
            *hole = at;
            return true;
        }
    return false;
}

bool frag_vma_search_to_end(const frag_vma_lists *lists, const frag_vma_want *want, uint32_t *hole)
{
    switch (want->strategy) {
    case FRAG_VMA_DEFAULT:
        return search_above(lists, want, hole) || try_end(lists, want, hole);
    case FRAG_VMA_MIN_MEMORY:
        return search_own(lists, want, hole) || try_end(lists, want, hole);
    case FRAG_VMA_MIN_TIME: /* the first of what lies above has had its turn in frag_vma_find */
        return try_end(lists, want, hole);
    case FRAG_VMA_MIN_OFFSET:
        break;
    }
    return search_by_offset(lists, want, hole);
}

bool frag_vma_search_after_end(const frag_vma_lists *lists, const frag_vma_want *want,
                               uint32_t *hole)
{
    switch (want->strategy) {
    case FRAG_VMA_DEFAULT:
        return search_own(lists, want, hole) || search_rest(lists, want, hole);
    case FRAG_VMA_MIN_MEMORY:
        return search_above(lists, want, hole) || search_rest(lists, want, hole);
    case FRAG_VMA_MIN_TIME:
        return search_above(lists, want, hole) || search_own(lists, want, hole) ||
               search_rest(lists, want, hole);
    case FRAG_VMA_MIN_OFFSET:
        break;
    }
    return false;
}

static uint32_t list_of(const void *context, uint64_t bytes)
{
    return frag_vma_list_of(context, bytes);
}

bool frag_vma_lists_check(const frag_vma_lists *lists, uint64_t *listed_count, frag_error *error)
{
    uint32_t end = frag_vma_end_of(lists);
    if (end != FRAG_BLOCK_NONE)
        ++*listed_count;
    return frag_bit_lists_check(&lists->holes, lists->space, list_of, lists, listed_count, error);
}
