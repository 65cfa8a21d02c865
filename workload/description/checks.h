/* What the files that check a workload share: for check.c and check_*.c alone. */
#ifndef FRAG_DESCRIPTION_CHECKS_H
#define FRAG_DESCRIPTION_CHECKS_H

#include "workload/description/description.h"

/* Is it of llama and its like, as far as GaLore, fp8 and several devices are described for them:
 * not glm, cohere and latent attention? */
bool frag_network_is_llama(const frag_network *of);
/* What several devices are described for. */
bool frag_workload_check_parallel(const frag_workload *workload, frag_error *error);
/* Another attention than the usual one. */
bool frag_workload_check_attention(const frag_workload *workload, frag_error *error);
/* Offload, checkpoints and masks. */
bool frag_workload_check_memory(const frag_workload *workload, frag_error *error);

#endif
