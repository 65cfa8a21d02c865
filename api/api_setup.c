/* The caller's options of a replay as what lies below takes them. */
#include "api/api_run.h"

#include <string.h>

#include "base/bytes.h"
#include "studies/device_settings.h"
#include "studies/policy_settings.h"

#define OTHERS_BYTES_MAX ((uint64_t)1 << 46)

static bool take_rule(frag_replay_call *call, frag_error *error)
{
    static const struct {
        const char *name;
        frag_address_rule rule;
    } rules[] = {{"lowest", FRAG_ADDRESS_LOWEST},
                 {"bump", FRAG_ADDRESS_BUMP},
                 {"recorded", FRAG_ADDRESS_RECORDED}};
    const char *name = call->options.address_rule;
    for (size_t i = 0; name != NULL && i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(name, rules[i].name) == 0) {
            call->device.is_rule_given = true;
            call->device.address_rule = rules[i].rule;
        }
    if (name == NULL || call->device.is_rule_given)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "address_rule",
                        "'%s' is not an address rule; expected lowest, bump or recorded", name);
}

static bool take_device(frag_replay_call *call, frag_error *error)
{
    const frag_device_settings settings = {.gpu = call->options.gpu,
                                           .latency = call->options.latency,
                                           .has_capacity = call->options.capacity_bytes != 0,
                                           .gpu_option = "gpu",
                                           .latency_hint = "as latency"};
    if (!frag_device_settings_read(&settings, call->below, &call->device, &call->gpu, error) ||
        !take_rule(call, error))
        return false;
    if (call->options.capacity_bytes != 0)
        call->device.capacity_bytes = call->options.capacity_bytes;
    if (call->options.used_by_others_bytes > OTHERS_BYTES_MAX)
        return frag_fail_in(error, FRAG_E_USAGE, "used_by_others_bytes",
                            "more than 64 TiB cannot be used by others");
    call->device.used_by_others_bytes += call->options.used_by_others_bytes;
    call->device.fail_call = call->options.fail_call;
    return true;
}

static bool take_label(frag_replay_call *call, frag_error *error)
{
    const char *label = call->options.label;
    if (label == NULL)
        return true;
    if (label[0] == '\0')
        return frag_fail_in(error, FRAG_E_USAGE, "label",
                            "the label is empty; write a name for the row");
    for (const char *c = label; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return frag_fail_in(error, FRAG_E_USAGE, "label",
                                "it holds a control character; write one line of text");
    frag_policy_spec_label(&call->spec, label);
    return true;
}

static bool take_stats_at(frag_replay_call *call, frag_error *error)
{
    call->stats_at = (frag_run_stats){.text = call->options.stats_at};
    if (call->stats_at.text == NULL ||
        (frag_run_point_parse(call->stats_at.text, &call->stats_at.point, error) &&
         frag_run_stats_check(&call->stats_at, call->trace, error)))
        return true;
    return frag_error_in(error, "stats_at");
}

frag_replay_call frag_replay_call_of(const fraglab_context *context,
                                     const fraglab_recording *recording, size_t trace,
                                     const fraglab_policy *policy,
                                     const fraglab_run_options *options)
{
    return (frag_replay_call){.context = context,
                              .recording = recording,
                              .number = trace,
                              .policy = policy,
                              .given = options};
}

bool frag_replay_call_device(frag_replay_call *call, frag_error *error)
{
    call->below = frag_call_context(call->context);
    return frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_run_options",
                          error) &&
           take_device(call, error);
}

bool frag_replay_call_begin(frag_replay_call *call, frag_error *error)
{
    if (!frag_replay_call_device(call, error))
        return false;
    call->trace = frag_recording_trace_at(call->recording, call->number, error);
    if (call->trace == NULL ||
        !frag_policy_resolve(call->below, &call->policy->spec, &call->recording->recording,
                             &call->spec, error) ||
        !take_label(call, error) || !take_stats_at(call, error))
        return false;
    call->setup = (frag_run_setup){&call->recording->recording, call->trace, call->spec.ops,
                                   call->spec.values, &call->device};
    call->run = (frag_run_options){
        .is_oom_skipped = call->options.skip_oom != 0,
        .check_every = call->options.check_every,
        .context = call->below,
        .is_timed = call->options.with_timing != 0,
    };
    return frag_replay_call_goes_on(call, error);
}

bool frag_replay_call_plan(frag_replay_call *call, frag_policy_plan **plan, frag_error *error)
{
    frag_plan_limits limits = {
        .capacity_bytes = frag_device_plan_bytes(&call->device, call->trace),
    };
    bool ok = frag_replay_plan(&call->setup, &limits, plan, error);
    call->run.plan = *plan;
    return ok;
}

bool frag_replay_call_goes_on(const frag_replay_call *call, frag_error *error)
{
    return frag_call_goes_on(call->below, error);
}
