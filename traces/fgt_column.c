#include "traces/fgt.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/bits.h"
#include "sim/base/memory.h"

static uint8_t bytes_needed(uint64_t value)
{
    return value == 0 ? 1 : (uint8_t)(frag_bit_high(value) / 8 + 1);
}

static uint64_t value_max_of(const uint64_t *values, uint32_t count)
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < count; i++)
        max = values[i] > max ? values[i] : max;
    return max;
}

static int compare_values(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

static uint32_t find_value(const uint64_t *sorted, uint32_t count, uint64_t value)
{
    uint32_t low = 0;
    while (count > 1) {
        uint32_t half = count / 2;
        low = sorted[low + half] <= value ? low + half : low;
        count -= half;
    }
    return low;
}

static size_t encode_dictionary(const uint64_t *values, uint32_t count, unsigned char *raw,
                                uint8_t *width)
{
    uint64_t *sorted = frag_alloc(count, sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_values);
    uint32_t distinct = 1;
    for (uint32_t i = 1; i < count; i++)
        if (sorted[i] != sorted[distinct - 1])
            sorted[distinct++] = sorted[i];
    *width = distinct == 1 ? 0 : distinct <= 256 ? 1 : 2;
    unsigned char *out = raw;
    frag_fgt_put(out, distinct, 4);
    out += 4;
    for (uint32_t i = 0; i < distinct; i++, out += 8)
        frag_fgt_put(out, sorted[i], 8);
    for (uint32_t i = 0; *width > 0 && i < count; i++, out += *width)
        frag_fgt_put(out, find_value(sorted, distinct, values[i]), *width);
    free(sorted);
    return (size_t)(out - raw);
}

size_t frag_fgt_encode(frag_fgt_encoding encoding, const uint64_t *values, uint32_t count,
                       unsigned char *raw, uint8_t *width)
{
    FRAG_ASSERT(count > 0 && count <= FRAG_FGT_CHUNK_EVENTS);
    if (encoding == FRAG_FGT_DICTIONARY)
        return encode_dictionary(values, count, raw, width);
    *width = bytes_needed(value_max_of(values, count));
    if (encoding == FRAG_FGT_PLAIN) {
        *width = (uint8_t)frag_power_of_two_up(*width);
        for (uint32_t i = 0; i < count; i++)
            frag_fgt_put(raw + (size_t)i * *width, values[i], *width);
    } else {
        for (uint32_t plane = 0; plane < *width; plane++)
            for (uint32_t i = 0; i < count; i++)
                raw[(size_t)plane * count + i] = (unsigned char)(values[i] >> (8 * plane));
    }
    return (size_t)count * *width;
}

/* The width is a constant in each caller, so that each loop becomes plain loads. */
static inline uint64_t widen(const unsigned char *raw, uint32_t width, uint64_t *values,
                             uint32_t count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = frag_fgt_get(raw + (size_t)i * width, width);
        all = values[i] > all ? values[i] : all;
    }
    return all;
}

static uint64_t widen_any(const unsigned char *raw, uint32_t width, uint64_t *values,
                          uint32_t count)
{
    switch (width) {
    case 1:
        return widen(raw, 1, values, count);
    case 2:
        return widen(raw, 2, values, count);
    case 4:
        return widen(raw, 4, values, count);
    default:
        return widen(raw, 8, values, count);
    }
}

static bool fail_size(size_t found, size_t expected, frag_error *error)
{
    return frag_fail(error, FRAG_E_INPUT, "a column has %zu bytes; expected %zu for its events",
                     found, expected);
}

static bool fail_value(uint64_t found, uint64_t value_max, frag_error *error)
{
    return frag_fail(error, FRAG_E_INPUT, "a column holds %llu; expected at most %llu",
                     (unsigned long long)found, (unsigned long long)value_max);
}

static bool decode_dictionary(uint32_t width, const unsigned char *raw, size_t raw_bytes,
                              uint64_t value_max, uint64_t *values, uint32_t count,
                              frag_error *error)
{
    uint64_t distinct = raw_bytes < 4 ? 0 : frag_fgt_get(raw, 4);
    if (distinct == 0 || distinct > count || width > 2 || (width == 0 && distinct != 1))
        return frag_fail(error, FRAG_E_INPUT,
                         "a column lists %llu distinct values; expected 1 to %u",
                         (unsigned long long)distinct, width == 0 ? 1 : count);
    size_t expected = 4 + (size_t)distinct * 8 + (size_t)width * count;
    if (raw_bytes != expected)
        return fail_size(raw_bytes, expected, error);
    uint64_t *table = frag_alloc((size_t)distinct, sizeof *table);
    uint64_t max = widen(raw + 4, 8, table, (uint32_t)distinct);
    bool ok = max <= value_max || fail_value(max, value_max, error);
    if (ok && width == 0) {
        for (uint32_t i = 0; i < count; i++)
            values[i] = table[0];
    } else if (ok) {
        uint64_t index_max = widen_any(raw + 4 + distinct * 8, width, values, count);
        ok = index_max < distinct || fail_value(index_max, distinct - 1, error);
        for (uint32_t i = 0; ok && i < count; i++)
            values[i] = table[values[i]];
    }
    free(table);
    return ok;
}

bool frag_fgt_decode(frag_fgt_encoding encoding, uint32_t width, const unsigned char *raw,
                     size_t raw_bytes, uint64_t value_max, uint64_t *values, uint32_t count,
                     frag_error *error)
{
    if (encoding == FRAG_FGT_DICTIONARY)
        return decode_dictionary(width, raw, raw_bytes, value_max, values, count, error);
    bool is_plain = encoding == FRAG_FGT_PLAIN;
    if (width == 0 || width > 8 || (is_plain && !frag_is_power_of_two(width)) ||
        (!is_plain && encoding != FRAG_FGT_PLANES))
        return frag_fail(error, FRAG_E_INPUT,
                         "a column has encoding %u with width %u; expected one that is documented",
                         (unsigned)encoding, width);
    if (raw_bytes != (size_t)width * count)
        return fail_size(raw_bytes, (size_t)width * count, error);
    uint64_t max = 0;
    if (is_plain) {
        max = widen_any(raw, width, values, count);
    } else {
        memset(values, 0, count * sizeof *values);
        for (uint32_t plane = 0; plane < width; plane++)
            for (uint32_t i = 0; i < count; i++)
                values[i] |= (uint64_t)raw[(size_t)plane * count + i] << (8 * plane);
        max = value_max_of(values, count);
    }
    return max <= value_max || fail_value(max, value_max, error);
}

void frag_fgt_difference(uint64_t *values, uint32_t count, bool is_back)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = values[i];
        values[i] = is_back ? value + last : value - last;
        last = is_back ? values[i] : value;
    }
}

void frag_fgt_guess(uint64_t *addresses, const uint32_t *slots, uint32_t count, uint64_t *guesses,
                    bool is_back)
{
    memset(guesses, 0, FRAG_FGT_GUESSES * sizeof *guesses);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *guess = &guesses[slots[i] % FRAG_FGT_GUESSES];
        uint64_t stored = addresses[i] ^ *guess;
        *guess = is_back ? stored : addresses[i];
        addresses[i] = stored;
    }
}
