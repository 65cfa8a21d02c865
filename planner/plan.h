/* Packing buffers with known lifetimes: the planner as a whole.
 *
 * Stretches of time that share no buffer are planned apart. Each gets a portfolio of greedy
 * packings first; where those do not come down to what is needed, the exact search and a local
 * search over orders take turns with growing budgets. Budgets are counted in steps, one for each
 * buffer placed, so that a plan is a function of its input. */
#ifndef FRAG_PLANNER_PLAN_H
#define FRAG_PLANNER_PLAN_H

#include "planner/sections.h"

typedef enum frag_plan_answer {
    FRAG_PLAN_OPTIMAL,    /* proved: no packing is lower */
    FRAG_PLAN_FOUND,      /* the best found; it is under the capacity where there is one */
    FRAG_PLAN_INFEASIBLE, /* proved: no packing is under the capacity */
    FRAG_PLAN_EXHAUSTED,  /* the steps ran out before a packing under the capacity was found */
} frag_plan_answer;

#define FRAG_PLAN_STEPS_DEFAULT 1000000u

typedef struct frag_plan_options {
    /* FRAG_UNLIMITED: as low as can be. Else the search ends with a packing under the capacity, or
     * with the proof that there is none. */
    uint64_t capacity_bytes;
    uint64_t steps; /* of searches; the first packing is made whatever it takes */
    /* Asked now and then, true: the best found so far has to do. NULL: never. A plan is then no
     * longer a function of its input. */
    bool (*is_stopped)(void *context);
    void *context;
} frag_plan_options;

typedef struct frag_plan {
    frag_plan_answer answer;
    uint64_t *offsets; /* one for each buffer: the best packing found, even where it is too high */
    uint64_t height_bytes; /* its highest end */
    uint64_t load_bytes;   /* the largest sum of live sizes */
    uint64_t bound_bytes;  /* proved: no packing is lower */
    uint64_t steps;        /* taken */
    uint32_t component_count;
} frag_plan;

/* false: see frag_sections_create. Every plan has passed frag_placement_check. */
bool frag_plan_make(const frag_buffer *buffers, uint32_t count, const frag_plan_options *options,
                    frag_plan *plan, frag_error *error);
void frag_plan_destroy(frag_plan *plan);

/* "optimal", "found", "infeasible", "exhausted" */
const char *frag_plan_answer_name(frag_plan_answer answer);

#endif
