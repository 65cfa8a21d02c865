/* The trace of a described workload: what its program would ask of PyTorch's allocator, request by
 * request, on one GPU. The same bytes for the same description on every machine. */
#ifndef FRAG_WORKLOAD_GENERATE_H
#define FRAG_WORKLOAD_GENERATE_H

#include "workload/description/description.h"
#include "workload/tape/tape.h"

/* recording must be {0}; the caller destroys it. name: of the recording, for people. */
bool frag_workload_generate(const frag_workload *workload, const frag_tape_card *card,
                            const char *name, frag_recording *recording, frag_error *error);
/* About how many events a device will have; 0: not known. */
typedef struct frag_event_room {
    frag_event *events; /* memory for so many, of a trace that is over: it is taken over. Or NULL */
    uint64_t count;
} frag_event_room;

/* As above, with what each request is for in kinds ({0}; the caller frees what it holds), and
 * without digests. limit_bytes: with more live, steps can be left out. Traces of one device are
 * shortened (sim/trace/trace.h), and kinds are those of the allocs in it. */
bool frag_workload_generate_marked(const frag_workload *workload, const frag_tape_card *card,
                                   frag_event_room room, uint64_t limit_bytes,
                                   frag_recording *recording, frag_request_kinds *kinds,
                                   frag_error *error);

#endif
