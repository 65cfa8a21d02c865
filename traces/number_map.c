#include "traces/number_map.h"

#include "base/error.h"
#include "base/memory.h"

void frag_number_map_grow(frag_number_map *map)
{
    frag_number_map old = *map;
    map->capacity = old.capacity == 0 ? 64 : old.capacity * 2;
    map->places = frag_alloc(map->capacity, sizeof *map->places);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.places[i].value != 0)
            map->places[frag_number_map_find(map, old.places[i].key)] = old.places[i];
    frag_free(old.places);
}

bool frag_number_map_get(const frag_number_map *map, uint64_t key, uint64_t *value)
{
    if (map->count == 0)
        return false;
    uint64_t found = map->places[frag_number_map_find(map, key)].value;
    if (found != 0)
        *value = found - 1;
    return found != 0;
}

void frag_number_map_add_at(frag_number_map *map, size_t place, uint64_t key, uint64_t value)
{
    FRAG_ASSERT(value < UINT64_MAX);
    if (map->count * 2 >= map->capacity) {
        frag_number_map_grow(map);
        place = frag_number_map_find(map, key);
    }
    map->places[place] = (frag_number_place){key, value + 1};
    map->count++;
}

void frag_number_map_set(frag_number_map *map, uint64_t key, uint64_t value)
{
    if (map->capacity == 0)
        frag_number_map_grow(map);
    size_t place = frag_number_map_find(map, key);
    if (map->places[place].value == 0)
        frag_number_map_add_at(map, place, key, value);
    else
        map->places[place].value = value + 1;
}

void frag_number_map_remove_at(frag_number_map *map, size_t hole)
{
    size_t mask = map->capacity - 1;
    /* What stands behind the hole moves up if it could have stood there. */
    for (size_t at = (hole + 1) & mask; map->places[at].value != 0; at = (at + 1) & mask) {
        size_t home = frag_number_map_home(map, map->places[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->places[hole] = map->places[at];
            hole = at;
        }
    }
    map->places[hole].value = 0;
    map->count--;
}

void frag_number_map_remove(frag_number_map *map, uint64_t key)
{
    size_t place = map->count == 0 ? 0 : frag_number_map_find(map, key);
    if (map->count > 0 && map->places[place].value != 0)
        frag_number_map_remove_at(map, place);
}

void frag_number_map_destroy(frag_number_map *map)
{
    frag_free(map->places);
    *map = (frag_number_map){0};
}
