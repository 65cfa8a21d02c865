/* Is a placement right? The judge of every planner: it shares no code with them. */
#ifndef FRAG_PLANNER_PLACEMENT_H
#define FRAG_PLANNER_PLACEMENT_H

#include "planner/sections.h"

/* Sweeps through time with the live buffers in order of offset, and compares each with its
 * neighbours when it begins. false, FRAG_E_INPUT: two buffers share a byte at some time, one is not
 * aligned, or one ends above the capacity (FRAG_UNLIMITED: none); the sentence names them by their
 * places in the array, from 0. *height becomes the highest end. */
bool frag_placement_check(const frag_buffer *buffers, const uint64_t *offsets, uint32_t count,
                          uint64_t capacity, uint64_t *height, frag_error *error);

#endif
