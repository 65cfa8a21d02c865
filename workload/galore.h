/* GaLore (Zhao et al., 2024, arXiv:2403.03507) as GaLoreAdamW of galore_torch 1.0: gradients of the
 * blocks' matrices are projected onto fewer dimensions, in which AdamW has its averages. */
#ifndef FRAG_WORKLOAD_GALORE_H
#define FRAG_WORKLOAD_GALORE_H

#include "workload/families/family.h"

typedef struct frag_galore frag_galore;

/* The model must outlive what is returned. */
frag_galore *frag_galore_create(const frag_model *model);
/* NULL is allowed. */
void frag_galore_destroy(frag_galore *galore);
void frag_galore_step(frag_tape *tape, frag_galore *galore);

#endif
