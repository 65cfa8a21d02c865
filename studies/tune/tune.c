#include "studies/tune/tune.h"

#include "base/memory.h"
#include "base/threads.h"

typedef struct tune_run {
    const frag_context *context;
    const frag_tune_options *options;
    frag_tune_subjects *subjects;
    frag_error *bound_errors; /* of each subject */
    frag_progress *progress;
    /* of the policy being tuned */
    frag_tune_space space;
    uint64_t end_ns;      /* 0: none */
    bool is_past_default; /* the default is scored whatever the time */
    bool is_timed;
    frag_error error; /* that ends the search */
} tune_run;

/* ---- one setting on one trace */

static bool is_late(const tune_run *state, bool is_default)
{
    return frag_is_cancelled(state->context) ||
           (state->end_ns != 0 && !is_default &&
            frag_context_clock_ns(state->context) >= state->end_ns);
}

static bool find_capacity(const tune_run *state, const frag_tune_subject *subject,
                          const frag_policy_spec *spec, uint64_t give_up_bytes,
                          frag_tune_outcome *outcome)
{
    frag_capacity_result result = {0};
    if (!frag_find_least_capacity(&(frag_run_setup){subject->recording, subject->trace, spec->ops,
                                                    spec->values, &state->options->device},
                                  &subject->repeats, give_up_bytes, state->context, &result,
                                  &outcome->error))
        return false;
    outcome->is_given_up = result.is_given_up;
    outcome->is_oom = !result.is_found && !result.is_given_up;
    outcome->bytes = result.is_found      ? result.capacity_bytes
                     : result.is_given_up ? give_up_bytes
                                          : 0;
    return true;
}

static bool find_peak(const tune_run *state, const frag_tune_subject *subject,
                      const frag_policy_spec *spec, frag_tune_outcome *outcome)
{
    frag_run_options run = {
        .is_layout_skipped = true, .context = state->context, .repeats = &subject->repeats};
    frag_run_result result;
    if (!frag_run(&(frag_run_setup){subject->recording, subject->trace, spec->ops, spec->values,
                                    &state->options->device},
                  &run, &result, &outcome->error))
        return false;
    outcome->is_oom = result.replay.oom.has_happened;
    outcome->oom_event = result.replay.oom.event;
    outcome->bytes = result.replay.peak.reserved_bytes;
    outcome->calls = frag_run_memory_calls(&result);
    outcome->time_ns = result.modelled_time_ns;
    return true;
}

static void find_outcome(const tune_run *state, const frag_tune_point *point,
                         const frag_tune_subject *subject, uint64_t give_up_bytes,
                         frag_tune_outcome *outcome)
{
    frag_policy_spec spec;
    *outcome = (frag_tune_outcome){0};
    bool ok = frag_tune_space_spec(&state->space, point, &spec, &outcome->error);
    if (ok) {
        ok = state->options->goal == FRAG_TUNE_PEAK
                 ? find_peak(state, subject, &spec, outcome)
                 : find_capacity(state, subject, &spec, give_up_bytes, outcome);
        frag_policy_spec_destroy(&spec);
    }
    /* A combination of options that the policy refuses is reported as the user's mistake. */
    outcome->is_refused = !ok && outcome->error.code == FRAG_E_USAGE;
    outcome->is_done = (ok || outcome->is_refused) && !frag_is_cancelled(state->context);
}

/* ---- many of them */

typedef struct batch {
    const tune_run *state;
    const frag_tune_point *points;
    frag_tune_outcome *outcomes; /* of each point those of the traces searched on */
} batch;

uint64_t frag_tune_others(const frag_tune_options *options)
{
    return options->goal == FRAG_TUNE_MIN_CAPACITY ? options->device.used_by_others_bytes : 0;
}

/* Of a trace: what no setting can go under, in what the goal counts. */
static uint64_t bound_of(const tune_run *state, const frag_trace *trace)
{
    return frag_trace_bound_bytes(trace) + frag_tune_others(state->options);
}

/* With more bytes than that on one trace, and as few as can be on the others, the mean is over
 * what is of use. A page more, since that is what capacities are told in. */
static uint64_t most_of_use(const tune_run *state, const frag_tune_point *point,
                            const frag_tune_subject *subject)
{
    double others = (double)(state->subjects->searched_count - 1);
    double bound = (double)bound_of(state, subject->trace);
    double most = (point->size_of_use * (double)state->subjects->searched_count - others) * bound;
    uint64_t page = frag_device_page(&state->options->device, subject->trace);
    return most < (double)((uint64_t)1 << 62) ? (uint64_t)most + page : FRAG_UNLIMITED;
}

static void run_one(void *context, uint64_t index)
{
    batch *all = context;
    const tune_run *state = all->state;
    const frag_tune_point *point = &all->points[index / state->subjects->searched_count];
    const frag_tune_subject *subject =
        &state->subjects->items[index % state->subjects->searched_count];
    if (is_late(state, !state->is_past_default && index < state->subjects->searched_count))
        return;
    find_outcome(state, point, subject, most_of_use(state, point, subject), &all->outcomes[index]);
    frag_progress_add(state->progress, 1);
}

/* The peak of the requests is a bound for every setting, so that a large trace does not drown the
 * others. */
static double relative_size(uint64_t bytes, uint64_t bound)
{
    return bound == 0 ? 0 : (double)bytes / (double)bound;
}

static void fold_score(const tune_run *state, const frag_tune_outcome *outcomes,
                       frag_tune_score *score)
{
    *score = (frag_tune_score){0};
    uint32_t served = 0;
    for (size_t i = 0; i < state->subjects->searched_count; i++) {
        const frag_trace *trace = state->subjects->items[i].trace;
        score->is_refused = score->is_refused || outcomes[i].is_refused;
        score->is_given_up = score->is_given_up || outcomes[i].is_given_up;
        score->calls += outcomes[i].calls;
        score->time_ns += outcomes[i].time_ns;
        if (outcomes[i].is_oom) {
            score->failed++;
            score->unreached +=
                1 - (double)outcomes[i].oom_event / (double)(trace->event_count + 1);
        } else {
            score->size += relative_size(outcomes[i].bytes, bound_of(state, trace));
            uint64_t packing = state->subjects->items[i].packing.bytes;
            score->over_packing += relative_size(
                outcomes[i].bytes, packing > 0 ? packing + frag_tune_others(state->options) : 0);
            served++;
        }
    }
    score->size = served > 0 ? score->size / served : 0;
    score->over_packing = served > 0 ? score->over_packing / served : 0;
}

/* Jobs are started in order, so what the time was enough for comes first. */
static size_t score_points(void *context, frag_tune_point *points, size_t count)
{
    tune_run *state = context;
    size_t all = count * state->subjects->searched_count;
    batch work = {
        .state = state, .points = points, .outcomes = frag_alloc(all, sizeof *work.outcomes)};
    frag_for_each(frag_context_threads(state->context), all, run_one, &work);
    size_t done = 0;
    while (done < all && work.outcomes[done].is_done)
        done++;
    for (size_t i = done; i < all && state->error.code == FRAG_E_NONE; i++)
        if (!work.outcomes[i].is_done)
            state->error = work.outcomes[i].error;
    state->is_timed = done < all;
    size_t scored = done / state->subjects->searched_count;
    for (size_t i = 0; i < scored; i++)
        fold_score(state, &work.outcomes[i * state->subjects->searched_count], &points[i].score);
    frag_free(work.outcomes);
    state->is_past_default = true;
    return scored;
}

/* ---- one policy */

typedef struct print_options {
    tune_run *state;
    const frag_tune_point *points[FRAG_TUNE_ROLE_COUNT];
} print_options;

static void show_one(void *context, uint64_t index)
{
    print_options *all = context;
    frag_tune_role role = (frag_tune_role)(index % FRAG_TUNE_ROLE_COUNT);
    frag_tune_subject *subject = &all->state->subjects->items[index / FRAG_TUNE_ROLE_COUNT];
    if (all->points[role] != NULL && !frag_is_cancelled(all->state->context))
        find_outcome(all->state, all->points[role], subject, FRAG_UNLIMITED,
                     &subject->outcomes[role]);
}

/* What the policy cannot do with its defaults is an error; that another setting is refused on a
 * trace is a result. */
static bool show_traces(tune_run *state, const frag_tune_found *found, frag_error *error)
{
    print_options all = {
        .state = state,
        .points = {[FRAG_TUNE_DEFAULT] = &found->points[0],
                   [FRAG_TUNE_BEST] = &found->points[found->best],
                   [FRAG_TUNE_ADVISED] = state->space.has_advised ? &state->space.advised : NULL}};
    frag_for_each(frag_context_threads(state->context),
                  state->subjects->count * FRAG_TUNE_ROLE_COUNT, show_one, &all);
    for (size_t i = 0; i < state->subjects->count; i++) {
        const frag_tune_outcome *outcome = &state->subjects->items[i].outcomes[FRAG_TUNE_DEFAULT];
        if (!outcome->is_done || outcome->is_refused) {
            *error = outcome->error;
            return frag_error_in(error, state->subjects->items[i].recording->name);
        }
    }
    return true;
}

static bool tune_policy(tune_run *state, const frag_policy_spec *base, frag_tune_taker *take,
                        void *user, frag_error *error)
{
    const frag_tune_options *options = state->options;
    bool has_limit =
        options->goal == FRAG_TUNE_MIN_CAPACITY || options->device.capacity_bytes != FRAG_UNLIMITED;
    frag_tune_found found;
    frag_tune_space_create(base, has_limit, &state->space);
    state->is_past_default = state->is_timed = false;
    state->end_ns = options->seconds > 0
                        ? frag_context_clock_ns(state->context) + options->seconds * 1000000000u
                        : 0;
    frag_tune_search_setup setup = {.value_counts = state->space.value_counts,
                                    .axis_count = state->space.axis_count,
                                    .starts = state->space.starts,
                                    .start_count = state->space.start_count,
                                    .seed = options->seed,
                                    .tries_max = options->runs,
                                    .score = score_points,
                                    .context = state};
    frag_tune_search(&setup, &found);
    bool ok = true;
    if (state->error.code != FRAG_E_NONE) {
        *error = state->error;
        ok = false;
    } else if (found.count > 0 && !frag_is_cancelled(state->context)) {
        ok = show_traces(state, &found, error);
    }
    frag_progress_pause(state->progress);
    if (ok && found.count > 0 && !frag_is_cancelled(state->context)) {
        frag_tuned tuned = {.goal = options->goal,
                            .capacity_bytes = options->device.capacity_bytes,
                            .others_bytes = frag_tune_others(options),
                            .seed = options->seed,
                            .has_latency = options->device.latency != NULL,
                            .has_bounds = options->has_bounds,
                            .is_timed = state->is_timed,
                            .space = &state->space,
                            .found = &found,
                            .subjects = state->subjects->items,
                            .subject_count = state->subjects->count};
        take(user, &tuned);
    }
    frag_free(found.points);
    frag_tune_space_destroy(&state->space);
    return ok;
}

/* ---- all of it */

void frag_tune_subjects_add(frag_tune_subjects *subjects, const frag_recording *recording,
                            bool is_held_out)
{
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        frag_tune_subject subject = {
            .recording = recording, .trace = &recording->traces[i], .is_held_out = is_held_out};
        frag_repeats_find(subject.trace, &subject.repeats);
        *FRAG_APPEND(subjects->items, subjects->count, subjects->capacity) = subject;
        subjects->searched_count += is_held_out ? 0 : 1;
    }
}

void frag_tune_subjects_destroy(frag_tune_subjects *subjects)
{
    for (size_t i = 0; i < subjects->count; i++)
        frag_repeats_destroy(&subjects->items[i].repeats);
    frag_free(subjects->items);
    *subjects = (frag_tune_subjects){0};
}

bool frag_tune_check_policy(const frag_policy_spec *policy, frag_error *error)
{
    return (!policy->wants_recorded && !policy->wants_env) ||
           frag_fail(error, FRAG_E_USAGE,
                     "'%s' takes settings from elsewhere; name those that are to stay as they are, "
                     "as in pytorch:max_split_size_mb=512",
                     policy->text);
}

static void bound_one(void *context, uint64_t index)
{
    tune_run *state = context;
    frag_tune_subject *subject = &state->subjects->items[index];
    if (!frag_is_cancelled(state->context))
        (void)frag_bounds_find(state->context, subject->recording, subject->trace,
                               &subject->packing, &state->bound_errors[index]);
}

/* Computed before the search, whose scores are also reported relative to them. */
static bool find_bounds(tune_run *state, frag_error *error)
{
    if (!state->options->has_bounds)
        return true;
    state->bound_errors = frag_alloc(state->subjects->count, sizeof *state->bound_errors);
    frag_for_each(frag_context_threads(state->context), state->subjects->count, bound_one, state);
    bool ok = true;
    for (size_t i = 0; ok && i < state->subjects->count; i++)
        if (state->bound_errors[i].code != FRAG_E_NONE) {
            *error = state->bound_errors[i];
            ok = frag_error_in(error, state->subjects->items[i].recording->name);
        }
    frag_free(state->bound_errors);
    return ok;
}

bool frag_tune(const frag_context *context, const frag_tune_options *options,
               const frag_policy_list *policies, frag_tune_subjects *subjects,
               frag_tune_taker *take, void *user, frag_error *error)
{
    tune_run state = {.context = context, .options = options, .subjects = subjects};
    if (subjects->searched_count == 0)
        return frag_fail(error, FRAG_E_INPUT, "the recordings hold no trace to search on");
    if (!find_bounds(&state, error))
        return false;
    state.progress = frag_progress_start(
        context, "tuning", "runs", policies->count * options->runs * subjects->searched_count);
    bool ok = true;
    for (size_t i = 0; ok && i < policies->count && !frag_is_cancelled(context); i++)
        ok = tune_policy(&state, &policies->specs[i], take, user, error);
    frag_progress_end(state.progress);
    return ok;
}

/* ---- of what was found */

bool frag_tune_has_bytes(const frag_tune_outcome *outcome)
{
    return outcome->is_done && !outcome->is_refused && !outcome->is_oom;
}

uint32_t frag_tune_most_changed(const frag_tuned *tuned)
{
    return tuned->found->points[tuned->found->best].changed;
}

bool frag_tune_find_step(const frag_tuned *tuned, uint32_t changed, const frag_tune_point **point)
{
    *point = &tuned->found->points[frag_tune_best_within(tuned->found, changed)];
    return (*point)->changed == changed;
}
