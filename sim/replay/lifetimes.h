/* From when to when does each request of a trace hold memory, seen from the policy?
 *
 * A block whose free waits for a stream is held until that is over. What that means is decided by
 * the replay alone, so the trace is replayed through a policy that only takes notes. */
#ifndef FRAG_REPLAY_LIFETIMES_H
#define FRAG_REPLAY_LIFETIMES_H

#include "base/error.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_types.h"
#include "sim/trace/trace.h"

/* The alignment that an alloc of a packing problem has in its note; name_bytes: of the note before
 * it. 1 when there is none. */
uint64_t frag_problem_alignment(const char *note, size_t *name_bytes);

/* One for each call of a policy's alloc, in that order: blocks from before the trace first. Times
 * are those of a packing problem whose times were loaded, else numbers of events. The caller frees.
 * NULL: FRAG_E_INPUT where the state at the start does not fit together. */
frag_lifetime *frag_lifetimes_find(const frag_recording *recording, const frag_trace *trace,
                                   uint64_t *count, frag_error *error);

/* As frag_replay_plan, for several policies that plan the same lifetimes. */
bool frag_lifetimes_plan(const frag_run_setup *setup, const frag_lifetime *lifetimes,
                         uint64_t count, const frag_plan_limits *limits, frag_policy_plan **plan,
                         frag_error *error);

#endif
