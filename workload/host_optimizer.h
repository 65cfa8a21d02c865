/* An optimizer on the host, as CPUOffloadOptimizer of torchao 0.14: parameters of 4,096 elements or
 * more have a copy of weight and gradient in pinned memory, where the step is made; the small ones
 * are stepped on the GPU. */
#ifndef FRAG_WORKLOAD_HOST_OPTIMIZER_H
#define FRAG_WORKLOAD_HOST_OPTIMIZER_H

#include "workload/families/family.h"

typedef struct frag_host_optimizer frag_host_optimizer;

/* The model must outlive what is returned. With offload gradients each gradient is given back when
 * backward has made it. */
frag_host_optimizer *frag_host_optimizer_create(frag_tape *tape, const frag_model *model);
/* NULL is allowed. */
void frag_host_optimizer_destroy(frag_host_optimizer *host);
/* Parameters that stay on the GPU for the step, owned by host. */
const frag_model *frag_host_optimizer_rest(const frag_host_optimizer *host);

#endif
