#include "planner/greedy.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "planner/keyed.h"

/* Facts of all sections that keys are made of. */
typedef struct facts {
    const frag_sections *sections;
    uint32_t leaf_count;
    uint64_t *fullest; /* a tree of maxima over the sections */
    uint32_t *started; /* buffers that begin before section s */
    uint32_t *ended;   /* buffers that end at or before it */
} facts;

static void gather(const frag_sections *sections, facts *known)
{
    size_t count = sections->count;
    *known = (facts){.sections = sections,
                     .leaf_count = (uint32_t)frag_power_of_two_up(count > 0 ? count : 1)};
    known->fullest = frag_alloc((size_t)known->leaf_count * 2, sizeof *known->fullest);
    known->started = frag_alloc(count + 2, sizeof *known->started);
    known->ended = frag_alloc(count + 2, sizeof *known->ended);
    uint64_t *load = known->fullest + known->leaf_count;
    uint64_t *ending = frag_alloc(count + 1, sizeof *ending);
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        known->started[sections->lower[i] + 1]++;
        known->ended[sections->upper[i]]++;
        load[sections->lower[i]] += sections->buffers[i].size;
        ending[sections->upper[i]] += sections->buffers[i].size;
    }
    for (size_t s = 1; s <= count; s++) {
        known->started[s] += known->started[s - 1];
        known->ended[s] += known->ended[s - 1];
        if (s < count)
            load[s] += load[s - 1] - ending[s];
    }
    frag_free(ending);
    for (uint32_t i = known->leaf_count - 1; i > 0; i--) {
        uint64_t left = known->fullest[(size_t)i * 2];
        uint64_t right = known->fullest[(size_t)i * 2 + 1];
        known->fullest[i] = left > right ? left : right;
    }
}

static void forget(facts *known)
{
    frag_free(known->fullest);
    frag_free(known->started);
    frag_free(known->ended);
}

static uint64_t fullest_between(const facts *known, uint32_t lower, uint32_t upper)
{
    uint64_t most = 0;
    uint32_t low = lower + known->leaf_count;
    uint32_t high = upper + known->leaf_count;
    for (; low < high; low /= 2, high /= 2) {
        if ((low & 1) != 0) {
            most = known->fullest[low] > most ? known->fullest[low] : most;
            low++;
        }
        if ((high & 1) != 0) {
            high--;
            most = known->fullest[high] > most ? known->fullest[high] : most;
        }
    }
    return most;
}

static uint64_t find_key(const facts *known, uint32_t buffer, char letter)
{
    const frag_buffer *at = &known->sections->buffers[buffer];
    uint32_t lower = known->sections->lower[buffer];
    uint32_t upper = known->sections->upper[buffer];
    uint64_t area = 0;
    switch (letter) {
    case 'A':
        return frag_multiply(at->upper - at->lower, at->size, &area) ? area : UINT64_MAX;
    case 'C':
        return upper - lower;
    case 'L':
        return at->lower;
    case 'O':
        return known->started[upper] - known->ended[lower];
    case 'T':
        return fullest_between(known, lower, upper);
    case 'U':
        return at->upper;
    case 'W':
        return at->upper - at->lower;
    case 'Z':
        return at->size;
    default:
        FRAG_ASSERT(letter >= 'a' && letter <= 'z');
        return UINT64_MAX - find_key(known, buffer, (char)(letter - 'a' + 'A'));
    }
}

/* From here on memory for all keys costs more than finding each when it is needed. */
#define COUNT_MANY 65536u

/* From the least important letter to the first, each sort keeping the order of the one before. */
static void sort_many(const facts *known, const char *letters, uint32_t *order, uint32_t count)
{
    frag_radix_item *items = frag_alloc(count, sizeof *items);
    frag_radix_item *scratch = frag_alloc(count, sizeof *scratch);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (frag_radix_item){order[i], order[i]};
    frag_radix_sort(items, scratch, count);
    for (size_t letter = strlen(letters); letter > 0; letter--) {
        for (uint32_t i = 0; i < count; i++)
            items[i].key =
                UINT64_MAX - find_key(known, (uint32_t)items[i].value, letters[letter - 1]);
        frag_radix_sort(items, scratch, count);
    }
    for (uint32_t i = 0; i < count; i++)
        order[i] = (uint32_t)items[i].value;
    frag_free(scratch);
    frag_free(items);
}

static void sort_few(const facts *known, const char *letters, uint32_t *order, uint32_t count)
{
    frag_keyed *items = frag_alloc(count, sizeof *items);
    for (uint32_t i = 0; i < count; i++) {
        items[i].buffer = order[i];
        for (int k = 0; k < FRAG_KEY_COUNT && letters[k] != '\0'; k++)
            items[i].keys[k] = find_key(known, order[i], letters[k]);
    }
    frag_keyed_sort(items, count);
    for (uint32_t i = 0; i < count; i++)
        order[i] = items[i].buffer;
    frag_free(items);
}

void frag_greedy_sort(const frag_sections *sections, const char *letters, uint32_t *order,
                      uint32_t count)
{
    facts known;
    gather(sections, &known);
    if (count >= COUNT_MANY)
        sort_many(&known, letters, order, count);
    else
        sort_few(&known, letters, order, count);
    forget(&known);
}

uint64_t frag_greedy_place(const frag_sections *sections, const uint32_t *order, uint32_t count,
                           frag_gap_choice choice, frag_gap_tree *tree, uint64_t *offsets)
{
    uint64_t height = 0;
    frag_gap_tree_clear(tree);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = order[i];
        const frag_buffer *buffer = &sections->buffers[at];
        uint32_t lower = sections->lower[at];
        uint32_t upper = sections->upper[at];
        offsets[at] =
            frag_gap_tree_find(tree, lower, upper, buffer->size, buffer->alignment, choice);
        frag_gap_tree_take(tree, lower, upper, offsets[at], buffer->size);
        uint64_t end = offsets[at] + buffer->size;
        height = end > height ? end : height;
    }
    return height;
}
