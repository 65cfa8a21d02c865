/* Skyline packing: from the bottom up, always at the lowest place that anything can take.
 *
 * The skyline is the height of what has been placed, at each section. Of all buffers left, the one
 * whose lifetime lies over the lowest stretch of it comes next, the first in the order among
 * equals. With long lifetimes first this leaves far fewer holes than placing large buffers first,
 * where allocations follow the layers of a network. */
#ifndef FRAG_PLANNER_SKYLINE_H
#define FRAG_PLANNER_SKYLINE_H

#include "planner/sections.h"

typedef struct frag_skyline frag_skyline;

frag_skyline *frag_skyline_create(const frag_sections *sections);
void frag_skyline_destroy(frag_skyline *skyline);

/* Places the buffers of the order and returns the height: the highest end. Offsets of others stay
 * as they are. Source: Moffitt, "MiniMalloc", ASPLOS 2023, its search without the way back;
 * Burke, Kendall, Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting Problem",
 * Operations Research 52, 2004. */
uint64_t frag_skyline_place(frag_skyline *skyline, const uint32_t *order, uint32_t count,
                            uint64_t *offsets);

#endif
