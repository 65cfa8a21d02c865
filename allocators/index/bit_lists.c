#include "allocators/index/bit_lists.h"

typedef struct list_audit {
    const frag_block_space *space;
    frag_bit_list_number *number_of;
    const void *context;
    uint64_t *listed_count;
} list_audit;

static bool check_list(const frag_bit_lists *lists, uint32_t number, const list_audit *audit,
                       frag_error *error)
{
    uint32_t before = lists->first_head + number;
    for (uint32_t place = lists->links[before].next; place != 0;
         before = place, place = lists->links[place].next) {
        const frag_block *block = &audit->space->blocks[place];
        if (place >= audit->space->record_count || block->state != FRAG_BLOCK_HOLE ||
            lists->links[place].previous != before ||
            audit->number_of(audit->context, block->bytes) != number ||
            ++*audit->listed_count > audit->space->record_count)
            return frag_fail(error, FRAG_E_INPUT, "hole %u does not belong in list %u", place,
                             number);
    }
    return true;
}

bool frag_bit_lists_check(const frag_bit_lists *lists, const frag_block_space *space,
                          frag_bit_list_number *number_of, const void *context,
                          uint64_t *listed_count, frag_error *error)
{
    const list_audit audit = {space, number_of, context, listed_count};
    for (uint32_t at = 0; at < FRAG_BIT_LIST_WORDS; at++) {
        if ((lists->words[at] != 0) != ((lists->summary >> at & 1) != 0))
            return frag_fail(error, FRAG_E_INPUT, "the bit of word %u is wrong", at);
        for (uint64_t left = lists->words[at]; left != 0; left &= left - 1) {
            uint32_t number = at * 64 + frag_bit_low(left);
            if (frag_bit_list_first(lists, number) == 0)
                return frag_fail(error, FRAG_E_INPUT, "the bit of list %u is wrong", number);
            if (!check_list(lists, number, &audit, error))
                return false;
        }
    }
    return true;
}
