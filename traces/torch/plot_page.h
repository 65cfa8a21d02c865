/* The drawing that trace_plot and profile_plot of PyTorch 2.0 wrote into their page: allocations
 * with size and stack, in the order in which they came and went. What was in use before the
 * recording began comes first. Addresses, streams, times and segments are not in it.
 * Source: pytorch/pytorch, torch/cuda/_memory_viz.py of 2.0, PlotWriter. */
#ifndef FRAG_TORCH_PLOT_PAGE_H
#define FRAG_TORCH_PLOT_PAGE_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/formats.h"

/* Reads the JSON of the drawing, which the page goes on behind. On failure *recording is empty. */
bool frag_plot_page_read(frag_input *input, frag_recording *recording, frag_findings *findings,
                         frag_error *error);

#endif
