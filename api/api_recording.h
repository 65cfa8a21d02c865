/* Recordings behind their handle. */
#ifndef FRAG_API_API_RECORDING_H
#define FRAG_API_API_RECORDING_H

#include "api/api_call.h"
#include "traces/load.h"

struct fraglab_recording {
    frag_scope *scope; /* all of it lives there */
    frag_recording recording;
    frag_findings findings;
    bool has_columns;     /* times, notes and recorded addresses */
    char recorded_by[64]; /* "": not known */
};

/* NULL: there is no trace of that number, and error says so. */
const frag_trace *frag_recording_trace_at(const fraglab_recording *recording, size_t number,
                                          frag_error *error);

/* What lies behind each of count handles; the array lives as long as the call. */
const frag_recording *const *frag_call_recordings(const fraglab_recording *const *recordings,
                                                  size_t count);

/* A format as after --from; NULL: told by the content. */
bool frag_call_format(const char *name, frag_trace_format *format, frag_error *error);

#endif
