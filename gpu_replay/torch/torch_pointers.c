#include "gpu_replay/torch/torch_pointers.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

#define MULTIPLIER 0x9e3779b97f4a7c15u
#define CAPACITY_MIN 1024u

static size_t home_of(const frag_torch_pointers *pointers, uint64_t address)
{
    return (size_t)((address * MULTIPLIER) >> 32) & (pointers->capacity - 1);
}

static size_t next_of(const frag_torch_pointers *pointers, size_t place)
{
    return (place + 1) & (pointers->capacity - 1);
}

/* Where the address is, or the empty place where it would go. */
static size_t find_place(const frag_torch_pointers *pointers, uint64_t address)
{
    size_t at = home_of(pointers, address);
    while (pointers->places[at].address != 0 && pointers->places[at].address != address)
        at = next_of(pointers, at);
    return at;
}

static void grow(frag_torch_pointers *pointers)
{
    frag_torch_pointers old = *pointers;
    pointers->capacity = old.capacity == 0 ? CAPACITY_MIN : old.capacity * 2;
    pointers->places = frag_alloc(pointers->capacity, sizeof *pointers->places);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.places[i].address != 0)
            pointers->places[find_place(pointers, old.places[i].address)] = old.places[i];
    free(old.places);
}

void frag_torch_pointers_add(frag_torch_pointers *pointers, uint64_t address, uint32_t block)
{
    if (pointers->count * 2 >= pointers->capacity)
        grow(pointers);
    size_t at = find_place(pointers, address);
    FRAG_ASSERT(address != 0 && pointers->places[at].address == 0);
    pointers->places[at] = (frag_torch_pointer){address, block};
    pointers->count++;
}

bool frag_torch_pointers_find(const frag_torch_pointers *pointers, uint64_t address,
                              uint32_t *block)
{
    if (pointers->count == 0 || address == 0)
        return false;
    size_t at = find_place(pointers, address);
    *block = pointers->places[at].block;
    return pointers->places[at].address != 0;
}

bool frag_torch_pointers_take(frag_torch_pointers *pointers, uint64_t address, uint32_t *block)
{
    if (!frag_torch_pointers_find(pointers, address, block))
        return false;
    size_t gap = find_place(pointers, address);
    size_t mask = pointers->capacity - 1;
    for (size_t at = next_of(pointers, gap); pointers->places[at].address != 0;
         at = next_of(pointers, at)) {
        size_t home = home_of(pointers, pointers->places[at].address);
        /* What lies behind the gap moves into it unless its home lies behind the gap too. */
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        pointers->places[gap] = pointers->places[at];
        gap = at;
    }
    pointers->places[gap] = (frag_torch_pointer){0};
    pointers->count--;
    return true;
}
