/* Local search: packings of changed orders.
 *
 * The order of a greedy packing is changed where it hurts: buffers that end too high come earlier.
 * A change is kept when the packing does not become higher. */
#ifndef FRAG_PLANNER_LOCAL_SEARCH_H
#define FRAG_PLANNER_LOCAL_SEARCH_H

#include "planner/portfolio.h"

typedef struct frag_local_search frag_local_search;

/* Begins with a packing of the portfolio: its order, offsets and height. */
frag_local_search *frag_local_search_create(frag_portfolio *portfolio);
void frag_local_search_destroy(frag_local_search *search);

/* Tries orders until the portfolio's best packing is at or below the goal, or the steps (counted
 * down) do not suffice for one more. Chance comes from a seed that is always the same. */
void frag_local_search_run(frag_local_search *search, uint64_t goal, uint64_t *steps);

#endif
