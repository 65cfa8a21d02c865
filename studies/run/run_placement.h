/* Where the policy of a run has put every request, as MiniMalloc's CSV. */
#ifndef FRAG_RUN_RUN_PLACEMENT_H
#define FRAG_RUN_RUN_PLACEMENT_H

#include <stdio.h>

#include "allocators/registry.h"
#include "sim/run.h"

/* Runs the trace again and writes what was granted, once frag_placement_check has found that no two
 * requests that live at the same time share a byte. first is the result of the first run, which ran
 * into no OOM. After a cancelled run nothing is written. */
bool frag_run_placement_write(const frag_recording *recording, const frag_trace *trace,
                              const frag_policy_spec *policy, const frag_policy_plan *plan,
                              const frag_device_spec *device, const frag_run_options *run,
                              const frag_run_result *first, FILE *stream, frag_error *error);

#endif
