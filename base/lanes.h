/* Sixteen numbers of 32 bits, looked at all at once: x86-64 takes a few instructions for that, and
 * guesses nothing; elsewhere there are loops that compilers may turn into the like. */
#ifndef FRAG_BASE_LANES_H
#define FRAG_BASE_LANES_H

#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { FRAG_LANE_COUNT = 16 };

typedef struct frag_lanes {
    int32_t values[FRAG_LANE_COUNT];
} frag_lanes;

#ifdef __SSE2__

static inline __m128i frag_lanes_load(const frag_lanes *lanes, uint32_t quarter)
{
    return _mm_loadu_si128((const __m128i *)(const void *)&lanes->values[4 * quarter]);
}

static inline __m128i frag_lanes_choose(__m128i mask, __m128i yes, __m128i no)
{
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

static inline __m128i frag_lanes_larger(__m128i a, __m128i b)
{
    return frag_lanes_choose(_mm_cmpgt_epi32(a, b), a, b);
}

/* Bit i: value i is above the bound. */
static inline uint32_t frag_lanes_above(const frag_lanes *lanes, int32_t bound)
{
    __m128i limit = _mm_set1_epi32(bound);
    __m128i low = _mm_packs_epi32(_mm_cmpgt_epi32(frag_lanes_load(lanes, 0), limit),
                                  _mm_cmpgt_epi32(frag_lanes_load(lanes, 1), limit));
    __m128i high = _mm_packs_epi32(_mm_cmpgt_epi32(frag_lanes_load(lanes, 2), limit),
                                   _mm_cmpgt_epi32(frag_lanes_load(lanes, 3), limit));
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}

static inline int32_t frag_lanes_largest(const frag_lanes *lanes)
{
    __m128i low = frag_lanes_larger(frag_lanes_load(lanes, 0), frag_lanes_load(lanes, 1));
    __m128i high = frag_lanes_larger(frag_lanes_load(lanes, 2), frag_lanes_load(lanes, 3));
    __m128i all = frag_lanes_larger(low, high);
    all = frag_lanes_larger(all, _mm_shuffle_epi32(all, 0x4e));
    all = frag_lanes_larger(all, _mm_shuffle_epi32(all, 0xb1));
    return _mm_cvtsi128_si32(all);
}

/* Sets one value, by writing all of them: reading several at once would have to wait until a single
 * one that was just written has reached the cache. */
static inline void frag_lanes_set(frag_lanes *lanes, uint32_t at, int32_t value)
{
    for (uint32_t i = 0; i < 4; i++) {
        __m128i number = _mm_add_epi32(_mm_setr_epi32(0, 1, 2, 3), _mm_set1_epi32(4 * (int32_t)i));
        __m128i is_it = _mm_cmpeq_epi32(number, _mm_set1_epi32((int32_t)at));
        __m128i now = frag_lanes_choose(is_it, _mm_set1_epi32(value), frag_lanes_load(lanes, i));
        _mm_storeu_si128((__m128i *)(void *)&lanes->values[4 * i], now);
    }
}

#else

static inline uint32_t frag_lanes_above(const frag_lanes *lanes, int32_t bound)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < FRAG_LANE_COUNT; i++)
        mask |= (uint32_t)(lanes->values[i] > bound) << i;
    return mask;
}

static inline int32_t frag_lanes_largest(const frag_lanes *lanes)
{
    int32_t largest = lanes->values[0];
    for (uint32_t i = 1; i < FRAG_LANE_COUNT; i++)
        largest = lanes->values[i] > largest ? lanes->values[i] : largest;
    return largest;
}

static inline void frag_lanes_set(frag_lanes *lanes, uint32_t at, int32_t value)
{
    lanes->values[at] = value;
}

#endif

#endif
