#include "gpu_replay/device/cuda_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Index of the first place that begins above the address. */
static size_t find_above(const frag_cuda_places *places, uint64_t address)
{
    size_t low = 0;
    size_t high = places->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (places->items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t frag_cuda_places_find(const frag_cuda_places *places, uint64_t address)
{
    size_t above = find_above(places, address);
    if (above == 0)
        return places->count;
    const frag_cuda_place *place = &places->items[above - 1];
    return address - place->address < place->bytes ? above - 1 : places->count;
}

void frag_cuda_places_add(frag_cuda_places *places, const frag_cuda_place *place)
{
    size_t at = find_above(places, place->address);
    places->items =
        frag_grow(places->items, &places->capacity, places->count + 1, sizeof *places->items);
    memmove(places->items + at + 1, places->items + at,
            (places->count - at) * sizeof *places->items);
    places->items[at] = *place;
    places->count++;
}

void frag_cuda_places_remove(frag_cuda_places *places, size_t first, size_t count)
{
    FRAG_ASSERT(first <= places->count && count <= places->count - first);
    memmove(places->items + first, places->items + first + count,
            (places->count - first - count) * sizeof *places->items);
    places->count -= count;
}

void frag_cuda_places_destroy(frag_cuda_places *places)
{
    free(places->items);
    *places = (frag_cuda_places){0};
}
