#include "planner/keyed.h"

#include <stdlib.h>

#include "base/bits.h"

static int compare_keyed(const void *one, const void *other)
{
    const frag_keyed *a = one, *b = other;
    for (int i = 0; i < FRAG_KEY_COUNT; i++)
        if (a->keys[i] != b->keys[i])
            return frag_compare(b->keys[i], a->keys[i]);
    return frag_compare(a->buffer, b->buffer);
}

void frag_keyed_sort(frag_keyed *items, uint32_t count)
{
    qsort(items, count, sizeof *items, compare_keyed);
}
