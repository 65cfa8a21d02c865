#include "studies/dryrun/dryrun_replay.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/device/uncertain_size.h"

#define BLOCK_BYTES ((uint64_t)512) /* what PyTorch rounds requests to */
#define DRAWN_EVENTS ((uint64_t)30000000)

bool frag_dryrun_release(const char *torch, char release[FRAG_DRYRUN_RELEASE_BYTES])
{
    const char *dot = torch != NULL ? strchr(torch, '.') : NULL;
    size_t length = dot != NULL ? (size_t)(dot - torch) + 1 : 0;
    size_t minor = dot != NULL ? strspn(dot + 1, "0123456789") : 0;
    if (minor == 0 || length + minor >= FRAG_DRYRUN_RELEASE_BYTES ||
        strspn(torch, "0123456789") + 1 != length)
        return false;
    memcpy(release, torch, length + minor);
    release[length + minor] = '\0';
    return true;
}

/* Releases that are newer than the model are replayed as its newest. */
static void set_release(frag_policy_spec *spec, const char *torch)
{
    char release[FRAG_DRYRUN_RELEASE_BYTES];
    frag_error ignored = {0};
    if (frag_dryrun_release(torch, release))
        frag_policy_spec_set(spec, "version", release, &ignored);
}

bool frag_dryrun_policy(const frag_context *context, const frag_recording *recording,
                        const char *torch, frag_policy_spec *spec, frag_error *error)
{
    frag_policy_spec typed;
    bool has_settings = frag_recording_get(recording, "torch.conf") != NULL;
    if (!frag_policy_spec_parse(has_settings ? "pytorch:recorded" : "pytorch", &typed, error))
        return false;
    bool ok = frag_policy_resolve(context, &typed, recording, spec, error);
    frag_policy_spec_destroy(&typed);
    if (ok)
        set_release(spec, torch);
    return ok;
}

/* What set_per_process_memory_fraction does. */
static void set_limit(frag_policy_spec *spec, uint64_t limit_bytes, uint64_t capacity_bytes)
{
    char share[32];
    frag_error ignored = {0};
    if (limit_bytes >= capacity_bytes)
        return;
    snprintf(share, sizeof share, "%.15f", ((double)limit_bytes + 0.5) / (double)capacity_bytes);
    frag_policy_spec_set(spec, "per_process_memory_fraction", share, &ignored);
}

/* ---- phases */

typedef struct phase_watch {
    const frag_trace *trace;
    frag_dryrun_answer *answer;            /* NULL: the whole is wanted only */
    uint64_t ends[FRAG_DRYRUN_PHASES_MAX]; /* requests served when the phase is over */
    uint64_t served;
    size_t at;
} phase_watch;

static bool is_served(const frag_event *event)
{
    return event->op == FRAG_OP_ALLOC &&
           (event->flags & (FRAG_EVENT_FAILED | FRAG_EVENT_INITIAL)) == 0;
}

static void raise_level(frag_level *peak, const frag_level *level)
{
#define RAISE(field) peak->field = level->field > peak->field ? level->field : peak->field
    RAISE(requested_bytes);
    RAISE(allocated_bytes);
    RAISE(active_bytes);
    RAISE(reserved_bytes);
#undef RAISE
}

static void watch_level(void *context, const frag_replay *replay, uint64_t event,
                        const frag_level *level)
{
    (void)replay;
    phase_watch *watch = context;
    frag_dryrun_answer *answer = watch->answer;
    watch->served += is_served(&watch->trace->events[event]);
    while (watch->at + 1 < answer->phase_count && watch->served > watch->ends[watch->at])
        watch->at++;
    raise_level(&answer->phases[watch->at].peak, level);
}

static void add_phase(phase_watch *watch, const char *name, uint64_t end)
{
    frag_dryrun_answer *answer = watch->answer;
    uint64_t begin = answer->phase_count > 0 ? watch->ends[answer->phase_count - 1] : 0;
    if (end <= begin)
        return; /* nothing was asked of this device in it */
    watch->ends[answer->phase_count] = end;
    answer->phases[answer->phase_count++] = (frag_dryrun_phase){.name = name};
}

/* Loading ends with the first forward, the first step with the optimizer's; without marks there are
 * no phases. */
static void plan_phases(phase_watch *watch, const frag_dryrun_facts *facts, uint32_t device)
{
    const frag_dryrun_mark *load = frag_dryrun_find_mark(facts, "load");
    const frag_dryrun_mark *step = frag_dryrun_find_mark(facts, "step 1");
    uint64_t all = watch->trace->stats.request_count;
    if (device >= FRAG_DRYRUN_DEVICES_MAX || (load == NULL && step == NULL))
        return;
    if (load != NULL)
        add_phase(watch, "load", load->requests[device]);
    if (step != NULL)
        add_phase(watch, "first step", step->requests[device]);
    if (watch->answer->phase_count > 0 && all > watch->ends[watch->answer->phase_count - 1])
        add_phase(watch, step != NULL ? "steady step" : "run", FRAG_UNLIMITED);
}

/* ---- replays */

static void take_result(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    (void)replay;
    frag_dryrun_level *level = context;
    level->peak = result->peak;
    level->reserved_at_event = result->reserved_at_event;
    level->oom = result->oom;
    level->fits = !result->oom.has_happened;
}

static bool replay_watched(const frag_context *context, const frag_recording *recording,
                           const frag_trace *trace, const frag_policy_spec *policy,
                           const frag_dryrun_card *card, phase_watch *watch,
                           frag_dryrun_level *level, frag_error *error)
{
    frag_device_spec device = {.capacity_bytes = card->capacity_bytes,
                               .used_by_others_bytes = card->context_bytes};
    frag_replay_options options = {.stop_after = FRAG_UNLIMITED,
                                   .is_oom_skipped = true,
                                   .context = context,
                                   .observer = watch != NULL ? watch_level : NULL,
                                   .observer_context = watch};
    *level = (frag_dryrun_level){.fits = false};
    return frag_run_look(&(frag_run_setup){recording, trace, policy->ops, policy->values, &device},
                         &options, take_result, level, error);
}

bool frag_dryrun_replay(const frag_context *context, const frag_recording *recording,
                        const frag_trace *trace, const frag_policy_spec *policy,
                        const frag_dryrun_card *card, frag_dryrun_level *level, frag_error *error)
{
    return replay_watched(context, recording, trace, policy, card, NULL, level, error);
}

/* ---- sizes that NVIDIA's libraries decide */

/* A request that failed is recorded rounded. */
static const frag_dryrun_uncertain *find_uncertain(const frag_dryrun_facts *facts,
                                                   const frag_event *event)
{
    for (size_t i = 0; event->op == FRAG_OP_ALLOC && i < facts->uncertain_count; i++) {
        uint64_t answered = facts->uncertain[i].answered_bytes;
        if (answered != 0 &&
            (event->bytes == answered || ((event->flags & FRAG_EVENT_FAILED) != 0 &&
                                          event->bytes == frag_round_up(answered, BLOCK_BYTES))))
            return &facts->uncertain[i];
    }
    return NULL;
}

/* The trace with other sizes in the place of the uncertain ones. */
typedef struct resized {
    frag_trace trace; /* with events of its own */
    uint64_t *places; /* events of uncertain size */
    uint32_t *which;  /* of the facts, for each */
    uint64_t count;
} resized;

/* false: no size is uncertain. */
static bool find_places(const frag_trace *trace, const frag_dryrun_facts *facts,
                        frag_dryrun_answer *answer, resized *sizes)
{
    *sizes = (resized){.trace = *trace};
    if (facts->uncertain_count == 0)
        return false;
    sizes->places = frag_alloc(trace->event_count, sizeof *sizes->places);
    sizes->which = frag_alloc(trace->event_count, sizeof *sizes->which);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_dryrun_uncertain *found = find_uncertain(facts, &trace->events[i]);
        if (found == NULL)
            continue;
        answer->uncertain_low_bytes += found->low_bytes;
        answer->uncertain_high_bytes += found->high_bytes;
        sizes->places[sizes->count] = i;
        sizes->which[sizes->count++] = (uint32_t)(found - facts->uncertain);
    }
    answer->uncertain_requests = sizes->count;
    if (sizes->count > 0) {
        sizes->trace.events = frag_alloc(trace->event_count, sizeof *trace->events);
        memcpy(sizes->trace.events, trace->events, trace->event_count * sizeof *trace->events);
    }
    return sizes->count > 0;
}

static void free_places(resized *sizes)
{
    if (sizes->count > 0)
        frag_free(sizes->trace.events);
    frag_free(sizes->places);
    frag_free(sizes->which);
}

/* A request of nothing stays one of a block, which PyTorch would not have made. */
static void set_sizes(resized *sizes, const frag_dryrun_facts *facts, uint64_t draw)
{
    for (uint64_t i = 0; i < sizes->count; i++) {
        const frag_dryrun_uncertain *of = &facts->uncertain[sizes->which[i]];
        uint64_t bytes = frag_uncertain_bytes(of->low_bytes, of->high_bytes, sizes->which[i], draw);
        sizes->trace.events[sizes->places[i]].bytes = bytes > 0 ? bytes : 1;
    }
    frag_trace_measure(&sizes->trace);
}

static void widen(frag_dryrun_answer *answer, const frag_dryrun_level *level)
{
    uint64_t bytes = level->peak.reserved_bytes;
    if (bytes < answer->reserved_min_bytes)
        answer->reserved_min_bytes = bytes;
    if (bytes > answer->reserved_max_bytes)
        answer->reserved_max_bytes = bytes;
}

/* A run with the smallest sizes is about that end alone. */
static bool was_run_high(const frag_dryrun_facts *facts, const resized *sizes)
{
    for (uint64_t i = 0; i < sizes->count; i++) {
        const frag_dryrun_uncertain *found = &facts->uncertain[sizes->which[i]];
        if (found->high_bytes - found->low_bytes > 2 * BLOCK_BYTES)
            return found->answered_bytes > found->low_bytes / 2 + found->high_bytes / 2;
    }
    return true;
}

static uint64_t count_draws(const frag_dryrun_facts *facts, const resized *sizes,
                            const frag_trace *trace)
{
    if (!was_run_high(facts, sizes))
        return 0;
    return frag_uncertain_draws(trace->event_count, DRAWN_EVENTS);
}

static bool judge_other_sizes(const frag_context *context, const frag_recording *recording,
                              const frag_trace *trace, const frag_policy_spec *policy,
                              const frag_dryrun_facts *facts, const frag_dryrun_card *card,
                              frag_dryrun_answer *answer, frag_error *error)
{
    resized sizes;
    answer->other = answer->run;
    answer->reserved_min_bytes = answer->reserved_max_bytes = answer->run.peak.reserved_bytes;
    bool ok = true;
    bool has_any = find_places(trace, facts, answer, &sizes);
    uint64_t draws = has_any ? count_draws(facts, &sizes, trace) : 0;
    for (uint64_t i = 0; has_any && i <= draws; i++) {
        frag_dryrun_level level;
        set_sizes(&sizes, facts, i);
        ok = frag_dryrun_replay(context, recording, &sizes.trace, policy, card, &level, error);
        if (!ok)
            break;
        widen(answer, &level);
        if (i == 0) {
            answer->other = level;
            continue;
        }
        answer->draws++;
        answer->draws_served += level.fits;
    }
    free_places(&sizes);
    return ok;
}

static bool has_failed(const frag_trace *trace)
{
    return trace->stats.failed_count > 0;
}

bool frag_dryrun_judge(const frag_context *context, const frag_recording *recording,
                       const frag_trace *trace, const frag_dryrun_facts *facts,
                       const frag_dryrun_card *card, frag_dryrun_answer *answer, frag_error *error)
{
    frag_policy_spec policy;
    phase_watch watch = {.trace = trace, .answer = answer};
    *answer = (frag_dryrun_answer){.has_failed = has_failed(trace)};
    if (!frag_dryrun_policy(context, recording, facts->release, &policy, error))
        return false;
    set_limit(&policy, facts->limit_bytes, card->capacity_bytes);
    plan_phases(&watch, facts, trace->device);
    bool ok = replay_watched(context, recording, trace, &policy, card,
                             answer->phase_count > 0 ? &watch : NULL, &answer->run, error) &&
              judge_other_sizes(context, recording, trace, &policy, facts, card, answer, error);
    answer->is_repeated =
        ok && answer->run.peak.reserved_bytes == trace->stats.observed_reserved_peak_bytes &&
        answer->run.fits == !answer->has_failed;
    frag_policy_spec_destroy(&policy);
    return ok;
}
