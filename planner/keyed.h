/* Buffers in the order of several keys. */
#ifndef FRAG_PLANNER_KEYED_H
#define FRAG_PLANNER_KEYED_H

#include <stdint.h>

#define FRAG_KEY_COUNT 3

typedef struct frag_keyed {
    uint64_t keys[FRAG_KEY_COUNT]; /* most important first */
    uint32_t buffer;
} frag_keyed;

/* Largest keys first; ties break by the number of the buffer, least first. */
void frag_keyed_sort(frag_keyed *items, uint32_t count);

#endif
