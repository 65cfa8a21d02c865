#include "gpu_replay/software/soft_arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

void frag_soft_arena_start(frag_soft_arena *arena, uint64_t base, uint64_t window_bytes)
{
    arena->count = 0;
    arena->base = base;
    arena->window_bytes = window_bytes;
    arena->next = base;
}

void frag_soft_arena_destroy(frag_soft_arena *arena)
{
    free(arena->ranges);
    memset(arena, 0, sizeof *arena);
}

size_t frag_soft_arena_place(const frag_soft_arena *arena, uint64_t address)
{
    size_t low = 0;
    size_t high = arena->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (arena->ranges[middle].address + arena->ranges[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static frag_soft_range *insert(frag_soft_arena *arena, size_t place, uint64_t address,
                               uint64_t bytes)
{
    arena->ranges =
        frag_grow(arena->ranges, &arena->capacity, arena->count + 1, sizeof arena->ranges[0]);
    frag_soft_range *range = &arena->ranges[place];
    memmove(range + 1, range, (arena->count - place) * sizeof *range);
    arena->count++;
    *range = (frag_soft_range){.address = address, .bytes = bytes, .asked_bytes = bytes};
    if (address + bytes > arena->next)
        arena->next = address + bytes;
    return range;
}

frag_soft_range *frag_soft_arena_add(frag_soft_arena *arena, uint64_t bytes, uint64_t alignment,
                                     bool is_bump)
{
    uint64_t above = frag_align_up(arena->next, alignment) - arena->base;
    if (is_bump && above <= arena->window_bytes && bytes <= arena->window_bytes - above)
        return insert(arena, arena->count, arena->base + above, bytes);
    uint64_t address = frag_align_up(arena->base, alignment);
    size_t place = 0;
    for (; place < arena->count; place++) {
        const frag_soft_range *range = &arena->ranges[place];
        if (range->address >= address && range->address - address >= bytes)
            break;
        address = frag_align_up(range->address + range->bytes, alignment);
    }
    return insert(arena, place, address, bytes);
}

frag_soft_range *frag_soft_arena_add_at(frag_soft_arena *arena, uint64_t address, uint64_t bytes)
{
    return insert(arena, frag_soft_arena_place(arena, address), address, bytes);
}

frag_soft_range *frag_soft_arena_find(const frag_soft_arena *arena, uint64_t address)
{
    size_t place = frag_soft_arena_place(arena, address);
    if (place == arena->count || arena->ranges[place].address > address)
        return NULL;
    return &arena->ranges[place];
}

void frag_soft_arena_remove(frag_soft_arena *arena, size_t place)
{
    frag_soft_range *range = &arena->ranges[place];
    arena->count--;
    memmove(range, range + 1, (arena->count - place) * sizeof *range);
}
