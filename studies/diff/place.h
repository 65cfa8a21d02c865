/* A place in a trace as a person names it: an event, some events, or a mark. */
#ifndef FRAG_DIFF_PLACE_H
#define FRAG_DIFF_PLACE_H

#include "studies/diff/site_uses.h"

typedef struct frag_place_source {
    const frag_recording *recording;
    const frag_trace *trace; /* one of the recording's, with an event at least */
} frag_place_source;

/* "peak": the peak of requested bytes; "end"; "N": right after that event; the peak in the events
 * "A..B", of the mark "NAME", or from the N-th mark of a name, "NAME[N]", up to the next. false:
 * there is no such place, a usage error. */
bool frag_place_find(const frag_place_source *source, const char *at, frag_use_range *range,
                     frag_error *error);

#endif
