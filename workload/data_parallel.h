/* nn.DataParallel: one process, whose first device has the model. Each pass copies it to the others
 * and gives each a part of the batch; what they make comes back to the first, and so do gradients
 * (torch/nn/parallel/data_parallel.py, comm.py). */
#ifndef FRAG_WORKLOAD_DATA_PARALLEL_H
#define FRAG_WORKLOAD_DATA_PARALLEL_H

#include "workload/families/family.h"

typedef struct frag_data_parallel frag_data_parallel;

/* As one of the devices sees it. model: on others than the first without storage. */
frag_data_parallel *frag_data_parallel_create(frag_tape *tape, const frag_family *family,
                                              const frag_model *model, uint64_t rank);
void frag_data_parallel_destroy(frag_data_parallel *parallel);
/* model(ids, labels=ids).loss.mean(). ids are on the first device; on others what comes back stands
 * for their part of it. */
frag_tensor frag_data_parallel_loss(frag_tape *tape, frag_data_parallel *parallel,
                                    const frag_batch *batch);
/* loss.backward() */
void frag_data_parallel_backward(frag_tape *tape, frag_data_parallel *parallel, frag_tensor loss);

#endif
