#include "cli/search/tune.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/inputs.h"

static const frag_command_option options[] = {
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "whose options are searched (default: pytorch); options given stay as they are; "
             "repeat it for several, or join bare names with commas"},
    {"for", "GOAL", .choices = "peak|min-capacity",
     .help = "what to minimise. peak: peak reserved bytes (with --capacity, among the settings "
             "that do not run out of memory); min-capacity: the least capacity that survives "
             "(default: peak)"},
    {"held-out", "TRACE",
     .help = "report the setting that was found on this trace too, but do not search on it; repeat "
             "it for several"},
    {"runs", "N", .help = "settings to try, each on every trace (default: 400)"},
    {"seconds", "N",
     .help = "end the search after that time; the result then depends on the machine"},
    {"seed", "N", .help = "seed of the random restarts (default: 0)"},
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "for a person, or one JSON object for each policy (default: table)"},
    FRAG_BOUNDS_OPTION,
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

typedef struct tune_run {
    const frag_context *context;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_tune_goal goal;
    uint64_t runs;
    uint64_t seed;
    uint64_t seconds; /* 0: no limit */
    uint64_t threads;
    frag_recording *recordings;
    size_t recording_count;
    frag_tune_subject *subjects; /* those that are searched on come first */
    size_t subject_count;
    size_t searched_count;
    bool has_bounds;
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
    return frag_is_interrupted() ||
           (state->end_ns != 0 && !is_default && frag_clock_ns() >= state->end_ns);
}

static bool find_capacity(const tune_run *state, const frag_tune_subject *subject,
                          const frag_policy_spec *spec, uint64_t give_up_bytes,
                          frag_tune_outcome *outcome)
{
    frag_capacity_result result = {0};
    if (!frag_find_least_capacity(&(frag_run_setup){subject->recording, subject->trace, spec->ops,
                                                    spec->values, &state->device},
                                  give_up_bytes, state->context, &result, &outcome->error))
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
    frag_run_options run = {.is_layout_skipped = true, .context = state->context};
    frag_run_result result;
    if (!frag_run(&(frag_run_setup){subject->recording, subject->trace, spec->ops, spec->values,
                                    &state->device},
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
        ok = state->goal == FRAG_TUNE_PEAK
                 ? find_peak(state, subject, &spec, outcome)
                 : find_capacity(state, subject, &spec, give_up_bytes, outcome);
        frag_policy_spec_destroy(&spec);
    }
    /* A combination of options that the policy refuses is reported as the user's mistake. */
    outcome->is_refused = !ok && outcome->error.code == FRAG_E_USAGE;
    outcome->is_done = (ok || outcome->is_refused) && !frag_is_interrupted();
}

/* ---- many of them */

typedef struct batch {
    const tune_run *state;
    const frag_tune_point *points;
    frag_tune_outcome *outcomes; /* of each point those of the traces searched on */
} batch;

/* With more bytes than that on one trace, and as few as can be on the others, the mean is over
 * what is of use. A page more, since that is what capacities are told in. */
static uint64_t most_of_use(const tune_run *state, const frag_tune_point *point,
                            const frag_tune_subject *subject)
{
    double others = (double)(state->searched_count - 1);
    double bound = (double)frag_trace_bound_bytes(subject->trace);
    double most = (point->size_of_use * (double)state->searched_count - others) * bound;
    uint64_t page = frag_device_page(&state->device, subject->trace);
    return most < (double)((uint64_t)1 << 62) ? (uint64_t)most + page : FRAG_UNLIMITED;
}

static void run_one(void *context, uint64_t index)
{
    batch *all = context;
    const tune_run *state = all->state;
    const frag_tune_point *point = &all->points[index / state->searched_count];
    const frag_tune_subject *subject = &state->subjects[index % state->searched_count];
    if (is_late(state, !state->is_past_default && index < state->searched_count))
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
    for (size_t i = 0; i < state->searched_count; i++) {
        const frag_trace *trace = state->subjects[i].trace;
        score->is_refused = score->is_refused || outcomes[i].is_refused;
        score->is_given_up = score->is_given_up || outcomes[i].is_given_up;
        score->calls += outcomes[i].calls;
        score->time_ns += outcomes[i].time_ns;
        if (outcomes[i].is_oom) {
            score->failed++;
            score->unreached +=
                1 - (double)outcomes[i].oom_event / (double)(trace->event_count + 1);
        } else {
            score->size += relative_size(outcomes[i].bytes, frag_trace_bound_bytes(trace));
            score->over_packing +=
                relative_size(outcomes[i].bytes, state->subjects[i].packing.bytes);
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
    size_t all = count * state->searched_count;
    batch work = {
        .state = state, .points = points, .outcomes = frag_alloc(all, sizeof *work.outcomes)};
    frag_for_each((uint32_t)state->threads, all, run_one, &work);
    size_t done = 0;
    while (done < all && work.outcomes[done].is_done)
        done++;
    for (size_t i = done; i < all && state->error.code == FRAG_E_NONE; i++)
        if (!work.outcomes[i].is_done)
            state->error = work.outcomes[i].error;
    state->is_timed = done < all;
    size_t scored = done / state->searched_count;
    for (size_t i = 0; i < scored; i++)
        fold_score(state, &work.outcomes[i * state->searched_count], &points[i].score);
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
    frag_tune_subject *subject = &all->state->subjects[index / FRAG_TUNE_ROLE_COUNT];
    if (all->points[role] != NULL && !frag_is_interrupted())
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
    frag_for_each((uint32_t)state->threads, state->subject_count * FRAG_TUNE_ROLE_COUNT, show_one,
                  &all);
    for (size_t i = 0; i < state->subject_count; i++) {
        const frag_tune_outcome *outcome = &state->subjects[i].outcomes[FRAG_TUNE_DEFAULT];
        if (!outcome->is_done || outcome->is_refused) {
            *error = outcome->error;
            return frag_error_in(error, state->subjects[i].recording->name);
        }
    }
    return true;
}

static bool tune_policy(tune_run *state, const frag_arguments *arguments,
                        const frag_policy_spec *base, bool is_json, FILE *stream, frag_error *error)
{
    bool has_limit =
        state->goal == FRAG_TUNE_MIN_CAPACITY || state->device.capacity_bytes != FRAG_UNLIMITED;
    frag_tune_found found;
    frag_tune_space_create(base, has_limit, &state->space);
    state->is_past_default = state->is_timed = false;
    state->end_ns = state->seconds > 0 ? frag_clock_ns() + state->seconds * 1000000000u : 0;
    frag_tune_search_setup setup = {.value_counts = state->space.value_counts,
                                    .axis_count = state->space.axis_count,
                                    .starts = state->space.starts,
                                    .start_count = state->space.start_count,
                                    .seed = state->seed,
                                    .tries_max = state->runs,
                                    .score = score_points,
                                    .context = state};
    frag_tune_search(&setup, &found);
    bool ok = true;
    if (state->error.code != FRAG_E_NONE) {
        *error = state->error;
        ok = false;
    } else if (found.count > 0 && !frag_is_interrupted()) {
        ok = show_traces(state, &found, error);
    }
    frag_progress_pause(state->progress);
    if (ok && found.count > 0 && !frag_is_interrupted()) {
        frag_tuned tuned = {.arguments = arguments,
                            .goal = state->goal,
                            .capacity_bytes = state->device.capacity_bytes,
                            .seed = state->seed,
                            .has_latency = state->device.latency != NULL,
                            .has_bounds = state->has_bounds,
                            .is_timed = state->is_timed,
                            .space = &state->space,
                            .found = &found,
                            .subjects = state->subjects,
                            .subject_count = state->subject_count};
        if (is_json)
            frag_tune_print_json(stream, &tuned);
        else
            frag_tune_print_table(stream, &tuned);
    }
    frag_free(found.points);
    frag_tune_space_destroy(&state->space);
    return ok;
}

/* ---- the command */

static bool add_recording(tune_run *state, const char *path, frag_trace_format format,
                          bool is_held_out, size_t *capacity, frag_error *error)
{
    frag_recording *recording = &state->recordings[state->recording_count];
    if (!frag_recording_load_plain(path, format, false, recording, error))
        return false;
    state->recording_count++;
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        state->subjects =
            frag_grow(state->subjects, capacity, state->subject_count + 1, sizeof *state->subjects);
        state->subjects[state->subject_count++] = (frag_tune_subject){
            .recording = recording, .trace = &recording->traces[i], .is_held_out = is_held_out};
        state->searched_count += is_held_out ? 0 : 1;
    }
    return true;
}

static bool load_traces(tune_run *state, const frag_arguments *arguments, frag_error *error)
{
    frag_trace_format format = FRAG_FORMAT_AUTO;
    size_t operands = frag_arguments_operand_count(arguments);
    size_t held_out = frag_arguments_value_count(arguments, "held-out");
    size_t capacity = 0;
    state->recordings = frag_alloc(operands + held_out, sizeof *state->recordings);
    if (!frag_inputs_format(arguments, &format, error))
        return false;
    for (size_t i = 0; i < operands; i++)
        if (!add_recording(state, frag_arguments_operand(arguments, i), format, false, &capacity,
                           error))
            return false;
    for (size_t i = 0; i < held_out; i++)
        if (!add_recording(state, frag_arguments_value_at(arguments, "held-out", i), format, true,
                           &capacity, error))
            return false;
    return state->searched_count > 0 ||
           frag_fail(error, FRAG_E_INPUT, "the recordings hold no trace to search on");
}

static void bound_one(void *context, uint64_t index)
{
    tune_run *state = context;
    frag_tune_subject *subject = &state->subjects[index];
    if (!frag_is_interrupted())
        (void)frag_bounds_find(state->context, subject->recording, subject->trace,
                               &subject->packing, &state->bound_errors[index]);
}

/* Computed before the search, whose scores are also reported relative to them. */
static bool find_bounds(tune_run *state, frag_error *error)
{
    if (!state->has_bounds)
        return true;
    state->bound_errors = frag_alloc(state->subject_count, sizeof *state->bound_errors);
    frag_for_each((uint32_t)state->threads, state->subject_count, bound_one, state);
    bool ok = true;
    for (size_t i = 0; ok && i < state->subject_count; i++)
        if (state->bound_errors[i].code != FRAG_E_NONE) {
            *error = state->bound_errors[i];
            ok = frag_error_in(error, state->subjects[i].recording->name);
        }
    frag_free(state->bound_errors);
    return ok;
}

static bool read_arguments(tune_run *state, const frag_arguments *arguments, frag_error *error)
{
    state->goal = frag_arguments_is(arguments, "for", "min-capacity") ? FRAG_TUNE_MIN_CAPACITY
                                                                      : FRAG_TUNE_PEAK;
    if (state->goal == FRAG_TUNE_MIN_CAPACITY && frag_arguments_has(arguments, "capacity"))
        return frag_fail(error, FRAG_E_USAGE,
                         "the capacity is what --for min-capacity looks for; leave --capacity out");
    if (!frag_inputs_policies(arguments, "pytorch", &state->policies, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error) ||
        !frag_arguments_count(arguments, "runs", 1, 10000, &state->runs, error) ||
        !frag_arguments_count(arguments, "seconds", 1, 1000000, &state->seconds, error) ||
        !frag_arguments_count(arguments, "seed", 0, UINT64_MAX, &state->seed, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &state->threads, error))
        return false;
    for (size_t i = 0; i < state->policies.count; i++)
        if (state->policies.specs[i].wants_recorded || state->policies.specs[i].wants_env) {
            frag_fail(
                error, FRAG_E_USAGE,
                "'%s' takes settings from elsewhere; name those that are to stay as they are, "
                "as in pytorch:max_split_size_mb=512",
                state->policies.specs[i].text);
            return frag_error_in(error, "--policy");
        }
    return true;
}

static int tune_command(const frag_arguments *arguments)
{
    tune_run state = {.runs = 400,
                      .context = frag_arguments_context(arguments),
                      .threads = frag_core_count(),
                      .has_bounds = frag_arguments_has(arguments, "bounds")};
    frag_error error = {0};
    frag_output *output = NULL;
    bool ok = read_arguments(&state, arguments, &error) && load_traces(&state, arguments, &error) &&
              (output = frag_inputs_output(arguments, &error)) != NULL &&
              find_bounds(&state, &error);
    if (ok) {
        bool is_json = frag_arguments_is(arguments, "format", "jsonl");
        FILE *stream = frag_output_stream(output);
        state.progress =
            frag_progress_start(frag_arguments_context(arguments), "tuning", "runs",
                                state.policies.count * state.runs * state.searched_count);
        for (size_t i = 0; ok && i < state.policies.count && !frag_is_interrupted(); i++) {
            if (i > 0 && !is_json)
                fputc('\n', stream);
            ok = tune_policy(&state, arguments, &state.policies.specs[i], is_json, stream, &error);
        }
        frag_progress_end(state.progress);
    }
    int code = ok || frag_is_interrupted() ? 0 : frag_report(&error);
    if (output != NULL && (!ok || frag_is_interrupted()))
        frag_output_abandon(output);
    else if (output != NULL && !frag_output_finish(output, &error))
        code = frag_report(&error);
    for (size_t i = 0; i < state.recording_count; i++)
        frag_recording_destroy(&state.recordings[i]);
    frag_free(state.recordings);
    frag_free(state.subjects);
    frag_policy_list_destroy(&state.policies);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_tune = {
    .name = "tune",
    .operands = "TRACE...",
    .summary = "find the settings of a policy that need the least memory",
    .description =
        "Searches the options of a policy for the least peak of reserved bytes, or the least "
        "capacity, over all traces given, and prints the setting to paste: a literal "
        "PYTORCH_CUDA_ALLOC_CONF where it is PyTorch. Of settings that are equally good the one "
        "with the fewest options wins, and a table shows what each further option gains. "
        "max_split_size_mb:128, which many guides advise, is shown beside it for comparison. A "
        "setting found on one trace may be bad for another: --held-out shows that. docs/tune.md "
        "describes the search.\n"
        "\n"
        "Exit: 0 ok; 2 usage; 3 bad input; 4 the system refused; 130 interrupted.",
    .examples =
        "fraglab tune train.pickle --held-out other.pickle  # the setting to paste\n"
        "fraglab tune train.pickle --capacity 24GiB  # what does not run out of memory\n"
        "fraglab tune train.pickle --policy tlsf,best-fit --for min-capacity  # other policies",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = tune_command,
};
