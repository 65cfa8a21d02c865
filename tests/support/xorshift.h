/* Chance that is the same in every run. Source: Marsaglia, Xorshift RNGs, Journal of Statistical
 * Software 8(14), 2003. */
#ifndef FRAG_SUPPORT_XORSHIFT_H
#define FRAG_SUPPORT_XORSHIFT_H

#include <stdint.h>

/* 53 bits; *state is not 0. */
static inline uint64_t xorshift_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

#endif
