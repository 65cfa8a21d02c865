/* How far a trace gets under each policy, for every capacity. */
#include <inttypes.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "plots/parts/plot_bounds.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/policy_engine.h"

#define SAMPLES_DEFAULT 400u

/* Every capacity from low to below high gives the same run. */
typedef struct interval {
    uint64_t low;
    uint64_t high;
    uint64_t oom_event; /* event_count: none */
    uint64_t served;    /* requests */
} interval;

typedef struct curve {
    const frag_policy_spec *spec;
    frag_policy_plan *plan; /* the same at every capacity; NULL: the policy does not plan */
    interval *intervals;
    size_t count;
    size_t capacity;
    frag_capacity_result least;
    frag_error error;
    bool is_ok;
} curve;

typedef struct survival_figure {
    frag_plot plot;
    frag_policy_list policies;
    frag_device_spec device;
    frag_repeats repeats; /* of the trace */
    uint64_t samples;
    uint64_t first; /* the least capacity drawn */
    uint64_t page_bytes;
    curve *curves;
    frag_progress *progress;
} survival_figure;

/* A start state that does not fit fails before any request is made. */
static uint64_t served_of(const frag_replay_result *replay)
{
    return replay->requests > replay->failed_requests ? replay->requests - replay->failed_requests
                                                      : 0;
}

static bool add_interval(const survival_figure *state, curve *line, const frag_policy_spec *spec,
                         uint64_t capacity, uint64_t step, uint64_t *next)
{
    frag_device_spec device = state->device;
    device.capacity_bytes = capacity;
    frag_run_options run = {.is_layout_skipped = true,
                            .context = state->plot.request->context,
                            .plan = line->plan,
                            .repeats = &state->repeats};
    frag_run_result result;
    if (!frag_run(&(frag_run_setup){&state->plot.recording, state->plot.trace, spec->ops,
                                    spec->values, &device},
                  &run, &result, &line->error))
        return false;
    bool is_same_known =
        !result.is_capacity_read && result.refused_need_min_bytes != FRAG_UNLIMITED;
    uint64_t end = capacity + state->page_bytes;
    if (is_same_known && frag_round_up(result.refused_need_min_bytes, state->page_bytes) > end)
        end = frag_round_up(result.refused_need_min_bytes, state->page_bytes);
    const frag_oom *oom = &result.replay.oom;
    *FRAG_APPEND(line->intervals, line->count, line->capacity) = (interval){
        .low = capacity,
        .high = end,
        .oom_event = oom->has_happened ? oom->event : state->plot.trace->event_count,
        .served = served_of(&result.replay),
    };
    *next = end > capacity + step ? end : capacity + step;
    return true;
}

/* From here on everything survives. */
static uint64_t settled(const frag_capacity_result *least, uint64_t page_bytes)
{
    uint64_t above = least->is_monotone ? 0 : least->failing_above_bytes + page_bytes;
    return above > least->capacity_bytes ? above : least->capacity_bytes;
}

/* Up from where just what is requested fits to where nothing fails any more. */
static bool follow(const survival_figure *state, curve *line, const frag_policy_spec *spec)
{
    const frag_capacity_result *least = &line->least;
    if (!frag_replay_plan(&(frag_run_setup){&state->plot.recording, state->plot.trace, spec->ops,
                                            spec->values, NULL},
                          NULL, &line->plan, &line->error) ||
        !frag_find_capacity(&(frag_run_setup){&state->plot.recording, state->plot.trace, spec->ops,
                                              spec->values, &state->device},
                            &state->repeats, state->plot.request->context, &line->least,
                            &line->error))
        return false;
    uint64_t end = least->is_found ? settled(least, state->page_bytes) : state->first;
    uint64_t span = end > state->first ? end - state->first : 0;
    uint64_t step = frag_round_up(span / state->samples + 1, state->page_bytes);
    for (uint64_t at = state->first;
         at <= end && !frag_is_cancelled(state->plot.request->context);) {
        uint64_t next = 0;
        if (!add_interval(state, line, spec, at, step, &next))
            return false;
        /* A coarse step may not jump over the capacity that is marked, nor over the end. */
        if (at < end && next > end)
            next = end;
        if (least->is_found && at < least->capacity_bytes && next > least->capacity_bytes)
            next = least->capacity_bytes;
        at = next;
    }
    return true;
}

static void follow_job(void *context, uint64_t index)
{
    survival_figure *state = context;
    curve *line = &state->curves[index];
    frag_policy_spec resolved = {0};
    if (!frag_is_cancelled(state->plot.request->context) &&
        frag_policy_resolve(state->plot.request->context, &state->policies.specs[index],
                            &state->plot.recording, &resolved, &line->error)) {
        line->is_ok = follow(state, line, &resolved);
        frag_policy_plan_destroy(resolved.ops, line->plan);
        line->plan = NULL;
        frag_policy_spec_destroy(&resolved);
    }
    frag_progress_add(state->progress, 1);
}

/* ---- data */

static void write_row(const survival_figure *state, const char *kind, size_t series,
                      const interval *at)
{
    FILE *stream = state->plot.data;
    uint64_t requests = state->plot.trace->stats.request_count;
    bool is_survived = at->oom_event == state->plot.trace->event_count;
    fprintf(stream, "%s,%zu,", kind, series);
    frag_text_write_csv(stream, state->policies.specs[series - 1].text);
    fprintf(stream, ",%" PRIu64 ",", at->low);
    if (at->high != 0)
        fprintf(stream, "%" PRIu64, at->high);
    fputc(',', stream);
    if (!is_survived)
        fprintf(stream, "%" PRIu64, at->oom_event);
    fprintf(stream, ",%" PRIu64 ",%.6f\n", at->served,
            is_survived ? 1 : (double)at->served / (double)requests);
}

/* Ends at the right edge: what survives there survives with more too. */
static void write_curve(const survival_figure *state, size_t series, uint64_t last)
{
    const curve *line = &state->curves[series - 1];
    for (size_t i = 0; i < line->count; i++)
        write_row(state, "curve", series, &line->intervals[i]);
    interval edge = line->intervals[line->count - 1];
    edge.low = last;
    edge.high = 0;
    write_row(state, "curve", series, &edge);
    for (size_t i = 0; i < line->count; i++)
        if (line->least.is_found && line->intervals[i].low == line->least.capacity_bytes)
            write_row(state, "least", series, &line->intervals[i]);
}

static void define(survival_figure *state, uint64_t max_bytes)
{
    frag_plot *plot = &state->plot;
    size_t count = state->policies.count;
    frag_text *names = frag_alloc(count, sizeof *names);
    const char **texts = frag_alloc(count, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        const frag_capacity_result *least = &state->curves[i].least;
        frag_text_add(&names[i], "%s: %s", state->policies.specs[i].text,
                      least->is_found ? FRAG_BYTES(least->capacity_bytes) : "never");
        texts[i] = names[i].bytes;
    }
    frag_plot_define_names(plot, "policies", texts, count);
    uint64_t *leasts = frag_alloc(count, sizeof *leasts);
    for (size_t i = 0; i < count; i++) {
        const frag_capacity_result *least = &state->curves[i].least;
        leasts[i] = least->is_found ? least->capacity_bytes : UINT64_MAX;
    }
    frag_plot_define_places(plot, leasts, count);
    frag_free(leasts);
    frag_plot_define_number(plot, "policy_count", (double)count);
    frag_plot_define_number(plot, "first_bytes", (double)state->first);
    frag_plot_define_number(plot, "max_bytes", (double)max_bytes);
    frag_plot_define_unit(plot, max_bytes);
    frag_text bound = {0};
    frag_text_add(&bound, ": %s", FRAG_BYTES(frag_trace_bound_bytes(state->plot.trace)));
    frag_plot_define_text(plot, "bound_text", bound.bytes);
    frag_text_destroy(&bound);
    frag_plot_define_title(plot, state->plot.recording.name);
    for (size_t i = 0; i < count; i++)
        frag_text_destroy(&names[i]);
    frag_free(names);
    frag_free(texts);
}

static bool fill(void *context, frag_error *error)
{
    survival_figure *state = context;
    uint64_t least = frag_trace_bound_bytes(state->plot.trace) + state->device.used_by_others_bytes;
    if (state->plot.trace->stats.request_count == 0)
        return frag_fail_in(error, FRAG_E_INPUT, frag_plot_source_name(state->plot.request),
                            "the trace requests nothing; there is nothing to draw");
    state->page_bytes = frag_device_page(&state->device, state->plot.trace);
    state->first = frag_round_up(least > 0 ? least : 1, state->page_bytes);
    state->curves = frag_alloc(state->policies.count, sizeof *state->curves);
    frag_repeats_find(state->plot.trace, &state->repeats);
    state->progress = frag_progress_start(state->plot.request->context, "searching", "policies",
                                          state->policies.count);
    frag_for_each(frag_context_threads(state->plot.request->context), state->policies.count,
                  follow_job, state);
    frag_progress_end(state->progress);
    frag_repeats_destroy(&state->repeats);
    if (frag_is_cancelled(state->plot.request->context))
        return true;
    frag_row_packing packing = {0};
    if (!frag_plot_packing(&state->plot, &packing, error))
        return false;
    uint64_t marked =
        frag_round_up(packing.bytes + state->device.used_by_others_bytes, state->page_bytes);
    frag_plot_define_number(&state->plot, "packing_capacity_bytes", (double)marked);
    fputs("kind,series,policy,capacity_bytes,same_below_bytes,oom_event,served_requests,served_"
          "ratio\n",
          state->plot.data);
    if (packing.bytes > 0)
        fprintf(state->plot.data, "bound,0,%s,%" PRIu64 ",,,,\n", FRAG_PLOT_PACKING_NAME, marked);
    uint64_t last = packing.bytes > 0 && marked > state->first ? marked : state->first;
    for (size_t i = 0; i < state->policies.count; i++) {
        const curve *line = &state->curves[i];
        if (!line->is_ok) {
            *error = line->error;
            return false;
        }
        if (line->least.is_found && settled(&line->least, state->page_bytes) > last)
            last = settled(&line->least, state->page_bytes);
    }
    last = frag_round_up(last + (last - state->first) / 10 + 1, state->page_bytes);
    for (size_t i = 0; i < state->policies.count; i++)
        write_curve(state, i + 1, last);
    define(state, last);
    return true;
}

static bool check_options(survival_figure *state, const frag_plot_request *request,
                          frag_error *error)
{
    if (frag_plot_setting_text(request, "capacity") != NULL) {
        frag_fail(error, FRAG_E_USAGE,
                  "the capacity is what runs to the right; leave --capacity out");
        return false;
    }
    state->samples = SAMPLES_DEFAULT;
    return frag_plot_setting_count(request, "samples", 2, 1000000, &state->samples, error);
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    survival_figure state = {.curves = NULL};
    state.policies = *request->policies;
    state.device = *request->device;
    bool ok = check_options(&state, request, error) &&
              frag_plot_draw_trace(&state.plot, "survival", request, false, fill, &state, error);
    for (size_t i = 0; state.curves != NULL && i < state.policies.count; i++)
        frag_free(state.curves[i].intervals);
    frag_free(state.curves);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_PLOT_REPLAY_OPTIONS,
    {"samples", "N",
     .help = "replays of each policy at most. If the result changes at more capacities than that, "
             "the curve is coarser; the least surviving capacity stays exact (default: 400)"},
    {"jobs", "N", .letter = 'j', .help = "threads (default: all cores); the figure is the same",
     .min = 1, .max = 4096},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_survival = {
    .command =
        {
            .name = "survival",
            .operands = "TRACE",
            .summary = "how far the trace gets, for every capacity",
            .description = "Draws for each policy the share of the requests that are served before "
                           "the first OOM, for capacities from the peak of requested bytes to the "
                           "one with which no device call fails. The least capacity that survives "
                           "is marked and printed in the legend, exact to 2 MiB. --bounds marks "
                           "what a policy that knew the future would need.",
            .examples =
                "fraglab plot survival train.pickle --policy pytorch,best-fit,tlsf -o survival.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .policies = "pytorch",
    .draw = draw,
};
