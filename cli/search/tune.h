/* What fraglab tune found for one policy, between the search (tune.c) and its print. */
#ifndef FRAG_SEARCH_TUNE_H
#define FRAG_SEARCH_TUNE_H

#include <stdio.h>

#include "cli/command.h"
#include "sim/run.h"
#include "studies/capacity/bounds.h"
#include "studies/tune/tune_front.h"
#include "studies/tune/tune_space.h"

typedef enum frag_tune_goal {
    FRAG_TUNE_PEAK,        /* the least peak of reserved bytes, after no OOM */
    FRAG_TUNE_MIN_CAPACITY /* the least capacity that survives */
} frag_tune_goal;

/* One setting on one trace. */
typedef struct frag_tune_outcome {
    bool is_done;
    bool is_refused;  /* by the policy */
    bool is_oom;      /* MIN_CAPACITY: no capacity is enough */
    bool is_given_up; /* MIN_CAPACITY: it needs more than bytes */
    uint64_t oom_event;
    uint64_t bytes; /* peak reserved, or capacity */
    uint64_t calls; /* for memory and address space; MIN_CAPACITY: not counted */
    double time_ns; /* of these calls, as modelled */
    frag_error error;
} frag_tune_outcome;

/* The settings that the tables show for every trace. */
typedef enum frag_tune_role {
    FRAG_TUNE_DEFAULT,
    FRAG_TUNE_BEST,
    FRAG_TUNE_ADVISED, /* where the space has it */
    FRAG_TUNE_ROLE_COUNT
} frag_tune_role;

typedef struct frag_tune_subject {
    const frag_recording *recording; /* borrowed, like trace */
    const frag_trace *trace;
    bool is_held_out;         /* the search did not see it */
    frag_row_packing packing; /* with --bounds */
    frag_tune_outcome outcomes[FRAG_TUNE_ROLE_COUNT];
} frag_tune_subject;

typedef struct frag_tuned {
    const frag_arguments *arguments;
    frag_tune_goal goal;
    uint64_t capacity_bytes;
    uint64_t seed;
    bool has_latency; /* time is modelled */
    bool has_bounds;  /* the packings of the traces are known */
    bool is_timed;    /* --seconds ended the search: another machine can find another setting */
    const frag_tune_space *space;
    const frag_tune_found *found;
    const frag_tune_subject *subjects;
    size_t subject_count;
} frag_tuned;

void frag_tune_print_table(FILE *stream, const frag_tuned *tuned);
void frag_tune_print_json(FILE *stream, const frag_tuned *tuned);

#endif
