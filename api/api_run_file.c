/* Runs as files: what `fraglab run` writes besides its rows. */
#include <string.h>

#include "api/api_run.h"
#include "api/api_target.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "studies/run/run_chrome.h"
#include "studies/run/run_placement.h"
#include "studies/run/run_snapshot.h"

typedef struct file_call {
    frag_replay_call replay; /* of the trace being run */
    const char *format;
    const fraglab_run_file_options *given;
    fraglab_run_file_options options;
    frag_run_point point;
    frag_run_result first;
    frag_policy_plan *plan;
    FILE *driver_log; /* of the run; NULL: none is written */
    frag_target target;
} file_call;

/* A trace of the call, run once: as the row would be. */
static bool run_first(file_call *call, size_t number, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    replay->number = number;
    if (!frag_replay_call_begin(replay, error))
        return false;
    replay->device.driver_log = call->driver_log;
    return frag_replay_call_plan(replay, &call->plan, error) &&
           frag_run_count(&replay->setup, &replay->run, &call->first, error) &&
           frag_replay_call_goes_on(replay, error);
}

static void end_run(file_call *call)
{
    frag_policy_plan_destroy(call->replay.spec.ops, call->plan);
    call->plan = NULL;
}

typedef bool frag_run_writer(file_call *call, void *to, frag_error *error);

/* Every trace that is asked for, run again by write. */
static bool run_each(file_call *call, frag_run_writer *write, void *to, frag_error *error)
{
    size_t number = call->replay.number;
    bool is_all = number == FRAGLAB_ALL_TRACES;
    size_t count = is_all ? call->replay.recording->recording.trace_count : 1;
    bool ok = true;
    if (count == 0)
        return frag_fail_in(error, FRAG_E_USAGE, call->replay.recording->recording.name,
                            "the recording holds no trace");
    for (size_t i = 0; ok && i < count; i++) {
        ok = run_first(call, is_all ? i : number, error) && write(call, to, error) &&
             frag_replay_call_goes_on(&call->replay, error);
        end_run(call);
    }
    call->replay.number = number;
    return ok;
}

static bool add_to_snapshot(file_call *call, void *to, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    return frag_run_snapshot_add(to, &replay->recording->recording, replay->trace, &replay->spec,
                                 &replay->device, &replay->run, &call->first.replay, error);
}

static bool write_snapshot(void *state, FILE *stream, frag_error *error)
{
    file_call *call = state;
    frag_codec codec =
        call->target.path != NULL ? frag_codec_of_path(call->target.path) : FRAG_CODEC_PLAIN;
    frag_run_snapshot *snapshot = frag_run_snapshot_create(&call->point, "at", codec, stream);
    bool ok =
        run_each(call, add_to_snapshot, snapshot, error) && frag_run_snapshot_end(snapshot, error);
    frag_run_snapshot_destroy(snapshot);
    return ok;
}

static bool add_to_chrome(file_call *call, void *to, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    return frag_run_chrome_add(to, &replay->recording->recording, replay->trace, &replay->spec,
                               call->plan, &replay->device, &replay->run, error);
}

static bool write_chrome(void *state, FILE *stream, frag_error *error)
{
    file_call *call = state;
    frag_chrome_writer writer = {.stream = stream};
    bool ok = run_each(call, add_to_chrome, &writer, error);
    if (ok)
        frag_run_chrome_end(&writer);
    frag_chrome_writer_destroy(&writer);
    return ok;
}

static bool place(file_call *call, void *to, frag_error *error)
{
    frag_replay_call *replay = &call->replay;
    if (call->first.replay.oom.has_happened)
        return frag_fail_in(error, FRAG_E_USAGE, replay->recording->recording.name,
                            "the request of event %s could not be placed; give the run more memory",
                            FRAG_COUNT(call->first.replay.oom.event));
    return frag_run_placement_write(&replay->recording->recording, replay->trace, &replay->spec,
                                    call->plan, &replay->device, &replay->run, &call->first, to,
                                    error);
}

static bool write_placement(void *state, FILE *stream, frag_error *error)
{
    file_call *call = state;
    return run_each(call, place, stream, error);
}

/* The first run has written it. */
static bool add_to_log(file_call *call, void *to, frag_error *error)
{
    (void)call;
    (void)to;
    (void)error;
    return true;
}

static bool write_driver_log(void *state, FILE *stream, frag_error *error)
{
    file_call *call = state;
    call->driver_log = stream;
    frag_driver_log_begin(stream, false);
    return run_each(call, add_to_log, NULL, error);
}

static const struct {
    const char *name;
    frag_target_writer *write;
    bool has_point;
    const char *one_of; /* what it is, where it is about one trace */
} formats[] = {{"snapshot", write_snapshot, true, NULL},
               {"chrome", write_chrome, false, NULL},
               {"placement", write_placement, false, "placement is"},
               {"driver-log", write_driver_log, false, "driver log is"}};

/* The number of the format. */
static bool find_format(const file_call *call, size_t *found, frag_error *error)
{
    size_t count = sizeof formats / sizeof formats[0];
    for (*found = 0; *found < count; ++*found)
        if (strcmp(formats[*found].name, call->format) == 0)
            return true;
    return frag_fail_in(error, FRAG_E_USAGE, "format",
                        "'%s' is not a format for runs; expected snapshot, chrome, placement or "
                        "driver-log",
                        call->format);
}

static bool read_point(file_call *call, bool has_point, frag_error *error)
{
    const char *at = call->options.at;
    call->point = (frag_run_point){.kind = FRAG_RUN_POINT_END};
    if (at != NULL && !has_point)
        frag_fail(error, FRAG_E_USAGE, "only a snapshot ends at a point; leave it out");
    else if (at == NULL || frag_run_point_parse(at, &call->point, error))
        return true;
    return frag_error_in(error, "at");
}

static bool file_work(void *arguments, frag_error *error)
{
    file_call *call = arguments;
    size_t format = 0;
    if (!frag_call_read(call->given, &call->options, sizeof call->options,
                        "fraglab_run_file_options", error) ||
        !find_format(call, &format, error) || !read_point(call, formats[format].has_point, error))
        return false;
    if (formats[format].one_of != NULL && call->replay.number == FRAGLAB_ALL_TRACES)
        return frag_fail_in(error, FRAG_E_USAGE, "trace", "a %s that of one trace; give its number",
                            formats[format].one_of);
    call->target.may_overwrite = call->options.overwrite != 0;
    return frag_target_write(&call->target, formats[format].write, call, error);
}

int fraglab_run_write(const fraglab_context *context, const fraglab_recording *recording,
                      size_t trace, const fraglab_policy *policy,
                      const fraglab_run_options *options, const char *format, const char *path,
                      const fraglab_run_file_options *file_options, fraglab_error *error)
{
    file_call call = {.replay = frag_replay_call_of(context, recording, trace, policy, options),
                      .format = format,
                      .given = file_options,
                      .target = {.path = path}};
    return frag_call_once(file_work, &call, error);
}

int fraglab_run_write_memory(const fraglab_context *context, const fraglab_recording *recording,
                             size_t trace, const fraglab_policy *policy,
                             const fraglab_run_options *options, const char *format,
                             const fraglab_run_file_options *file_options, void **bytes,
                             size_t *count, fraglab_error *error)
{
    file_call call = {.replay = frag_replay_call_of(context, recording, trace, policy, options),
                      .format = format,
                      .given = file_options};
    int code = frag_call_once(file_work, &call, error);
    *bytes = call.target.bytes;
    *count = call.target.count;
    return code;
}
