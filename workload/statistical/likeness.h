/* A statistical workload after a recording: sizes as often as they were requested, and with each
 * size the lifetimes that it had. */
#ifndef FRAG_STATISTICAL_LIKENESS_H
#define FRAG_STATISTICAL_LIKENESS_H

#include "base/text.h"
#include "sim/trace/trace.h"
#include "workload/description/statistical.h"

/* By how much the peak of live bytes of what is generated may miss that of the recording. */
#define FRAG_FIT_TOLERANCE 0.01

typedef struct frag_fit_options {
    uint32_t pieces;   /* phases of equally many requests; 0: by marks, where there are any */
    uint64_t requests; /* 0: as many as in the recording */
    uint64_t seed;
} frag_fit_options;

/* description must be {0}; the caller destroys it in any case. *ratio: the peak of live bytes of
 * what it generates, by that of the trace. FRAG_E_INPUT: the trace has no requests, or too many. */
bool frag_statistical_fit(const frag_recording *recording, const frag_trace *trace,
                          const frag_fit_options *options, frag_statistical *description,
                          double *ratio, frag_error *error);

/* A workload file that says the same, of a description that was fitted. */
void frag_statistical_write(const frag_statistical *description, frag_text *text);

#endif
