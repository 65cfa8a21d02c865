/* Stacked packing: each buffer on top of everything placed before it that is live with it.
 *
 * Gaps are never filled, so it takes a fraction of the time of other packings. Longer lifetimes
 * come first, by powers of two, and of those earlier ones: where lifetimes are nested each buffer
 * then lies on those it is nested in, and the packing is as low as the load. The steps of a
 * training are nearly so. */
#ifndef FRAG_PLANNER_STACKED_H
#define FRAG_PLANNER_STACKED_H

#include "planner/sections.h"

/* Places all buffers until one would end above the limit, and notes their order. false: one would;
 * order and offsets then are undefined. *height: the highest end. */
bool frag_stacked_place(const frag_sections *sections, uint64_t limit, uint32_t *order,
                        uint64_t *offsets, uint64_t *height);

#endif
