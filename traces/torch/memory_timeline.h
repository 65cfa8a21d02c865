/* Memory timelines of PyTorch's profiler: profiler.export_memory_timeline("NAME.raw.json.gz"). A
 * JSON array of events [time in ns, action, bytes, category] of one device, in the order of time:
 *
 *   action    1 was there before (time -1), 2 created, 3 written to (twice: its category before,
 *             with minus bytes, and after), 4 destroyed (minus bytes)
 *   category  0 parameter, 1 optimizer state, 2 input, 3 temporary, 4 activation, 5 gradient,
 *             6 autograd detail, 7 not known
 *
 * Which creation a destruction ends is not in it: traces/exchange/size_pairs.h. The other two files
 * that export_memory_timeline writes hold no events: sums over time (.json) and a picture (.html).
 * Source: pytorch/pytorch, torch/profiler/_memory_profiler.py. */
#ifndef FRAG_TORCH_MEMORY_TIMELINE_H
#define FRAG_TORCH_MEMORY_TIMELINE_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/formats.h"

/* Does it begin like the events, or like the sums, which the reader refuses with what to do? */
bool frag_memory_timeline_is_like(const unsigned char *bytes, size_t count);
/* Does it begin like the web page with the picture? */
bool frag_memory_timeline_is_picture(const unsigned char *bytes, size_t count);

/* FRAG_E_INPUT with the offset, or the number of the event. On failure *recording is empty. */
bool frag_memory_timeline_read(frag_input *input, frag_recording *recording,
                               frag_findings *findings, frag_error *error);

#endif
