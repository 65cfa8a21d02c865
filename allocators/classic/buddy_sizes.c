#include "allocators/classic/buddy_sizes.h"

#include "base/bits.h"

static uint64_t weighted_up(uint64_t units)
{
    uint64_t power = frag_power_of_two_up(units);
    return power >= 4 && power / 4 * 3 >= units ? power / 4 * 3 : power;
}

/* The least Fibonacci number that is not below, and the one before it. */
static uint64_t fibonacci_up(uint64_t units, uint64_t *before)
{
    uint64_t low = 1;
    uint64_t high = 1;
    while (high < units) {
        uint64_t next = low + high;
        low = high;
        high = next;
    }
    *before = low;
    return high;
}

uint64_t frag_buddy_size_up(frag_buddy_sizes sizes, uint64_t units)
{
    uint64_t before = 0;
    switch (sizes) {
    case FRAG_BUDDY_BINARY:
        break;
    case FRAG_BUDDY_WEIGHTED:
        return weighted_up(units);
    case FRAG_BUDDY_FIBONACCI:
        return fibonacci_up(units, &before);
    }
    return frag_power_of_two_up(units);
}

uint64_t frag_buddy_low_part(frag_buddy_sizes sizes, uint64_t size)
{
    uint64_t before = 0;
    switch (sizes) {
    case FRAG_BUDDY_BINARY:
        break;
    case FRAG_BUDDY_WEIGHTED:
        if (!frag_is_power_of_two(size))
            return size / 3 * 2;
        return size >= 4 ? size / 4 * 3 : 1;
    case FRAG_BUDDY_FIBONACCI:
        (void)fibonacci_up(size, &before);
        return before;
    }
    return size / 2;
}
