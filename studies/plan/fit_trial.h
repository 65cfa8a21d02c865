/* One setting of a described workload, tried: its trace is generated and replayed, and what it
 * needs of a card is kept, so that it is tried once for all cards that PyTorch treats alike. */
#ifndef FRAG_PLAN_FIT_TRIAL_H
#define FRAG_PLAN_FIT_TRIAL_H

#include "base/context.h"
#include "sim/replay/replay_types.h"
#include "workload/generate.h"

#define FRAG_PLAN_TORCH "2.9.1" /* what the generator reproduces */
#define FRAG_PLAN_RELEASE "2.9"

/* A workload, and whether its allocator has expandable segments. */
typedef struct frag_fit_setting {
    frag_workload workload;
    bool is_expandable;
} frag_fit_setting;

typedef struct frag_fit_result {
    frag_level peak;       /* with no limit */
    uint64_t needed_bytes; /* beside the context it survives on that, and not on a page less */
    uint64_t enough_bytes; /* with this and above nothing is ever refused */
    uint32_t rank; /* of several devices the one that needs the most, whose figures these are */
} frag_fit_result;

/* What is allocated at its peak, with no limit; together with rounding_bytes and caching_bytes it
 * is the peak of what is reserved. */
typedef struct frag_fit_parts {
    uint64_t bytes[FRAG_REQUEST_KIND_COUNT];
    uint64_t rounding_bytes;
    uint64_t caching_bytes; /* reserved and not allocated */
} frag_fit_parts;

/* "weights", "activations" ...: of a frag_request_kind. */
const char *frag_fit_part_name(uint32_t kind);

typedef struct frag_fitter frag_fitter;

/* conf: PYTORCH_CUDA_ALLOC_CONF of the program, NULL: none; FRAG_E_USAGE where it is wrong. */
frag_fitter *frag_fitter_create(const frag_context *context, const char *conf, frag_error *error);
void frag_fitter_destroy(frag_fitter *fitter);
/* That were generated so far: a plan takes its time for them and their replays. */
uint64_t frag_fitter_trace_count(const frag_fitter *fitter);
/* What follows may be called from so many threads. */
uint32_t frag_fitter_threads(const frag_fitter *fitter);

/* Of a long trace, what is needed is found to such a part of the peak of what is requested. Where
 * that peak is more than what may be used, what is enough is taken for what is needed. */
typedef struct frag_fit_precision {
    uint64_t parts;
    uint64_t usable_bytes; /* FRAG_UNLIMITED: what is needed is always searched for */
} frag_fit_precision;

bool frag_fit_measure(frag_fitter *fitter, const frag_fit_setting *setting,
                      const frag_tape_card *card, const frag_fit_precision *to,
                      frag_fit_result *result, frag_error *error);

/* A trial at one size of memory beside the context. */
typedef struct frag_fit_attempt {
    bool fits;
    uint64_t bound_bytes; /* with less than this it never does: the peak of what is requested */
    uint64_t most_bytes;  /* it does not need more than this; FRAG_UNLIMITED: not known */
    bool is_bound_part;   /* it was found without going through all: the peak may be more */
    uint64_t requests;    /* that were replayed for it */
} frag_fit_attempt;

bool frag_fit_try(frag_fitter *fitter, const frag_fit_setting *setting, const frag_tape_card *card,
                  uint64_t usable_bytes, frag_fit_attempt *attempt, frag_error *error);

/* Is a batch answered, of which the first token asks for the same, however many are to come? */
bool frag_fit_answers(const frag_workload *workload);

/* Where a batch is answered, which takes long, a trial of the first token of its answer: false in
 * may_fit: the whole does not fit either. true says nothing, nor does it of other workloads. */
bool frag_fit_try_first(frag_fitter *fitter, const frag_fit_setting *setting,
                        const frag_tape_card *card, uint64_t usable_bytes, bool *may_fit,
                        frag_error *error);

/* A bound that is known, without any trial; 0: none. */
uint64_t frag_fit_known_bound(frag_fitter *fitter, const frag_fit_setting *setting,
                              const frag_tape_card *card);

/* The peak of what is requested. */
bool frag_fit_bound(frag_fitter *fitter, const frag_fit_setting *setting,
                    const frag_tape_card *card, uint64_t *bound_bytes, frag_error *error);

/* Of one that was measured. */
frag_fit_parts frag_fit_divide(const frag_fitter *fitter, const frag_fit_setting *setting,
                               const frag_tape_card *card);

#endif
