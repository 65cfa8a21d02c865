/* A portfolio of greedy packings: orders of buffers times ways to place them; the lowest is kept.
 */
#ifndef FRAG_PLANNER_PORTFOLIO_H
#define FRAG_PLANNER_PORTFOLIO_H

#include "planner/gap_tree.h"
#include "planner/sections.h"
#include "planner/skyline.h"

typedef enum frag_placing {
    FRAG_PLACING_SKYLINE,   /* lowest place first, whatever fits there */
    FRAG_PLACING_FIRST_FIT, /* buffer by buffer, at the lowest gap */
    FRAG_PLACING_BEST_FIT,  /* buffer by buffer, at the smallest gap */
} frag_placing;

typedef struct frag_portfolio {
    const frag_sections *sections;
    frag_gap_tree *tree;   /* NULL until needed */
    frag_skyline *skyline; /* NULL until needed */
    uint32_t *order;       /* scratch */
    uint64_t *offsets;     /* scratch */
    uint32_t *best_order;
    uint64_t *best_offsets;
    uint64_t best_height; /* UINT64_MAX: none yet */
    frag_placing best_placing;
} frag_portfolio;

/* The sections outlive the portfolio. */
frag_portfolio *frag_portfolio_create(const frag_sections *sections);
void frag_portfolio_destroy(frag_portfolio *portfolio);

/* What one packing costs: a step for each buffer on the skyline, several where gaps are searched.
 */
uint64_t frag_portfolio_steps(const frag_portfolio *portfolio, frag_placing placing);

/* Packs portfolio->order; the height. */
uint64_t frag_portfolio_place(frag_portfolio *portfolio, frag_placing placing);
/* Keeps the packing just made when it is lower than the best, or as low and wanted all the same. */
void frag_portfolio_keep(frag_portfolio *portfolio, frag_placing placing, uint64_t height,
                         bool keeps_equal);

/* The packings one after the other until one is at or below the goal or the steps (counted down) do
 * not suffice for one more; the first is made in any case. Where the steps do not suffice even for
 * that one, and buffers are many, a stacked packing is tried before it. */
void frag_portfolio_run(frag_portfolio *portfolio, uint64_t goal, uint64_t *steps);

#endif
