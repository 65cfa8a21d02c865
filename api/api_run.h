/* What every replay of the library is made of: a trace, the policy as it is for the recording, the
 * device of the caller's options. */
#ifndef FRAG_API_API_RUN_H
#define FRAG_API_API_RUN_H

#include "api/api_policy.h"
#include "api/api_recording.h"
#include "sim/device/device_description.h"
#include "sim/run.h"
#include "studies/run/run_stats.h"

typedef struct frag_replay_call {
    /* of the caller */
    const fraglab_context *context;
    const fraglab_recording *recording;
    size_t number;
    const fraglab_policy *policy;
    const fraglab_run_options *given;
    /* filled by frag_replay_call_begin */
    const frag_context *below;
    fraglab_run_options options;
    const frag_trace *trace;
    frag_policy_spec spec;
    frag_device_description gpu;
    frag_device_spec device;
    frag_run_setup setup; /* of the members above */
    frag_run_options run;
    frag_run_stats stats_at;
} frag_replay_call;

/* A call with what the caller gives. */
frag_replay_call frag_replay_call_of(const fraglab_context *context,
                                     const fraglab_recording *recording, size_t trace,
                                     const fraglab_policy *policy,
                                     const fraglab_run_options *options);
/* The device of the options alone: of the caller's members context and given count. */
bool frag_replay_call_device(frag_replay_call *call, frag_error *error);
/* false: an option, or the trace, makes no sense. */
bool frag_replay_call_begin(frag_replay_call *call, frag_error *error);
/* A plan is made for what the device has, as the command line does, and is what the run goes by;
 * the caller destroys it. NULL: the policy does not plan. */
bool frag_replay_call_plan(frag_replay_call *call, frag_policy_plan **plan, frag_error *error);
/* false: the caller's context wants the call to end, and error says so. */
bool frag_replay_call_goes_on(const frag_replay_call *call, frag_error *error);

#endif
