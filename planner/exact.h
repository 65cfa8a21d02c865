/* Exact packing: a depth-first search over canonical packings.
 *
 * A packing is canonical when its buffers, taken in order of offset, each lie as low as those
 * before them allow. Every packing can be pushed down into a canonical one, so those are enough.
 * Each step places one buffer at the least offset free for it; where a lifetime without anything
 * left across it opens, both sides are searched apart. What cannot lead to a packing under the
 * capacity is skipped; the rules are explained beside the code. Source: Moffitt, "MiniMalloc: A
 * Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023. Ours adds
 * the rules for equal buffers and for buffers that were passed over, and takes every bound back
 * step by step instead of computing it anew. */
#ifndef FRAG_PLANNER_EXACT_H
#define FRAG_PLANNER_EXACT_H

#include "planner/sections.h"

/* More are not tried: the search goes one level deeper for each buffer. */
#define FRAG_EXACT_BUFFERS_MAX 2048u

typedef enum frag_exact_answer {
    FRAG_EXACT_FOUND,
    FRAG_EXACT_NONE,      /* proved: no packing fits under the capacity */
    FRAG_EXACT_EXHAUSTED, /* the steps ran out first */
} frag_exact_answer;

typedef struct frag_exact frag_exact;

/* NULL when there are too many buffers, or none. The sections outlive the search. */
frag_exact *frag_exact_create(const frag_sections *sections);
void frag_exact_destroy(frag_exact *exact);

/* Searches offsets for all buffers so that every end is at or below the capacity. Of the buffers
 * that can lie lowest, the one that comes first by `letters` is tried first: A area, W lifetime, T
 * fullest section of what is left, three of them, each descending. *steps placements may be tried,
 * and are counted down. The answer is a function of the arguments. */
frag_exact_answer frag_exact_search(frag_exact *exact, uint64_t capacity, const char *letters,
                                    uint64_t *steps, uint64_t *offsets);

#endif
