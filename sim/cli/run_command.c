#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/file.h"
#include "sim/base/memory.h"
#include "sim/cli/inputs.h"
#include "sim/cli/run_point.h"
#include "sim/cli/run_snapshot.h"
#include "sim/result.h"
#include "sim/version.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {.name = "on-oom",
     .argument = "WHAT",
     .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop the run, or skip the request and "
             "go on "
             "(default: stop)"},
    {.name = "fail-on-oom", .help = "exit 1 when a run ends in an OOM"},
    {.name = "format",
     .argument = "FORMAT",
     .choices = "table|jsonl|csv|markdown",
     .help = "how rows are printed (default: table)"},
    {.name = "stats-at",
     .argument = "POINT",
     .help = "add the statistics that a policy keeps itself (pytorch: torch.cuda.memory_stats, in "
             "tables as memory_summary) as they are right after an event: peak (reserved bytes "
             "first at their peak), oom (the first request that could not be served), end, or the "
             "number of an event"},
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = "timing",
     .help = "measure wall time and events per second (they differ from run to run; use -j 1)"},
    {.name = "check",
     .argument = "N",
     .help = "audit the policy's structures every N events (slow)"},
    {.name = "driver-log",
     .argument = "FILE",
     .help = "write every device call of the run there (one trace, one policy)"},
    FRAG_SNAPSHOT_OPTIONS,
    {.name = NULL},
};

/* One row to compute. */
typedef struct job {
    const frag_recording *recording;
    const frag_trace *trace;
    frag_policy_spec spec;
    frag_run_result result;
    frag_row_stats stats; /* with --stats-at */
    frag_error stats_error;
    frag_error error;
    bool is_ok;
} job;

typedef struct source {
    frag_recording recording;
    frag_error error;
    bool is_loaded;
    char recorded_by[64];
} source;

typedef struct running {
    const frag_arguments *arguments;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_run_options run;
    frag_trace_format format;
    frag_result_format result_format;
    const char *stats_at; /* NULL: no statistics */
    frag_run_point stats_point;
    frag_stats_columns *columns; /* of CSV with statistics */
    uint64_t threads;
    source *sources; /* of the block being worked on */
    size_t first_source;
    job *jobs;
    frag_progress *progress;
    frag_run_snapshot *snapshot; /* NULL: none wanted */
    bool has_oom;
} running;

static bool read_options(const frag_arguments *arguments, running *state, frag_error *error)
{
    state->threads = frag_core_count();
    if (!frag_inputs_policies(arguments, NULL, &state->policies, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error) ||
        !frag_inputs_format(arguments, &state->format, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &state->threads, error) ||
        !frag_arguments_count(arguments, "check", 1, UINT64_MAX, &state->run.check_every, error))
        return false;
    const char *format = frag_arguments_value(arguments, "format");
    if (format != NULL && !frag_result_format_find(format, &state->result_format))
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' is no format; expected table, jsonl, csv or markdown", format);
    state->stats_at = frag_arguments_value(arguments, "stats-at");
    if (state->stats_at != NULL &&
        !frag_run_point_parse(state->stats_at, &state->stats_point, error))
        return frag_error_in(error, "--stats-at");
    const char *on_oom = frag_arguments_value(arguments, "on-oom");
    state->run.is_oom_skipped = on_oom != NULL && strcmp(on_oom, "skip") == 0;
    state->run.is_interrupted = frag_is_interrupted;
    state->run.clock_ns = frag_arguments_has(arguments, "timing") ? frag_clock_ns : NULL;
    return true;
}

static void load_source(void *context, uint64_t index)
{
    running *state = context;
    source *from = &state->sources[index];
    const char *path =
        frag_arguments_operand(state->arguments, state->first_source + (size_t)index);
    from->is_loaded = frag_inputs_load(path, state->format, state->snapshot != NULL,
                                       &from->recording, &from->error);
}

static void add_stat(void *context, const char *name, int64_t value)
{
    frag_stats_add(context, name, value);
}

static void look_at_stats(void *context, const frag_replay *replay,
                          const frag_replay_result *result)
{
    frag_row_stats *stats = context;
    frag_replay_stats(replay, add_stat, &stats->values);
    if (stats->values.names.count > 0 && result->events > 0)
        stats->event = result->events - 1;
}

static bool has_point(const running *state, const frag_trace *trace, frag_error *error)
{
    const frag_run_point *point = &state->stats_point;
    if (state->stats_at == NULL || point->kind != FRAG_RUN_POINT_EVENT ||
        point->event < trace->event_count)
        return true;
    /* The same for every policy, so it is no result of this one. */
    frag_replay_result none = {0};
    frag_replay_options unused;
    return frag_run_point_find(point, trace, &none, &unused, error);
}

/* Replays once more, up to the point, with the policy keeping its statistics. That a run does not
 * come to the point is a result. */
static bool take_stats(const running *state, job *task, const frag_policy_spec *policy)
{
    frag_replay_options replay = {.is_oom_skipped = state->run.is_oom_skipped,
                                  .keeps_stats = true,
                                  .is_interrupted = frag_is_interrupted};
    task->stats.event = FRAG_UNLIMITED;
    task->stats.point = state->stats_at;
    task->stats.problem = task->stats_error.sentence;
    if (policy->ops->stats == NULL ||
        !frag_run_point_find(&state->stats_point, task->trace, &task->result.replay, &replay,
                             &task->stats_error))
        return true;
    return frag_run_look(task->recording, task->trace, policy->ops, policy->values, &state->device,
                         &replay, look_at_stats, &task->stats, &task->error) &&
           !frag_is_interrupted();
}

static void run_job(void *context, uint64_t index)
{
    running *state = context;
    job *task = &state->jobs[index];
    frag_policy_spec resolved = {0};
    if (!frag_is_interrupted() && has_point(state, task->trace, &task->error) &&
        frag_inputs_resolve(&task->spec, task->recording, &resolved, &task->error)) {
        task->is_ok = frag_run(task->recording, task->trace, resolved.ops, resolved.values,
                               &state->device, &state->run, &task->result, &task->error);
        if (task->is_ok && state->stats_at != NULL)
            task->is_ok = take_stats(state, task, &resolved);
        task->spec = resolved;
    }
    frag_progress_add(state->progress, 1);
}

/* Every trace of the loaded recordings with every policy, in the order in which rows are printed.
 */
static size_t list_jobs(running *state, size_t source_count)
{
    size_t count = 0;
    size_t capacity = 0;
    state->jobs = NULL;
    for (size_t i = 0; i < source_count; i++) {
        const frag_recording *recording = &state->sources[i].recording;
        for (uint32_t t = 0; state->sources[i].is_loaded && t < recording->trace_count; t++)
            for (size_t p = 0; p < state->policies.count; p++) {
                state->jobs = frag_grow(state->jobs, &capacity, count + 1, sizeof *state->jobs);
                state->jobs[count++] = (job){
                    .recording = recording,
                    .trace = &recording->traces[t],
                    .spec = state->policies.specs[p],
                };
            }
    }
    return count;
}

static void fill_row(const running *state, const job *task, frag_row *row)
{
    const source *from = state->sources;
    while (&from->recording != task->recording)
        from++;
    *row = (frag_row){
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = task->recording->name,
        .trace = task->trace,
        .recorded_by = from->recorded_by[0] != '\0' ? from->recorded_by : NULL,
        .ops = task->spec.ops,
        .values = task->spec.values,
        .label = task->spec.text,
        .device = &state->device,
        .result = &task->result,
        .has_timing = state->run.clock_ns != NULL,
        .stats = state->stats_at != NULL ? &task->stats : NULL,
    };
}

/* Did the same trace fail in the same way under the policy before? */
static bool is_said(const running *state, size_t index)
{
    const job *task = &state->jobs[index];
    return index > 0 && state->jobs[index - 1].trace == task->trace &&
           strcmp(state->jobs[index - 1].error.sentence, task->error.sentence) == 0;
}

/* Runs again for the snapshot; what stands in its way takes the place of the row. */
static void write_snapshot(running *state, size_t count)
{
    bool is_whole = count > 0;
    for (size_t i = 0; is_whole && i < count; i++) {
        job *task = &state->jobs[i];
        is_whole = task->is_ok && !task->result.replay.is_interrupted;
        if (is_whole)
            task->is_ok = frag_run_snapshot_add(state->snapshot, task->recording, task->trace,
                                                &task->spec, &state->device, &state->run,
                                                &task->result.replay, &task->error);
        is_whole = is_whole && task->is_ok;
    }
    if (is_whole) {
        job *last = &state->jobs[count - 1];
        last->is_ok = frag_run_snapshot_end(state->snapshot, &last->error);
    }
}

/* What went wrong, in the order of the command line, so that threads change nothing; the exit code
 * of the first failure, else 0. */
static int report_problems(const running *state, size_t source_count, size_t job_count)
{
    int code = 0;
    size_t next = 0;
    for (size_t i = 0; i < source_count; i++) {
        const source *from = &state->sources[i];
        if (!from->is_loaded) {
            int failure = frag_report(&from->error);
            code = code != 0 ? code : failure;
        }
        for (; next < job_count && state->jobs[next].recording == &from->recording; next++) {
            const job *task = &state->jobs[next];
            if (task->is_ok || task->error.code == FRAG_E_NONE || is_said(state, next))
                continue;
            frag_error problem = task->error;
            frag_error_in(&problem, task->recording->name);
            int failure = frag_report(&problem);
            code = code != 0 ? code : failure;
        }
    }
    return code;
}

static void print_rows(running *state, size_t count, FILE *stream)
{
    frag_row *rows = frag_alloc(count, sizeof *rows);
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        const job *task = &state->jobs[i];
        if (!task->is_ok || task->result.replay.is_interrupted)
            continue;
        state->has_oom = state->has_oom || task->result.replay.oom.has_happened;
        fill_row(state, task, &rows[done++]);
    }
    bool is_table =
        state->result_format == FRAG_RESULT_TABLE || state->result_format == FRAG_RESULT_MARKDOWN;
    frag_progress_hide(state->progress);
    if (is_table && done > 0) {
        if (state->first_source > 0)
            fputc('\n', stream);
        frag_result_table(state->result_format, stream, rows, done);
    }
    for (size_t i = 0; !is_table && i < done; i++)
        if (state->columns != NULL)
            frag_stats_columns_add(state->columns, &rows[i]);
        else
            frag_result_write(state->result_format, stream, &rows[i]);
    fflush(stream);
    for (size_t i = 0; i < done; i++)
        if (rows[i].result->replay.oom.message[0] != '\0')
            frag_say(state->arguments, "%s: %s: %s", rows[i].trace_name, rows[i].label,
                     rows[i].result->replay.oom.message);
    free(rows);
}

/* A block of recordings: load side by side, run side by side, print in order. */
static int run_block(running *state, size_t count, FILE *stream)
{
    state->sources = frag_alloc(count, sizeof *state->sources);
    frag_for_each((uint32_t)state->threads, count, load_source, state);
    for (size_t i = 0; i < count; i++)
        if (state->sources[i].is_loaded)
            frag_inputs_recorded_by(&state->sources[i].recording, state->sources[i].recorded_by);
    size_t job_count = list_jobs(state, count);
    frag_for_each((uint32_t)state->threads, job_count, run_job, state);
    if (state->snapshot != NULL)
        write_snapshot(state, job_count);
    int code = report_problems(state, count, job_count);
    print_rows(state, job_count, stream);
    for (size_t i = 0; i < job_count; i++) {
        /* A job that ran owns the policy it resolved; the others share the command line's. */
        bool is_shared = false;
        for (size_t p = 0; p < state->policies.count; p++)
            is_shared = is_shared || state->jobs[i].spec.values == state->policies.specs[p].values;
        if (!is_shared)
            frag_policy_spec_destroy(&state->jobs[i].spec);
        frag_stats_destroy(&state->jobs[i].stats.values);
    }
    free(state->jobs);
    for (size_t i = 0; i < count; i++)
        frag_recording_destroy(&state->sources[i].recording);
    free(state->sources);
    return code;
}

/* Two outputs in one place would be mixed, or the last would take the place of the other. */
static bool check_places(const frag_arguments *arguments, frag_error *error)
{
    static const struct {
        const char *option;
        const char *words;
    } outputs[] = {{"output", "rows"}, {"driver-log", "driver log"}, {"snapshot", "snapshot"}};
    const size_t count = sizeof outputs / sizeof outputs[0];
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            const char *one = frag_arguments_value(arguments, outputs[i].option);
            const char *other = frag_arguments_value(arguments, outputs[j].option);
            one = one == NULL && i == 0 ? "-" : one;
            if (one == NULL || other == NULL || strcmp(one, other) != 0 ||
                strcmp(one, "/dev/null") == 0)
                continue;
            return frag_fail(
                error, FRAG_E_USAGE, "the %s and the %s cannot both go to %s; name a file for one",
                outputs[j].words, outputs[i].words, strcmp(one, "-") == 0 ? "stdout" : one);
        }
    return true;
}

static bool open_driver_log(running *state, frag_output **log, frag_error *error)
{
    const char *path = frag_arguments_value(state->arguments, "driver-log");
    if (path == NULL)
        return true;
    if (state->policies.count != 1 || frag_arguments_operand_count(state->arguments) != 1) {
        frag_fail(error, FRAG_E_USAGE,
                  "the log holds the calls of one run; give one trace and one policy");
        return frag_error_in(error, "--driver-log");
    }
    *log = frag_output_open(path, frag_arguments_has(state->arguments, "force"), error);
    if (*log == NULL)
        return false;
    state->device.driver_log = frag_output_stream(*log);
    fputs("event\tcall\taddress\tbytes\tresult\n", state->device.driver_log);
    return true;
}

static void suggest_next(const running *state, int code)
{
    if (code != 0 || state->result_format != FRAG_RESULT_TABLE || !frag_is_terminal(1) ||
        frag_arguments_is_quiet(state->arguments))
        return;
    const char *trace = frag_arguments_operand(state->arguments, 0);
    const char *policy = state->policies.specs[0].text;
    fprintf(stderr,
            "\nnext:  fraglab plot timeline %s --policy %s\n       fraglab min-capacity %s "
            "--policy %s\n",
            trace, policy, trace, policy);
}

static int run_command(const frag_arguments *arguments)
{
    running state = {.arguments = arguments};
    frag_error error = {0};
    frag_output *log = NULL;
    frag_output *output = NULL;
    int code = 0;
    if (!read_options(arguments, &state, &error) || !check_places(arguments, &error) ||
        !open_driver_log(&state, &log, &error) ||
        !frag_run_snapshot_open(arguments, &state.policies, &state.snapshot, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        FILE *stream = frag_output_stream(output);
        size_t count = frag_arguments_operand_count(arguments);
        state.progress =
            frag_progress_start(arguments, "replaying", "runs", count * state.policies.count);
        if (state.stats_at != NULL && state.result_format == FRAG_RESULT_CSV)
            state.columns = frag_stats_columns_create();
        else
            frag_result_begin(state.result_format, stream);
        size_t block = (size_t)state.threads;
        for (size_t first = 0; first < count && !frag_is_interrupted(); first += block) {
            state.first_source = first;
            int block_code =
                run_block(&state, count - first < block ? count - first : block, stream);
            code = code != 0 ? code : block_code;
        }
        frag_progress_end(state.progress);
        if (state.columns != NULL)
            frag_stats_columns_write(state.columns, stream);
    }
    if (output != NULL && !frag_output_finish(output, &error))
        code = code != 0 ? code : frag_report(&error);
    if (output == NULL)
        frag_output_abandon(log);
    else if (log != NULL && !frag_output_finish(log, &error))
        code = code != 0 ? code : frag_report(&error);
    if (!frag_run_snapshot_close(state.snapshot, &error))
        code = code != 0 ? code : frag_report(&error);
    suggest_next(&state, code);
    frag_inputs_policies_destroy(&state.policies);
    if (frag_is_interrupted())
        return 130;
    if (code == 0 && state.has_oom && frag_arguments_has(arguments, "fail-on-oom"))
        return 1;
    return code;
}

const frag_command frag_command_run = {
    .name = "run",
    .operands = "TRACE...",
    .summary = "replay traces through policies; one row per trace and policy",
    .description = "Replays each trace through each policy on the simulated device and prints a "
                   "row for each: peak reserved "
                   "bytes, how far above the bound, utilisation, device calls, and the OOM point "
                   "if memory ran out. A trace is "
                   "a PyTorch memory snapshot (plain, .zst or .gz), a .fgt file, fraglab's text "
                   "form or a golden log; '-' is stdin. A "
                   "recording of several devices gives a row for each.\n\n"
                   "--stats-at replays once more, stops exactly after the event, and prints what "
                   "the policy has counted so far; at an OOM the retries and the failed request "
                   "are in it. Policies that keep no statistics and runs that do not come to the "
                   "point have none. -v prints the message of each OOM, as the program gets it.\n\n"
                   "Exit: 0 ok; 1 an OOM, with --fail-on-oom; 2 usage; 3 bad input; 4 the system "
                   "refused; 130 interrupted.",
    .examples =
        "fraglab run train.pickle --policy pytorch --policy best-fit  # compare two policies\n"
        "fraglab run train.pickle --policy all --capacity 24GiB  # would it fit on a 24 GiB card?\n"
        "fraglab run train.pickle --policy pytorch --stats-at peak  # memory_summary at the peak\n"
        "fraglab run *.fgt --policy pytorch:max_split_size_mb=128 --format jsonl -o rows.jsonl",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = run_command,
};
