#include "planner/keyed.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/radix.h"

/* With fewer the library's sort is quicker. */
#define COUNT_MIN 256u

static int compare_keyed(const void *one, const void *other)
{
    const frag_keyed *a = one, *b = other;
    for (int i = 0; i < FRAG_KEY_COUNT; i++)
        if (a->keys[i] != b->keys[i])
            return frag_compare(b->keys[i], a->keys[i]);
    return frag_compare(a->buffer, b->buffer);
}

/* From the least important key to the most, each sort keeping the order of the one before. */
static void sort_many(frag_keyed *items, uint32_t count)
{
    frag_radix_item *order = frag_alloc(count, sizeof *order);
    frag_radix_item *scratch = frag_alloc(count, sizeof *scratch);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (frag_radix_item){items[i].buffer, i};
    frag_radix_sort(order, scratch, count);
    for (int key = FRAG_KEY_COUNT - 1; key >= 0; key--) {
        for (uint32_t i = 0; i < count; i++)
            order[i].key = UINT64_MAX - items[order[i].value].keys[key];
        frag_radix_sort(order, scratch, count);
    }
    frag_free(scratch);
    frag_keyed *sorted = frag_alloc(count, sizeof *sorted);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = items[order[i].value];
    memcpy(items, sorted, count * sizeof *items);
    frag_free(sorted);
    frag_free(order);
}

void frag_keyed_sort(frag_keyed *items, uint32_t count)
{
    if (count < COUNT_MIN)
        qsort(items, count, sizeof *items, compare_keyed);
    else
        sort_many(items, count);
}
