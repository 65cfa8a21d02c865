#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bytes.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "sim/cli/experiment.h"
#include "sim/cli/inputs.h"
#include "sim/cli/sweep_file.h"
#include "sim/result.h"
#include "sim/version.h"

/* Groups that are worked on together for each thread; rows are written when all of them are done.
 */
#define GROUPS_PER_THREAD 8

static const frag_command_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "append the rows there; when it has the first rows of this experiment already, go on "
             "behind them (default: stdout)"},
    {.name = "force", .letter = 'f', .help = "throw away what the output file holds"},
    {.name = "counts-only",
     .help = "leave out what needs a second replay: decomposition_at_peak and the holes at the "
             "peak"},
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

/* One row: a capacity of a group. */
typedef struct cell {
    bool is_there; /* in the file already */
    bool is_ok;
    bool is_concluded; /* not replayed: another capacity has the same run */
    frag_run_result result;
    frag_error error;
} cell;

/* A policy with options on one trace: the capacities that give the same run are replayed once. */
typedef struct group {
    const frag_policy_spec *spec;
    frag_policy_spec resolved;
    bool is_resolved;
    frag_arena_spare *spare; /* while it runs */
    cell *cells;
} group;

typedef struct sweeping {
    const frag_arguments *arguments;
    frag_experiment experiment;
    frag_sweep_file file;
    frag_recording recording;
    const frag_trace *trace;
    char recorded_by[64];
    bool is_recorder_known;
    bool has_counts_only;
    uint64_t threads;
    group *groups; /* of the block being worked on */
    frag_progress *progress;
    uint64_t rows;
    uint64_t replayed;
} sweeping;

/* Would a run on that capacity make the very same calls, with the very same answers? After an OOM
 * the row also tells what was free, and that is another number for every capacity. */
static bool gives_the_same(const frag_run_result *result, uint64_t capacity)
{
    return !result->is_capacity_read && result->replay.failed_requests == 0 &&
           capacity >= result->need_max_bytes && capacity < result->refused_need_min_bytes;
}

/* The run of another capacity of the group, when this one must give the same. */
static const cell *find_equal(const sweeping *state, const group *of, size_t before,
                              uint64_t capacity)
{
    for (size_t i = 0; i < before; i++) {
        const frag_run_result *result = &of->cells[i].result;
        uint64_t own = state->experiment.capacities[i];
        if (!of->cells[i].is_there && of->cells[i].is_ok &&
            (own == capacity || gives_the_same(result, capacity)))
            return &of->cells[i];
    }
    return NULL;
}

static void run_cell(const sweeping *state, group *of, size_t index)
{
    cell *into = &of->cells[index];
    frag_device_spec device = {.capacity_bytes = state->experiment.capacities[index]};
    frag_run_options run = {.is_oom_skipped = state->experiment.is_oom_skipped,
                            .is_layout_skipped = state->has_counts_only,
                            .is_interrupted = frag_is_interrupted,
                            .spare = of->spare};
    const cell *equal = find_equal(state, of, index, device.capacity_bytes);
    if (equal != NULL) {
        into->result = equal->result;
        into->is_concluded = into->is_ok = true;
        return;
    }
    into->is_ok = frag_run(&state->recording, state->trace, of->resolved.ops, of->resolved.values,
                           &device, &run, &into->result, &into->error);
}

static void run_group(void *context, uint64_t index)
{
    sweeping *state = context;
    group *of = &state->groups[index];
    frag_error error = {0};
    bool is_needed = false;
    for (size_t i = 0; i < state->experiment.capacity_count; i++)
        is_needed = is_needed || !of->cells[i].is_there;
    if (!is_needed || frag_is_interrupted())
        return;
    of->is_resolved = frag_inputs_resolve(of->spec, &state->recording, &of->resolved, &error);
    of->spare = frag_arena_spare_create();
    for (size_t i = 0; i < state->experiment.capacity_count; i++) {
        if (of->cells[i].is_there || frag_is_interrupted())
            continue;
        of->cells[i].error = error;
        if (of->is_resolved)
            run_cell(state, of, i);
        frag_progress_add(state->progress, 1);
    }
    frag_arena_spare_destroy(of->spare);
}

/* A combination that the policy refuses is a row too: the file's order must not depend on it. */
static void write_refusal(const sweeping *state, const group *of, const frag_error *error,
                          uint64_t capacity)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.refused/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "trace.name", state->recording.name);
    frag_json_text(json, "trace.digest", state->trace->digest);
    frag_json_number(json, "trace.device", state->trace->device);
    frag_json_text(json, "policy.name", of->spec->ops->name);
    frag_json_text(json, "policy.label", of->spec->text);
    frag_json_number(json, "device.capacity_bytes", capacity);
    frag_json_text(json, "problem", error->sentence);
    frag_json_write(json, state->file.stream, false);
}

static void write_cell(sweeping *state, const group *of, size_t index)
{
    const cell *from = &of->cells[index];
    frag_device_spec device = {.capacity_bytes = state->experiment.capacities[index]};
    if (!from->is_ok) {
        write_refusal(state, of, &from->error, device.capacity_bytes);
        return;
    }
    frag_row row = {
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = state->recording.name,
        .trace = state->trace,
        .recorded_by = state->is_recorder_known ? state->recorded_by : NULL,
        .ops = of->resolved.ops,
        .values = of->resolved.values,
        .label = of->spec->text,
        .device = &device,
        .result = &from->result,
    };
    frag_result_write(FRAG_RESULT_JSONL, state->file.stream, &row);
    state->replayed += from->is_concluded ? 0 : 1;
}

/* Which rows of the block are in the file; false: the file is of another experiment. */
static bool look_up(sweeping *state, size_t first, size_t count, frag_error *error)
{
    const frag_experiment *experiment = &state->experiment;
    frag_text name = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        group *of = &state->groups[i];
        of->spec = &experiment->policies[first + i];
        of->cells = frag_alloc(experiment->capacity_count, sizeof *of->cells);
        for (size_t c = 0; ok && c < experiment->capacity_count; c++) {
            frag_sweep_row_name(&name, frag_commit(), state->recording.name, state->trace->digest,
                                state->trace->device, of->spec->text, experiment->capacities[c]);
            ok = frag_sweep_file_has(&state->file, name.bytes, &of->cells[c].is_there, error);
            if (ok && of->cells[c].is_there)
                frag_progress_add(state->progress, 1);
        }
    }
    frag_text_destroy(&name);
    return ok;
}

/* An interrupt ends the sweep at a row's end, like every other end. */
static bool write_block(sweeping *state, size_t count, frag_error *error)
{
    frag_progress_hide(state->progress);
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < state->experiment.capacity_count; c++) {
            const cell *from = &state->groups[i].cells[c];
            bool is_done = from->is_there || (from->is_ok && !from->result.replay.is_interrupted) ||
                           (!from->is_ok && from->error.code != FRAG_E_NONE);
            if (!is_done)
                return true;
            if (from->is_there)
                continue;
            write_cell(state, &state->groups[i], c);
            state->rows++;
        }
    if (fflush(state->file.stream) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "the rows cannot be written: %s", strerror(errno));
    return true;
}

static bool sweep_block(sweeping *state, size_t first, size_t count, frag_error *error)
{
    state->groups = frag_alloc(count, sizeof *state->groups);
    bool ok = look_up(state, first, count, error);
    if (ok) {
        frag_for_each((uint32_t)state->threads, count, run_group, state);
        ok = write_block(state, count, error);
    }
    for (size_t i = 0; i < count; i++) {
        free(state->groups[i].cells);
        if (state->groups[i].is_resolved)
            frag_policy_spec_destroy(&state->groups[i].resolved);
    }
    free(state->groups);
    return ok;
}

static bool sweep_trace(sweeping *state, const char *path, frag_error *error)
{
    if (!frag_inputs_load(path, FRAG_FORMAT_AUTO, false, &state->recording, error))
        return false;
    state->is_recorder_known =
        frag_inputs_recorded_by(&state->recording, state->recorded_by) != NULL;
    size_t block = (size_t)state->threads * GROUPS_PER_THREAD;
    size_t count = state->experiment.policy_count;
    bool ok = true;
    for (uint32_t t = 0; ok && t < state->recording.trace_count; t++) {
        state->trace = &state->recording.traces[t];
        for (size_t first = 0; ok && first < count && !frag_is_interrupted(); first += block)
            ok = sweep_block(state, first, count - first < block ? count - first : block, error);
    }
    frag_recording_destroy(&state->recording);
    return ok;
}

static bool sweep_all(sweeping *state, frag_error *error)
{
    const frag_experiment *experiment = &state->experiment;
    for (size_t i = 0; i < experiment->trace_count && !frag_is_interrupted(); i++)
        if (!sweep_trace(state, experiment->traces[i], error))
            return false;
    return frag_is_interrupted() || frag_sweep_file_finish(&state->file, error);
}

static int sweep_command(const frag_arguments *arguments)
{
    sweeping state = {.arguments = arguments,
                      .threads = frag_core_count(),
                      .has_counts_only = frag_arguments_has(arguments, "counts-only")};
    frag_error error = {0};
    bool ok =
        frag_arguments_count(arguments, "jobs", 1, 4096, &state.threads, &error) &&
        frag_experiment_load(frag_arguments_operand(arguments, 0), &state.experiment, &error) &&
        frag_sweep_file_open(frag_arguments_value(arguments, "output"),
                             frag_arguments_has(arguments, "force"), !state.has_counts_only,
                             &state.file, &error);
    if (ok) {
        state.progress =
            frag_progress_start(arguments, "sweeping", "runs",
                                state.experiment.trace_count * state.experiment.policy_count *
                                    state.experiment.capacity_count);
        ok = sweep_all(&state, &error);
        frag_progress_end(state.progress);
        frag_say(arguments, "%llu rows written, %llu of them replayed, %zu were there",
                 (unsigned long long)state.rows, (unsigned long long)state.replayed,
                 state.file.next);
    }
    int code = ok ? 0 : frag_report(&error);
    frag_sweep_file_close(&state.file);
    frag_experiment_destroy(&state.experiment);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_sweep = {
    .name = "sweep",
    .operands = "EXPERIMENT.yaml",
    .summary = "traces through policies, options and capacities; resumable",
    .description =
        "Replays every trace of an experiment through every combination of its policies, options "
        "and capacities, and writes a row for each, as 'fraglab run --format jsonl' does, in the "
        "order of the experiment. A capacity that must give the same run as another one is not "
        "replayed. A sweep that was interrupted or killed is started again with the same command: "
        "it goes on behind the last whole row of its output file, and the file ends up with the "
        "same bytes. docs/sweep.md describes the experiment.\n\n"
        "Exit: 0 ok; 2 usage; 3 bad input; 4 the system refused; 130 interrupted.",
    .examples =
        "fraglab sweep caps.yaml -o caps.jsonl  # the same command goes on where it stopped\n"
        "fraglab sweep caps.yaml --counts-only -o caps.jsonl  # twice as fast",
    .options = options,
    .operand_min = 1,
    .operand_max = 1,
    .run = sweep_command,
};
