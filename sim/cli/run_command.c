#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/file.h"
#include "sim/base/memory.h"
#include "sim/cli/bounds.h"
#include "sim/cli/gpu_run.h"
#include "sim/cli/inputs.h"
#include "sim/cli/run_placement.h"
#include "sim/cli/run_point.h"
#include "sim/cli/run_snapshot.h"
#include "sim/result.h"
#include "sim/version.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS_OF("sim|cuda[:N]|sim,cuda",
                           "where segments come from: the simulated device, the real card of that "
                           "number (0 unless named), or both, compared (default: sim)",
                           NULL, "lowest|bump|recorded|driver"),
    FRAG_GPU_OPTIONS,
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
    FRAG_BOUNDS_OPTION,
    FRAG_PLACEMENT_OPTION,
    {.name = "plan-seconds",
     .argument = "N",
     .help = "let policies that plan look for a better plan for N seconds of each run, and for as "
             "many steps as their option says (the plan then depends on the machine)"},
    {.name = NULL},
};

/* One row to compute. */
typedef struct job {
    const frag_recording *recording;
    const frag_trace *trace;
    frag_policy_spec spec;
    frag_policy_plan *plan; /* NULL: the policy does not plan */
    bool is_gpu;
    bool has_twin; /* the next job is the same on the card, this one is compared with it */
    frag_device_spec device; /* of the row: with what a card turned out to have */
    frag_gpu_run gpu;
    bool is_counted; /* is_gpu: it has run on the card */
    frag_row_gpu row_gpu;
    frag_run_result result;
    frag_row_packing packing; /* with --bounds: of the trace, in its first job */
    frag_error packing_error;
    bool has_packing;
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
    frag_gpu_devices devices;
    frag_device_spec beside_gpu; /* simulated, as the card was before the first run */
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
    frag_run_snapshot *snapshot;   /* NULL: none wanted */
    frag_run_placement *placement; /* NULL: none wanted */
    uint64_t plan_seconds;         /* 0: no limit */
    bool has_oom;
} running;

static bool read_options(const frag_arguments *arguments, running *state, frag_error *error)
{
    state->threads = frag_core_count();
    if (!frag_inputs_policies(arguments, NULL, &state->policies, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error) ||
        !frag_gpu_devices_read(arguments, &state->devices, error) ||
        !frag_inputs_format(arguments, &state->format, error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &state->threads, error) ||
        !frag_arguments_count(arguments, "plan-seconds", 1, 1000000, &state->plan_seconds, error) ||
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
static bool take_stats(const running *state, job *task, const frag_device_spec *device)
{
    frag_replay_options replay = {.is_oom_skipped = state->run.is_oom_skipped,
                                  .keeps_stats = true,
                                  .is_interrupted = frag_is_interrupted};
    if (state->stats_at == NULL)
        return true;
    task->stats.event = FRAG_UNLIMITED;
    task->stats.point = state->stats_at;
    task->stats.problem = task->stats_error.sentence;
    if (task->spec.ops->stats == NULL ||
        !frag_run_point_find(&state->stats_point, task->trace, &task->result.replay, &replay,
                             &task->stats_error))
        return true;
    return frag_run_look_planned(task->recording, task->trace, task->spec.ops, task->spec.values,
                                 task->plan, device, &replay, look_at_stats, &task->stats,
                                 &task->error) &&
           !frag_is_interrupted();
}

/* The bytes that a plan may use: what the device has for the policy, in whole pages. */
static uint64_t plan_capacity(const frag_device_spec *device, const frag_trace *trace)
{
    if (device->capacity_bytes == FRAG_UNLIMITED)
        return FRAG_UNLIMITED;
    if (device->capacity_bytes <= device->used_by_others_bytes)
        return 0;
    uint64_t bytes = device->capacity_bytes - device->used_by_others_bytes;
    return bytes - bytes % frag_device_page(device, trace);
}

typedef struct planning {
    bool is_timed;
    uint64_t end_ns;
} planning;

static bool is_planned_enough(void *context)
{
    const planning *now = context;
    return frag_is_interrupted() || (now->is_timed && frag_clock_ns() >= now->end_ns);
}

/* The policy becomes the job's own, as it is for this recording, with its plan. */
static bool begin_job(const running *state, job *task)
{
    frag_policy_spec resolved = {0};
    if (frag_is_interrupted() || !has_point(state, task->trace, &task->error) ||
        !frag_inputs_resolve(&task->spec, task->recording, &resolved, &task->error))
        return false;
    task->spec = resolved;
    planning now = {.is_timed = state->plan_seconds > 0};
    if (now.is_timed)
        now.end_ns = frag_clock_ns() + state->plan_seconds * 1000000000u;
    frag_plan_limits limits = {
        .capacity_bytes = plan_capacity(&task->device, task->trace),
        .is_stopped = is_planned_enough,
        .context = &now,
    };
    return frag_replay_plan(task->recording, task->trace, resolved.ops, resolved.values, &limits,
                            &task->plan, &task->error);
}

static frag_run_options options_of(const running *state, const job *task)
{
    frag_run_options run = state->run;
    run.plan = task->plan;
    return run;
}

/* What the card was asked and what it answered is enough for everything but the counts. */
static bool finish_on_echo(const running *state, job *task)
{
    frag_device_opener opener;
    frag_device_spec echo = frag_gpu_run_echo(&task->gpu, &state->device, &opener);
    frag_run_options run = options_of(state, task);
    return frag_run_layout(task->recording, task->trace, task->spec.ops, task->spec.values, &echo,
                           &run, &task->result, &task->error) &&
           take_stats(state, task, &echo);
}

/* One after the other: jobs beside each other would share the card's memory. */
static void run_on_gpu(running *state, job *task)
{
    const frag_gpu_choice *gpu = &state->devices.gpu;
    if (!begin_job(state, task))
        return;
    frag_run_options run = options_of(state, task);
    task->is_counted =
        frag_gpu_run_count(gpu, task->recording, task->trace, task->spec.ops, task->spec.values,
                           &state->device, &run, &task->result, &task->gpu, &task->error);
    if (!task->is_counted)
        return;
    task->device = frag_gpu_run_twin(&task->gpu, &state->device);
    task->row_gpu = (frag_row_gpu){
        .ordinal = gpu->ordinal,
        .facts = task->gpu.facts,
        .report = task->gpu.report,
        .limit = gpu->has_ballast                                 ? "ballast"
                 : state->device.capacity_bytes != FRAG_UNLIMITED ? "budget"
                                                                  : "card",
        .is_touched = gpu->is_touched,
    };
    task->is_ok = finish_on_echo(state, task);
    if (state->snapshot == NULL)
        frag_gpu_run_destroy(&task->gpu);
}

static void run_job(void *context, uint64_t index)
{
    running *state = context;
    job *task = &state->jobs[index];
    if (!task->is_gpu && begin_job(state, task)) {
        if (task->has_twin && state->jobs[index + 1].is_counted)
            task->device = state->jobs[index + 1].device;
        frag_run_options run = options_of(state, task);
        task->is_ok = frag_run(task->recording, task->trace, task->spec.ops, task->spec.values,
                               &task->device, &run, &task->result, &task->error) &&
                      take_stats(state, task, &task->device);
    }
    frag_progress_add(state->progress, 1);
}

/* The first job of a trace bounds it for all. */
static void bound_job(void *context, uint64_t index)
{
    running *state = context;
    job *task = &state->jobs[index];
    bool is_first = index == 0 || state->jobs[index - 1].trace != task->trace;
    if (is_first && !frag_is_interrupted())
        task->has_packing =
            frag_bounds_find(task->recording, task->trace, &task->packing, &task->packing_error);
}

static void add_jobs(running *state, const job *like, size_t *count, size_t *capacity)
{
    const frag_gpu_devices *devices = &state->devices;
    for (int i = devices->has_sim ? 0 : 1; i < (devices->has_gpu ? 2 : 1); i++) {
        state->jobs = frag_grow(state->jobs, capacity, *count + 1, sizeof *state->jobs);
        state->jobs[*count] = *like;
        state->jobs[*count].is_gpu = i == 1;
        state->jobs[*count].has_twin = i == 0 && devices->has_gpu;
        ++*count;
    }
}

/* Every trace of the loaded recordings with every policy on every device, in the order in which
 * rows are printed. */
static size_t list_jobs(running *state, size_t source_count)
{
    size_t count = 0;
    size_t capacity = 0;
    state->jobs = NULL;
    for (size_t i = 0; i < source_count; i++) {
        const frag_recording *recording = &state->sources[i].recording;
        for (uint32_t t = 0; state->sources[i].is_loaded && t < recording->trace_count; t++)
            for (size_t p = 0; p < state->policies.count; p++) {
                job like = {
                    .recording = recording,
                    .trace = &recording->traces[t],
                    .spec = state->policies.specs[p],
                    .device = state->devices.has_gpu ? state->beside_gpu : state->device,
                };
                add_jobs(state, &like, &count, &capacity);
            }
    }
    return count;
}

static void fill_row(const running *state, const job *task, frag_row *row)
{
    const source *from = state->sources;
    while (&from->recording != task->recording)
        from++;
    const job *first = task;
    while (first > state->jobs && first[-1].trace == task->trace)
        first--;
    *row = (frag_row){
        .packing = first->has_packing ? &first->packing : NULL,
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = task->recording->name,
        .trace = task->trace,
        .recorded_by = from->recorded_by[0] != '\0' ? from->recorded_by : NULL,
        .ops = task->spec.ops,
        .values = task->spec.values,
        .label = task->spec.text,
        .device = &task->device,
        .gpu = task->is_gpu ? &task->row_gpu : NULL,
        .result = &task->result,
        .has_timing = state->run.clock_ns != NULL,
        .stats = state->stats_at != NULL ? &task->stats : NULL,
    };
}

/* Did the same trace fail in the same way under the policy before? */
static bool is_said(const running *state, size_t index)
{
    const job *task = &state->jobs[index];
    for (size_t i = index; i > 0 && state->jobs[i - 1].trace == task->trace; i--)
        if (state->jobs[i - 1].is_gpu == task->is_gpu)
            return strcmp(state->jobs[i - 1].error.sentence, task->error.sentence) == 0;
    return false;
}

/* Runs again for the snapshot; what stands in its way takes the place of the row. */
static void write_snapshot(running *state, size_t count)
{
    bool is_whole = count > 0;
    for (size_t i = 0; is_whole && i < count; i++) {
        job *task = &state->jobs[i];
        is_whole = task->is_ok && !task->result.replay.is_interrupted;
        frag_device_opener opener;
        frag_device_spec device =
            task->is_gpu ? frag_gpu_run_echo(&task->gpu, &state->device, &opener) : task->device;
        if (is_whole)
            task->is_ok =
                frag_run_snapshot_add(state->snapshot, task->recording, task->trace, &task->spec,
                                      &device, &state->run, &task->result.replay, &task->error);
        is_whole = is_whole && task->is_ok;
    }
    if (is_whole) {
        job *last = &state->jobs[count - 1];
        last->is_ok = frag_run_snapshot_end(state->snapshot, &last->error);
    }
}

/* As write_snapshot. */
static void write_placement(running *state, size_t count)
{
    job *task = &state->jobs[0];
    if (count == 0 || !task->is_ok || task->result.replay.is_interrupted)
        return;
    if (count > 1)
        task->is_ok =
            frag_fail(&task->error, FRAG_E_USAGE,
                      "the recording holds %zu traces; the placement is that of one", count);
    else
        task->is_ok =
            frag_run_placement_add(state->placement, task->recording, task->trace, &task->spec,
                                   task->plan, &task->device, &task->result, &task->error);
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
            if (task->packing_error.code != FRAG_E_NONE && task->is_ok) {
                frag_error problem = task->packing_error;
                frag_error_in(&problem, task->recording->name);
                int failure = frag_report(&problem);
                code = code != 0 ? code : failure;
            }
            if (task->is_ok || task->error.code == FRAG_E_NONE || is_said(state, next))
                continue;
            frag_error problem = task->error;
            char where[256];
            snprintf(where, sizeof where, task->is_gpu ? "%s: %s on cuda" : "%s",
                     task->recording->name, task->spec.text);
            frag_error_in(&problem, where);
            int failure = frag_report(&problem);
            code = code != 0 ? code : failure;
        }
    }
    return code;
}

/* The driver may keep a few MiB of its own after a run. */
#define OTHERS_BYTES_MIN (16 * FRAG_MIB)

/* The card's free memory before and after, all of ours given back: what differs is others'. */
static void warn_of_others(const running *state, const frag_row *row)
{
    char a[FRAG_BYTES_TEXT_MAX];
    uint64_t before = row->gpu->report.free_before_bytes;
    uint64_t after = row->gpu->report.free_after_bytes;
    uint64_t by = before > after ? before - after : after - before;
    if (by >= OTHERS_BYTES_MIN)
        frag_warn(state->arguments,
                  "%s: %s: %s %s of the card's memory while it ran; what was measured may be due "
                  "to that",
                  row->trace_name, row->label,
                  before > after ? "other programs took" : "other programs gave back",
                  frag_bytes_text(by, a));
}

/* The rows of one trace: a table for each device, then how they differ. */
static void print_tables(const running *state, FILE *stream, const frag_row *rows, size_t count)
{
    frag_row *sim = frag_alloc(count, sizeof *sim);
    frag_row *gpu = frag_alloc(count, sizeof *gpu);
    size_t sim_count = 0;
    size_t gpu_count = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].gpu == NULL)
            sim[sim_count++] = rows[i];
        else
            gpu[gpu_count++] = rows[i];
    frag_result_table(state->result_format, stream, sim, sim_count);
    if (sim_count > 0 && gpu_count > 0)
        fputc('\n', stream);
    frag_result_table(state->result_format, stream, gpu, gpu_count);
    size_t pairs = 0;
    for (size_t i = 0; i + 1 < count; i++)
        if (rows[i].gpu == NULL && rows[i + 1].gpu != NULL &&
            strcmp(rows[i].label, rows[i + 1].label) == 0) {
            sim[pairs] = rows[i];
            gpu[pairs++] = rows[i + 1];
        }
    if (pairs > 0)
        frag_result_compare_table(state->result_format, stream, sim, gpu, pairs);
    free(sim);
    free(gpu);
}

static void print_all_tables(const running *state, FILE *stream, const frag_row *rows, size_t count)
{
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && rows[end].trace == rows[first].trace)
            end++;
        if (first > 0 || state->first_source > 0)
            fputc('\n', stream);
        print_tables(state, stream, rows + first, end - first);
        first = end;
    }
}

static void print_data(const running *state, FILE *stream, const frag_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (state->columns != NULL)
            frag_stats_columns_add(state->columns, &rows[i]);
        else
            frag_result_write(state->result_format, stream, &rows[i]);
        if (i > 0 && rows[i].gpu != NULL && rows[i - 1].gpu == NULL &&
            rows[i].trace == rows[i - 1].trace && strcmp(rows[i].label, rows[i - 1].label) == 0)
            frag_result_write_comparison(state->result_format, stream, &rows[i - 1], &rows[i]);
    }
}

/* What is known of a plan, where memory ran out for it or a person asks. */
static void say_plan(const running *state, const frag_row *row)
{
    const frag_policy_plan_facts *plan = &row->result->plan;
    char peak[FRAG_BYTES_TEXT_MAX];
    char bound[FRAG_BYTES_TEXT_MAX];
    if (!row->result->has_plan || strcmp(plan->answer, "none") == 0)
        return;
    frag_count_text(plan->peak_bytes, peak);
    frag_count_text(plan->bound_bytes, bound);
    if (strcmp(plan->answer, "infeasible") == 0)
        frag_warn(state->arguments,
                  "%s: %s: proved: every packing needs at least %s bytes; give more capacity",
                  row->trace_name, row->label, bound);
    else if (strcmp(plan->answer, "exhausted") == 0)
        frag_warn(state->arguments,
                  "%s: %s: no packing under the capacity was found (best %s bytes, proved only "
                  "that %s are needed); give more capacity, or more steps",
                  row->trace_name, row->label, peak, bound);
    else
        frag_say(state->arguments, "%s: %s: %s packing of %s bytes; at least %s are needed",
                 row->trace_name, row->label, plan->answer, peak, bound);
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
    frag_progress_hide(state->progress);
    if (state->result_format == FRAG_RESULT_TABLE || state->result_format == FRAG_RESULT_MARKDOWN)
        print_all_tables(state, stream, rows, done);
    else
        print_data(state, stream, rows, done);
    fflush(stream);
    for (size_t i = 0; i < done; i++) {
        say_plan(state, &rows[i]);
        if (rows[i].result->replay.oom.message[0] != '\0')
            frag_say(state->arguments, "%s: %s: %s", rows[i].trace_name, rows[i].label,
                     rows[i].result->replay.oom.message);
        if (rows[i].gpu != NULL)
            warn_of_others(state, &rows[i]);
    }
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
    for (size_t i = 0; i < job_count; i++)
        if (state->jobs[i].is_gpu)
            run_on_gpu(state, &state->jobs[i]);
    frag_for_each((uint32_t)state->threads, job_count, run_job, state);
    if (frag_arguments_has(state->arguments, "bounds"))
        frag_for_each((uint32_t)state->threads, job_count, bound_job, state);
    if (state->snapshot != NULL)
        write_snapshot(state, job_count);
    if (state->placement != NULL)
        write_placement(state, job_count);
    int code = report_problems(state, count, job_count);
    print_rows(state, job_count, stream);
    for (size_t i = 0; i < job_count; i++) {
        /* A job that ran owns the policy it resolved; the others share the command line's. */
        bool is_shared = false;
        for (size_t p = 0; p < state->policies.count; p++)
            is_shared = is_shared || state->jobs[i].spec.values == state->policies.specs[p].values;
        if (state->jobs[i].plan != NULL)
            state->jobs[i].spec.ops->plan_destroy(state->jobs[i].plan);
        if (!is_shared)
            frag_policy_spec_destroy(&state->jobs[i].spec);
        frag_stats_destroy(&state->jobs[i].stats.values);
        frag_gpu_run_destroy(&state->jobs[i].gpu);
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
    } outputs[] = {{"output", "rows"},
                   {"driver-log", "driver log"},
                   {"snapshot", "snapshot"},
                   {"placement", "placement"}};
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

/* The log and the snapshot are of one run. */
static bool check_one_device(const running *state, frag_error *error)
{
    static const char *const outputs[] = {"driver-log", "snapshot", "placement"};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        if (state->devices.has_sim && state->devices.has_gpu &&
            frag_arguments_has(state->arguments, outputs[i]))
            return frag_fail(error, FRAG_E_USAGE, "--%s holds one run; name one device",
                             outputs[i]);
    return true;
}

/* A card that is not there is said once, and before anything is written. What it has in all is what
 * the simulated device beside it has. */
static bool check_gpu(running *state, frag_error *error)
{
    frag_gpu_run before = {0};
    if (!state->devices.has_gpu)
        return true;
    if (!frag_gpu_look(&state->devices.gpu, &before.facts, error))
        return false;
    before.page_bytes = before.facts.granularity_bytes;
    before.report.free_before_bytes = before.facts.free_bytes;
    state->beside_gpu = frag_gpu_run_twin(&before, &state->device);
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
    fprintf(state->device.driver_log, "event\tcall\taddress\tbytes\tresult%s\n",
            state->devices.has_gpu ? "\tns" : "");
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
        !check_one_device(&state, &error) || !check_gpu(&state, &error) ||
        !open_driver_log(&state, &log, &error) ||
        !frag_run_snapshot_open(arguments, &state.policies, &state.snapshot, &error) ||
        !frag_run_placement_open(arguments, &state.policies, &state.placement, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        FILE *stream = frag_output_stream(output);
        size_t count = frag_arguments_operand_count(arguments);
        state.progress =
            frag_progress_start(arguments, "replaying", "runs",
                                count * state.policies.count *
                                    (state.devices.has_sim && state.devices.has_gpu ? 2 : 1));
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
    if (!frag_run_placement_close(state.placement, &error))
        code = code != 0 ? code : frag_report(&error);
    suggest_next(&state, code);
    frag_inputs_policies_destroy(&state.policies);
    if (frag_is_interrupted())
        return 130;
    if (code == 0 && state.has_oom &&
        (frag_arguments_has(arguments, "fail-on-oom") ||
         frag_arguments_has(arguments, "placement")))
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
                   "form, a golden log or a packing problem in MiniMalloc's CSV; '-' is stdin. A "
                   "recording of several devices gives a row for each.\n\n"
                   "The policy offline packs the whole trace before it runs; with --capacity it "
                   "stops at the first packing that fits, and says when it has proved that there "
                   "is none. --bounds prints such a packing below the other policies.\n\n"
                   "--stats-at replays once more, stops exactly after the event, and prints what "
                   "the policy has counted so far; at an OOM the retries and the failed request "
                   "are in it. Policies that keep no statistics and runs that do not come to the "
                   "point have none. -v prints the message of each OOM, as the program gets it.\n\n"
                   "Exit: 0 ok; 1 an OOM, with --fail-on-oom or --placement; 2 usage; 3 bad input; "
                   "4 the system "
                   "refused; 130 interrupted.",
    .examples =
        "fraglab run train.pickle --policy pytorch --policy best-fit  # compare two policies\n"
        "fraglab run train.pickle --policy all --capacity 24GiB  # would it fit on a 24 GiB card?\n"
        "fraglab run train.pickle --policy pytorch --stats-at peak  # memory_summary at the peak\n"
        "fraglab run problem.csv --policy offline --capacity 1MiB --placement out.csv  # pack\n"
        "fraglab run *.fgt --policy pytorch:max_split_size_mb=128 --format jsonl -o rows.jsonl",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = run_command,
};
