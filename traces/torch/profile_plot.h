/* Snapshots that profile_plot of torch.cuda._memory_viz makes of what PyTorch's profiler saw of
 * tensors: entries have a 'category', and there is one made-up segment for each device, from its
 * lowest address to its highest. So they are read for their requests alone.
 * Source: pytorch/pytorch, torch/cuda/_memory_viz.py, _profile_to_snapshot. */
#ifndef FRAG_TORCH_PROFILE_PLOT_H
#define FRAG_TORCH_PROFILE_PLOT_H

#include "traces/builder.h"
#include "traces/formats.h"
#include "traces/torch/history/snapshot_parse.h"
#include "traces/torch/snapshot_sites.h"

bool frag_profile_plot_is_one(const frag_snapshot *snapshot);

/* Adds the trace of a device: what was there before the profiler was started comes first. */
void frag_profile_plot_emit(const frag_snapshot *snapshot, uint32_t ordinal,
                            frag_snapshot_sites *sites, frag_builder *builder,
                            frag_findings *findings);

#endif
