/* The ranks of a job as one JSON object. */
#ifndef FRAG_RANKS_WORLD_JSON_H
#define FRAG_RANKS_WORLD_JSON_H

#include <stdio.h>

#include "studies/ranks/world.h"

void frag_world_print_json(FILE *stream, const frag_world *world);

#endif
