#include "studies/ranks/world_rank.h"

#include <string.h>

#include "base/memory.h"
#include "studies/explain/explain_trace.h"
#include "studies/leaks/steps.h"
#include "studies/usual_policies.h"

static void digest_requests(const frag_trace *trace, frag_world_rank *rank)
{
    frag_digest *digest = frag_digest_create();
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op != FRAG_OP_ALLOC)
            continue;
        const uint64_t request[] = {event->bytes, event->stream};
        frag_digest_add(digest, request, sizeof request);
        rank->request_count++;
    }
    frag_digest_finish(digest, rank->requests_digest);
}

static void find_holders(const frag_recording *recording, const frag_trace *trace,
                         frag_world_rank *rank)
{
    rank->peak_event = frag_uses_peak_event(trace, 0, trace->event_count, false);
    rank->is_by_size = !frag_use_has_stacks(recording, trace);
    frag_site_uses_collect(recording, trace,
                           rank->is_by_size ? FRAG_USES_BY_SIZE : FRAG_USES_BY_SITE,
                           (frag_use_range){0, trace->event_count, rank->peak_event}, &rank->uses);
    for (size_t i = 0; i < rank->uses.count; i++)
        rank->requested_bytes += rank->uses.items[i].live_bytes;
}

static bool replay(const frag_world_options *options, const frag_recording *recording,
                   const frag_trace *trace, frag_world_rank *rank, frag_error *error)
{
    frag_policy_spec resolved = {0};
    frag_run_options run = {.context = options->context, .is_layout_skipped = true};
    if (options->samples > 0) {
        rank->timeline = frag_timeline_create(trace->event_count, options->samples);
        run.observer = frag_timeline_observe;
        run.observer_context = rank->timeline;
    }
    if (!frag_usual_policy_resolve(options->context, options->spec, recording, &resolved, error))
        return false;
    rank->policy = frag_copy_text(resolved.text);
    bool ok = frag_run(
        &(frag_run_setup){recording, trace, resolved.ops, resolved.values, options->device}, &run,
        &rank->run, error);
    frag_policy_spec_destroy(&resolved);
    return ok;
}

/* Up to the request that failed when recorded: what was requested after it is not the program's. */
static bool try_one(const frag_world_options *options, const frag_recording *recording,
                    const frag_trace *trace, const frag_policy_spec *spec,
                    const frag_device_spec *device, frag_rank_try *into, frag_error *error)
{
    const frag_run_options run = {.context = options->context, .is_layout_skipped = true};
    frag_policy_spec resolved = {0};
    frag_run_result result = {0};
    frag_trace cut = *trace;
    uint64_t failed = frag_explain_failed_event(trace);
    cut.event_count = failed < trace->event_count ? failed + 1 : failed;
    if (!frag_usual_policy_resolve(options->context, spec, recording, &resolved, error))
        return false;
    into->is_run =
        frag_run(&(frag_run_setup){recording, &cut, resolved.ops, resolved.values, device}, &run,
                 &result, error);
    into->is_oom = result.replay.oom.has_happened;
    into->reserved_bytes = result.replay.peak.reserved_bytes;
    into->device_calls = frag_run_memory_calls(&result);
    frag_policy_spec_destroy(&resolved);
    return into->is_run;
}

static bool try_all(const frag_world_options *options, const frag_recording *recording,
                    const frag_trace *trace, frag_world_rank *rank, frag_error *error)
{
    const frag_device_spec roomy = {.capacity_bytes = FRAG_UNLIMITED};
    frag_rank_try needed = {0};
    if (options->tried == NULL)
        return true;
    if (!try_one(options, recording, trace, options->spec, &roomy, &needed, error))
        return false;
    rank->needed_bytes = needed.reserved_bytes;
    rank->tries = frag_alloc(options->tried->count, sizeof *rank->tries);
    for (size_t i = 0; i < options->tried->count && !frag_is_cancelled(options->context); i++) {
        frag_error refused = {0};
        try_one(options, recording, trace, &options->tried->specs[i], options->device,
                &rank->tries[i], &refused);
    }
    return true;
}

/* What comes after the last step is told as of it, where its mark says that it has ended. */
static uint64_t step_of(const frag_steps *steps, uint64_t event)
{
    uint64_t step = 0;
    uint64_t last = steps->count + (steps->has_ended ? 0 : 1);
    while (step < last && steps->begin[step] <= event)
        step++;
    return step;
}

static void find_steps(const frag_recording *recording, const frag_trace *trace,
                       frag_world_rank *rank)
{
    frag_use_groups groups;
    frag_steps steps = {0};
    frag_use_groups_create(recording, trace,
                           rank->is_by_size ? FRAG_USES_BY_SIZE : FRAG_USES_BY_SITE, &groups);
    if (frag_steps_find_few(recording, trace, &groups, &steps)) {
        rank->step_count = steps.count;
        rank->steps_by = steps.by;
        rank->steps_name = frag_copy_text(steps.name);
        rank->peak_step = step_of(&steps, rank->peak_event);
        if (rank->run.replay.oom.has_happened)
            rank->oom_step = step_of(&steps, rank->run.replay.oom.event);
    }
    frag_steps_destroy(&steps);
    frag_use_groups_destroy(&groups);
}

bool frag_world_rank_measure(const frag_world_options *options, const frag_recording *recording,
                             const frag_trace *trace, uint32_t number, frag_world_rank *rank,
                             frag_error *error)
{
    const frag_explain_options none = {.capacity_bytes = FRAG_UNLIMITED};
    *rank = (frag_world_rank){
        .number = number, .name = frag_copy_text(recording->name), .device = trace->device};
    memcpy(rank->digest, trace->digest, sizeof rank->digest);
    if (trace->stats.request_count + trace->stats.initial_count == 0)
        return frag_fail_in(error, FRAG_E_INPUT, recording->name,
                            "the trace requests nothing; there is nothing to compare");
    digest_requests(trace, rank);
    rank->recorded_capacity = frag_explain_capacity(trace, &none);
    if (options->is_capacity_only)
        return true;
    find_holders(recording, trace, rank);
    if (frag_is_cancelled(options->context))
        return false;
    if (!replay(options, recording, trace, rank, error) ||
        !try_all(options, recording, trace, rank, error))
        return frag_error_in(error, recording->name);
    find_steps(recording, trace, rank);
    return true;
}

bool frag_world_rank_measure_devices(const frag_world_options *options,
                                     const frag_recording *recording, frag_world_rank **ranks,
                                     size_t *count, frag_error *error)
{
    *ranks = frag_alloc((size_t)recording->trace_count + 1, sizeof **ranks);
    *count = 0;
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        const frag_trace *trace = &recording->traces[i];
        if (trace->stats.request_count + trace->stats.initial_count > 0 &&
            !frag_world_rank_measure(options, recording, trace, trace->device,
                                     &(*ranks)[(*count)++], error))
            return false;
    }
    return true;
}

void frag_world_rank_destroy(frag_world_rank *rank)
{
    frag_site_uses_destroy(&rank->uses);
    frag_timeline_destroy(rank->timeline);
    frag_free(rank->name);
    frag_free(rank->tries);
    frag_free(rank->policy);
    frag_free(rank->steps_name);
    *rank = (frag_world_rank){0};
}
