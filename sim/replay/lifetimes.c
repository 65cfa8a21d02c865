#include "sim/replay/lifetimes.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_loop.h"
#include "sim/replay/replay_state.h"

#define ALIGNMENT_WORD " alignment="

uint64_t frag_problem_alignment(const char *note, size_t *name_bytes)
{
    const char *last = NULL;
    for (const char *at = strstr(note, ALIGNMENT_WORD); at != NULL;
         at = strstr(at + 1, ALIGNMENT_WORD))
        last = at;
    uint64_t alignment = 1;
    *name_bytes = strlen(note);
    if (last != NULL &&
        frag_count_parse(last + strlen(ALIGNMENT_WORD), 1, (uint64_t)1 << 56, &alignment, NULL))
        *name_bytes = (size_t)(last - note);
    return alignment;
}

/* ---- a policy that takes notes */

struct frag_policy {
    const uint64_t *times; /* of the events; NULL: their numbers */
    uint64_t now;
    uint64_t end; /* the latest time there was */
    frag_lifetime *lifetimes;
    uint64_t count;
    uint64_t capacity;
    uint64_t *holders; /* by handle: its lifetime, or the next unused handle */
    uint32_t handle_count;
    uint32_t unused;
};

static size_t notes_arena_bytes(const frag_policy_limits *limits, const frag_option_value *values)
{
    (void)values;
    return sizeof(frag_policy) + 128 + ((size_t)limits->live_count_max + 1) * sizeof(uint64_t);
}

static frag_policy *notes_create(const frag_policy_setup *setup, frag_error *error)
{
    (void)error;
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->holders = frag_arena_take(setup->arena, (size_t)setup->limits.live_count_max + 1,
                                      sizeof *policy->holders);
    policy->capacity = setup->limits.request_count;
    policy->lifetimes = frag_alloc((size_t)policy->capacity, sizeof *policy->lifetimes);
    policy->unused = UINT32_MAX;
    return policy;
}

static bool notes_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    FRAG_ASSERT(policy->count < policy->capacity);
    uint32_t handle = policy->unused;
    if (handle != UINT32_MAX)
        policy->unused = (uint32_t)policy->holders[handle];
    else
        handle = policy->handle_count++;
    policy->holders[handle] = policy->count;
    policy->lifetimes[policy->count++] =
        (frag_lifetime){policy->now, UINT64_MAX, request->bytes, 0};
    *grant = (frag_grant){.block_bytes = request->bytes, .handle = handle};
    return true;
}

static void notes_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    (void)stream;
    policy->lifetimes[policy->holders[handle]].upper = policy->now;
    policy->holders[handle] = policy->unused;
    policy->unused = handle;
}

static void notes_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    (void)policy;
    (void)visit;
    (void)context;
}

/* Event by event, so that it knows when it is asked. */
static void notes_replay(frag_replay *replay, uint64_t end)
{
    frag_policy *policy = replay->policy;
    for (uint64_t i = frag_replay_event(replay); i < end && !replay->has_stopped; i++) {
        policy->now = policy->times != NULL ? policy->times[i] : i;
        policy->end = policy->now > policy->end ? policy->now : policy->end;
        frag_replay_loop(replay, i + 1, notes_alloc, notes_free);
    }
}

static const frag_policy_engine notes_engine = {.replay = notes_replay};

static const frag_option notes_options[] = {{.key = NULL}};

static const frag_policy_ops notes_ops = {
    .name = "notes",
    .summary = "",
    .source = "",
    .bound = "",
    .options = notes_options,
    .arena_bytes = notes_arena_bytes,
    .create = notes_create,
    .alloc = notes_alloc,
    .free = notes_free,
    .walk = notes_walk,
    .engine = &notes_engine,
};

/* ---- the trace */

/* The alloc events in order are the calls. */
static void add_alignments(const frag_recording *recording, const frag_trace *trace,
                           frag_lifetime *lifetimes, uint64_t count)
{
    uint64_t call = 0;
    for (uint64_t i = 0; i < trace->event_count && call < count; i++) {
        if (trace->events[i].op != FRAG_OP_ALLOC)
            continue;
        const char *note =
            trace->notes != NULL ? frag_strings_get(&recording->strings, trace->notes[i]) : "";
        size_t name_bytes = 0;
        lifetimes[call++].alignment = frag_problem_alignment(note, &name_bytes);
    }
}

/* Are the times in the order of the events? */
static bool has_times(const frag_recording *recording, const frag_trace *trace)
{
    if (!frag_recording_is_problem(recording) || trace->times_ns == NULL)
        return false;
    uint64_t now = 0;
    bool has_begun = false; /* a request at this time: releases came before */
    for (uint64_t i = 0; i < trace->event_count; i++) {
        bool is_request = trace->events[i].op == FRAG_OP_ALLOC;
        if (trace->times_ns[i] < now || (trace->times_ns[i] == now && has_begun && !is_request))
            return false;
        has_begun = is_request;
        now = trace->times_ns[i];
    }
    return true;
}

static frag_lifetime *replay_notes(frag_replay *replay, bool uses_times, uint64_t *count,
                                   frag_error *error)
{
    const frag_trace *trace = replay->trace;
    frag_policy *notes = replay->policy;
    frag_replay_options options = {.is_oom_skipped = true, .stop_after = FRAG_UNLIMITED};
    notes->times = uses_times ? trace->times_ns : NULL;
    bool ok = frag_replay_start(replay, &options, error);
    notes->end = notes->now;
    ok = ok && frag_replay_advance(replay, trace->event_count, error);
    if (!ok) {
        frag_free(notes->lifetimes);
        return NULL;
    }
    for (uint64_t i = 0; i < notes->count; i++)
        if (notes->lifetimes[i].upper == UINT64_MAX)
            notes->lifetimes[i].upper = notes->end + 1;
    *count = notes->count;
    return notes->lifetimes;
}

frag_lifetime *frag_lifetimes_find(const frag_recording *recording, const frag_trace *trace,
                                   uint64_t *count, frag_error *error)
{
    frag_sim_device_options options = {.capacity_bytes = FRAG_UNLIMITED};
    frag_device *device = frag_sim_device_create(&options);
    const frag_run_setup setup = {recording, trace, &notes_ops, NULL, NULL};
    frag_replay *replay = frag_replay_create_planned(&setup, NULL, NULL, device, error);
    frag_lifetime *lifetimes = NULL;
    if (replay != NULL)
        lifetimes = replay_notes(replay, has_times(recording, trace), count, error);
    if (lifetimes != NULL && frag_recording_is_problem(recording))
        add_alignments(recording, trace, lifetimes, *count);
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    return lifetimes;
}

bool frag_lifetimes_plan(const frag_run_setup *setup, const frag_lifetime *lifetimes,
                         uint64_t count, const frag_plan_limits *limits, frag_policy_plan **plan,
                         frag_error *error)
{
    const frag_policy_planner *planner = frag_policy_engine_of(setup->ops)->planner;
    *plan = NULL;
    if (planner == NULL)
        return true;
    frag_policy_plan_setup what = {.values = setup->values,
                                   .lifetimes = lifetimes,
                                   .lifetime_count = count,
                                   .limits = {.capacity_bytes = FRAG_UNLIMITED}};
    if (limits != NULL)
        what.limits = *limits;
    *plan = planner->create(&what, error);
    return *plan != NULL;
}

bool frag_replay_plan(const frag_run_setup *setup, const frag_plan_limits *limits,
                      frag_policy_plan **plan, frag_error *error)
{
    *plan = NULL;
    if (frag_policy_engine_of(setup->ops)->planner == NULL)
        return true;
    uint64_t count = 0;
    frag_lifetime *lifetimes = frag_lifetimes_find(setup->recording, setup->trace, &count, error);
    if (lifetimes == NULL)
        return false;
    bool ok = frag_lifetimes_plan(setup, lifetimes, count, limits, plan, error);
    frag_free(lifetimes);
    return ok;
}
