/* The settings of a policy that need the least memory. */
#include <inttypes.h>
#include <string.h>

#include "api/api_run.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "studies/tune/tune.h"
#include "studies/tune/tune_json.h"

#define SETTINGS_USUAL 400u
#define SETTINGS_MAX 10000u
#define SECONDS_MAX 1000000u

struct fraglab_tuned {
    frag_scope *scope;
    const char *line;
    const char *policy;
    const char *setting;
    const char *memory_fraction; /* NULL: none */
    fraglab_tuned_trace *traces;
    size_t trace_count;
};

typedef struct tune_call {
    const fraglab_recording *const *recordings;
    size_t count;
    const fraglab_policy *policy;
    const fraglab_tune_options *given;
    fraglab_tune_options options;
    frag_replay_call replay; /* its context and device */
    frag_tune_options below;
    frag_tune_subjects subjects;
    fraglab_tuned *made;
    fraglab_tuned **tuned; /* the caller's */
} tune_call;

static bool take_options(tune_call *call, frag_error *error)
{
    const fraglab_tune_options *given = &call->options;
    if (given->goal != FRAGLAB_TUNE_PEAK && given->goal != FRAGLAB_TUNE_MIN_CAPACITY)
        return frag_fail_in(
            error, FRAG_E_USAGE, "goal",
            "%" PRId32 " is not a goal; expected FRAGLAB_TUNE_PEAK or FRAGLAB_TUNE_MIN_CAPACITY",
            given->goal);
    if (given->settings > SETTINGS_MAX)
        return frag_fail_in(error, FRAG_E_USAGE, "settings",
                            "%" PRIu64 " settings are too many; expected at most %u",
                            given->settings, SETTINGS_MAX);
    if (given->max_seconds > SECONDS_MAX)
        return frag_fail_in(error, FRAG_E_USAGE, "max_seconds",
                            "%" PRIu64 " seconds are too many; expected at most %u",
                            given->max_seconds, SECONDS_MAX);
    bool is_capacity =
        given->goal == FRAGLAB_TUNE_MIN_CAPACITY && call->replay.options.capacity_bytes != 0;
    if (is_capacity)
        return frag_fail_in(error, FRAG_E_USAGE, "capacity_bytes",
                            "the capacity is what is looked for; leave it 0");
    call->below = (frag_tune_options){
        .goal = given->goal == FRAGLAB_TUNE_PEAK ? FRAG_TUNE_PEAK : FRAG_TUNE_MIN_CAPACITY,
        .device = call->replay.device,
        .runs = given->settings != 0 ? given->settings : SETTINGS_USUAL,
        .seconds = given->max_seconds,
        .seed = given->seed,
        .has_bounds = given->with_bounds != 0,
    };
    return frag_tune_check_policy(&call->policy->spec, error) || frag_error_in(error, "policy");
}

static void keep_traces(fraglab_tuned *made, const frag_tuned *tuned)
{
    made->trace_count = tuned->subject_count;
    made->traces = frag_alloc(tuned->subject_count, sizeof *made->traces);
    for (size_t i = 0; i < tuned->subject_count; i++) {
        const frag_tune_subject *subject = &tuned->subjects[i];
        const frag_tune_outcome *before = &subject->outcomes[FRAG_TUNE_DEFAULT];
        const frag_tune_outcome *after = &subject->outcomes[FRAG_TUNE_BEST];
        made->traces[i] = (fraglab_tuned_trace){
            .name = frag_copy_text(subject->recording->name),
            .device = subject->trace->device,
            .default_bytes = frag_tune_has_bytes(before) ? before->bytes : FRAGLAB_UNLIMITED,
            .tuned_bytes = frag_tune_has_bytes(after) ? after->bytes : FRAGLAB_UNLIMITED,
            .peak_requested_bytes = frag_trace_bound_bytes(subject->trace),
            .packing_bytes = tuned->has_bounds ? subject->packing.bytes : FRAGLAB_UNLIMITED,
            .is_held_out = subject->is_held_out,
        };
    }
}

static void keep_tuned(void *user, const frag_tuned *tuned)
{
    tune_call *call = user;
    fraglab_tuned *made = frag_alloc(1, sizeof *made);
    const frag_tune_point *best = &tuned->found->points[tuned->found->best];
    const char *fraction = frag_tune_space_fraction(tuned->space, best);
    frag_text policy = {0};
    frag_text setting = {0};
    frag_text_stream *stream = frag_text_stream_open();
    frag_tune_print_json(frag_text_stream_file(stream), tuned);
    made->line = frag_text_stream_close(stream, NULL);
    frag_tune_space_label(tuned->space, best, &policy);
    frag_tune_space_setting(tuned->space, best, &setting);
    made->policy = policy.bytes;
    made->setting = setting.bytes;
    made->memory_fraction = fraction != NULL ? frag_copy_text(fraction) : NULL;
    keep_traces(made, tuned);
    call->made = made;
}

static bool tune_work(void *arguments, frag_error *error)
{
    tune_call *call = arguments;
    const frag_context *below = frag_call_context(call->replay.context);
    if (!frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_tune_options",
                        error))
        return false;
    if (call->count == 0)
        return frag_fail_in(error, FRAG_E_USAGE, "recordings",
                            "there is none; expected at least one");
    call->replay.given = call->options.device;
    if (!frag_replay_call_device(&call->replay, error) || !take_options(call, error))
        return false;
    for (size_t i = 0; i < call->count; i++)
        frag_tune_subjects_add(&call->subjects, &call->recordings[i]->recording, false);
    for (size_t i = 0; i < call->options.held_out_count; i++)
        frag_tune_subjects_add(&call->subjects, &call->options.held_out[i]->recording, true);
    frag_policy_list policies = {.specs = frag_alloc(1, sizeof *policies.specs), .count = 1};
    frag_policy_spec_copy(&call->policy->spec, &policies.specs[0]);
    bool ok = frag_tune(below, &call->below, &policies, &call->subjects, keep_tuned, call, error);
    frag_policy_list_destroy(&policies);
    frag_tune_subjects_destroy(&call->subjects);
    if (!frag_call_goes_on(below, error) || !ok)
        return false;
    FRAG_ASSERT(call->made != NULL);
    call->made->scope = frag_scope_active();
    *call->tuned = call->made;
    return true;
}

int fraglab_tune(const fraglab_context *context, const fraglab_recording *const *recordings,
                 size_t count, const fraglab_policy *policy, const fraglab_tune_options *options,
                 fraglab_tuned **tuned, fraglab_error *error)
{
    tune_call call = {.recordings = recordings,
                      .count = count,
                      .policy = policy,
                      .given = options,
                      .replay = {.context = context},
                      .tuned = tuned};
    *tuned = NULL;
    return frag_call_new(tune_work, &call, error);
}

void fraglab_tuned_destroy(fraglab_tuned *tuned)
{
    if (tuned != NULL)
        frag_scope_destroy(tuned->scope);
}

/* ---- what was found */

const char *fraglab_tuned_json(const fraglab_tuned *tuned)
{
    return tuned->line;
}

const char *fraglab_tuned_policy(const fraglab_tuned *tuned)
{
    return tuned->policy;
}

const char *fraglab_tuned_setting(const fraglab_tuned *tuned)
{
    return tuned->setting;
}

const char *fraglab_tuned_memory_fraction(const fraglab_tuned *tuned)
{
    return tuned->memory_fraction;
}

size_t fraglab_tuned_traces(const fraglab_tuned *tuned, fraglab_tuned_trace *out, size_t capacity)
{
    size_t copied = tuned->trace_count < capacity ? tuned->trace_count : capacity;
    if (out != NULL && copied > 0)
        memcpy(out, tuned->traces, copied * sizeof *out);
    return tuned->trace_count;
}
