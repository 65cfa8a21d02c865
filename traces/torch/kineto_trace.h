/* Traces of PyTorch's profiler (Kineto): Chrome traces with an event "[memory]" for each piece of
 * memory that was given out or taken back, where it ran with profile_memory=True, and
 * "[OutOfMemory]" for each request that failed. Sizes are those of the allocator's blocks.
 * Source: pytorch/pytorch, torch/csrc/autograd/profiler_kineto.cpp.
 *
 * There is a trace for each device. Memory of the CPU is read where there is no other. */
#ifndef FRAG_TORCH_KINETO_TRACE_H
#define FRAG_TORCH_KINETO_TRACE_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/formats.h"

/* Does it begin like a Chrome trace: an array of objects, or an object with a member that only
 * such a trace has? */
bool frag_kineto_is_like(const unsigned char *bytes, size_t count);

/* Takes memory in proportion to the events of memory. FRAG_E_INPUT with the line; what does not fit
 * together is counted in findings. On failure *recording is empty. */
bool frag_kineto_read(frag_input *input, frag_recording *recording, frag_findings *findings,
                      frag_error *error);

#endif
