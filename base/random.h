/* Random numbers that are the same on every machine: SplitMix64 (Steele, Lea, Flood: Fast
 * splittable pseudorandom number generators, OOPSLA 2014). */
#ifndef FRAG_BASE_RANDOM_H
#define FRAG_BASE_RANDOM_H

#include <stdint.h>

#define FRAG_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The number that belongs to a state. */
static inline uint64_t frag_random_of(uint64_t state)
{
    state = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94d049bb133111eb);
    return state ^ (state >> 31);
}

/* The next number; *state starts as the seed. */
static inline uint64_t frag_random_next(uint64_t *state)
{
    return frag_random_of(*state += FRAG_RANDOM_STEP);
}

/* The number at that place, from 1, of the seed 0. */
static inline uint64_t frag_random_at(uint64_t place)
{
    return frag_random_of(place * FRAG_RANDOM_STEP);
}

#endif
