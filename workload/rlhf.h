/* Learning from what a model answers, as PPO (Schulman et al., 2017, arXiv:1707.06347) and GRPO
 * (Shao et al., 2024, arXiv:2402.03300) have it: what is beside the model, and the loss. */
#ifndef FRAG_WORKLOAD_RLHF_H
#define FRAG_WORKLOAD_RLHF_H

#include "workload/families/family.h"

typedef struct frag_rlhf frag_rlhf;

/* The model is built; others beside it come now. It must outlive what is returned. */
frag_rlhf *frag_rlhf_create(frag_tape *tape, const frag_family *family, frag_model *model);
void frag_rlhf_destroy(frag_rlhf *rlhf);
/* eval(), until the loss is asked for. */
void frag_rlhf_rest(frag_rlhf *rlhf);
/* The loss of a batch whose ids have the answers behind them. */
frag_tensor frag_rlhf_loss(frag_tape *tape, frag_rlhf *rlhf, const frag_batch *batch);

#endif
