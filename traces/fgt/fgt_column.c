/* Columns of .fgt files: encodes and decodes the values of one column of a chunk. */
#include "traces/fgt/fgt.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

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

/* ---- encoding */

/* Numbers the distinct values, through a hash table of twice their count. */
struct frag_fgt_encoder {
    const uint64_t *values;
    uint32_t count;
    uint32_t distinct; /* 0: not looked for yet */
    uint64_t sorted[FRAG_FGT_CHUNK_EVENTS];
    uint32_t numbers[FRAG_FGT_CHUNK_EVENTS];   /* of each value, in order of appearance */
    uint32_t places[FRAG_FGT_CHUNK_EVENTS];    /* of each value, in sorted */
    uint32_t table[FRAG_FGT_CHUNK_EVENTS * 2]; /* number plus 1 */
};

frag_fgt_encoder *frag_fgt_encoder_create(void)
{
    return frag_alloc(1, sizeof(frag_fgt_encoder));
}

void frag_fgt_encoder_destroy(frag_fgt_encoder *encoder)
{
    frag_free(encoder);
}

void frag_fgt_encoder_take(frag_fgt_encoder *encoder, const uint64_t *values, uint32_t count)
{
    FRAG_ASSERT(count > 0 && count <= FRAG_FGT_CHUNK_EVENTS);
    encoder->values = values;
    encoder->count = count;
    encoder->distinct = 0;
}

static uint32_t find_place(const uint64_t *sorted, uint32_t count, uint64_t value)
{
    uint32_t low = 0;
    while (count > 1) {
        uint32_t half = count / 2;
        low = sorted[low + half] <= value ? low + half : low;
        count -= half;
    }
    return low;
}

static void number_values(frag_fgt_encoder *encoder)
{
    uint64_t slots = frag_power_of_two_up(encoder->count) * 2;
    uint32_t shift = 64 - frag_bit_high(slots);
    uint32_t distinct = 0;
    memset(encoder->table, 0, slots * sizeof *encoder->table);
    for (uint32_t i = 0; i < encoder->count; i++) {
        uint64_t value = encoder->values[i];
        uint64_t at = value * 0x9e3779b97f4a7c15u >> shift;
        while (encoder->table[at] != 0 && encoder->sorted[encoder->table[at] - 1] != value)
            at = (at + 1) % slots;
        if (encoder->table[at] == 0) {
            encoder->sorted[distinct++] = value;
            encoder->table[at] = distinct;
        }
        encoder->numbers[i] = encoder->table[at] - 1;
    }
    encoder->distinct = distinct;
}

/* The distinct values in order, and the place of each value among them. */
static void make_dictionary(frag_fgt_encoder *encoder)
{
    if (encoder->distinct > 0)
        return;
    number_values(encoder);
    uint32_t distinct = encoder->distinct;
    uint64_t *unsorted = frag_alloc(distinct, sizeof *unsorted);
    uint32_t *place_of = frag_alloc(distinct, sizeof *place_of);
    memcpy(unsorted, encoder->sorted, distinct * sizeof *unsorted);
    qsort(encoder->sorted, distinct, sizeof *encoder->sorted, frag_compare_numbers);
    for (uint32_t i = 0; i < distinct; i++)
        place_of[i] = find_place(encoder->sorted, distinct, unsorted[i]);
    for (uint32_t i = 0; i < encoder->count; i++)
        encoder->places[i] = place_of[encoder->numbers[i]];
    frag_free(unsorted);
    frag_free(place_of);
}

static uint32_t place_bits_needed(uint32_t distinct)
{
    return distinct == 1 ? 0 : frag_bit_high(distinct - 1) + 1;
}

/* Places of width bits in a row. Returns their bytes. */
static size_t put_places(const uint32_t *places, uint32_t count, uint32_t width, unsigned char *out)
{
    size_t bytes = ((size_t)count * width + 7) / 8;
    memset(out, 0, bytes);
    for (uint32_t i = 0; width > 0 && i < count; i++) {
        size_t bit = (size_t)i * width;
        uint32_t place = places[i] << bit % 8;
        for (size_t at = bit / 8; place != 0; at++, place >>= 8)
            out[at] = (unsigned char)(out[at] | (place & 0xff));
    }
    return bytes;
}

/* Both encodings with a dictionary begin alike: how many distinct values, then these. */
static size_t encode_dictionary(frag_fgt_encoder *encoder, unsigned char *raw,
                                frag_fgt_coding *coding)
{
    make_dictionary(encoder);
    uint32_t distinct = encoder->distinct;
    bool is_bits = coding->encoding == FRAG_FGT_BITS;
    uint32_t place_bits = place_bits_needed(distinct);
    coding->width = (uint8_t)(is_bits ? place_bits : (place_bits + 7) / 8);
    coding->value_width = bytes_needed(encoder->sorted[distinct - 1]);
    unsigned char *out = raw;
    frag_fgt_put(out, distinct, 4);
    out += 4;
    for (uint32_t i = 0; i < distinct; i++, out += coding->value_width)
        frag_fgt_put(out, encoder->sorted[i], coding->value_width);
    size_t place_bytes =
        put_places(encoder->places, encoder->count, is_bits ? place_bits : coding->width * 8u, out);
    return (size_t)(out - raw) + place_bytes;
}

size_t frag_fgt_encode(frag_fgt_encoder *encoder, frag_fgt_encoding encoding, unsigned char *raw,
                       frag_fgt_coding *coding)
{
    const uint64_t *values = encoder->values;
    uint32_t count = encoder->count;
    *coding = (frag_fgt_coding){.encoding = (uint8_t)encoding};
    if (encoding == FRAG_FGT_DICTIONARY || encoding == FRAG_FGT_BITS)
        return encode_dictionary(encoder, raw, coding);
    uint8_t width = bytes_needed(value_max_of(values, count));
    if (encoding == FRAG_FGT_PLAIN) {
        width = (uint8_t)frag_power_of_two_up(width);
        for (uint32_t i = 0; i < count; i++)
            frag_fgt_put(raw + (size_t)i * width, values[i], width);
    } else {
        for (uint32_t plane = 0; plane < width; plane++)
            for (uint32_t i = 0; i < count; i++)
                raw[(size_t)plane * count + i] = (unsigned char)(values[i] >> (8 * plane));
    }
    coding->width = width;
    return (size_t)count * width;
}

/* ---- decoding */
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

/* The width is a constant in each caller, so that each loop becomes plain loads. Returns the union
 * of all bits. */
static inline uint64_t widen(const unsigned char *raw, uint32_t width, uint64_t *values,
                             uint32_t count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = frag_fgt_get(raw + (size_t)i * width, width);
        all |= values[i];
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
    case 3:
        return widen(raw, 3, values, count);
    case 4:
        return widen(raw, 4, values, count);
    case 5:
        return widen(raw, 5, values, count);
    case 6:
        return widen(raw, 6, values, count);
    case 7:
        return widen(raw, 7, values, count);
    default:
        return widen(raw, 8, values, count);
    }
}

static bool fail_beyond(const frag_fgt_cursor *cursor, frag_error *error)
{
    return frag_fail(error, FRAG_E_INPUT,
                     "a column has a place beyond its %u distinct values; expected one of them",
                     cursor->distinct);
}

static bool open_dictionary(frag_fgt_cursor *cursor, const unsigned char *raw, size_t raw_bytes,
                            frag_error *error)
{
    bool is_bits = cursor->coding.encoding == FRAG_FGT_BITS;
    uint32_t width = cursor->coding.width;
    uint32_t value_width = cursor->coding.value_width == 0 ? 8 : cursor->coding.value_width;
    uint64_t distinct = raw_bytes < 4 ? 0 : frag_fgt_get(raw, 4);
    if (width > (is_bits ? 16u : 2u) || value_width > 8)
        return frag_fail(
            error, FRAG_E_INPUT,
            "a column has encoding %u with widths %u and %u; expected some that are documented",
            cursor->coding.encoding, width, value_width);
    if (distinct == 0 || distinct > cursor->count || (width == 0 && distinct != 1))
        return frag_fail(error, FRAG_E_INPUT,
                         "a column lists %llu distinct values; expected 1 to %u",
                         (unsigned long long)distinct, width == 0 ? 1 : cursor->count);
    cursor->places_bytes = ((size_t)cursor->count * width * (is_bits ? 1 : 8) + 7) / 8;
    size_t expected = 4 + (size_t)distinct * value_width + cursor->places_bytes;
    if (raw_bytes != expected)
        return fail_size(raw_bytes, expected, error);
    if (is_bits && width != place_bits_needed((uint32_t)distinct))
        return frag_fail(error, FRAG_E_INPUT,
                         "a column has places of %u bits among %u distinct values; expected %u",
                         width, (uint32_t)distinct, place_bits_needed((uint32_t)distinct));
    cursor->distinct = (uint32_t)distinct;
    /* Every place of so many bits is in the table, so that it may be looked up before it is judged;
     * those beyond the distinct values are all ones. */
    size_t table_count = (size_t)1 << place_bits_needed((uint32_t)distinct);
    cursor->table = frag_realloc(NULL, table_count, sizeof *cursor->table);
    memset(cursor->table + distinct, 0xff, (table_count - distinct) * sizeof *cursor->table);
    widen_any(raw + 4, value_width, cursor->table, cursor->distinct);
    uint64_t max = value_max_of(cursor->table, cursor->distinct);
    if (max > cursor->value_max) {
        frag_fgt_cursor_close(cursor);
        return fail_value(max, cursor->value_max, error);
    }
    cursor->value_max = max;
    cursor->constant = cursor->table[0];
    cursor->places = width == 0 ? NULL : raw + 4 + distinct * value_width;
    return true;
}

bool frag_fgt_cursor_open(frag_fgt_cursor *cursor, frag_fgt_coding coding, const unsigned char *raw,
                          size_t raw_bytes, uint64_t value_max, uint32_t count, frag_error *error)
{
    *cursor = (frag_fgt_cursor){.coding = coding, .count = count, .value_max = value_max};
    if (coding.encoding == FRAG_FGT_DICTIONARY || coding.encoding == FRAG_FGT_BITS)
        return open_dictionary(cursor, raw, raw_bytes, error);
    bool is_plain = coding.encoding == FRAG_FGT_PLAIN;
    if (coding.width == 0 || coding.width > 8 ||
        (is_plain && !frag_is_power_of_two(coding.width)) ||
        (!is_plain && coding.encoding != FRAG_FGT_PLANES))
        return frag_fail(error, FRAG_E_INPUT,
                         "a column has encoding %u with width %u; expected one that is documented",
                         coding.encoding, coding.width);
    if (raw_bytes != (size_t)coding.width * count)
        return fail_size(raw_bytes, (size_t)coding.width * count, error);
    cursor->places = raw;
    cursor->places_bytes = raw_bytes;
    return true;
}

static uint64_t join_planes(const frag_fgt_cursor *cursor, uint64_t *values, uint32_t count)
{
    const unsigned char *low = cursor->places + cursor->next;
    if (cursor->coding.width == 1)
        return widen(low, 1, values, count);
    const unsigned char *plane = low + cursor->count;
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = (uint32_t)low[i] | (uint32_t)plane[i] << 8;
        all |= values[i];
    }
    for (uint32_t shift = 16; shift < cursor->coding.width * 8u; shift += 8) {
        plane += cursor->count;
        for (uint32_t i = 0; i < count; i++) {
            values[i] |= (uint64_t)plane[i] << shift;
            all |= values[i];
        }
    }
    return all;
}

/* Places of whole bytes. Whether one is beyond the distinct values has to be asked here: not all
 * that such a place can name is in the table. */
static inline bool look_up_bytes(const frag_fgt_cursor *cursor, uint32_t width, uint64_t *values,
                                 uint32_t count)
{
    const unsigned char *places = cursor->places + (size_t)cursor->next * width;
    const uint64_t *table = cursor->table;
    uint32_t last = cursor->distinct - 1;
    uint32_t beyond = 0; /* bit 31: both are below 2^17, so that only then a difference has it */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = (uint32_t)frag_fgt_get(places + (size_t)i * width, width);
        beyond |= last - place;
        values[i] = table[place <= last ? place : last];
    }
    return beyond >> 31 == 0;
}

/* The place with a number, of 1 to 16 bits. */
static inline uint32_t get_place(const frag_fgt_cursor *cursor, uint32_t number)
{
    const uint32_t width = cursor->coding.width;
    size_t bit = (size_t)number * width;
    size_t left = cursor->places_bytes - bit / 8;
    uint64_t window = frag_fgt_get(cursor->places + bit / 8, left < 3 ? (uint32_t)left : 3);
    return (uint32_t)(window >> bit % 8) & (((uint32_t)1 << width) - 1);
}

/* Eight places are as many whole bytes as each has bits: with a width that is a constant in each
 * caller, all else is too. Returns the union of all bits. */
static inline uint64_t look_up_eights(const unsigned char *places, const unsigned char *places_end,
                                      const uint64_t *table, uint32_t width, uint64_t *values,
                                      uint32_t *done, uint32_t count)
{
    const uint64_t mask = ((uint64_t)1 << width) - 1;
    uint64_t all = 0;
    uint32_t i = *done;
    /* The last window of eight bytes begins at most seven bits before the last place. */
    for (; i + 8 <= count && (size_t)(places_end - places) >= width + 8; i += 8, places += width)
        for (uint32_t k = 0; k < 8; k++) {
            uint64_t window = frag_load_64(places + k * width / 8) >> k * width % 8;
            values[i + k] = table[window & mask];
            all |= values[i + k];
        }
    *done = i;
    return all;
}

static uint64_t look_up_any_eights(const frag_fgt_cursor *cursor, uint64_t *values, uint32_t *done,
                                   uint32_t count)
{
    const uint64_t *table = cursor->table;
    const uint32_t width = cursor->coding.width;
    const unsigned char *end = cursor->places + cursor->places_bytes;
    const unsigned char *at = cursor->places + (size_t)(cursor->next + *done) / 8 * width;
    switch (width) {
#define WIDTH(w)                                                                                   \
    case w:                                                                                        \
        return look_up_eights(at, end, table, w, values, done, count);
        WIDTH(1)
        WIDTH(2)
        WIDTH(3)
        WIDTH(4)
        WIDTH(5)
        WIDTH(6)
        WIDTH(7)
        WIDTH(8)
        WIDTH(9)
        WIDTH(10)
        WIDTH(11)
        WIDTH(12)
        WIDTH(13)
        WIDTH(14)
        WIDTH(15)
#undef WIDTH
    default:
        return look_up_eights(at, end, table, 16, values, done, count);
    }
}

static bool look_up_bits(const frag_fgt_cursor *cursor, uint64_t *values, uint32_t count)
{
    const uint64_t *table = cursor->table;
    uint64_t all = 0;
    uint32_t i = 0;
    for (; i < count && (cursor->next + i) % 8 != 0; i++) {
        values[i] = table[get_place(cursor, cursor->next + i)];
        all |= values[i];
    }
    all |= look_up_any_eights(cursor, values, &i, count);
    for (; i < count; i++) {
        values[i] = table[get_place(cursor, cursor->next + i)];
        all |= values[i];
    }
    /* Values may be all ones too: only the places tell. */
    uint32_t beyond = 0;
    for (i = 0; all == UINT64_MAX && i < count; i++)
        beyond |= cursor->distinct - 1 - get_place(cursor, cursor->next + i);
    return beyond >> 31 == 0;
}

/* false: a place is beyond the distinct values. */
static bool look_up(const frag_fgt_cursor *cursor, uint64_t *values, uint32_t count)
{
    if (cursor->coding.encoding == FRAG_FGT_BITS)
        return look_up_bits(cursor, values, count);
    return cursor->coding.width == 1 ? look_up_bytes(cursor, 1, values, count)
                                     : look_up_bytes(cursor, 2, values, count);
}

bool frag_fgt_cursor_next(frag_fgt_cursor *cursor, uint64_t *values, uint32_t count,
                          frag_error *error)
{
    FRAG_ASSERT(count <= cursor->count - cursor->next);
    uint64_t all = 0;
    bool is_found = true;
    if (cursor->places == NULL)
        for (uint32_t i = 0; i < count; i++)
            values[i] = cursor->constant;
    else if (cursor->coding.encoding == FRAG_FGT_PLAIN)
        all = widen_any(cursor->places + (size_t)cursor->next * cursor->coding.width,
                        cursor->coding.width, values, count);
    else if (cursor->coding.encoding == FRAG_FGT_PLANES)
        all = join_planes(cursor, values, count);
    else
        is_found = look_up(cursor, values, count);
    cursor->next += count;
    if (!is_found)
        return fail_beyond(cursor, error);
    /* That of values which are not in a dictionary is one less than a power of two. */
    return (all & ~cursor->value_max) == 0 ||
           fail_value(value_max_of(values, count), cursor->value_max, error);
}

static void join_planes_32(const frag_fgt_cursor *cursor, uint32_t *values, uint32_t count)
{
    const unsigned char *low = cursor->places + cursor->next;
    const unsigned char *high = low + cursor->count;
    if (cursor->coding.width == 1)
        for (uint32_t i = 0; i < count; i++)
            values[i] = low[i];
    else
        for (uint32_t i = 0; i < count; i++)
            values[i] = (uint32_t)low[i] | (uint32_t)high[i] << 8;
    for (uint32_t plane = 2; plane < cursor->coding.width; plane++)
        for (uint32_t i = 0; i < count; i++)
            values[i] |= (uint32_t)low[(size_t)plane * cursor->count + i] << 8 * plane;
}

bool frag_fgt_cursor_next_32(frag_fgt_cursor *cursor, uint32_t *values, uint32_t count,
                             frag_error *error)
{
    FRAG_ASSERT(cursor->places == NULL || cursor->value_max <= UINT32_MAX);
    const uint32_t width = cursor->coding.width;
    if (cursor->places != NULL && cursor->coding.encoding == FRAG_FGT_PLANES && width <= 4 &&
        cursor->value_max >> (8 * width - 1) != 0) {
        FRAG_ASSERT(count <= cursor->count - cursor->next);
        join_planes_32(cursor, values, count);
        cursor->next += count;
        return true;
    }
    uint64_t some[256];
    for (uint32_t first = 0; first < count; first += 256) {
        uint32_t size = count - first < 256 ? count - first : 256;
        if (!frag_fgt_cursor_next(cursor, some, size, error))
            return false;
        for (uint32_t i = 0; i < size; i++)
            values[first + i] = (uint32_t)some[i];
    }
    return true;
}

/* Places of which a byte holds several become values a byte at a time. Returns a number with bit 31
 * when a place is beyond the distinct values. */
static inline uint32_t spread_parts(const frag_fgt_cursor *cursor, uint32_t width, uint8_t *values)
{
    const unsigned char *places = cursor->places;
    const uint32_t parts = 8 / width;
    const uint32_t mask = ((uint32_t)1 << width) - 1;
    uint64_t together[256];
    uint32_t beyonds[256];
    for (uint32_t byte = 0; byte < 256; byte++) {
        together[byte] = 0;
        beyonds[byte] = 0;
        for (uint32_t part = 0; part < parts; part++) {
            uint32_t place = byte >> part * width & mask;
            beyonds[byte] |= cursor->distinct - 1 - place;
            together[byte] |= cursor->table[place] << (8 * part);
        }
    }
    uint32_t beyond = 0;
    uint32_t i = 0;
    for (; i + parts <= cursor->count; i += parts, places++) {
        beyond |= beyonds[*places];
        frag_fgt_put(values + i, together[*places], parts);
    }
    for (uint32_t part = 0; i < cursor->count; i++, part++) {
        uint32_t place = (uint32_t)*places >> part * width & mask;
        beyond |= cursor->distinct - 1 - place;
        values[i] = (uint8_t)cursor->table[place];
    }
    return beyond;
}

bool frag_fgt_cursor_bytes(frag_fgt_cursor *cursor, uint8_t *values, frag_error *error)
{
    FRAG_ASSERT(cursor->next == 0 && cursor->value_max <= UINT8_MAX);
    if (cursor->places == NULL) {
        memset(values, (int)cursor->constant, cursor->count);
        return true;
    }
    uint32_t width = cursor->coding.encoding == FRAG_FGT_BITS ? cursor->coding.width : 0;
    if (width == 1 || width == 2 || width == 4) {
        uint32_t beyond = width == 1   ? spread_parts(cursor, 1, values)
                          : width == 2 ? spread_parts(cursor, 2, values)
                                       : spread_parts(cursor, 4, values);
        return beyond >> 31 == 0 || fail_beyond(cursor, error);
    }
    uint64_t some[256];
    while (cursor->next < cursor->count) {
        uint32_t first = cursor->next;
        uint32_t count = cursor->count - first < 256 ? cursor->count - first : 256;
        if (!frag_fgt_cursor_next(cursor, some, count, error))
            return false;
        for (uint32_t i = 0; i < count; i++)
            values[first + i] = (uint8_t)some[i];
    }
    return true;
}

void frag_fgt_cursor_close(frag_fgt_cursor *cursor)
{
    frag_free(cursor->table);
    cursor->table = NULL;
}

uint64_t frag_fgt_difference(uint64_t *values, uint32_t count, uint64_t last, bool is_back)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = values[i];
        values[i] = is_back ? value + last : value - last;
        last = is_back ? values[i] : value;
    }
    return last;
}

uint64_t frag_fgt_guess(uint64_t *guesses, uint32_t slot, uint64_t value, bool is_back)
{
    uint64_t *guess = &guesses[slot % FRAG_FGT_GUESSES];
    uint64_t other = value ^ *guess;
    *guess = is_back ? other : value;
    return other;
}
