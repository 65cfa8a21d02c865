/* Runs of one setup on devices of many capacities.
 *
 * A run is the same on every device as long as none refuses a call. So the runs of ascending
 * capacities share a beginning: one replay goes through the trace as on a device where nothing is
 * ever refused, stops before the first call that the next capacity cannot serve, and keeps its
 * state there (replay/checkpoint.h); each run continues from it. A run gives the same as when it
 * begins at the first event, with one exception: policies that grow in a range of addresses make
 * the range as large as the device; here it is larger, so that the device refuses what else the end
 * of the range would have, and calls and addresses differ. Policies that ask for the capacity or
 * where the end of a range can decide (expandable segments of PyTorch), those from shared objects,
 * and devices that are not simulated begin each run at the first event. */
#ifndef FRAG_SIM_CAPACITY_RUNS_H
#define FRAG_SIM_CAPACITY_RUNS_H

#include "sim/run.h"

/* Where nothing is ever refused. A policy that needs a capacity to work at all is given one that no
 * run can reach. */
#define FRAG_CAPACITY_PLENTY ((uint64_t)1 << 45)

typedef struct frag_capacity_runs frag_capacity_runs;

/* setup and options are borrowed and must outlive it; the setup's device says all but the capacity.
 * The options must skip the layout, and observe nothing. */
frag_capacity_runs *frag_capacity_runs_create(const frag_run_setup *setup,
                                              const frag_run_options *options);
/* NULL is allowed. */
void frag_capacity_runs_destroy(frag_capacity_runs *runs);

/* The run on a device where nothing is ever refused, which the others then share a beginning with
 * wherever they can. The first of all runs, if it is made. */
bool frag_capacity_runs_enough(frag_capacity_runs *runs, frag_run_result *result,
                               frag_error *error);
/* Is the run on a device where nothing is refused known to be that of every capacity from its
 * largest need on? false says nothing. */
bool frag_capacity_runs_are_shared(const frag_capacity_runs *runs);
/* frag_run on a device of this capacity, where no later run has less than least_bytes, nor has this
 * one. The first few runs begin at the first event, as sharing costs a run of its own. */
bool frag_capacity_runs_try(frag_capacity_runs *runs, uint64_t capacity_bytes, uint64_t least_bytes,
                            frag_run_result *result, frag_error *error);
/* The same, from the first event on whatever went before. */
bool frag_capacity_runs_alone(frag_capacity_runs *runs, uint64_t capacity_bytes,
                              frag_run_result *result, frag_error *error);

#endif
