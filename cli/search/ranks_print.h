/* The ranks of a job for people. */
#ifndef FRAG_SEARCH_RANKS_PRINT_H
#define FRAG_SEARCH_RANKS_PRINT_H

#include <stdio.h>

#include "studies/ranks/world.h"

/* device: of the replays. rows: how many lines of each table at most. */
void frag_world_print(FILE *stream, const frag_world *world, const frag_device_spec *device,
                      uint64_t rows);

#endif
