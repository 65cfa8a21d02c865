/* The trace of a described workload: what its program would ask of PyTorch's allocator, request by
 * request, on one GPU. The same bytes for the same description on every machine. */
#ifndef FRAG_WORKLOAD_GENERATE_H
#define FRAG_WORKLOAD_GENERATE_H

#include "workload/description/description.h"
#include "workload/tape/tape.h"

/* recording must be {0}; the caller destroys it. name: of the recording, for people. */
bool frag_workload_generate(const frag_workload *workload, const frag_tape_card *card,
                            const char *name, frag_recording *recording, frag_error *error);
/* As above, with what each request is for in kinds ({0}; the caller frees what it holds), and
 * without digests. event_count: about how many events a device has; 0: not known. */
bool frag_workload_generate_marked(const frag_workload *workload, const frag_tape_card *card,
                                   uint64_t event_count, frag_recording *recording,
                                   frag_request_kinds *kinds, frag_error *error);

#endif
