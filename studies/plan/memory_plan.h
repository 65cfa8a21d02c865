/* What a described workload needs of a card, and what can be done where that is too much.
 *
 * Everything is measured: a setting is generated as a trace and replayed, with no limit and at the
 * memory that the card has beside its context, as a dry run of PyTorch on that card would go. */
#ifndef FRAG_PLAN_MEMORY_PLAN_H
#define FRAG_PLAN_MEMORY_PLAN_H

#include <stdio.h>

#include "studies/dryrun/dryrun_card.h"
#include "studies/plan/fix_table.h"

typedef enum frag_fits { FRAG_FITS_NO, FRAG_FITS_YES, FRAG_FITS_UNKNOWN } frag_fits;

/* A setting on the card. */
typedef struct frag_plan_trial {
    frag_fit_setting setting;
    frag_fit_result result;
    bool fits;
} frag_plan_trial;

/* What is said of a setting. */
typedef struct frag_plan_verdict {
    frag_fits fits;
    bool is_sure;
    uint64_t draws; /* seeds that were tried where lengths are drawn, and the longest alone */
    uint64_t draws_served;
    bool is_longest_served;
    bool is_workspace_split; /* with the most that libraries may take, or with nothing, alone */
    bool is_copy_split;      /* only where gradients are on the host as soon as they are there */
} frag_plan_verdict;

/* A fix alone, at the least level that fits or else the strongest. */
typedef struct frag_plan_fix {
    size_t fix;
    uint32_t level;
    frag_plan_trial trial;
} frag_plan_fix;

/* The largest that fit, with everything else as it is; 0: not even the least. */
typedef struct frag_plan_largest {
    uint64_t batch;
    uint64_t tokens;       /* none where batches are images */
    bool is_batch_limited; /* by what the generator takes, not by memory */
    bool is_tokens_limited;
} frag_plan_largest;

typedef struct frag_memory_plan {
    const char *name; /* of the model, for people; borrowed */
    frag_dryrun_gpu gpu;
    frag_fix_base base;
    uint64_t usable_bytes; /* of the card, beside its context */
    frag_plan_trial as_is;
    frag_plan_verdict verdict; /* of as_is */
    frag_fit_parts parts;      /* of as_is */
    frag_plan_fix fixes[FRAG_FIXES_MAX];
    size_t fix_count;
    frag_fix_answer answer;
    frag_plan_trial fixed; /* with the combination that was found */
    frag_plan_verdict fixed_verdict;
    frag_plan_trial steps[FRAG_FIXES_MAX];
    frag_plan_largest largest; /* as it is */
    frag_plan_largest
        largest_fixed; /* with the combination, less what makes batch and tokens smaller */
    bool has_largest_fixed;
} frag_memory_plan;

/* Memory that a plan is not sure about: kernels that are loaded later, another driver's context. */
#define FRAG_PLAN_UNSURE_BYTES (128 * FRAG_MIB)

bool frag_memory_plan_make(frag_fitter *fitter, const frag_workload *workload, const char *conf,
                           const frag_dryrun_gpu *gpu, const char *name, frag_memory_plan *plan,
                           frag_error *error);

/* The largest batch of a setting that fits on an A100 of that memory; 0: none. */
bool frag_plan_largest_batch(frag_fitter *fitter, const frag_fit_setting *setting,
                             const frag_dryrun_card *memory, uint64_t *batch, frag_error *error);

/* How much is left beside what it needs, or lacks. */
int64_t frag_plan_margin(const frag_memory_plan *plan, const frag_plan_trial *trial);

/* Is less left, or missing, than FRAG_PLAN_UNSURE_BYTES? */
bool frag_plan_is_close(const frag_memory_plan *plan, const frag_plan_trial *trial);

/* Why the verdict of a trial is not sure; NULL: it is. */
const char *frag_plan_doubt(const frag_memory_plan *plan, const frag_plan_trial *trial,
                            const frag_plan_verdict *verdict);
/* The same of a fix alone, of which lengths are drawn once. */
const char *frag_plan_fix_doubt(const frag_memory_plan *plan, const frag_plan_trial *trial);

void frag_memory_plan_print(const frag_memory_plan *plan, FILE *stream);
/* One fix of the table: what it does, what it costs, what it does here. */
void frag_memory_plan_explain(const frag_memory_plan *plan, const frag_fitter *fitter,
                              const frag_fix *fix, FILE *stream);
void frag_memory_plan_print_json(const frag_memory_plan *plan, FILE *stream);

#endif
