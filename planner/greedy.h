/* Greedy packing: buffers in some order, each at a gap that is free during its whole life. */
#ifndef FRAG_PLANNER_GREEDY_H
#define FRAG_PLANNER_GREEDY_H

#include "planner/gap_tree.h"

/* Orders are words of letters, most important first, each descending: A area (size times time), C
 * sections, L start, O number of buffers live at the same time, T fullest section, U end, W time, Z
 * size; lower case: ascending. Ties break by the number of the buffer. */
void frag_greedy_sort(const frag_sections *sections, const char *letters, uint32_t *order,
                      uint32_t count);

/* Places the buffers in the order and returns the height: the highest end. The tree is cleared
 * first; it must have room for all sections. Offsets of buffers outside the order stay as they
 * are. Source: the greedy planners of TensorFlow Lite (simple_memory_arena.cc) and XLA
 * (GlobalDecreasingSizeBestFitHeap). */
uint64_t frag_greedy_place(const frag_sections *sections, const uint32_t *order, uint32_t count,
                           frag_gap_choice choice, frag_gap_tree *tree, uint64_t *offsets);

#endif
