/* Bit and overflow helpers; the only place that uses compiler builtins for them. */
#ifndef FRAG_BASE_BITS_H
#define FRAG_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* Index of the highest set bit; value must not be 0. */
static inline uint32_t frag_bit_high(uint64_t value)
{
    return 63u - (uint32_t)__builtin_clzll(value);
}

/* Index of the lowest set bit; value must not be 0. */
static inline uint32_t frag_bit_low(uint64_t value)
{
    return (uint32_t)__builtin_ctzll(value);
}

static inline uint32_t frag_bit_count(uint64_t value)
{
    return (uint32_t)__builtin_popcountll(value);
}

static inline bool frag_is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* The least power of two >= value; value must be 1 to 2^63. */
static inline uint64_t frag_power_of_two_up(uint64_t value)
{
    return value <= 1 ? 1 : (uint64_t)1 << (frag_bit_high(value - 1) + 1);
}

/* Where the function that this is written in returns to, as a const void *. */
#define FRAG_CALLER() __builtin_return_address(0)

/* As qsort wants it: less than 0 where left comes first, 0 where they are equal. */
static inline int frag_compare(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

/* By a second pair of numbers where the first are equal. */
static inline int frag_compare_then(int first, int second)
{
    return first != 0 ? first : second;
}

/* For arrays of uint64_t. */
static inline int frag_compare_numbers(const void *left, const void *right)
{
    return frag_compare(*(const uint64_t *)left, *(const uint64_t *)right);
}

/* value rounded up to a multiple of unit (any unit > 0); the caller knows that it does not
 * overflow. */
static inline uint64_t frag_round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static inline uint64_t frag_divide_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit;
}

static inline uint64_t frag_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t frag_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* As frag_round_up for a unit that is a power of two. */
static inline uint64_t frag_align_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}

/* The greatest common divisor; that of 0 and a number is the number. */
static inline uint64_t frag_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The bits of a number as a double: exponents and leading digits without finding the highest bit,
 * which takes longer. value is below 2^63; exact below 2^53. */
static inline uint64_t frag_double_bits(uint64_t value)
{
    union {
        double value;
        uint64_t bits;
    } number = {.value = (double)(int64_t)value};
    return number.bits;
}

/* Where a number is on a logarithmic scale of 2^fraction_bits steps to an octave: 1 is at 0. value
 * is 1 to 2^63 - 1; fraction_bits is at most 20. */
static inline uint32_t frag_octave_step(uint64_t value, uint32_t fraction_bits)
{
    return (uint32_t)(frag_double_bits(value) >> (52 - fraction_bits)) - (1023u << fraction_bits);
}

/* false on overflow */
static inline bool frag_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool frag_multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* A sum that may exceed 64 bits. */
typedef struct frag_wide {
    uint64_t high;
    uint64_t low;
} frag_wide;

static inline void frag_wide_add(frag_wide *sum, uint64_t value)
{
    sum->high += __builtin_add_overflow(sum->low, value, &sum->low) ? 1 : 0;
}

/* Adds a * b. */
static inline void frag_wide_add_product(frag_wide *sum, uint64_t a, uint64_t b)
{
    uint64_t a_low = a & 0xffffffffu;
    uint64_t a_high = a >> 32;
    uint64_t b_low = b & 0xffffffffu;
    uint64_t b_high = b >> 32;
    uint64_t middle = a_low * b_low;
    frag_wide_add(sum, middle);
    sum->high += (a_high * b_low) >> 32;
    frag_wide_add(sum, (a_high * b_low) << 32);
    sum->high += (a_low * b_high) >> 32;
    frag_wide_add(sum, (a_low * b_high) << 32);
    sum->high += a_high * b_high;
}

static inline double frag_wide_value(frag_wide sum)
{
    return (double)sum.high * 18446744073709551616.0 + (double)sum.low;
}

/* Is (high, low) below (other_high, other_low)? Without a branch, so that a wrong guess costs once
 * and not twice. */
static inline bool frag_pair_is_below(uint64_t high, uint64_t low, uint64_t other_high,
                                      uint64_t other_low)
{
    __extension__ typedef unsigned __int128 wide;
    return ((wide)high << 64 | low) < ((wide)other_high << 64 | other_low);
}

/* The same of (high, middle, low); other_middle is below 2^64 - 1. */
static inline bool frag_triple_is_below(uint64_t high, uint64_t middle, uint64_t low,
                                        uint64_t other_high, uint64_t other_middle,
                                        uint64_t other_low)
{
    return frag_pair_is_below(high, middle, other_high, other_middle + (low < other_low ? 1 : 0));
}

/* Little-endian numbers at any address, written so that compilers see one load. */
static inline uint64_t frag_load_16(const unsigned char *bytes)
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8;
}

static inline uint64_t frag_load_32(const unsigned char *bytes)
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24;
}

static inline uint64_t frag_load_64(const unsigned char *bytes)
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
           (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

/* Do numbers lie in memory as they do in files? Known when compiled. */
static inline bool frag_is_little_endian(void)
{
    union {
        uint16_t value;
        unsigned char bytes[2];
    } probe = {.value = 1};
    return probe.bytes[0] == 1;
}

/* A hint that the memory there will be read soon: it is fetched, and nothing waits for it. */
#define FRAG_PREFETCH(place) __builtin_prefetch(place)
#define FRAG_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define FRAG_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define FRAG_NOINLINE __attribute__((noinline))
/* For what must be joined with its caller, however large. */
#define FRAG_INLINE static inline __attribute__((always_inline))

#endif
