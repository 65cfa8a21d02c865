/* A sweep that several processes work on. Rank 0 reads the output file, hands the units out one by
 * one, as their costs differ much, and writes the rows; it replays too. The others load the same
 * experiment and traces themselves. */
#ifndef FRAG_SWEEP_SWEEP_RANKS_H
#define FRAG_SWEEP_SWEEP_RANKS_H

#include "cluster/rank_module.h"
#include "studies/sweep/sweep_order.h"

/* Rank 0's view of the others. */
typedef struct frag_sweep_crew frag_sweep_crew;

frag_sweep_crew *frag_sweep_crew_create(const frag_ranks *ranks);

/* Waits until all others have said what they are going to work on. false: one of them cannot, or
 * has another experiment or build; error names it. */
bool frag_sweep_crew_gather(frag_sweep_crew *crew, const frag_sweep_job *job, frag_error *error);

/* Works through the order, on the threads of the job's context and on the others. false:
 * FRAG_E_SYSTEM, nothing was done. What goes wrong later is the order's error. */
bool frag_sweep_crew_work(frag_sweep_crew *crew, frag_sweep_job *job, frag_sweep_order *order,
                          frag_error *error);

/* Sends the others home, whatever they do, waits until they went, and frees. */
void frag_sweep_crew_dismiss(frag_sweep_crew *crew);

/* What another rank than 0 does until it is sent home. problem: why it cannot take part; NULL: it
 * can. */
void frag_sweep_follow(const frag_ranks *ranks, frag_sweep_job *job, const frag_error *problem);

/* One process alone. */
void frag_sweep_work_alone(frag_sweep_job *job, frag_sweep_order *order);

#endif
