/* A recording that begins in the middle of a program begins with memory held. On a device that is
 * too small for that, no request fails: the state at the start does not fit, whatever follows. */
#ifndef FRAG_EXPLAIN_EXPLAIN_START_H
#define FRAG_EXPLAIN_EXPLAIN_START_H

#include "sim/trace/trace.h"
#include "studies/explain/advice.h"

typedef struct frag_explain_start {
    bool is_too_large;
    uint64_t held_bytes;    /* by the recorded allocator; what is live where it does not say */
    uint64_t live_bytes;    /* in blocks of the program */
    uint64_t missing_bytes; /* 0: held_bytes would fit, but not laid out anew */
} frag_explain_start;

/* Did this event, where memory ran out, belong to the state at the start? allowed_bytes: what the
 * program may hold. */
void frag_explain_start_find(const frag_trace *trace, uint64_t failed, uint64_t allowed_bytes,
                             frag_explain_start *start);

/* Of a start that is too large. The caller destroys both. */
void frag_explain_start_diagnose(const frag_explain_start *start, uint64_t allowed_bytes,
                                 frag_diagnosis *diagnosis);
void frag_explain_start_advise(const frag_explain_start *start, frag_advice *advice);

#endif
