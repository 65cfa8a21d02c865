/* Steps of a recorded program: where each begins. By marks, by a request that comes again and again
 * while little is live, or, where there is neither, parts of equal length. */
#ifndef FRAG_LEAKS_STEPS_H
#define FRAG_LEAKS_STEPS_H

#include "base/text.h"
#include "sim/trace/trace.h"
#include "studies/diff/use_groups.h"

typedef enum frag_steps_by {
    FRAG_STEPS_BY_MARKS,
    FRAG_STEPS_BY_REQUESTS,
    FRAG_STEPS_BY_PARTS
} frag_steps_by;

enum { FRAG_STEPS_MIN = 5, FRAG_STEPS_PARTS = 12 };

typedef struct frag_steps {
    frag_steps_by by;
    char *name;      /* of the marks (numbers in it as "#"), or the group of the request */
    uint64_t *begin; /* the event at which each step begins, count + 1: the last is where the last
                        whole step ends */
    size_t count;    /* of whole steps */
    bool has_ended;  /* a mark ends the last whole step; otherwise another one begins there */
    const char **marks; /* of each step, in the recording; NULL: steps are not by marks */
} frag_steps;

/* mark: the name of the marks at which steps begin ("step", or "step #" for "step 1", "step 2");
 * NULL: those are found. groups: by site, or by size. false: FRAG_E_USAGE, there are too few such
 * marks; FRAG_E_INPUT: too few requests. The caller destroys. */
bool frag_steps_find(const frag_recording *recording, const frag_trace *trace,
                     const frag_use_groups *groups, const char *mark, frag_steps *steps,
                     frag_error *error);
/* As frag_steps_find with no mark named, but two marks with "step" in their name are enough, as in
 * a recording of three steps, and there are no parts. false: no steps are found. */
bool frag_steps_find_few(const frag_recording *recording, const frag_trace *trace,
                         const frag_use_groups *groups, frag_steps *steps);
/* The mark of a step (from 0), where it has another number than the step, which is counted from 1.
 * NULL: it says nothing more. */
const char *frag_steps_mark(const frag_steps *steps, uint64_t step);
void frag_steps_destroy(frag_steps *steps);

#endif
