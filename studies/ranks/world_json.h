/* The ranks of a job as one JSON object. */
#ifndef FRAG_RANKS_WORLD_JSON_H
#define FRAG_RANKS_WORLD_JSON_H

#include <stdio.h>

#include "studies/ranks/world.h"

/* tried: the policies that were tried on a device of the capacity; NULL: none were. */
void frag_world_print_json(FILE *stream, const frag_world *world, const frag_policy_list *tried,
                           uint64_t capacity_bytes);

#endif
