/* The order of a sweep: units are handed out in order of the rows, come back in any order, and
 * their rows are written in order. Handing out waits when too much has come back behind a unit that
 * has not. All functions from any thread. */
#ifndef FRAG_SWEEP_SWEEP_ORDER_H
#define FRAG_SWEEP_SWEEP_ORDER_H

#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_unit.h"

typedef struct frag_sweep_order frag_sweep_order;

typedef enum frag_sweep_take {
    FRAG_SWEEP_TAKEN,
    FRAG_SWEEP_LATER, /* only when not asked to wait */
    FRAG_SWEEP_OVER   /* all were handed out, or the sweep ends early */
} frag_sweep_take;

/* window: units that may be under way at a time. job and file are borrowed. */
frag_sweep_order *frag_sweep_order_create(frag_sweep_job *job, frag_sweep_file *file,
                                          size_t window);

/* The unit's recording is held for the caller, who lets it go. */
frag_sweep_take frag_sweep_order_take(frag_sweep_order *order, bool may_wait,
                                      frag_sweep_unit *unit);

/* Takes the rows over. Rows behind a unit that is not whole are not written. */
void frag_sweep_order_give(frag_sweep_order *order, uint64_t number, frag_sweep_rows *rows);

/* Nothing more is handed out or written; the first error counts. */
void frag_sweep_order_fail(frag_sweep_order *order, const frag_error *error);

/* Is everything that was handed out back, or not waited for because the sweep ends early? */
bool frag_sweep_order_is_done(frag_sweep_order *order);

typedef struct frag_sweep_totals {
    uint64_t rows;
    uint64_t replayed;
} frag_sweep_totals;

/* Frees. false: the sweep's error. */
bool frag_sweep_order_finish(frag_sweep_order *order, frag_sweep_totals *totals, frag_error *error);

#endif
