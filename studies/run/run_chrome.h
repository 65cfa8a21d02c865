/* A run as a Chrome trace, for Perfetto and chrome://tracing. */
#ifndef FRAG_RUN_RUN_CHROME_H
#define FRAG_RUN_RUN_CHROME_H

#include "allocators/registry.h"
#include "sim/run.h"
#include "traces/exchange/chrome_write.h"

/* Runs a trace again and writes it. The traces of one recording, in order. plan is NULL where the
 * policy does not plan. */
bool frag_run_chrome_add(frag_chrome_writer *writer, const frag_recording *recording,
                         const frag_trace *trace, const frag_policy_spec *policy,
                         const frag_policy_plan *plan, const frag_device_spec *device,
                         const frag_run_options *run, frag_error *error);
/* All traces have been added: writes the rest. */
void frag_run_chrome_end(frag_chrome_writer *writer);

#endif
