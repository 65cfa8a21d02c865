/* Sorting many numbers, each with something that belongs to it, in time that grows with their count
 * alone. */
#ifndef FRAG_BASE_RADIX_H
#define FRAG_BASE_RADIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct frag_radix_item {
    uint64_t key;
    uint64_t value;
} frag_radix_item;

#define FRAG_RADIX_BITS 11u
#define FRAG_RADIX_DIGITS ((size_t)1 << FRAG_RADIX_BITS)
/* With fewer, counting digits takes longer than moving items one by one. */
#define FRAG_RADIX_COUNT_MIN 128u

static inline void frag_radix_few(frag_radix_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        frag_radix_item item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* The bits in which keys differ. *is_sorted: nothing is to be done. */
static inline uint64_t frag_radix_differences(const frag_radix_item *items, size_t count,
                                              bool *is_sorted)
{
    uint64_t differences = 0;
    *is_sorted = true;
    for (size_t i = 1; i < count; i++) {
        differences |= items[i].key ^ items[0].key;
        *is_sorted = *is_sorted && items[i - 1].key <= items[i].key;
    }
    return differences;
}

static inline void frag_radix_digit(const frag_radix_item *from, frag_radix_item *to, size_t count,
                                    uint32_t shift)
{
    size_t places[FRAG_RADIX_DIGITS] = {0};
    for (size_t i = 0; i < count; i++)
        places[from[i].key >> shift & (FRAG_RADIX_DIGITS - 1)]++;
    size_t next = 0;
    for (size_t digit = 0; digit < FRAG_RADIX_DIGITS; digit++) {
        size_t here = places[digit];
        places[digit] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i].key >> shift & (FRAG_RADIX_DIGITS - 1)]++] = from[i];
}

/* Least keys first; items of equal keys stay in their order. scratch has room for as many. */
static inline void frag_radix_sort(frag_radix_item *items, frag_radix_item *scratch, size_t count)
{
    if (count < FRAG_RADIX_COUNT_MIN) {
        frag_radix_few(items, count);
        return;
    }
    bool is_sorted = false;
    uint64_t differences = frag_radix_differences(items, count, &is_sorted);
    if (is_sorted)
        return;
    frag_radix_item *from = items;
    frag_radix_item *to = scratch;
    for (uint32_t shift = 0; shift < 64; shift += FRAG_RADIX_BITS) {
        if ((differences >> shift & (FRAG_RADIX_DIGITS - 1)) == 0)
            continue;
        frag_radix_digit(from, to, count, shift);
        frag_radix_item *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}

#endif
