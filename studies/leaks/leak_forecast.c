#include "studies/leaks/leak_forecast.h"

#include <string.h>

#include "base/memory.h"

#define EVENTS_MAX ((uint64_t)20000000) /* of the longer trace */

enum { TOGETHER_MAX = 12 }; /* steps that are repeated together */

/* The longer trace: the recording up to the end of its last whole step, then its last steps again
 * and again: as few of them as are alike, event by event, to as many before. A block is given back
 * as many repetitions later as in the recording, where that is the same or the next; older ones
 * stay. A request that was larger than that of the steps before grows by as much each time. */
typedef struct repeat_state {
    frag_trace *trace; /* its columns grow */
    uint64_t first;    /* event of the steps that are repeated */
    uint64_t end;
    uint64_t together; /* how many they are */
    uint64_t *begins;  /* of the repetitions */
    uint64_t repeats;
    uint64_t room_bytes;   /* that requests may still have in all */
    uint32_t *slot_now;    /* by event of the steps, the slot that it took in this repetition */
    uint32_t *slot_before; /* and in the one before; FRAG_SLOT_NONE: given back */
    uint64_t *took;        /* by event of the steps that gives back: which event took it, + 1 */
    bool *is_before;       /* that was in the steps before */
} repeat_state;

/* ---- the recording without what its allocator did, which differs between steps that are alike */

typedef struct plain_trace {
    frag_trace trace;
    frag_steps steps;
} plain_trace;

static void make_plain(const frag_trace *trace, const frag_steps *steps, plain_trace *plain)
{
    frag_trace *into = &plain->trace;
    uint64_t end = steps->begin[steps->count];
    *into = *trace;
    into->addresses = into->times_ns = NULL;
    into->sites = into->notes = NULL;
    into->events = frag_alloc((size_t)end, sizeof *into->events);
    into->pools = trace->pools != NULL ? frag_alloc((size_t)end, sizeof *into->pools) : NULL;
    into->block_bytes =
        trace->block_bytes != NULL ? frag_alloc((size_t)end, sizeof *into->block_bytes) : NULL;
    plain->steps = (frag_steps){.count = steps->count};
    plain->steps.begin = frag_alloc(steps->count + 1, sizeof *plain->steps.begin);
    into->event_count = 0;
    for (uint64_t i = 0, step = 0; i <= end; i++) {
        uint64_t at = into->event_count;
        while (step <= steps->count && steps->begin[step] == i)
            plain->steps.begin[step++] = at;
        bool is_kept = i < end && (!frag_op_is_observed(trace->events[i].op) ||
                                   (trace->events[i].flags & FRAG_EVENT_INITIAL) != 0);
        if (!is_kept)
            continue;
        into->events[at] = trace->events[i];
        if (into->pools != NULL)
            into->pools[at] = trace->pools[i];
        if (into->block_bytes != NULL)
            into->block_bytes[at] = trace->block_bytes[i];
        into->event_count++;
    }
}

static void free_plain(plain_trace *plain)
{
    frag_free(plain->trace.events);
    frag_free(plain->trace.pools);
    frag_free(plain->trace.block_bytes);
    frag_free(plain->steps.begin);
}

/* ---- the longer trace */

static uint64_t length_of(const repeat_state *state)
{
    return state->end - state->first;
}

/* Which request of the steps, or of those before at the same place, each event speaks of. */
static void find_owners(repeat_state *state)
{
    const frag_trace *trace = state->trace;
    uint64_t *taken_at = frag_alloc(trace->slot_count, sizeof *taken_at);
    for (uint64_t i = state->first - length_of(state); i < state->end; i++) {
        const frag_event *event = &trace->events[i];
        if (frag_use_is_served(event)) {
            taken_at[event->slot] = i + 1;
        } else if (i >= state->first && frag_op_is_of_block(event->op) &&
                   taken_at[event->slot] > 0) {
            uint64_t at = taken_at[event->slot] - 1;
            bool is_before = at < state->first;
            at += is_before ? length_of(state) : 0;
            state->took[i - state->first] = at - state->first + 1;
            state->is_before[i - state->first] = is_before;
        }
    }
    frag_free(taken_at);
}

static void add(frag_trace *trace, const frag_event *event, uint64_t from)
{
    trace->events[trace->event_count] = *event;
    if (trace->pools != NULL)
        trace->pools[trace->event_count] = trace->pools[from];
    if (trace->block_bytes != NULL)
        trace->block_bytes[trace->event_count] = 0;
    trace->event_count++;
}

/* The bytes of a request in a repetition (from 1), as they grew from the steps before. */
static uint64_t grown(const repeat_state *state, uint64_t event, uint64_t repetition)
{
    uint64_t bytes = state->trace->events[event].bytes;
    uint64_t before = state->trace->events[event - length_of(state)].bytes;
    uint64_t more = bytes > before ? bytes - before : 0;
    uint64_t sum = bytes + more * repetition;
    return sum < FRAG_REQUEST_BYTES_MAX ? sum : FRAG_REQUEST_BYTES_MAX;
}

/* false: the trace would ask for more than one may; it ends with the repetition before. */
static bool repeat_once(repeat_state *state)
{
    frag_trace *trace = state->trace;
    uint32_t *old = state->slot_before;
    state->begins[state->repeats++] = trace->event_count;
    state->slot_before = state->slot_now;
    state->slot_now = old;
    for (uint64_t i = 0; i < length_of(state); i++) {
        frag_event event = trace->events[state->first + i];
        if (frag_use_is_served(&event)) {
            event.slot = state->slot_now[i] = trace->slot_count++;
            event.bytes = grown(state, state->first + i, state->repeats);
            if (event.bytes > state->room_bytes) {
                trace->event_count = state->begins[--state->repeats];
                return false;
            }
            state->room_bytes -= event.bytes;
        } else if (frag_op_is_of_block(event.op)) {
            uint32_t *slots = state->is_before[i] ? state->slot_before : state->slot_now;
            uint64_t at = state->took[i];
            if (at == 0 || slots[at - 1] == FRAG_SLOT_NONE)
                continue;
            event.slot = slots[at - 1];
            if (event.op == FRAG_OP_FREE && (event.flags & FRAG_EVENT_DEFERRED) == 0)
                slots[at - 1] = FRAG_SLOT_NONE;
        }
        add(trace, &event, state->first + i);
    }
    return true;
}

static bool are_alike(const frag_trace *trace, uint64_t first, uint64_t end)
{
    uint64_t length = end - first;
    for (uint64_t i = first; i < end; i++) {
        const frag_event *now = &trace->events[i], *before = &trace->events[i - length];
        if (now->op != before->op || now->stream != before->stream || now->flags != before->flags)
            return false;
    }
    return true;
}

/* false: no steps at the end are alike to as many before. */
static bool find_together(repeat_state *state, const frag_steps *steps)
{
    const uint64_t *begin = steps->begin;
    size_t last = steps->count;
    for (size_t i = 1; i <= TOGETHER_MAX && 2 * i <= last; i++)
        if (begin[last - i] - begin[last - 2 * i] == begin[last] - begin[last - i] &&
            are_alike(state->trace, begin[last - i], begin[last])) {
            state->first = begin[last - i];
            state->end = begin[last];
            state->together = i;
            return true;
        }
    return false;
}

static void begin_repeats(repeat_state *state, uint64_t repeats)
{
    frag_trace *trace = state->trace;
    uint64_t length = length_of(state);
    size_t most = (size_t)(state->end + repeats * length);
    trace->events = frag_realloc(trace->events, most, sizeof *trace->events);
    if (trace->pools != NULL)
        trace->pools = frag_realloc(trace->pools, most, sizeof *trace->pools);
    if (trace->block_bytes != NULL)
        trace->block_bytes = frag_realloc(trace->block_bytes, most, sizeof *trace->block_bytes);
    state->begins = frag_alloc((size_t)repeats + 1, sizeof *state->begins);
    state->slot_now = frag_alloc((size_t)length, sizeof *state->slot_now);
    state->slot_before = frag_alloc((size_t)length, sizeof *state->slot_before);
    state->took = frag_alloc((size_t)length, sizeof *state->took);
    state->is_before = frag_alloc((size_t)length, sizeof *state->is_before);
    find_owners(state);
    state->room_bytes = FRAG_TRACE_BYTES_MAX;
    for (uint64_t i = 0; i < state->end; i++)
        state->room_bytes -= frag_use_is_served(&trace->events[i]) ? trace->events[i].bytes : 0;
    /* What the recorded steps themselves took, for the first repetition to give back. */
    for (uint64_t i = 0; i < length; i++)
        state->slot_now[i] = trace->events[state->first + i].slot;
    for (uint64_t i = 0; i < length; i++) {
        const frag_event *event = &trace->events[state->first + i];
        if (event->op == FRAG_OP_FREE && state->took[i] > 0 && !state->is_before[i])
            state->slot_now[state->took[i] - 1] = FRAG_SLOT_NONE;
    }
}

static void end_repeats(repeat_state *state)
{
    frag_free(state->begins);
    frag_free(state->slot_now);
    frag_free(state->slot_before);
    frag_free(state->took);
    frag_free(state->is_before);
}

/* Surely enough, were nothing lost beside what is kept, and as many events as are looked at. */
static uint64_t needed_repeats(const repeat_state *state, double bytes_per_step, uint64_t capacity)
{
    double steps = 1.1 * (double)capacity / bytes_per_step + 16;
    uint64_t room = EVENTS_MAX > state->end ? (EVENTS_MAX - state->end) / length_of(state) : 0;
    double repeats = steps / (double)state->together + 1;
    return repeats < (double)room ? (uint64_t)repeats : room;
}

/* From 1: of the recording, or behind its last whole one. */
static uint64_t step_of(const frag_steps *steps, const repeat_state *state, uint64_t event)
{
    uint64_t step = 0;
    while (step < steps->count && steps->begin[step + 1] <= event)
        step++;
    if (step < steps->count)
        return step + 1;
    uint64_t repeat = 0;
    while (repeat + 1 < state->repeats && state->begins[repeat + 1] <= event)
        repeat++;
    /* Where in the repetition, by how far the event lies in it. */
    uint64_t end =
        repeat + 1 < state->repeats ? state->begins[repeat + 1] : state->trace->event_count;
    uint64_t length = end - state->begins[repeat];
    uint64_t part = (event - state->begins[repeat]) * state->together / (length > 0 ? length : 1);
    return steps->count + repeat * state->together + part + 1;
}

/* Steps that are not alike: by what is kept on the average. */
static void forecast_linearly(const frag_steps *steps, const frag_leak_rate *rate,
                              uint64_t capacity, frag_leak_forecast *forecast)
{
    uint64_t held = rate->peak_reserved_bytes;
    double more = held < capacity ? (double)(capacity - held) / rate->bytes_per_step : 0;
    forecast->is_rough = true;
    if (more < (double)FRAG_REQUEST_BYTES_MAX)
        forecast->oom_step = steps->count + 1 + (uint64_t)more;
}

static bool forecast_by_steps(const frag_run_setup *setup, const frag_context *context,
                              const frag_steps *steps, repeat_state *state, uint64_t repeats,
                              frag_leak_forecast *forecast, frag_error *error)
{
    frag_run_result result = {0};
    frag_run_setup longer = *setup;
    frag_run_options run = {.context = context, .is_layout_skipped = true};
    begin_repeats(state, repeats);
    while (state->repeats < repeats &&
           state->trace->slot_count < UINT32_MAX - length_of(state) - 1 && repeat_once(state))
        ;
    frag_trace_measure(state->trace); /* policies reserve room by it */
    longer.trace = state->trace;
    bool ok = frag_run(&longer, &run, &result, error);
    forecast->looked_steps = steps->count + state->repeats * state->together;
    if (ok && result.replay.oom.has_happened) {
        forecast->is_recorded = result.replay.oom.event < steps->begin[steps->count];
        forecast->oom_step = step_of(steps, state, result.replay.oom.event);
    }
    end_repeats(state);
    return ok;
}

bool frag_leaks_forecast(const frag_run_setup *setup, const frag_context *context,
                         const frag_steps *steps, const frag_leak_rate *rate,
                         frag_leak_forecast *forecast, frag_error *error)
{
    bool ok = true;
    plain_trace plain;
    uint64_t capacity = setup->device->capacity_bytes;
    *forecast = (frag_leak_forecast){.oom_step = FRAG_UNLIMITED};
    make_plain(setup->trace, steps, &plain);
    repeat_state state = {.trace = &plain.trace};
    if (find_together(&state, &plain.steps))
        ok = forecast_by_steps(setup, context, &plain.steps, &state,
                               needed_repeats(&state, rate->bytes_per_step, capacity), forecast,
                               error);
    else
        forecast_linearly(steps, rate, capacity, forecast);
    free_plain(&plain);
    return ok;
}
