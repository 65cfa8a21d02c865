/* Web pages that PyTorch writes and that hold a recording: those of torch.cuda._memory_viz
 * (trace_plot, segment_plot, profile_plot; python -m torch.cuda._memory_viz).
 *
 * Since 2.1 such a page holds the pickled snapshot in base64, with one to three zero bytes behind
 * it; MemoryViz.js, which the page loads, reads it. Before that it held the data of the drawing
 * (traces/torch/plot_page.h). Source: pytorch/pytorch, torch/cuda/_memory_viz.py. */
#ifndef FRAG_TORCH_SNAPSHOT_PAGE_H
#define FRAG_TORCH_SNAPSHOT_PAGE_H

#include "base/error.h"
#include "base/file.h"

typedef enum frag_page_kind {
    FRAG_PAGE_SNAPSHOT, /* a snapshot in base64 */
    FRAG_PAGE_PLOT      /* the data of a drawing, JSON */
} frag_page_kind;

/* Does it begin like a page of _memory_viz? */
bool frag_snapshot_page_is_like(const unsigned char *bytes, size_t count);

/* Goes to what the page holds: behind the quotation mark of a snapshot, or to the JSON of a plot.
 * FRAG_E_INPUT: neither is there. */
bool frag_snapshot_page_find(frag_input *input, frag_page_kind *kind, frag_error *error);

/* The snapshot at the place that was found, without base64 and zeros, as memory of the caller's.
 * FRAG_E_INPUT with the offset in the page. */
bool frag_snapshot_page_decode(frag_input *input, unsigned char **bytes, size_t *count,
                               frag_error *error);

#endif
