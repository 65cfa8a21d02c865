#include "workload/statistical/draw.h"

#include "base/bits.h"
#include "base/bytes.h"
#include "base/random.h"

/* Logarithms are in 2^-24. */
enum { POINT = 24, VALUE_BITS = 40, EXPONENT_MIDDLE = 64 };

#define LN_2 UINT64_C(2977044472) /* in 2^-32 */

/* log2 of a number that is not 0, bit by bit: a square has twice the logarithm. */
static uint64_t log2_of(uint64_t value)
{
    uint32_t high = frag_bit_high(value);
    uint64_t part = high >= 31 ? value >> (high - 31) : value << (31 - high);
    uint64_t result = high;
    for (uint32_t i = 0; i < POINT; i++) {
        part = part * part >> 31;
        uint64_t bit = part >> 32;
        part >>= bit;
        result = result << 1 | bit;
    }
    return result;
}

/* -ln(value / 2^bits), in 2^-24 */
static uint64_t minus_ln(uint64_t value, uint64_t bits)
{
    return ((bits << POINT) - log2_of(value)) * (LN_2 >> 8) >> 24;
}

/* value * 2^(exponent - 64), or the most there is; exponent is in 2^-24 and at most 128. */
static uint64_t times_power(uint64_t value, uint64_t exponent)
{
    /* (ln 2)^k / k!, in 2^-30: the series of 2^x for x of 0 to 1 */
    static const uint64_t terms[] = {1419,     16377,     165394,    1431680,   10327387,
                                     59597083, 257941248, 744261118, 1073741824};
    uint64_t x = (exponent << (30 - POINT)) & (((uint64_t)1 << 30) - 1);
    uint64_t whole = exponent >> POINT;
    uint64_t power = 0;
    for (uint32_t i = 0; i < sizeof terms / sizeof *terms; i++)
        power = (power * x >> 30) + terms[i];
    uint64_t grown = value * (power >> 8) >> 22;
    if (whole < EXPONENT_MIDDLE)
        return EXPONENT_MIDDLE - whole < 64 ? grown >> (EXPONENT_MIDDLE - whole) : 0;
    return whole - EXPONENT_MIDDLE < 22 ? grown << (whole - EXPONENT_MIDDLE) : UINT64_MAX >> 1;
}

static uint64_t root_of(uint64_t square)
{
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= square)
            root |= bit;
    return root;
}

/* A number of the normal distribution, in 2^-27: Marsaglia's polar method (SIAM Review 6(3),
 * 1964), of which the innermost 2^-22 of the circle is left out: none is beyond 5.5. */
static uint64_t draw_normal(bool *is_negative, uint64_t *random)
{
    for (;;) {
        uint64_t x = frag_random_next(random) >> 32, y = frag_random_next(random) >> 33;
        *is_negative = x & 1;
        x >>= 1;
        uint64_t square = x * x + y * y; /* in 2^-62 */
        if (square >= (uint64_t)1 << 40 && square < (uint64_t)1 << 62)
            return root_of(2 * minus_ln(square, 62) * (x * x / (square >> 30)));
    }
}

/* Logs of a factor are at most 10, of a normal number's size 5.5. */
static uint64_t draw_lognormal(const frag_draw *draw, uint64_t *random)
{
    bool is_negative = false;
    uint64_t factor_log = log2_of(draw->values[1]) - log2_of(FRAG_DRAW_FACTOR);
    uint64_t power = draw_normal(&is_negative, random) * factor_log >> 27;
    uint64_t middle = (uint64_t)EXPONENT_MIDDLE << POINT;
    return times_power(draw->values[0], is_negative ? middle - power : middle + power);
}

uint64_t frag_draw_below(uint64_t limit, uint64_t *random)
{
    return frag_random_next(random) % limit;
}

static uint64_t draw_any(const frag_draw *draw, uint64_t *random)
{
    uint64_t low = draw->values[0], high = draw->values[1];
    switch (draw->kind) {
    case FRAG_DRAW_LIST:
        return draw->count == 1 ? low : draw->values[frag_draw_below(draw->count, random)];
    case FRAG_DRAW_UNIFORM:
        return low + frag_draw_below(high - low + 1, random);
    case FRAG_DRAW_EXPONENTIAL:
        return low * (minus_ln(frag_random_next(random) | 1, 64) >> 8) >> (POINT - 8);
    case FRAG_DRAW_LOGNORMAL:
        return draw_lognormal(draw, random);
    case FRAG_DRAW_DOUBLING:
        break;
    }
    uint64_t last = (uint64_t)1 << frag_bit_high(high / low);
    return low << frag_bit_low(frag_random_next(random) | last);
}

uint64_t frag_draw_next(const frag_draw *draw, uint64_t max, uint64_t *random)
{
    uint64_t value = draw_any(draw, random);
    return value < max || value == FRAG_UNLIMITED ? value : max;
}

uint64_t frag_draw_at(const frag_draw *span, uint64_t place, uint64_t count)
{
    uint64_t first = span->values[0], last = span->values[span->count - 1];
    uint64_t apart = first < last ? last - first : first - last;
    uint64_t steps = count > 1 ? count - 1 : 1;
    uint64_t moved = apart / steps * place + apart % steps * place / steps;
    return first < last ? first + moved : first - moved;
}
