#include "planner/placement.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/radix.h"

/* Numbers below a limit, 64 to a word; a bit of a level says that the word below is not zero. */
enum { LEVELS_MAX = 5, WORD_BITS = 64 };
_Static_assert((uint64_t)1 << LEVELS_MAX * 6 >= FRAG_BUFFER_COUNT_MAX, "levels for every buffer");

typedef struct number_set {
    uint64_t *levels[LEVELS_MAX];
    uint32_t level_count;
} number_set;

typedef struct judge {
    const frag_buffer *buffers;
    frag_radix_item *ranked; /* offsets in order, each with the number of its buffer */
    uint32_t *rank_of;       /* of each buffer */
    number_set live;         /* ranks */
} judge;

/* ---- sets of numbers */

static void open_set(number_set *set, size_t limit)
{
    *set = (number_set){.level_count = 0};
    do {
        limit = limit / WORD_BITS + 1;
        set->levels[set->level_count++] = frag_alloc(limit, sizeof(uint64_t));
    } while (limit > 1);
}

static void close_set(number_set *set)
{
    for (uint32_t i = 0; i < set->level_count; i++)
        frag_free(set->levels[i]);
}

static void add(number_set *set, uint32_t number)
{
    for (uint32_t i = 0; i < set->level_count; i++, number /= WORD_BITS)
        set->levels[i][number / WORD_BITS] |= (uint64_t)1 << number % WORD_BITS;
}

static void remove_number(number_set *set, uint32_t number)
{
    for (uint32_t i = 0; i < set->level_count; i++, number /= WORD_BITS) {
        uint64_t *word = &set->levels[i][number / WORD_BITS];
        *word &= ~((uint64_t)1 << number % WORD_BITS);
        if (*word != 0)
            return;
    }
}

/* The first number under that bit of a level, or the last. */
static uint32_t descend(const number_set *set, uint32_t level, uint32_t number, bool is_first)
{
    while (level > 0) {
        uint64_t word = set->levels[--level][number];
        number = number * WORD_BITS + (is_first ? frag_bit_low(word) : frag_bit_high(word));
    }
    return number;
}

/* The first number of the set above this one; false: there is none. */
static bool find_above(const number_set *set, uint32_t number, uint32_t *found)
{
    for (uint32_t i = 0; i < set->level_count; i++, number /= WORD_BITS) {
        uint64_t above = UINT64_MAX << number % WORD_BITS;
        uint64_t word = set->levels[i][number / WORD_BITS] & above << 1;
        if (word == 0)
            continue;
        *found = descend(set, i, number / WORD_BITS * WORD_BITS + frag_bit_low(word), true);
        return true;
    }
    return false;
}

/* The last one below it. */
static bool find_below(const number_set *set, uint32_t number, uint32_t *found)
{
    for (uint32_t i = 0; i < set->level_count; i++, number /= WORD_BITS) {
        uint64_t below = ((uint64_t)1 << number % WORD_BITS) - 1;
        uint64_t word = set->levels[i][number / WORD_BITS] & below;
        if (word == 0)
            continue;
        *found = descend(set, i, number / WORD_BITS * WORD_BITS + frag_bit_high(word), false);
        return true;
    }
    return false;
}

/* ---- the sweep */

static bool overlaps(const judge *at, uint32_t lower, uint32_t upper, frag_error *error)
{
    const frag_radix_item *below = &at->ranked[lower];
    const frag_radix_item *above = &at->ranked[upper];
    if (below->key + at->buffers[below->value].size <= above->key)
        return false;
    frag_fail(error, FRAG_E_INPUT,
              "buffers %u and %u are live at the same time and share bytes from %llu on",
              (uint32_t)below->value, (uint32_t)above->value, (unsigned long long)above->key);
    return true;
}

static bool begin(judge *at, uint32_t buffer, frag_error *error)
{
    uint32_t rank = at->rank_of[buffer];
    uint32_t other = 0;
    if ((find_below(&at->live, rank, &other) && overlaps(at, other, rank, error)) ||
        (find_above(&at->live, rank, &other) && overlaps(at, rank, other, error)))
        return false;
    add(&at->live, rank);
    return true;
}

static void rank_offsets(judge *at, const uint64_t *offsets, uint32_t count)
{
    frag_radix_item *scratch = frag_alloc(count, sizeof *scratch);
    at->ranked = frag_alloc(count, sizeof *at->ranked);
    at->rank_of = frag_alloc(count, sizeof *at->rank_of);
    for (uint32_t i = 0; i < count; i++)
        at->ranked[i] = (frag_radix_item){offsets[i], i};
    frag_radix_sort(at->ranked, scratch, count);
    for (uint32_t i = 0; i < count; i++)
        at->rank_of[at->ranked[i].value] = i;
    frag_free(scratch);
}

static bool sweep(const frag_buffer *buffers, const uint64_t *offsets, uint32_t count,
                  frag_error *error)
{
    judge at = {.buffers = buffers};
    rank_offsets(&at, offsets, count);
    open_set(&at.live, count);
    frag_moments moments = frag_moments_find(buffers, count);
    frag_moment moment;
    bool ok = true;
    while (ok && frag_moments_take(&moments, &moment)) {
        if (moment.is_end)
            remove_number(&at.live, at.rank_of[moment.buffer]);
        else
            ok = begin(&at, moment.buffer, error);
    }
    frag_moments_destroy(&moments);
    frag_free(at.ranked);
    frag_free(at.rank_of);
    close_set(&at.live);
    return ok;
}

/* Each buffer on its own. */
static bool check_alone(const frag_buffer *buffer, uint32_t number, uint64_t offset,
                        uint64_t capacity, frag_error *error)
{
    if (buffer->lower >= buffer->upper || buffer->size == 0)
        return frag_fail(error, FRAG_E_INPUT, "buffer %u is live at no time or has no bytes",
                         number);
    if (offset % buffer->alignment != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "buffer %u is at %llu; expected a multiple of its alignment, %llu", number,
                         (unsigned long long)offset, (unsigned long long)buffer->alignment);
    if (buffer->size > capacity || offset > capacity - buffer->size)
        return frag_fail(error, FRAG_E_INPUT,
                         "buffer %u of %llu bytes is at %llu; it ends above the capacity, %llu",
                         number, (unsigned long long)buffer->size, (unsigned long long)offset,
                         (unsigned long long)capacity);
    return true;
}

bool frag_placement_check(const frag_buffer *buffers, const uint64_t *offsets, uint32_t count,
                          uint64_t capacity, uint64_t *height, frag_error *error)
{
    *height = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!check_alone(&buffers[i], i, offsets[i], capacity, error))
            return false;
        uint64_t top = offsets[i] + buffers[i].size;
        *height = top > *height ? top : *height;
    }
    return sweep(buffers, offsets, count, error);
}
