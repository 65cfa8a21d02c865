/* Which frame of a call stack names it: the innermost of the user's own code; else the innermost of
 * an installed package, of generated code, of PyTorch in Python; else what C++ says of the backward
 * pass; else the innermost that says something (frame_owner.h, docs/reading-snapshots.md).
 * Different stacks that are named by one frame are one call site to a reader. */
#ifndef FRAG_TRACE_SITE_NAMES_H
#define FRAG_TRACE_SITE_NAMES_H

#include "sim/trace/trace.h"

/* The frame's index + 1; 0: the recording has no stack there. */
uint32_t frag_site_frame(const frag_recording *recording, uint32_t site);

/* Is that frame a place of the program or of a package: Python or C++ outside PyTorch and the
 * standard library? false: PyTorch's backward pass without a link to the forward pass, operators,
 * no stack. */
bool frag_site_has_place(const frag_recording *recording, uint32_t site);

/* "model.py:10 forward": the file without folders, all else as it was recorded; of PyTorch's C++
 * "backward of Mm", "autograd thread", "operator mm". */
void frag_frame_add(const frag_recording *recording, uint32_t frame, frag_text *text);

/* "forward (model.py:10)", of at most so many characters (at least 16), in UTF-8 without control
 * characters: what is cut leaves an ellipsis, the end of the file's name and its line last. */
void frag_frame_text(const frag_recording *recording, uint32_t frame, size_t characters,
                     frag_text *text);

#endif
