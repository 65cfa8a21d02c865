/* The trace of a statistical workload: the same bytes for the same description everywhere. */
#ifndef FRAG_STATISTICAL_PHASES_H
#define FRAG_STATISTICAL_PHASES_H

#include "sim/trace/trace.h"
#include "workload/description/statistical.h"

/* recording must be {0}; the caller destroys it. name: of the recording, for people. */
bool frag_statistical_generate(const frag_statistical *description, const char *name,
                               frag_recording *recording, frag_error *error);

#endif
