/* A map from numbers to numbers: what is at an address now, while a recording is read. */
#ifndef FRAG_TRACES_NUMBER_MAP_H
#define FRAG_TRACES_NUMBER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct frag_number_place {
    uint64_t key;
    uint64_t value; /* + 1; 0: nothing is here */
} frag_number_place;

/* Open addressing, at most half full. Start from {0}; nothing depends on the order of its places.
 */
typedef struct frag_number_map {
    frag_number_place *places;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} frag_number_map;

/* false: nothing is known of the key, and *value is left as it is. */
bool frag_number_map_get(const frag_number_map *map, uint64_t key, uint64_t *value);
/* Sets or replaces; a value is less than UINT64_MAX. */
void frag_number_map_set(frag_number_map *map, uint64_t key, uint64_t value);
/* Nothing happens when nothing is known of the key. */
void frag_number_map_remove(frag_number_map *map, uint64_t key);
void frag_number_map_destroy(frag_number_map *map);

/* Where a key goes if that place is free. Addresses are multiples of large powers of two: the
 * multiplication brings what differs up, the shift brings it down again. */
static inline size_t frag_number_map_home(const frag_number_map *map, uint64_t key)
{
    uint64_t hash = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    return (size_t)(hash ^ hash >> 29) & (map->capacity - 1);
}

/* For loops that look a key up once and then add or remove it: the place of a key, or the free one
 * where it would go, which is good until the next change. Not of a map that never held a key, but
 * for frag_number_map_grow. */
static inline size_t frag_number_map_find(const frag_number_map *map, uint64_t key)
{
    size_t at = frag_number_map_home(map, key);
    while (map->places[at].value != 0 && map->places[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

/* Adds a key that is not there at the place found for it. */
void frag_number_map_add_at(frag_number_map *map, size_t place, uint64_t key, uint64_t value);
void frag_number_map_remove_at(frag_number_map *map, size_t place);
/* Doubles the room. */
void frag_number_map_grow(frag_number_map *map);

#endif
