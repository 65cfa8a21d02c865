/* What a reader makes of bytes, in one line: for tests whose answers are pinned. */
#ifndef FRAG_SUPPORT_TOLD_LOAD_H
#define FRAG_SUPPORT_TOLD_LOAD_H

#include "base/text.h"
#include "traces/load.h"

/* Appends the error with its place and sentence, or a sum of all that was read, statistics and
 * findings included, and the end of the line. Words of zstd are left out. */
void told_load(frag_text *out, const void *bytes, size_t count, const frag_load_options *options);

#endif
