/* Numbers that are drawn by a distribution: whole-number arithmetic alone, so that a seed gives the
 * same ones on every machine. */
#ifndef FRAG_STATISTICAL_DRAW_H
#define FRAG_STATISTICAL_DRAW_H

#include "workload/description/description.h"

/* The next number, at most max; FRAG_UNLIMITED where the draw has that. */
uint64_t frag_draw_next(const frag_draw *draw, uint64_t max, uint64_t *random);

/* A number below limit, which is not 0. */
uint64_t frag_draw_below(uint64_t limit, uint64_t *random);

/* The span's value at a place of count: from its first to its last. */
uint64_t frag_draw_at(const frag_draw *span, uint64_t place, uint64_t count);

#endif
