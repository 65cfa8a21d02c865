#include "studies/explain/explain_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "sim/policy_engine.h"
#include "studies/explain/explain_peak.h"
#include "traces/load.h"

/* What a candidate is made of. conf is a literal settings string. */
typedef struct trial {
    const char *policy;   /* NULL: pytorch with conf */
    const char *conf;     /* "" are the defaults */
    const char *fraction; /* set_per_process_memory_fraction */
} trial;

/* Settings that guides and hints name. Garbage collection works only below a limit, so those come
 * with one. A policy of another kind shows whether it is PyTorch's rules or the requests. */
static const trial trials[] = {
    {.conf = ""},
    {.conf = "expandable_segments:True"},
    {.conf = "max_split_size_mb:128"},
    {.conf = "max_split_size_mb:512"},
    {.conf = "roundup_power2_divisions:8"},
    {.conf = "garbage_collection_threshold:0.8", .fraction = "0.95"},
    {.conf = "max_split_size_mb:128,garbage_collection_threshold:0.6", .fraction = "0.95"},
    {.conf = "expandable_segments:True,garbage_collection_threshold:0.8", .fraction = "0.95"},
    {.conf = "large_segment_size_mb:64"},
    {.policy = "best-fit"},
    {.policy = "tlsf"},
};

const char *frag_explain_setting(size_t index)
{
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        if (trials[i].conf != NULL && trials[i].fraction == NULL && index-- == 0)
            return trials[i].conf;
    return NULL;
}

/* The run of the recorded settings that ended at an OOM, to find those that must end the same. */
typedef struct known_failure {
    frag_policy_terms terms;
    frag_policy_met met;
    bool is_known;
    uint64_t *sizes; /* of all requests */
    size_t size_count;
} known_failure;

typedef struct explain_run {
    const frag_context *context;
    const frag_explain_options *options;
    frag_trace_explanation *explanation;
    frag_recording loaded;         /* from the path of the options */
    const frag_recording *whole;   /* loaded, or that of the options */
    const frag_trace *whole_trace; /* NULL: not given */
    frag_repeats repeats;          /* of the explanation's trace */
    frag_repeats whole_repeats;
    frag_trace cut;           /* shares the columns of the recording's trace */
    frag_event *asked_events; /* of cut, with the size that was asked for; NULL: shared too */
    frag_event *halved_events;
    const char *fraction; /* set_per_process_memory_fraction; NULL: not called */
    frag_ideal_search ideals;
    known_failure known;
    bool is_least_ok;
    frag_error least_error;
} explain_run;

/* ---- where memory ran out when recorded */

uint64_t frag_explain_failed_event(const frag_trace *trace)
{
    uint64_t i = 0;
    while (i < trace->event_count &&
           !(trace->events[i].op == FRAG_OP_ALLOC && (trace->events[i].flags & FRAG_EVENT_FAILED)))
        i++;
    return i;
}

/* What the recorded allocator held and what the driver had free when the request failed: together
 * what the program could have. FRAG_UNLIMITED: the recording does not say. */
static uint64_t recorded_capacity(const frag_trace *trace, uint64_t failed)
{
    uint64_t held = 0;
    uint64_t capacity = FRAG_UNLIMITED;
    for (uint64_t i = 0; i < trace->event_count && capacity == FRAG_UNLIMITED; i++) {
        const frag_event *event = &trace->events[i];
        switch (event->op) {
        case FRAG_OP_SEGMENT_ALLOC:
        case FRAG_OP_SEGMENT_MAP:
            held += event->bytes;
            break;
        case FRAG_OP_SEGMENT_FREE:
        case FRAG_OP_SEGMENT_UNMAP:
            held -= event->bytes < held ? event->bytes : held;
            break;
        case FRAG_OP_OOM:
            if (trace->addresses != NULL && trace->addresses[i] < (uint64_t)1 << 48)
                capacity = held + trace->addresses[i];
            break;
        case FRAG_OP_COMPLETE: /* what the request waited for before it failed */
            break;
        default:
            if (i > failed && !frag_op_is_observed(event->op))
                return FRAG_UNLIMITED;
            break;
        }
    }
    return capacity;
}

/* ---- the rest of the program, from another recording */

static bool is_request(const frag_event *event)
{
    return event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_INITIAL) == 0;
}

/* A request that failed is recorded rounded: to 512 bytes, or by roundup_power2_divisions, which
 * adds less than as much again. */
static bool may_be_rounded(uint64_t recorded, uint64_t asked)
{
    uint64_t units = frag_round_up(asked, 512);
    return recorded >= units && recorded - units <= units;
}

/* The sizes that were asked for must be the same, one after the other, as far as both go. The
 * request that failed takes the size that was asked for, since other settings round it
 * otherwise. */
static bool match_requests(explain_run *state, frag_error *error)
{
    frag_trace *cut = &state->cut;
    const frag_trace *whole = state->whole_trace;
    uint64_t at = 0;
    /* The recording stays as it is. */
    state->asked_events = frag_alloc(cut->event_count, sizeof *state->asked_events);
    memcpy(state->asked_events, cut->events, cut->event_count * sizeof *state->asked_events);
    cut->events = state->asked_events;
    uint64_t number = 0;
    for (uint64_t i = 0; i < cut->event_count; i++) {
        if (!is_request(&cut->events[i]))
            continue;
        number++;
        while (at < whole->event_count && !is_request(&whole->events[at]))
            at++;
        uint64_t asked = cut->events[i].bytes;
        uint64_t other = at < whole->event_count ? whole->events[at].bytes : 0;
        bool is_failed = (cut->events[i].flags & FRAG_EVENT_FAILED) != 0;
        if (asked != other && !(is_failed && may_be_rounded(asked, other)))
            return frag_fail(error, FRAG_E_INPUT,
                             "its request %" PRIu64 " is not that of the recording to explain; "
                             "expected another run of the same program on the same data",
                             number);
        if (is_failed)
            cut->events[i].bytes = other;
        at++;
    }
    return true;
}

static bool load_whole(explain_run *state, frag_error *error)
{
    const char *path = state->options->whole_path;
    const frag_trace *trace = state->explanation->trace;
    state->whole = state->options->whole;
    if ((path == NULL && state->whole == NULL) || state->explanation->rest == FRAG_REST_HERE)
        return true;
    if (state->whole == NULL) {
        if (!frag_recording_load_plain(path, FRAG_FORMAT_AUTO, false, &state->loaded, error))
            return false;
        state->whole = &state->loaded;
    }
    for (uint32_t i = 0; i < state->whole->trace_count; i++)
        if (state->whole->traces[i].device == trace->device)
            state->whole_trace = &state->whole->traces[i];
    bool ok = true;
    if (state->whole_trace == NULL)
        ok = frag_fail(error, FRAG_E_INPUT, "it has no device %" PRIu32, trace->device);
    else if (frag_explain_failed_event(state->whole_trace) < state->whole_trace->event_count)
        ok = frag_fail(error, FRAG_E_INPUT,
                       "it ran out of memory itself; expected a recording that did not");
    else
        ok = match_requests(state, error);
    state->explanation->rest = FRAG_REST_GIVEN;
    return ok || frag_error_in(error, path != NULL ? path : state->whole->name);
}

/* ---- runs */

typedef struct candidate_view {
    frag_trace_explanation *explanation; /* NULL: only the outcome is wanted */
    frag_candidate *candidate;
    frag_policy_met *met; /* NULL: not wanted */
} candidate_view;

static void look(void *context, const frag_replay *replay, const frag_replay_result *result)
{
    candidate_view *state = context;
    state->candidate->oom = result->oom;
    state->candidate->peak_reserved_bytes = result->peak.reserved_bytes;
    if (state->met != NULL)
        frag_replay_met(replay, state->met);
    if (state->explanation != NULL) {
        frag_trace_explanation *explanation = state->explanation;
        frag_replay_decompose(replay, &explanation->layout);
        frag_sites_look(&explanation->sites, explanation->recording, explanation->trace, replay,
                        result->oom.has_happened ? result->oom.event
                                                 : explanation->trace->event_count);
    }
}

/* What a program may hold that has called set_per_process_memory_fraction. */
static uint64_t limit_of(const char *fraction, uint64_t capacity)
{
    double ratio = 1;
    frag_error error = {0};
    if (fraction == NULL || !frag_ratio_parse(fraction, 0, 1, &ratio, &error))
        return capacity;
    return (uint64_t)(ratio * (double)capacity);
}

/* The settings of a candidate that must fail as the recorded ones did. false: nobody knows. */
static bool repeats_failure(const explain_run *state, const frag_candidate *candidate)
{
    const known_failure *known = &state->known;
    const frag_trace_explanation *explanation = state->explanation;
    const frag_policy_repeats *repeats = frag_policy_engine_of(candidate->spec.ops)->repeats;
    frag_policy_terms terms;
    if (!known->is_known || candidate->spec.ops != explanation->candidates[0].spec.ops ||
        !repeats->terms(candidate->spec.values, frag_recorded_version(explanation->recording),
                        &terms))
        return false;
    return repeats->proves(&(frag_policy_pair){.terms = &known->terms,
                                               .met = &known->met,
                                               .other = &terms,
                                               .capacity_bytes = explanation->capacity_bytes,
                                               .sizes = known->sizes,
                                               .size_count = known->size_count});
}

/* After the run of the recorded settings. */
static void know_failure(explain_run *state, const frag_policy_met *met)
{
    const frag_candidate *recorded = &state->explanation->candidates[0];
    const frag_trace *trace = state->explanation->trace;
    const frag_policy_repeats *repeats = frag_policy_engine_of(recorded->spec.ops)->repeats;
    known_failure *known = &state->known;
    if (!recorded->oom.has_happened || repeats == NULL ||
        !repeats->terms(recorded->spec.values, frag_recorded_version(state->explanation->recording),
                        &known->terms))
        return;
    known->is_known = true;
    known->met = *met;
    known->sizes = frag_alloc(trace->stats.op_counts[FRAG_OP_ALLOC], sizeof *known->sizes);
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC)
            known->sizes[known->size_count++] = trace->events[i].bytes;
}

/* NULL: of a trace that was made from one of the two, such as one with other sizes. */
static const frag_repeats *repeats_of(const explain_run *state, const frag_trace *trace)
{
    return trace == state->explanation->trace ? &state->repeats
           : trace == state->whole_trace      ? &state->whole_repeats
                                              : NULL;
}

/* false: the release refuses the settings, or the policy cannot replay this. */
static bool run(const explain_run *state, const frag_recording *recording, const frag_trace *trace,
                frag_candidate *candidate, candidate_view *looker, frag_error *error)
{
    frag_device_spec device = {.capacity_bytes = state->explanation->capacity_bytes};
    frag_replay_options replay = {.stop_after = FRAG_UNLIMITED,
                                  .is_attempt_kept = true,
                                  .context = state->context,
                                  .repeats = looker->explanation == NULL ? repeats_of(state, trace)
                                                                         : NULL};
    const char *fraction = state->fraction != NULL ? state->fraction : candidate->fraction;
    uint64_t allowed = limit_of(fraction, device.capacity_bytes);
    const char *option = candidate->spec.ops->fraction_option;
    if (fraction != NULL && option == NULL)
        device.capacity_bytes = allowed; /* it knows no fraction */
    else if (fraction != NULL && !frag_policy_spec_set(&candidate->spec, option, fraction, error))
        return false;
    const frag_candidate *recorded = &state->explanation->candidates[0];
    if (trace == state->explanation->trace && repeats_failure(state, candidate)) {
        candidate->oom = recorded->oom;
        candidate->peak_reserved_bytes = recorded->peak_reserved_bytes;
    } else if (!frag_run_look(&(frag_run_setup){recording, trace, candidate->spec.ops,
                                                candidate->spec.values, &device},
                              &replay, look, looker, error)) {
        return false;
    }
    candidate->is_run = true;
    candidate->gets_past = !candidate->oom.has_happened;
    candidate->spare_bytes =
        candidate->peak_reserved_bytes < allowed ? allowed - candidate->peak_reserved_bytes : 0;
    return true;
}

static void run_candidate(void *context, uint64_t index)
{
    explain_run *state = context;
    frag_trace_explanation *explanation = state->explanation;
    frag_candidate *candidate = &explanation->candidates[index];
    frag_error error = {0};
    candidate_view looker = {.candidate = candidate};
    if (frag_is_cancelled(state->context) ||
        (!candidate->is_run &&
         !run(state, explanation->recording, explanation->trace, candidate, &looker, &error)))
        return;
    candidate->fits = explanation->rest == FRAG_REST_HERE && candidate->gets_past;
    if (state->whole_trace == NULL || !candidate->gets_past)
        return;
    frag_candidate whole = *candidate;
    looker.candidate = &whole;
    if (!run(state, state->whole, state->whole_trace, &whole, &looker, &error))
        return;
    candidate->fits = whole.gets_past;
    candidate->oom = whole.oom;
    candidate->peak_reserved_bytes = whole.peak_reserved_bytes;
    candidate->spare_bytes = whole.spare_bytes;
}

static bool add_policy(explain_run *state, const frag_policy_spec *spec, const trial *from,
                       frag_error *error)
{
    frag_trace_explanation *explanation = state->explanation;
    frag_policy_spec resolved;
    if (!frag_policy_resolve(state->context, spec, explanation->recording, &resolved, error))
        return false;
    explanation->candidates = frag_realloc(
        explanation->candidates, explanation->candidate_count + 1, sizeof *explanation->candidates);
    explanation->candidates[explanation->candidate_count++] = (frag_candidate){
        .spec = resolved,
        .setting = from != NULL ? from->conf : NULL,
        .fraction = from != NULL ? from->fraction : NULL,
    };
    return true;
}

static bool add_candidate(explain_run *state, const char *text, const trial *from,
                          frag_error *error)
{
    frag_policy_spec spec;
    if (!frag_policy_spec_parse(text, &spec, error))
        return false;
    bool ok = add_policy(state, &spec, from, error);
    frag_policy_spec_destroy(&spec);
    return ok;
}

static bool is_listed(const frag_trace_explanation *explanation, const frag_policy_spec *spec)
{
    for (size_t i = 0; i < explanation->candidate_count; i++) {
        const frag_candidate *listed = &explanation->candidates[i];
        if (listed->fraction == NULL && listed->spec.ops == spec->ops &&
            strcmp(listed->spec.text, spec->text) == 0)
            return true;
    }
    return false;
}

/* The recorded settings come first; what is in force already is not tried again, nor what was
 * listed. */
static bool list_candidates(explain_run *state, frag_error *error)
{
    frag_trace_explanation *explanation = state->explanation;
    const char *recorded = frag_recording_get(explanation->recording, "torch.conf");
    static const trial in_force = {.conf = NULL};
    if (!add_candidate(state, recorded != NULL ? "pytorch:recorded" : "pytorch", &in_force, error))
        return false;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const trial *from = &trials[i];
        frag_text text = {0};
        bool is_in_force = from->conf != NULL && from->fraction == NULL &&
                           strcmp(from->conf, recorded != NULL ? recorded : "") == 0;
        if (from->policy != NULL)
            frag_text_add(&text, "%s", from->policy);
        else
            frag_text_add(&text, "pytorch%s%s", *from->conf != '\0' ? ":" : "", from->conf);
        bool ok = is_in_force || add_candidate(state, text.bytes, from, error);
        frag_text_destroy(&text);
        if (!ok)
            return false;
    }
    for (size_t i = 0; i < state->options->extra.count; i++) {
        const frag_policy_spec *spec = &state->options->extra.specs[i];
        if (!is_listed(explanation, spec) && !add_policy(state, spec, NULL, error))
            return false;
    }
    return true;
}

/* ---- the state when it ran out, in the figures of a message */

static frag_amount exactly(uint64_t bytes)
{
    return (frag_amount){.is_known = true, .bytes = bytes};
}

/* A range of addresses for an expandable segment can be smaller than a request. */
static bool reserves_ranges(const frag_recording *recording)
{
    const char *conf = frag_recording_get(recording, "torch.conf");
    return conf != NULL && strstr(conf, "expandable_segments_reserve") != NULL;
}

static void fill_message(const explain_run *state)
{
    frag_trace_explanation *explanation = state->explanation;
    frag_message *message = &explanation->message;
    const frag_oom *oom = &explanation->oom;
    const frag_decomposition *layout = &explanation->layout;
    uint64_t idle = layout->holes_bytes + layout->cached_bytes;
    uint64_t free = explanation->capacity_bytes > layout->reserved_bytes
                        ? explanation->capacity_bytes - layout->reserved_bytes
                        : 0;
    *message = (frag_message){.kind = FRAG_MESSAGE_OOM,
                              .framework = FRAG_FRAMEWORK_PYTORCH,
                              .release = "PyTorch 2.1 or later"};
    message->figures[FRAG_FIGURE_REQUESTED] =
        exactly(oom->segment_bytes > oom->requested_bytes && oom->segment_bytes != FRAG_UNLIMITED
                    ? oom->segment_bytes
                    : oom->requested_bytes);
    message->figures[FRAG_FIGURE_TOTAL] = exactly(explanation->capacity_bytes);
    message->figures[FRAG_FIGURE_FREE] = exactly(free);
    message->figures[FRAG_FIGURE_RESERVED] = exactly(layout->reserved_bytes);
    message->figures[FRAG_FIGURE_IDLE] = exactly(idle);
    message->figures[FRAG_FIGURE_ALLOCATED] = exactly(layout->reserved_bytes - idle);
    message->figures[FRAG_FIGURE_LARGEST] = exactly(oom->largest_hole_bytes);
    /* Free enough on the device and yet refused: the program had set itself some limit, which lies
     * above what it held. */
    if (state->fraction != NULL)
        message->figures[FRAG_FIGURE_LIMIT] =
            exactly(limit_of(state->fraction, explanation->capacity_bytes));
    else if (free >= oom->requested_bytes && reserves_ranges(explanation->recording))
        message->says |= FRAG_SAYS_POOL_FULL;
    else if (explanation->is_recorded && !explanation->is_capacity_given &&
             !explanation->is_reproduced)
        message->figures[FRAG_FIGURE_LIMIT] = exactly(layout->reserved_bytes);
}

/* What is held when the recording begins; the layout while it is taken over says nothing. */
static void explain_start(frag_trace_explanation *explanation, uint64_t allowed_bytes)
{
    const frag_explain_start *start = &explanation->start;
    frag_message *message = &explanation->message;
    *message = (frag_message){.kind = FRAG_MESSAGE_OOM, .framework = FRAG_FRAMEWORK_PYTORCH};
    message->figures[FRAG_FIGURE_TOTAL] = exactly(explanation->capacity_bytes);
    message->figures[FRAG_FIGURE_RESERVED] = exactly(start->held_bytes);
    message->figures[FRAG_FIGURE_ALLOCATED] = exactly(start->live_bytes);
    message->figures[FRAG_FIGURE_IDLE] = exactly(start->held_bytes - start->live_bytes);
    frag_explain_start_diagnose(start, allowed_bytes, &explanation->diagnosis);
    frag_explain_start_advise(start, &explanation->advice);
}

/* ---- one device */

/* With a memory fraction every page of capacity can behave differently, which takes too long to
 * search; and it is the fraction that has to change. */
static bool find_least(explain_run *state, frag_error *error)
{
    frag_trace_explanation *explanation = state->explanation;
    if (state->fraction != NULL)
        return true;
    const frag_candidate *recorded = &explanation->candidates[0];
    frag_device_spec device = {0};
    const frag_recording *recording =
        state->whole_trace != NULL ? state->whole : explanation->recording;
    const frag_trace *trace = state->whole_trace != NULL ? state->whole_trace : explanation->trace;
    return frag_find_least_capacity(
        &(frag_run_setup){recording, trace, recorded->spec.ops, recorded->spec.values, &device},
        repeats_of(state, trace), FRAG_UNLIMITED, state->context, &explanation->least, error);
}

static void begin_ideals(explain_run *state)
{
    frag_trace_explanation *explanation = state->explanation;
    bool is_given = state->whole_trace != NULL;
    frag_ideals_begin(&state->ideals, state->context,
                      is_given ? state->whole : explanation->recording,
                      is_given ? state->whole_trace : explanation->trace,
                      limit_of(state->fraction, explanation->capacity_bytes), &explanation->ideals);
}

static void run_halved(explain_run *state)
{
    frag_trace_explanation *explanation = state->explanation;
    frag_trace halved = *explanation->trace;
    frag_error error = {0};
    state->halved_events = frag_sites_halve(&explanation->sites, explanation->trace);
    halved.events = state->halved_events;
    candidate_view looker = {.candidate = &explanation->halved};
    explanation->has_halved =
        run(state, explanation->recording, &halved, &explanation->halved, &looker, &error);
    explanation->halved.fits = explanation->rest == FRAG_REST_HERE && explanation->halved.gets_past;
}

/* The failure is only the first of a program that needs more later. */
static void weigh_peak(explain_run *state, uint64_t allowed_bytes)
{
    frag_trace_explanation *explanation = state->explanation;
    const frag_explain_peak peak = {.live_bytes = state->ideals.demand_bytes,
                                    .capacity_bytes = explanation->capacity_bytes,
                                    .allowed_bytes = allowed_bytes,
                                    .is_whole = explanation->rest != FRAG_REST_UNKNOWN};
    frag_explain_peak_diagnose(&peak, &explanation->diagnosis);
}

/* Without a message of its own the recording shows which settings are in force. */
static void advise(frag_trace_explanation *explanation)
{
    frag_messages messages = {.count = 0};
    const char *conf = frag_recording_get(explanation->recording, "torch.conf");
    if (conf != NULL)
        frag_messages_read(&messages, conf, strlen(conf));
    frag_advise(&messages, &explanation->message, &explanation->diagnosis, &explanation->advice);
    frag_messages_destroy(&messages);
}

/* Fails the replay of the recorded settings at the very request that failed when recorded? */
static bool is_reproduced(const frag_trace_explanation *explanation, const frag_candidate *run)
{
    return run->oom.has_happened &&
           (!explanation->is_recorded || run->oom.event == explanation->trace->event_count - 1);
}

/* A recording does not say that the program limited itself. Where the device had room and only
 * such a limit explains the failure, the least of the usual ones that does is taken. */
static bool find_fraction(explain_run *state, frag_error *error)
{
    static const char *const usual[] = {"0.1", "0.2",  "0.25", "0.3",  "0.33", "0.4",  "0.5", "0.6",
                                        "0.7", "0.75", "0.8",  "0.85", "0.9",  "0.95", "0.98"};
    frag_trace_explanation *explanation = state->explanation;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        frag_candidate limited = {0};
        candidate_view looker = {.candidate = &limited};
        frag_policy_spec_copy(&explanation->candidates[0].spec, &limited.spec);
        state->fraction = usual[i];
        bool ok = run(state, explanation->recording, explanation->trace, &limited, &looker, error);
        frag_policy_spec_destroy(&limited.spec);
        if (!ok)
            return false;
        if (is_reproduced(explanation, &limited)) {
            explanation->fraction = usual[i];
            explanation->is_fraction_found = true;
            return true;
        }
    }
    state->fraction = NULL;
    return true;
}

/* The layout at the request that failed: as the replay gives it, or, where the replay can serve
 * that request, as it stood right before. */
static bool look_at_failure(explain_run *state, frag_error *error)
{
    frag_trace_explanation *explanation = state->explanation;
    frag_candidate *recorded = &explanation->candidates[0];
    frag_policy_met met;
    candidate_view looker = {.explanation = explanation, .candidate = recorded, .met = &met};
    if (!run(state, explanation->recording, explanation->trace, recorded, &looker, error))
        return false;
    /* On a device of another size the recorded failure proves nothing. */
    bool must_fail = explanation->is_recorded && !explanation->is_capacity_given;
    if (must_fail && !recorded->oom.has_happened && state->fraction == NULL) {
        if (!find_fraction(state, error))
            return false;
        frag_sites_destroy(&explanation->sites);
        if (!run(state, explanation->recording, explanation->trace, recorded, &looker, error))
            return false;
    }
    explanation->oom = recorded->oom;
    explanation->is_reproduced = is_reproduced(explanation, recorded);
    know_failure(state, &met);
    if (!must_fail || explanation->is_reproduced)
        return true;
    frag_trace before = *explanation->trace;
    uint64_t failed = --before.event_count;
    uint64_t asked = explanation->trace->events[failed].bytes;
    frag_candidate again = {0};
    frag_policy_spec_copy(&recorded->spec, &again.spec);
    looker = (candidate_view){.explanation = explanation, .candidate = &again};
    frag_sites_destroy(&explanation->sites);
    bool ok = run(state, explanation->recording, &before, &again, &looker, error);
    explanation->oom = (frag_oom){
        .has_happened = true, .event = failed, .requested_bytes = asked, .segment_bytes = asked};
    frag_policy_spec_destroy(&again.spec);
    return ok;
}

static bool helps(const frag_trace_explanation *explanation, const frag_candidate *candidate)
{
    return candidate->is_run &&
           (explanation->rest == FRAG_REST_UNKNOWN ? candidate->gets_past : candidate->fits);
}

static void say_by_simulation(const frag_trace_explanation *explanation,
                              const frag_candidate *candidate, frag_text *text)
{
    frag_text_add(text, " By simulation it %s, with %s to spare.",
                  explanation->rest == FRAG_REST_UNKNOWN ? "gets past this point" : "fits",
                  FRAG_BYTES(candidate->spare_bytes));
}

/* The candidate that stands for a setting of the advice, or NULL. */
static const frag_candidate *tried(const frag_trace_explanation *explanation, const char *setting)
{
    const char *conf = setting != NULL ? strchr(setting, '=') : NULL;
    if (conf == NULL)
        return NULL;
    for (size_t i = 1; i < explanation->candidate_count; i++) {
        const frag_candidate *candidate = &explanation->candidates[i];
        if (candidate->is_run && candidate->setting != NULL && candidate->fraction == NULL &&
            strcmp(conf + 1, candidate->setting) == 0)
            return candidate;
    }
    return NULL;
}

/* The setting that leaves most, or NULL: none helps. The first of equals. */
static const frag_candidate *best_setting(const frag_trace_explanation *explanation)
{
    const frag_candidate *best = NULL;
    for (size_t i = 1; i < explanation->candidate_count; i++) {
        const frag_candidate *candidate = &explanation->candidates[i];
        if (candidate->setting != NULL && candidate->fraction == NULL &&
            helps(explanation, candidate) &&
            (best == NULL || candidate->spare_bytes > best->spare_bytes))
            best = candidate;
    }
    return best;
}

/* The best setting comes first. Of the rest, what the simulation shows not to help is dropped, and
 * what helps says by how much. */
static void weigh_advice(frag_trace_explanation *explanation)
{
    frag_advice given = explanation->advice;
    frag_advice *advice = &explanation->advice;
    const frag_candidate *best = best_setting(explanation);
    *advice = (frag_advice){.count = 0};
    if (best != NULL) {
        frag_advice_step *step = &advice->steps[advice->count++];
        *step = (frag_advice_step){.action = "best-setting", .setting = best->setting};
        if (*best->setting != '\0')
            frag_text_add(&step->text, "Set PYTORCH_CUDA_ALLOC_CONF=%s.", best->setting);
        else
            frag_text_add(&step->text, "Go back to the default settings.");
        say_by_simulation(explanation, best, &step->text);
    }
    for (size_t i = 0; i < given.count; i++) {
        frag_advice_step *step = &given.steps[i];
        const frag_candidate *candidate = tried(explanation, step->setting);
        if (strcmp(step->action, "record-and-explain") == 0 || advice->count == FRAG_ADVICE_MAX ||
            (candidate != NULL && (candidate == best || !helps(explanation, candidate)))) {
            frag_advice_step_destroy(step);
            continue;
        }
        if (candidate != NULL)
            say_by_simulation(explanation, candidate, &step->text);
        advice->steps[advice->count++] = *step;
    }
}

static void say_nothing_failed(frag_trace_explanation *explanation)
{
    explanation->diagnosis = (frag_diagnosis){.verdict = FRAG_OOM_VERDICT_NOT_AN_OOM,
                                              .confidence = FRAG_CONFIDENCE_HIGH};
    explanation->candidates[0].fits = explanation->rest != FRAG_REST_UNKNOWN;
    frag_text_add(&explanation->diagnosis.because,
                  "On a device of %s %s with these settings; at most %s are reserved.%s",
                  FRAG_BYTES(explanation->capacity_bytes),
                  explanation->is_recorded ? "the request that failed when recorded is served"
                                           : "nothing fails",
                  FRAG_BYTES(explanation->candidates[0].peak_reserved_bytes),
                  explanation->is_recorded
                      ? " What the program would have asked after it is not recorded; --with "
                        "takes a recording that goes on."
                      : "");
}

/* What is tried beside the candidates, in this order, since it takes longest. */
enum { TRIAL_LEAST = FRAG_IDEAL_COUNT, TRIAL_HALVED, TRIAL_FIRST_CANDIDATE };

static void try_one(void *context, uint64_t index)
{
    explain_run *state = context;
    if (index < FRAG_IDEAL_COUNT)
        frag_ideals_find_one(&state->ideals, index);
    else if (index == TRIAL_LEAST)
        state->is_least_ok = find_least(state, &state->least_error);
    else if (index >= TRIAL_FIRST_CANDIDATE)
        run_candidate(state, index - TRIAL_FIRST_CANDIDATE);
    else if (!state->explanation->start.is_too_large)
        run_halved(state);
}

/* The trials depend on nothing but what was found before all of them. */
static bool try_all(explain_run *state, frag_error *error)
{
    frag_trace_explanation *explanation = state->explanation;
    if (!explanation->start.is_too_large)
        frag_policy_spec_copy(&explanation->candidates[0].spec, &explanation->halved.spec);
    frag_for_each(frag_context_threads(state->context),
                  TRIAL_FIRST_CANDIDATE + explanation->candidate_count, try_one, state);
    frag_ideals_end(&state->ideals);
    if (!state->is_least_ok)
        *error = state->least_error;
    return state->is_least_ok;
}

static bool explain(explain_run *state, frag_error *error)
{
    frag_trace_explanation *explanation = state->explanation;
    if (!load_whole(state, error) || !list_candidates(state, error))
        return false;
    frag_repeats_find(explanation->trace, &state->repeats);
    if (state->whole_trace != NULL)
        frag_repeats_find(state->whole_trace, &state->whole_repeats);
    if (!look_at_failure(state, error))
        return false;
    if (!explanation->oom.has_happened) {
        say_nothing_failed(explanation);
        return true;
    }
    uint64_t allowed = limit_of(state->fraction, explanation->capacity_bytes);
    frag_explain_start_find(explanation->trace, explanation->oom.event, allowed,
                            &explanation->start);
    begin_ideals(state);
    if (explanation->start.is_too_large) {
        explain_start(explanation, allowed);
    } else {
        fill_message(state);
        frag_diagnose(&explanation->message, &explanation->diagnosis);
        weigh_peak(state, allowed);
        advise(explanation);
    }
    bool ok = try_all(state, error);
    weigh_advice(explanation);
    return ok;
}

static void destroy(explain_run *state)
{
    frag_trace_explanation *explanation = state->explanation;
    for (size_t i = 0; i < explanation->candidate_count; i++)
        frag_policy_spec_destroy(&explanation->candidates[i].spec);
    frag_free(explanation->candidates);
    if (explanation->halved.spec.ops != NULL)
        frag_policy_spec_destroy(&explanation->halved.spec);
    frag_sites_destroy(&explanation->sites);
    frag_diagnosis_destroy(&explanation->diagnosis);
    frag_advice_destroy(&explanation->advice);
    frag_repeats_destroy(&state->repeats);
    frag_repeats_destroy(&state->whole_repeats);
    frag_recording_destroy(&state->loaded);
    frag_free(state->asked_events);
    frag_free(state->halved_events);
    frag_free(state->known.sizes);
}

uint64_t frag_explain_capacity(const frag_trace *trace, const frag_explain_options *options)
{
    uint64_t failed = frag_explain_failed_event(trace);
    return options->capacity_bytes != FRAG_UNLIMITED || failed == trace->event_count
               ? options->capacity_bytes
               : recorded_capacity(trace, failed);
}

/* On the device given, the recording itself serves the request that failed when recorded: does a
 * later one fail? */
static bool fails_later(const explain_run *state, const frag_trace *trace, bool *fails,
                        frag_error *error)
{
    const frag_trace_explanation *explanation = state->explanation;
    frag_candidate recorded = {0};
    candidate_view looker = {.candidate = &recorded};
    frag_policy_spec_copy(&explanation->candidates[0].spec, &recorded.spec);
    bool ok = run(state, explanation->recording, trace, &recorded, &looker, error);
    frag_policy_spec_destroy(&recorded.spec);
    *fails = recorded.oom.has_happened;
    return ok;
}

/* is_recorded: up to the request that failed when recorded, and no further, where that or one
 * before it fails. */
static bool explain_part(const frag_context *context, const frag_recording *recording,
                         const frag_trace *trace, const frag_explain_options *options,
                         bool is_recorded, frag_explain_taker *take, void *user, frag_error *error)
{
    frag_trace_explanation explanation = {
        .recording = recording,
        .is_recorded = is_recorded,
        .is_capacity_given = options->capacity_bytes != FRAG_UNLIMITED,
        .capacity_bytes = frag_explain_capacity(trace, options),
        .fraction = options->fraction,
        .rest = is_recorded ? FRAG_REST_UNKNOWN : FRAG_REST_HERE,
    };
    explain_run state = {.context = context,
                         .options = options,
                         .explanation = &explanation,
                         .cut = *trace,
                         .fraction = options->fraction};
    if (is_recorded)
        state.cut.event_count = frag_explain_failed_event(trace) + 1;
    explanation.trace = &state.cut;
    bool ok = explain(&state, error) || frag_error_in(error, recording->name);
    bool is_served = ok && is_recorded && !explanation.oom.has_happened;
    bool fails = false;
    if (is_served && state.whole_trace == NULL)
        ok = fails_later(&state, trace, &fails, error) || frag_error_in(error, recording->name);
    frag_explain_options rest = *options;
    rest.whole = NULL;
    rest.whole_path = NULL;
    if (ok && !frag_is_cancelled(context)) {
        if (is_served && state.whole_trace != NULL)
            ok = explain_part(context, state.whole, state.whole_trace, &rest, false, take, user,
                              error);
        else if (fails)
            ok = explain_part(context, recording, trace, &rest, false, take, user, error);
        else
            take(user, &explanation);
    }
    destroy(&state);
    return ok;
}

bool frag_explain_trace(const frag_context *context, const frag_recording *recording,
                        const frag_trace *trace, const frag_explain_options *options,
                        frag_explain_taker *take, void *user, frag_error *error)
{
    return frag_explain_capacity(trace, options) == FRAG_UNLIMITED ||
           explain_part(context, recording, trace, options,
                        frag_explain_failed_event(trace) < trace->event_count, take, user, error);
}

uint64_t frag_explain_missing_bytes(const frag_trace_explanation *explanation)
{
    const frag_capacity_result *least = &explanation->least;
    bool is_known = least->is_found && explanation->fraction == NULL &&
                    least->capacity_bytes > explanation->capacity_bytes;
    return is_known ? least->capacity_bytes - explanation->capacity_bytes : 0;
}

bool frag_explain_can(const frag_recording *recording, const frag_explain_options *options)
{
    for (uint32_t i = 0; i < recording->trace_count; i++)
        if (frag_explain_capacity(&recording->traces[i], options) != FRAG_UNLIMITED)
            return true;
    return false;
}

/* Without requests nobody can know whether one failed. */
static bool has_history(const frag_recording *recording)
{
    for (uint32_t i = 0; i < recording->trace_count; i++)
        if (recording->traces[i].stats.request_count > 0)
            return true;
    return false;
}

const char *frag_explain_why_not(const frag_recording *recording)
{
    if (!has_history(recording))
        return "it holds no history of requests, so it cannot tell whether memory ran out; call "
               "torch.cuda.memory._record_memory_history() before the program's first allocation, "
               "or ask with --capacity whether its memory fits a smaller device";
    return "it did not run out of memory; --capacity asks what would happen on a smaller device";
}
