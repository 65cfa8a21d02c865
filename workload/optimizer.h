/* Optimizers of torch.optim over the tape: state that the first step makes, temporaries of each. */
#ifndef FRAG_WORKLOAD_OPTIMIZER_H
#define FRAG_WORKLOAD_OPTIMIZER_H

#include "workload/families/family.h"

typedef struct frag_optimizer_state frag_optimizer_state;

frag_optimizer_state *frag_optimizer_create(const frag_model *model);
void frag_optimizer_destroy(frag_optimizer_state *state);
void frag_optimizer_step(frag_tape *tape, frag_optimizer_state *state);
void frag_optimizer_zero_gradients(frag_tape *tape, frag_optimizer_state *state);

#endif
