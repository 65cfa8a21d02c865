/* Cutting a piece out of a recording that is itself a whole recording. */
#ifndef FRAG_TRACES_CUT_H
#define FRAG_TRACES_CUT_H

#include "base/error.h"
#include "sim/trace/trace.h"
#include "traces/window.h"

typedef struct frag_cut_range {
    uint64_t first; /* index of the first event kept */
    uint64_t end;   /* index behind the last one */
} frag_cut_range;

/* Finds the events recorded from start_ns on and before end_ns. FRAG_E_USAGE when there are none,
 * or no times at all. */
typedef struct frag_cut_times {
    uint64_t start_ns;
    uint64_t end_ns;
} frag_cut_times;
bool frag_cut_find_times(const frag_trace *trace, frag_cut_times times, frag_cut_range *range,
                         frag_error *error);

/* From the mark named first, to the end of the mark named last (its END event, or the point
 * itself); last NULL: the END event that belongs to first. FRAG_E_USAGE, with the marks there are,
 * when not found. */
bool frag_cut_find_marks(const frag_recording *recording, const frag_trace *trace,
                         const char *first, const char *last, frag_cut_range *range,
                         frag_error *error);

/* The piece as a recording of its own with this one trace. What was held and live where it starts
 * becomes its prologue: segments, blocks at their recorded addresses, deferred frees. */
bool frag_cut(const frag_recording *recording, const frag_trace *trace, frag_cut_range range,
              frag_recording *piece, frag_error *error);

/* The piece that the window names, of a recording that was loaded with it. */
bool frag_cut_window(const frag_recording *recording, const frag_window *window,
                     frag_recording *piece, frag_error *error);

#endif
