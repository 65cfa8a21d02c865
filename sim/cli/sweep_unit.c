#include "sim/cli/sweep_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/digest.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "sim/result.h"
#include "sim/version.h"

/* One row: a capacity. */
typedef struct cell {
    bool is_ok;
    bool is_concluded; /* not replayed: another capacity has the same run */
    frag_run_result result;
    frag_error error;
} cell;

typedef struct working {
    const frag_sweep_job *job;
    const frag_sweep_unit *unit;
    const frag_sweep_recording *of;
    const frag_trace *trace;
    const frag_policy_spec *spec;
    frag_policy_spec resolved;
    frag_arena_spare *spare;
    cell *cells;
} working;

/* Would a run on that capacity make the very same calls, with the very same answers? After an OOM
 * the row also tells what was free, and that is another number for every capacity. */
static bool gives_the_same(const frag_run_result *result, uint64_t capacity)
{
    return !result->is_capacity_read && result->replay.failed_requests == 0 &&
           capacity >= result->need_max_bytes && capacity < result->refused_need_min_bytes;
}

/* The run of another capacity of the unit, when this one must give the same. */
static const cell *find_equal(const working *state, size_t before, uint64_t capacity)
{
    for (size_t i = state->unit->first_capacity; i < before; i++) {
        const frag_run_result *result = &state->cells[i].result;
        uint64_t own = state->job->experiment.capacities[i];
        if (state->cells[i].is_ok && (own == capacity || gives_the_same(result, capacity)))
            return &state->cells[i];
    }
    return NULL;
}

static void run_cell(const working *state, size_t index)
{
    const frag_experiment *experiment = &state->job->experiment;
    cell *into = &state->cells[index];
    frag_device_spec device = {.capacity_bytes = experiment->capacities[index]};
    frag_run_options run = {.is_oom_skipped = experiment->is_oom_skipped,
                            .is_layout_skipped = state->job->has_counts_only,
                            .is_interrupted = frag_is_interrupted,
                            .spare = state->spare};
    const cell *equal = find_equal(state, index, device.capacity_bytes);
    if (equal != NULL) {
        into->result = equal->result;
        into->is_concluded = into->is_ok = true;
        return;
    }
    into->is_ok = frag_run(&state->of->recording, state->trace, state->resolved.ops,
                           state->resolved.values, &device, &run, &into->result, &into->error);
}

/* A combination that the policy refuses is a row too: the file's order must not depend on it. */
static void write_refusal(const working *state, const frag_error *error, uint64_t capacity,
                          FILE *stream)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.refused/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "trace.name", state->of->recording.name);
    frag_json_text(json, "trace.digest", state->trace->digest);
    frag_json_number(json, "trace.device", state->trace->device);
    frag_json_text(json, "policy.name", state->spec->ops->name);
    frag_json_text(json, "policy.label", state->spec->text);
    frag_json_number(json, "device.capacity_bytes", capacity);
    frag_json_text(json, "problem", error->sentence);
    frag_json_write(json, stream, false);
}

static void write_cell(const working *state, size_t index, FILE *stream)
{
    const cell *from = &state->cells[index];
    frag_device_spec device = {.capacity_bytes = state->job->experiment.capacities[index]};
    if (!from->is_ok) {
        write_refusal(state, &from->error, device.capacity_bytes, stream);
        return;
    }
    frag_row row = {
        .tool_version = frag_version(),
        .tool_commit = frag_commit(),
        .trace_name = state->of->recording.name,
        .trace = state->trace,
        .recorded_by = state->of->is_recorder_known ? state->of->recorded_by : NULL,
        .ops = state->resolved.ops,
        .values = state->resolved.values,
        .label = state->spec->text,
        .device = &device,
        .result = &from->result,
    };
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
}

/* An interrupt ends the rows at a row's end, like every other end. */
static void run_cells(working *state, const frag_error *refused, frag_sweep_rows *rows,
                      FILE *stream)
{
    size_t count = state->job->experiment.capacity_count;
    for (size_t i = state->unit->first_capacity; i < count; i++) {
        cell *into = &state->cells[i];
        if (frag_is_interrupted())
            return;
        into->error = *refused;
        if (refused->code == FRAG_E_NONE)
            run_cell(state, i);
        if (into->is_ok && into->result.replay.is_interrupted)
            return;
        write_cell(state, i, stream);
        rows->count++;
        rows->replayed += into->is_ok && !into->is_concluded ? 1 : 0;
        frag_progress_add(state->job->progress, 1);
    }
    rows->is_whole = true;
}

void frag_sweep_unit_run(const frag_sweep_job *job, const frag_sweep_unit *unit,
                         frag_sweep_rows *rows)
{
    working state = {
        .job = job,
        .unit = unit,
        .of = &job->recordings[unit->file],
        .trace = &job->recordings[unit->file].recording.traces[unit->trace],
        .spec = &job->experiment.policies[unit->policy],
        .spare = frag_arena_spare_create(),
        .cells = frag_alloc(job->experiment.capacity_count, sizeof *state.cells),
    };
    frag_error refused = {0};
    *rows = (frag_sweep_rows){0};
    FILE *stream = open_memstream(&rows->text.bytes, &rows->text.length);
    FRAG_ASSERT(stream != NULL);
    bool is_resolved =
        frag_inputs_resolve(state.spec, &state.of->recording, &state.resolved, &refused);
    run_cells(&state, &refused, rows, stream);
    FRAG_ASSERT(fclose(stream) == 0);
    if (is_resolved)
        frag_policy_spec_destroy(&state.resolved);
    frag_arena_spare_destroy(state.spare);
    free(state.cells);
}

bool frag_sweep_job_open(const char *path, frag_sweep_job *job, frag_error *error)
{
    if (!frag_experiment_load(path, &job->experiment, error))
        return false;
    job->recordings = frag_alloc(job->experiment.trace_count, sizeof *job->recordings);
    pthread_mutex_init(&job->lock, NULL);
    return true;
}

void frag_sweep_job_close(frag_sweep_job *job)
{
    if (job->recordings != NULL)
        pthread_mutex_destroy(&job->lock);
    free(job->recordings);
    frag_experiment_destroy(&job->experiment);
    job->recordings = NULL;
}

void frag_sweep_job_digest(const frag_sweep_job *job, char text[33])
{
    const frag_experiment *experiment = &job->experiment;
    frag_digest *digest = frag_digest_create();
    frag_text all = {0};
    frag_text_add(&all, "%s %s %d %d\n", frag_version(), frag_commit(), job->has_counts_only,
                  experiment->is_oom_skipped);
    for (size_t i = 0; i < experiment->trace_count; i++)
        frag_text_add(&all, "%s\n", experiment->traces[i]);
    for (size_t i = 0; i < experiment->policy_count; i++)
        frag_text_add(&all, "%s\n", experiment->policies[i].text);
    for (size_t i = 0; i < experiment->capacity_count; i++)
        frag_text_add(&all, "%llu\n", (unsigned long long)experiment->capacities[i]);
    frag_digest_add(digest, all.bytes, all.length);
    frag_digest_finish(digest, text);
    frag_text_destroy(&all);
}

const frag_sweep_recording *frag_sweep_hold(frag_sweep_job *job, uint32_t file, frag_error *error)
{
    frag_sweep_recording *of = &job->recordings[file];
    pthread_mutex_lock(&job->lock);
    if (!of->is_loaded && frag_inputs_load(job->experiment.traces[file], FRAG_FORMAT_AUTO, false,
                                           &of->recording, error)) {
        of->is_loaded = true;
        of->is_recorder_known = frag_inputs_recorded_by(&of->recording, of->recorded_by) != NULL;
    }
    bool ok = of->is_loaded;
    of->users += ok ? 1 : 0;
    pthread_mutex_unlock(&job->lock);
    return ok ? of : NULL;
}

void frag_sweep_let_go(frag_sweep_job *job, uint32_t file)
{
    frag_sweep_recording *of = &job->recordings[file];
    pthread_mutex_lock(&job->lock);
    of->users--;
    if (of->users == 0) {
        frag_recording_destroy(&of->recording);
        of->is_loaded = false;
    }
    pthread_mutex_unlock(&job->lock);
}
