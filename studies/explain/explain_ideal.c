#include "studies/explain/explain_ideal.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/replay/lifetimes.h"
#include "sim/run.h"
#include "sim/trace/demand.h"

/* A tenth of the usual search for a lower packing: what more finds is less than a hundredth. */
static const frag_ideal kinds[FRAG_IDEAL_COUNT] = {
    {.policy = "offline",
     .spec = "offline:steps=100000",
     .means = "knows every request in advance"},
    {.policy = "planned",
     .spec = "planned",
     .means = "plans the first iteration for those that follow"},
    {.policy = "frugal",
     .spec = "frugal",
     .means = "knows nothing in advance, but moves free pages"},
};

static void look(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)replay;
    *(frag_replay_result *)context = *result;
}

/* What the replays of one policy have in common: the plan depends on the trace alone. */
typedef struct ideal_runs {
    const frag_ideal_search *search;
    frag_policy_spec spec;
    frag_policy_plan *plan; /* NULL: the policy does not plan */
    frag_arena_spare *spare;
} ideal_runs;

static bool replay_on(const ideal_runs *runs, uint64_t capacity_bytes, frag_replay_result *result)
{
    const frag_ideal_search *search = runs->search;
    frag_device_spec device = {.capacity_bytes = capacity_bytes};
    frag_run_setup setup = {search->recording, &search->trace, runs->spec.ops, runs->spec.values,
                            &device};
    frag_replay_options options = {
        .stop_after = FRAG_UNLIMITED, .context = search->context, .repeats = &search->repeats};
    frag_error error = {0};
    return !frag_is_cancelled(search->context) &&
           frag_run_look_planned(&setup, runs->plan, runs->spare, &options, look, result, &error) &&
           !result->is_interrupted;
}

static bool plan(ideal_runs *runs)
{
    const frag_ideal_search *search = runs->search;
    frag_run_setup setup = {search->recording, &search->trace, runs->spec.ops, runs->spec.values,
                            NULL};
    frag_error error = {0};
    return !frag_is_cancelled(search->context) &&
           frag_lifetimes_plan(&setup, search->lifetimes, search->lifetime_count, NULL, &runs->plan,
                               &error);
}

static void replay_ideal(const ideal_runs *runs, frag_ideal *ideal, uint64_t *live_bytes)
{
    uint64_t capacity = runs->search->ideals->capacity_bytes;
    frag_replay_result result = {0};
    if (runs->search->demand_bytes <= capacity) {
        ideal->is_known = replay_on(runs, capacity, &result);
        ideal->fits = ideal->is_known && !result.oom.has_happened;
        if (!ideal->is_known)
            return;
    }
    if (!ideal->fits)
        ideal->is_known = replay_on(runs, FRAG_UNLIMITED, &result);
    ideal->needs_bytes = result.peak.reserved_bytes;
    *live_bytes = ideal->is_known ? result.peak.requested_bytes : 0;
}

void frag_ideals_find_one(frag_ideal_search *search, size_t index)
{
    frag_ideal *ideal = &search->ideals->items[index];
    ideal_runs runs = {.search = search};
    frag_error error = {0};
    if (search->lifetimes == NULL || !frag_policy_spec_parse(ideal->spec, &runs.spec, &error))
        return;
    if (plan(&runs)) {
        runs.spare = frag_arena_spare_create();
        replay_ideal(&runs, ideal, &search->live_bytes[index]);
        frag_arena_spare_destroy(runs.spare);
    }
    frag_policy_plan_destroy(runs.spec.ops, runs.plan);
    frag_policy_spec_destroy(&runs.spec);
}

/* The trace as if the request that it ends with had been served: one that is marked as failed has
 * no place in a plan. NULL: it does not end so. The caller frees. */
static frag_event *serve_last(frag_trace *trace)
{
    uint64_t last = trace->event_count - 1;
    if (trace->event_count == 0 || trace->events[last].op != FRAG_OP_ALLOC ||
        (trace->events[last].flags & FRAG_EVENT_FAILED) == 0)
        return NULL;
    frag_event *events = frag_alloc(trace->event_count, sizeof *events);
    memcpy(events, trace->events, trace->event_count * sizeof *events);
    events[last].flags &= (uint8_t)~FRAG_EVENT_FAILED;
    events[last].slot = trace->slot_count++;
    trace->events = events;
    return events;
}

static uint64_t find_demand(const frag_trace *trace)
{
    frag_demand demand;
    frag_demand_change change;
    uint64_t live = 0;
    uint64_t most = 0;
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        if (frag_demand_step(&demand, i, &change))
            live += change.is_free ? 0 - change.bytes : change.bytes;
        most = live > most ? live : most;
    }
    frag_demand_end(&demand);
    return most;
}

void frag_ideals_begin(frag_ideal_search *search, const frag_context *context,
                       const frag_recording *recording, const frag_trace *trace,
                       uint64_t capacity_bytes, frag_ideals *ideals)
{
    *search = (frag_ideal_search){
        .context = context, .recording = recording, .trace = *trace, .ideals = ideals};
    search->served_events = serve_last(&search->trace);
    search->demand_bytes = find_demand(&search->trace);
    frag_repeats_find(&search->trace, &search->repeats);
    frag_error error = {0};
    search->lifetimes =
        frag_lifetimes_find(recording, &search->trace, &search->lifetime_count, &error);
    *ideals = (frag_ideals){.capacity_bytes = capacity_bytes};
    memcpy(ideals->items, kinds, sizeof kinds);
}

void frag_ideals_end(frag_ideal_search *search)
{
    frag_ideals *ideals = search->ideals;
    for (size_t i = 0; i < FRAG_IDEAL_COUNT; i++)
        if (search->live_bytes[i] > ideals->live_bytes)
            ideals->live_bytes = search->live_bytes[i];
    frag_repeats_destroy(&search->repeats);
    frag_free(search->lifetimes);
    frag_free(search->served_events);
}
