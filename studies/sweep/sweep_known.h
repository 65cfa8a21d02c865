/* The runs of one trace that a sweep has made, to find one that a new run must repeat: on another
 * capacity that the policy cannot tell from its own, or with other options whose difference nothing
 * of the trace brings to light. All functions but create and destroy from any thread. */
#ifndef FRAG_SWEEP_SWEEP_KNOWN_H
#define FRAG_SWEEP_SWEEP_KNOWN_H

#include "sim/policy_engine.h"
#include "sim/run.h"

typedef struct frag_sweep_known frag_sweep_known;

/* A policy with options, on the trace. */
typedef struct frag_sweep_key {
    uint64_t number; /* of the policy in the experiment: equal numbers are equal policies */
    const frag_policy_ops *ops;
    const frag_option_value *values; /* NULL: they do not outlive the unit */
    bool has_terms;
    frag_policy_terms terms;
} frag_sweep_key;

/* The recording and the trace are borrowed. */
frag_sweep_known *frag_sweep_known_create(const frag_recording *recording, const frag_trace *trace);
void frag_sweep_known_destroy(frag_sweep_known *known);

/* Of the trace: steps of a run that need not be replayed. */
const frag_repeats *frag_sweep_known_repeats(const frag_sweep_known *known);

/* values: as resolved for the recording. lasting: the same, where they outlive the known runs, else
 * NULL. */
void frag_sweep_key_make(const frag_sweep_known *known, uint64_t number, const frag_policy_ops *ops,
                         const frag_option_value *values, const frag_option_value *lasting,
                         frag_sweep_key *key);

/* Of many runs the latest are kept. */
void frag_sweep_known_add(frag_sweep_known *known, const frag_sweep_key *key,
                          uint64_t capacity_bytes, const frag_run_result *result);

/* A run that this one must be the same as: true, and its result. */
bool frag_sweep_known_find(frag_sweep_known *known, const frag_sweep_key *key,
                           uint64_t capacity_bytes, frag_run_result *result);

#endif
