/* fraglab run --placement: where the policy has put every request, as MiniMalloc's CSV. */
#ifndef FRAG_RUN_RUN_PLACEMENT_H
#define FRAG_RUN_RUN_PLACEMENT_H

#include "cli/inputs.h"
#include "sim/rows/result.h"

#define FRAG_PLACEMENT_OPTION                                                                      \
    {                                                                                              \
        "placement", "FILE",                                                                       \
            .writes = "placement", .scope = FRAG_OF_ONE_RUN,                                       \
            .help =                                                                                \
                "write where each request was placed there, as MiniMalloc's CSV with a column "    \
                "offset (one trace, one policy); exit 1 if a request could not be placed"          \
    }

typedef struct frag_run_placement frag_run_placement;

/* *placement is NULL when none is asked for. */
bool frag_run_placement_open(const frag_arguments *arguments, const frag_policy_list *policies,
                             frag_run_placement **placement, frag_error *error);
/* Runs the trace again and writes what was granted, once frag_placement_check has found that no two
 * requests that live at the same time share a byte. Nothing is written after an OOM. */
bool frag_run_placement_add(frag_run_placement *placement, const frag_recording *recording,
                            const frag_trace *trace, const frag_policy_spec *policy,
                            const frag_policy_plan *plan, const frag_device_spec *device,
                            const frag_run_result *first, frag_error *error);
/* Puts the file in place if it is whole; frees. */
bool frag_run_placement_close(frag_run_placement *placement, frag_error *error);

#endif
