/* DistributedDataParallel over a model: what its reducer keeps on each device (torch/nn/parallel/
 * distributed.py, torch/csrc/distributed/c10d/reducer.cpp). */
#ifndef FRAG_WORKLOAD_DDP_H
#define FRAG_WORKLOAD_DDP_H

#include "workload/families/family.h"

typedef struct frag_ddp frag_ddp;

/* DistributedDataParallel(model), on so many devices: what is compared and sent comes and goes; the
 * first buckets stay, one for all gradients of a type. */
frag_ddp *frag_ddp_create(frag_tape *tape, const frag_model *model, uint64_t devices);
void frag_ddp_destroy(frag_ddp *ddp); /* buckets stay */
/* Before each forward pass: buckets by the order in which gradients came, once they have; buffers
 * of the first rank. */
void frag_ddp_begin_forward(frag_tape *tape, frag_ddp *ddp);

/* ZeroRedundancyOptimizer (ZeRO 1): the part of the parameters that the optimizer of one of so many
 * devices steps over. The largest go first, each to the device that has least. Its parameters and
 * their forms are the caller's to free. */
typedef struct frag_partition {
    uint64_t rank;
    uint64_t devices;
} frag_partition;
frag_model frag_ddp_partition(const frag_tape *tape, const frag_model *model,
                              const frag_partition *of);

#endif
