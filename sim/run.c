#include "sim/run.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device/device_description.h"
#include "sim/policy_engine.h"

frag_recorded_segment *frag_recorded_segments(const frag_trace *trace, size_t *count,
                                              size_t *initial_count)
{
    frag_recorded_segment *segments = NULL;
    size_t capacity = 0;
    *count = 0;
    *initial_count = 0;
    uint64_t left = trace->addresses != NULL ? trace->stats.op_counts[FRAG_OP_SEGMENT_ALLOC] : 0;
    for (uint64_t i = 0; left > 0 && i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        left -= event->op == FRAG_OP_SEGMENT_ALLOC ? 1 : 0;
        /* No machine has addresses of more than 48 bits; keys made of addresses could not hold
         * them. */
        if (event->op != FRAG_OP_SEGMENT_ALLOC || trace->addresses[i] == 0 ||
            trace->addresses[i] >> 48 != 0 || event->bytes >> 47 != 0 ||
            (trace->addresses[i] + event->bytes) >> 48 != 0)
            continue;
        segments = frag_grow(segments, &capacity, *count + 1, sizeof *segments);
        segments[(*count)++] = (frag_recorded_segment){trace->addresses[i], event->bytes};
        *initial_count += (event->flags & FRAG_EVENT_INITIAL) != 0 ? 1 : 0;
    }
    return segments;
}

/* Addresses as recorded where the trace has them, unless a rule is given. */
static frag_address_rule rule_of(const frag_device_spec *spec, bool has_recorded)
{
    if (spec->is_rule_given)
        return spec->address_rule;
    if (has_recorded)
        return FRAG_ADDRESS_RECORDED;
    return spec->gpu != NULL && spec->gpu->reuse == FRAG_REUSE_NEVER ? FRAG_ADDRESS_BUMP
                                                                     : FRAG_ADDRESS_LOWEST;
}

uint64_t frag_device_page(const frag_device_spec *spec, const frag_trace *trace)
{
    if (spec->page_bytes != 0)
        return spec->page_bytes;
    return trace->page_bytes != 0 ? trace->page_bytes : FRAG_DEVICE_PAGE_BYTES;
}

uint64_t frag_device_plan_bytes(const frag_device_spec *spec, const frag_trace *trace)
{
    if (spec->capacity_bytes == FRAG_UNLIMITED)
        return FRAG_UNLIMITED;
    if (spec->capacity_bytes <= spec->used_by_others_bytes)
        return 0;
    uint64_t bytes = spec->capacity_bytes - spec->used_by_others_bytes;
    return bytes - bytes % frag_device_page(spec, trace);
}

frag_device *frag_device_open(const frag_trace *trace, const frag_device_spec *spec,
                              frag_recorded_segment **segments, frag_error *error)
{
    frag_sim_device_options options = {
        .device = trace->device,
        .capacity_bytes = spec->capacity_bytes,
        .used_by_others_bytes = spec->used_by_others_bytes,
        .page_bytes = frag_device_page(spec, trace),
        .fail_call = spec->fail_call,
        .footprint = spec->gpu != NULL ? &spec->gpu->footprint : NULL,
    };
    *segments = frag_recorded_segments(trace, &options.recorded_count, &options.initial_count);
    options.recorded = *segments;
    options.address_rule = rule_of(spec, options.recorded_count > 0);
    frag_device *device = spec->opener != NULL
                              ? spec->opener->open(spec->opener->context, trace, &options, error)
                              : frag_sim_device_create(&options);
    if (device != NULL)
        device->times.latency = spec->latency;
    return device;
}

void frag_device_close(const frag_device_spec *spec, frag_device *device)
{
    if (spec->opener != NULL && spec->opener->close != NULL)
        spec->opener->close(spec->opener->context, device);
    else
        frag_device_destroy(device);
}

void frag_run_keep_device(frag_run_result *result, const frag_device *device,
                          const frag_device_spec *spec, bool has_recorded)
{
    memcpy(result->calls, device->counts.calls, sizeof result->calls);
    memcpy(result->failed_calls, device->counts.failed_calls, sizeof result->failed_calls);
    result->modelled_time_ns = device->times.modelled_ns;
    result->is_time_modelled = device->times.latency != NULL;
    memcpy(result->call_ns, device->times.call_ns, sizeof result->call_ns);
    result->is_time_measured = device->times.clock_ns != NULL;
    result->need_max_bytes = device->needs.max_bytes;
    result->refused_need_min_bytes = device->needs.refused_min_bytes;
    result->is_capacity_read = device->needs.is_capacity_read;
    result->address_rule = rule_of(spec, has_recorded);
}

static bool count_planned(const frag_run_setup *setup, const frag_policy_plan *plan,
                          const frag_run_options *options, frag_run_result *result,
                          frag_error *error)
{
    const frag_device_spec *spec = setup->device;
    frag_recorded_segment *segments = NULL;
    frag_device *device = frag_device_open(setup->trace, spec, &segments, error);
    if (device == NULL) {
        frag_free(segments);
        return false;
    }
    device->log.stream = spec->driver_log;
    frag_replay *replay = frag_replay_create_planned(setup, plan, options->spare, device, error);
    bool ok = replay != NULL;
    if (ok) {
        frag_replay_options replay_options = {
            .is_oom_skipped = options->is_oom_skipped,
            .stop_after = FRAG_UNLIMITED,
            .check_every = options->check_every,
            .observer = options->observer,
            .observer_context = options->observer_context,
            .on_grant = options->on_grant,
            .on_grant_context = options->on_grant_context,
            .repeats = options->repeats,
            .context = options->context,
        };
        uint64_t start = options->is_timed ? frag_context_clock_ns(options->context) : 0;
        ok = frag_replay_run(replay, &replay_options, &result->replay, error);
        frag_replay_met(replay, &result->met);
        result->wall_ns = options->is_timed ? frag_context_clock_ns(options->context) - start : 0;
    }
    frag_run_keep_device(result, device, spec, segments != NULL);
    frag_replay_destroy(replay);
    frag_device_close(spec, device);
    frag_free(segments);
    return ok;
}

/* The plan of the options, or one made now, which *own is for the caller to drop. */
static bool find_plan(const frag_run_setup *setup, const frag_run_options *options,
                      const frag_policy_plan **plan, frag_policy_plan **own, frag_error *error)
{
    *own = NULL;
    if (options->plan == NULL && !frag_replay_plan(setup, NULL, own, error))
        return false;
    *plan = options->plan != NULL ? options->plan : *own;
    return true;
}

void frag_driver_log_begin(FILE *stream, bool is_timed)
{
    fprintf(stream, "event\tcall\taddress\tbytes\tresult%s\n", is_timed ? "\tns" : "");
}

bool frag_run_count(const frag_run_setup *setup, const frag_run_options *options,
                    frag_run_result *result, frag_error *error)
{
    *result = (frag_run_result){0};
    const frag_policy_plan *plan = NULL;
    frag_policy_plan *own = NULL;
    if (!find_plan(setup, options, &plan, &own, error))
        return false;
    result->has_plan = plan != NULL;
    if (plan != NULL)
        frag_policy_engine_of(setup->ops)->planner->facts(plan, &result->plan);
    bool ok = count_planned(setup, plan, options, result, error);
    frag_policy_plan_destroy(setup->ops, own);
    return ok;
}

bool frag_run_look_planned(const frag_run_setup *setup, const frag_policy_plan *plan,
                           frag_arena_spare *spare, const frag_replay_options *options,
                           frag_run_looker *look, void *context, frag_error *error)
{
    const frag_device_spec *spec = setup->device;
    frag_recorded_segment *segments = NULL;
    frag_device *device = frag_device_open(setup->trace, spec, &segments, error);
    if (device == NULL) {
        frag_free(segments);
        return false;
    }
    frag_replay *replay = frag_replay_create_planned(setup, plan, spare, device, error);
    frag_replay_result result;
    bool ok = replay != NULL && frag_replay_run(replay, options, &result, error);
    if (ok && look != NULL)
        look(context, replay, &result);
    frag_replay_destroy(replay);
    frag_device_close(spec, device);
    frag_free(segments);
    return ok;
}

bool frag_run_look(const frag_run_setup *setup, const frag_replay_options *options,
                   frag_run_looker *look, void *context, frag_error *error)
{
    const frag_policy_plan *plan = NULL;
    frag_policy_plan *own = NULL;
    frag_run_options none = {0};
    if (!find_plan(setup, &none, &plan, &own, error))
        return false;
    bool ok = frag_run_look_planned(setup, plan, NULL, options, look, context, error);
    frag_policy_plan_destroy(setup->ops, own);
    return ok;
}

uint64_t frag_run_memory_calls(const frag_run_result *result)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++)
        if (frag_device_call_moves_memory((frag_device_call)i))
            sum += result->calls[i];
    return sum;
}

uint64_t frag_run_measured_ns(const frag_run_result *result)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++)
        sum += result->call_ns[i];
    return sum;
}

static void look_decomposition(void *context, const frag_replay *replay,
                               const frag_replay_result *result)
{
    (void)result;
    frag_replay_decompose(replay, context);
}

bool frag_run_layout(const frag_run_setup *setup, const frag_run_options *options,
                     frag_run_result *result, frag_error *error)
{
    if (options->is_layout_skipped || result->replay.is_interrupted)
        return true;
    result->has_at_peak = true;
    frag_replay_options again = {
        .stop_after = result->replay.reserved_at_event + 1,
        .is_oom_skipped = options->is_oom_skipped,
        .is_attempt_kept = true,
        .repeats = options->repeats,
    };
    const frag_policy_plan *plan = NULL;
    frag_policy_plan *own = NULL;
    if (!find_plan(setup, options, &plan, &own, error))
        return false;
    bool ok = frag_run_look_planned(setup, plan, options->spare, &again, look_decomposition,
                                    &result->at_peak, error);
    frag_policy_plan_destroy(setup->ops, own);
    return ok;
}

bool frag_run(const frag_run_setup *setup, const frag_run_options *options, frag_run_result *result,
              frag_error *error)
{
    *result = (frag_run_result){0};
    frag_policy_plan *own = NULL;
    frag_run_options planned = *options;
    if (!find_plan(setup, options, &planned.plan, &own, error))
        return false;
    frag_arena_spare *own_spare =
        options->spare == NULL && !options->is_layout_skipped ? frag_arena_spare_create() : NULL;
    if (own_spare != NULL)
        planned.spare = own_spare;
    bool ok = frag_run_count(setup, &planned, result, error) &&
              frag_run_layout(setup, &planned, result, error);
    frag_arena_spare_destroy(own_spare);
    frag_policy_plan_destroy(setup->ops, own);
    return ok;
}
