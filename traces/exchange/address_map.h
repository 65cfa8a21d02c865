/* A map from addresses to numbers: what is at an address now, while a log of calls is read. */
#ifndef FRAG_EXCHANGE_ADDRESS_MAP_H
#define FRAG_EXCHANGE_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open addressing. Start from {0}; nothing depends on the order of its places. */
typedef struct frag_address_map {
    struct frag_address_place *places;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} frag_address_map;

/* false: nothing is known at the address, and *value is left as it is. */
bool frag_address_map_get(const frag_address_map *map, uint64_t address, uint64_t *value);
/* Sets or replaces. */
void frag_address_map_set(frag_address_map *map, uint64_t address, uint64_t value);
/* Nothing happens when nothing is known at the address. */
void frag_address_map_remove(frag_address_map *map, uint64_t address);
void frag_address_map_destroy(frag_address_map *map);

#endif
