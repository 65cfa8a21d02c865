/* fraglab run --chrome: the run as a file for Perfetto and chrome://tracing. */
#ifndef FRAG_RUN_RUN_CHROME_H
#define FRAG_RUN_RUN_CHROME_H

#include "cli/inputs.h"

#define FRAG_CHROME_OPTION                                                                         \
    {                                                                                              \
        "chrome", "FILE",                                                                          \
            .writes = "Chrome trace", .scope = FRAG_OF_ONE_DEVICE,                                 \
            .help =                                                                                \
                "write the run there as a Chrome trace, for Perfetto: counters of requested, "     \
                "allocated, active and reserved bytes, slices for requests, segments and device "  \
                "calls (one trace, one policy; a microsecond stands for an event)"                 \
    }

typedef struct frag_run_chrome frag_run_chrome;

/* *chrome is NULL when none is asked for. */
bool frag_run_chrome_open(const frag_arguments *arguments, const frag_policy_list *policies,
                          frag_run_chrome **chrome, frag_error *error);
/* Runs a trace again and writes it. The traces of one recording, in order. plan is NULL where the
 * policy does not plan. */
bool frag_run_chrome_add(frag_run_chrome *chrome, const frag_recording *recording,
                         const frag_trace *trace, const frag_policy_spec *policy,
                         const frag_policy_plan *plan, const frag_device_spec *device,
                         const frag_run_options *run, frag_error *error);
/* All of the recording has been added. */
void frag_run_chrome_end(frag_run_chrome *chrome);
/* Puts the file in place if it is whole; frees. */
bool frag_run_chrome_close(frag_run_chrome *chrome, frag_error *error);

#endif
