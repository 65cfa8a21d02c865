/* What to do about an out of memory, in order, with what each step can gain by the figures. */
#ifndef FRAG_EXPLAIN_ADVICE_H
#define FRAG_EXPLAIN_ADVICE_H

#include "studies/explain/verdict.h"

enum { FRAG_ADVICE_MAX = 12 };

typedef struct frag_advice_step {
    const char *action;  /* static: "smaller-batch" */
    const char *setting; /* what to set, literally: static, or in made; NULL: no setting */
    frag_amount gain;    /* at most, by the figures; not known: they do not say */
    frag_text made;      /* a setting with a number from the figures */
    frag_text text;      /* for a person */
} frag_advice_step;

void frag_advice_step_destroy(frag_advice_step *step);

typedef struct frag_advice {
    frag_advice_step steps[FRAG_ADVICE_MAX];
    size_t count;
} frag_advice;

/* Never names a setting that the text shows to be in force. message may be NULL. The caller
 * destroys the advice. */
void frag_advise(const frag_messages *messages, const frag_message *message,
                 const frag_diagnosis *diagnosis, frag_advice *advice);
void frag_advice_destroy(frag_advice *advice);

#endif
