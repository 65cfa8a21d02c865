/* Tuning: the settings of a policy that need the least memory on some traces, found by search. */
#ifndef FRAG_TUNE_TUNE_H
#define FRAG_TUNE_TUNE_H

#include "base/context.h"
#include "sim/run.h"
#include "studies/capacity/bounds.h"
#include "studies/policy_settings.h"
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
    frag_repeats repeats;     /* of the trace */
    bool is_held_out;         /* the search did not see it */
    frag_row_packing packing; /* where it was asked for */
    frag_tune_outcome outcomes[FRAG_TUNE_ROLE_COUNT];
} frag_tune_subject;

typedef struct frag_tune_subjects {
    frag_tune_subject *items; /* those that are searched on come first */
    size_t count;
    size_t capacity;
    size_t searched_count;
} frag_tune_subjects;

/* Every trace of the recording, which is borrowed; held out ones last. */
void frag_tune_subjects_add(frag_tune_subjects *subjects, const frag_recording *recording,
                            bool is_held_out);
void frag_tune_subjects_destroy(frag_tune_subjects *subjects);

typedef struct frag_tune_options {
    frag_tune_goal goal;
    frag_device_spec device;
    uint64_t runs;    /* settings to try, each on every trace; 1 or more */
    uint64_t seconds; /* the search of a policy ends after that time; 0: no limit */
    uint64_t seed;
    bool has_bounds; /* find the packings of the traces too */
} frag_tune_options;

/* What others use of the device, where the goal counts it. */
uint64_t frag_tune_others(const frag_tune_options *options);

/* What was found for one policy. */
typedef struct frag_tuned {
    frag_tune_goal goal;
    uint64_t capacity_bytes;
    uint64_t others_bytes; /* counted in every figure; see frag_tune_others */
    uint64_t seed;
    bool has_latency; /* time is modelled */
    bool has_bounds;  /* the packings of the traces are known */
    bool is_timed;    /* the time ended the search: another machine can find another setting */
    const frag_tune_space *space;
    const frag_tune_found *found;
    const frag_tune_subject *subjects;
    size_t subject_count;
} frag_tuned;

/* The policies as they come from the user: false, with the error, for one whose settings are those
 * of a recording or of the environment. */
bool frag_tune_check_policy(const frag_policy_spec *policy, frag_error *error);

/* Gets what was found for a policy, which is there during the call only. */
typedef void frag_tune_taker(void *user, const frag_tuned *tuned);

/* Tunes one policy after the other; take is called for each, but not after the context was
 * cancelled. false: there is nothing to search on, or a policy cannot replay a trace. */
bool frag_tune(const frag_context *context, const frag_tune_options *options,
               const frag_policy_list *policies, frag_tune_subjects *subjects,
               frag_tune_taker *take, void *user, frag_error *error);

/* ---- of what was found */

/* Served, so that bytes say how much it needs? */
bool frag_tune_has_bytes(const frag_tune_outcome *outcome);
/* Options that the best setting changes. */
uint32_t frag_tune_most_changed(const frag_tuned *tuned);
/* Is a point with exactly so many options the best of those with no more? */
bool frag_tune_find_step(const frag_tuned *tuned, uint32_t changed, const frag_tune_point **point);

#endif
