/* The page of a report. */
#include "api/api_run.h"
#include "api/api_target.h"
#include "report/report.h"

typedef struct report_call {
    const char *const *paths;
    size_t path_count;
    const fraglab_report_options *given;
    frag_replay_call replay; /* its context and device */
    frag_policy_list policies;
    frag_report_wishes wishes;
    frag_target target;
} report_call;

static bool write_page(void *state, FILE *stream, frag_error *error)
{
    report_call *call = state;
    bool ok = frag_report_write(&call->wishes, stream, error);
    return frag_replay_call_goes_on(&call->replay, error) && ok;
}

static bool report_work(void *arguments, frag_error *error)
{
    report_call *call = arguments;
    fraglab_report_options options;
    if (!frag_call_read(call->given, &options, sizeof options, "fraglab_report_options", error) ||
        !frag_replay_call_device(&call->replay, error) ||
        !frag_call_format(options.format, &call->wishes.format, error) ||
        !frag_call_policies(call->replay.below, options.policies, options.policy_count,
                            &call->policies, error))
        return false;
    if (options.policy_count > 0)
        call->wishes.policies = &call->policies;
    call->wishes.recordings = frag_call_recordings(options.recordings, options.recording_count);
    call->wishes.recording_count = options.recording_count;
    if (call->path_count == 0 && options.recording_count == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "paths",
                            "there is nothing to show; give a path or a recording");
    call->wishes.context = call->replay.below;
    call->wishes.operands = call->paths;
    call->wishes.operand_count = call->path_count;
    call->wishes.device = &call->replay.device;
    call->wishes.is_oom_skipped = call->replay.options.skip_oom != 0;
    call->wishes.has_bounds = call->replay.options.with_bounds != 0;
    call->wishes.title = options.title;
    call->wishes.command = options.command != NULL ? options.command : "a program with libfraglab";
    call->target.may_overwrite = options.overwrite != 0;
    return frag_target_write(&call->target, write_page, call, error);
}

int fraglab_report_write(const fraglab_context *context, const char *const *paths,
                         size_t path_count, const fraglab_run_options *run_options,
                         const fraglab_report_options *options, const char *path,
                         fraglab_error *error)
{
    report_call call = {.paths = paths,
                        .path_count = path_count,
                        .given = options,
                        .replay = {.context = context, .given = run_options},
                        .target = {.path = path}};
    return frag_call_once(report_work, &call, error);
}

int fraglab_report_write_memory(const fraglab_context *context, const char *const *paths,
                                size_t path_count, const fraglab_run_options *run_options,
                                const fraglab_report_options *options, void **bytes, size_t *count,
                                fraglab_error *error)
{
    report_call call = {.paths = paths,
                        .path_count = path_count,
                        .given = options,
                        .replay = {.context = context, .given = run_options}};
    int code = frag_call_once(report_work, &call, error);
    *bytes = call.target.bytes;
    *count = call.target.count;
    return code;
}
