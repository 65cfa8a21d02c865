#include "studies/explain/explain_ideal.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "sim/run.h"

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

typedef struct ideal_search {
    const frag_context *context;
    const frag_recording *recording;
    const frag_trace *trace;
    uint64_t capacity_bytes;
    frag_ideals *ideals;
    uint64_t live_bytes[FRAG_IDEAL_COUNT];
} ideal_search;

static void look(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)replay;
    *(frag_replay_result *)context = *result;
}

static bool replay_on(const ideal_search *state, const frag_policy_spec *spec,
                      uint64_t capacity_bytes, frag_replay_result *result)
{
    frag_device_spec device = {.capacity_bytes = capacity_bytes};
    frag_replay_options options = {.stop_after = FRAG_UNLIMITED, .context = state->context};
    frag_error error = {0};
    return !frag_is_cancelled(state->context) &&
           frag_run_look(
               &(frag_run_setup){state->recording, state->trace, spec->ops, spec->values, &device},
               &options, look, result, &error) &&
           !result->is_interrupted;
}

static void find_one(void *context, uint64_t index)
{
    ideal_search *state = context;
    frag_ideal *ideal = &state->ideals->items[index];
    frag_policy_spec spec;
    frag_error error = {0};
    frag_replay_result result = {0};
    if (!frag_policy_spec_parse(ideal->spec, &spec, &error))
        return;
    ideal->is_known = replay_on(state, &spec, state->capacity_bytes, &result);
    ideal->fits = ideal->is_known && !result.oom.has_happened;
    if (ideal->is_known && !ideal->fits)
        ideal->is_known = replay_on(state, &spec, FRAG_UNLIMITED, &result);
    ideal->needs_bytes = result.peak.reserved_bytes;
    state->live_bytes[index] = ideal->is_known ? result.peak.requested_bytes : 0;
    frag_policy_spec_destroy(&spec);
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

void frag_ideals_find(const frag_context *context, const frag_recording *recording,
                      const frag_trace *trace, uint64_t capacity_bytes, frag_ideals *ideals)
{
    frag_trace served = *trace;
    frag_event *events = serve_last(&served);
    ideal_search state = {.context = context,
                          .recording = recording,
                          .trace = &served,
                          .capacity_bytes = capacity_bytes,
                          .ideals = ideals};
    *ideals = (frag_ideals){.capacity_bytes = capacity_bytes};
    memcpy(ideals->items, kinds, sizeof kinds);
    frag_for_each(frag_context_threads(context), FRAG_IDEAL_COUNT, find_one, &state);
    for (size_t i = 0; i < FRAG_IDEAL_COUNT; i++)
        if (state.live_bytes[i] > ideals->live_bytes)
            ideals->live_bytes = state.live_bytes[i];
    frag_free(events);
}
