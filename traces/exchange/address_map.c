#include "traces/exchange/address_map.h"

#include <stdlib.h>

#include "base/memory.h"

struct frag_address_place {
    uint64_t address;
    uint64_t value;
    bool is_taken;
};

/* Addresses are multiples of large powers of two: the multiplication brings what differs up, the
 * shift brings it down again. */
static size_t home(const frag_address_map *map, uint64_t address)
{
    return (size_t)((address * 0x9e3779b97f4a7c15u) >> 32) & (map->capacity - 1);
}

/* The place of an address, or the free one where it would go; the map is never full. */
static size_t find(const frag_address_map *map, uint64_t address)
{
    size_t at = home(map, address);
    while (map->places[at].is_taken && map->places[at].address != address)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

static void grow(frag_address_map *map)
{
    frag_address_map larger = {.capacity = map->capacity == 0 ? 64 : map->capacity * 2,
                               .count = map->count};
    larger.places = frag_alloc(larger.capacity, sizeof *larger.places);
    for (size_t i = 0; i < map->capacity; i++)
        if (map->places[i].is_taken)
            larger.places[find(&larger, map->places[i].address)] = map->places[i];
    frag_free(map->places);
    *map = larger;
}

bool frag_address_map_get(const frag_address_map *map, uint64_t address, uint64_t *value)
{
    if (map->count == 0)
        return false;
    const struct frag_address_place *place = &map->places[find(map, address)];
    if (place->is_taken)
        *value = place->value;
    return place->is_taken;
}

void frag_address_map_set(frag_address_map *map, uint64_t address, uint64_t value)
{
    if (map->count * 2 >= map->capacity)
        grow(map);
    struct frag_address_place *place = &map->places[find(map, address)];
    map->count += place->is_taken ? 0 : 1;
    *place = (struct frag_address_place){address, value, true};
}

void frag_address_map_remove(frag_address_map *map, uint64_t address)
{
    if (map->count == 0)
        return;
    size_t hole = find(map, address);
    if (!map->places[hole].is_taken)
        return;
    map->places[hole].is_taken = false;
    map->count--;
    /* What stands behind the hole moves up if it could have stood there. */
    size_t mask = map->capacity - 1;
    for (size_t at = (hole + 1) & mask; map->places[at].is_taken; at = (at + 1) & mask) {
        size_t wanted = home(map, map->places[at].address);
        if (((at - wanted) & mask) < ((at - hole) & mask))
            continue;
        map->places[hole] = map->places[at];
        map->places[at].is_taken = false;
        hole = at;
    }
}

void frag_address_map_destroy(frag_address_map *map)
{
    frag_free(map->places);
    *map = (frag_address_map){0};
}
