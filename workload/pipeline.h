/* A pipeline: each device has a stage, some of the blocks of a decoder, and microbatches go through
 * all stages (torch/distributed/pipelining: PipelineStage with ScheduleGPipe or Schedule1F1B). */
#ifndef FRAG_WORKLOAD_PIPELINE_H
#define FRAG_WORKLOAD_PIPELINE_H

#include "workload/families/family.h"

typedef struct frag_pipeline frag_pipeline;

/* What a device has of the model; all of it where the workload is no pipeline. */
frag_stage frag_pipeline_stage(const frag_workload *workload, uint64_t rank);
/* The schedule over the stage that model is. */
frag_pipeline *frag_pipeline_create(const frag_family *family, const frag_model *model);
void frag_pipeline_destroy(frag_pipeline *pipeline);
/* schedule.step(): all microbatches of a batch, forward and backward. ids: those that the first
 * stage reads, or the last learns; borrowed, 0 in the others. */
void frag_pipeline_step(frag_tape *tape, frag_pipeline *pipeline, frag_tensor ids);

#endif
