/* What a fix starts from, and where the lines that make it stand. */
#ifndef FRAG_PLAN_FIX_BASE_H
#define FRAG_PLAN_FIX_BASE_H

#include "studies/plan/fit_trial.h"

typedef enum frag_fix_place {
    FRAG_FIX_ENVIRONMENT,
    FRAG_FIX_TRANSFORMERS, /* TrainingArguments */
    FRAG_FIX_TORCH,
    FRAG_FIX_PLACE_COUNT
} frag_fix_place;

typedef struct frag_fix_base {
    frag_fit_setting setting;
    frag_tape_card card;
    const char *conf; /* NULL: none */
} frag_fix_base;

/* The class of the optimizer and what it is given besides parameters, as another optimizer around
 * it takes them; not of galore-adamw. */
const char *frag_fix_optimizer_class(const frag_workload *workload);

#endif
