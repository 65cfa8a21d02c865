#include "studies/sweep/sweep_unit.h"

#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "sim/rows/result.h"
#include "sim/rows/row_fields.h"
#include "sim/version.h"
#include "studies/policy_settings.h"
#include "traces/load.h"

/* One row: a capacity. */
typedef struct cell {
    bool is_ok;
    bool is_concluded; /* not replayed: another run is the same */
    bool is_done;
    frag_run_result result;
    frag_error error;
} cell;

typedef struct unit_run {
    const frag_sweep_job *job;
    const frag_sweep_unit *unit;
    const frag_sweep_recording *of;
    const frag_trace *trace;
    const frag_policy_spec *spec;
    frag_policy_spec resolved;
    frag_arena_spare *spare;
    frag_sweep_known *known;
    frag_sweep_key key;
    cell *cells;
    frag_row_packing packing;
} unit_run;

static void run_cell(const unit_run *state, size_t index)
{
    const frag_experiment *experiment = &state->job->experiment;
    cell *into = &state->cells[index];
    frag_device_spec device = {.capacity_bytes = experiment->capacities[index]};
    frag_run_options run = {.is_oom_skipped = experiment->is_oom_skipped,
                            .is_layout_skipped = state->job->has_counts_only,
                            .context = state->job->context,
                            .spare = state->spare};
    if (!state->job->is_all_replayed)
        run.repeats = frag_sweep_known_repeats(state->known);
    if (!state->job->is_all_replayed &&
        frag_sweep_known_find(state->known, &state->key, device.capacity_bytes, &into->result)) {
        into->is_concluded = into->is_ok = true;
        return;
    }
    into->is_ok = frag_run(&(frag_run_setup){&state->of->recording, state->trace,
                                             state->resolved.ops, state->resolved.values, &device},
                           &run, &into->result, &into->error);
    if (into->is_ok && !into->result.replay.is_interrupted)
        frag_sweep_known_add(state->known, &state->key, device.capacity_bytes, &into->result);
}

/* A combination that the policy refuses is a row too: the file's order must not depend on it. */
static void write_refusal(const unit_run *state, const frag_error *error, uint64_t capacity,
                          FILE *stream)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", FRAG_SCHEMA_REFUSED);
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "trace.name", state->of->recording.name);
    frag_json_text(json, "trace.digest", state->trace->digest);
    frag_json_number(json, "trace.device", state->trace->device);
    frag_json_text(json, "policy.name", state->spec->ops->name);
    frag_json_text(json, "policy.label", state->spec->text);
    frag_json_number(json, "device.capacity_bytes", capacity);
    frag_json_text(json, "problem", error->sentence);
    frag_row_write(json, stream);
}

static void write_cell(const unit_run *state, size_t index, FILE *stream)
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
        .packing = state->job->experiment.has_bounds ? &state->packing : NULL,
    };
    frag_result_write(FRAG_RESULT_JSONL, stream, &row);
}

/* Units that are worked on at the same time can turn out to be the same: each begins with another
 * capacity, so that it finds the runs of the others. */
static void run_cells(const unit_run *state, const frag_error *refused)
{
    size_t first = state->unit->first_capacity;
    size_t count = state->job->experiment.capacity_count - first;
    size_t start = (size_t)(state->unit->number % 8) * count / 8;
    for (size_t i = 0; i < count && !frag_is_cancelled(state->job->context); i++) {
        size_t index = first + (start + i) % count;
        cell *into = &state->cells[index];
        into->error = *refused;
        if (refused->code == FRAG_E_NONE)
            run_cell(state, index);
        into->is_done = !into->is_ok || !into->result.replay.is_interrupted;
        frag_progress_add(state->job->progress, 1);
    }
}

/* false: an interrupt, or the error. */
static bool find_bound(unit_run *state, frag_error *error)
{
    if (!state->job->experiment.has_bounds)
        return true;
    frag_sweep_trace *of = &state->of->traces[state->unit->trace];
    frag_lock_take(of->lock);
    if (!of->is_packed && !frag_is_cancelled(state->job->context))
        of->is_packed = frag_bounds_find(state->job->context, &state->of->recording, state->trace,
                                         &of->packing, error) &&
                        !frag_is_cancelled(state->job->context);
    bool ok = of->is_packed;
    state->packing = of->packing;
    frag_lock_give(of->lock);
    if (error->code != FRAG_E_NONE)
        frag_error_in(error, state->of->recording.name);
    return ok;
}

/* An interrupt ends the rows at a row's end, like every other end. */
static void write_cells(const unit_run *state, frag_sweep_rows *rows, FILE *stream)
{
    for (size_t i = state->unit->first_capacity; i < state->job->experiment.capacity_count; i++) {
        const cell *from = &state->cells[i];
        if (!from->is_done)
            return;
        write_cell(state, i, stream);
        rows->count++;
        rows->replayed += from->is_ok && !from->is_concluded ? 1 : 0;
    }
    rows->is_whole = true;
}

void frag_sweep_unit_run(const frag_sweep_job *job, const frag_sweep_unit *unit,
                         frag_sweep_rows *rows)
{
    unit_run state = {
        .job = job,
        .unit = unit,
        .of = &job->recordings[unit->file],
        .trace = &job->recordings[unit->file].recording.traces[unit->trace],
        .spec = &job->experiment.policies[unit->policy],
        .spare = frag_arena_spare_create(),
        .known = job->recordings[unit->file].traces[unit->trace].known,
        .cells = frag_alloc(job->experiment.capacity_count, sizeof *state.cells),
    };
    frag_error refused = {0};
    *rows = (frag_sweep_rows){0};
    frag_text_stream *stream = frag_text_stream_open();
    bool is_resolved = frag_policy_resolve(job->context, state.spec, &state.of->recording,
                                           &state.resolved, &refused);
    bool is_own = !state.spec->wants_recorded && !state.spec->wants_env;
    if (is_resolved)
        frag_sweep_key_make(state.known, unit->policy, state.resolved.ops, state.resolved.values,
                            is_own ? state.spec->values : NULL, &state.key);
    run_cells(&state, &refused);
    if (find_bound(&state, &rows->error))
        write_cells(&state, rows, frag_text_stream_file(stream));
    rows->text.bytes = frag_text_stream_close(stream, &rows->text.length);
    if (is_resolved)
        frag_policy_spec_destroy(&state.resolved);
    frag_arena_spare_destroy(state.spare);
    frag_free(state.cells);
}

static bool prepare(frag_sweep_job *job)
{
    job->recordings = frag_alloc(job->experiment.trace_count, sizeof *job->recordings);
    job->lock = frag_lock_create();
    return true;
}

bool frag_sweep_job_open(const char *path, frag_sweep_job *job, frag_error *error)
{
    return frag_experiment_load(path, &job->experiment, error) && prepare(job);
}

bool frag_sweep_job_parse(const char *text, size_t length, const char *folder, frag_sweep_job *job,
                          frag_error *error)
{
    return frag_experiment_parse(text, length, folder, &job->experiment, error) && prepare(job);
}

void frag_sweep_job_close(frag_sweep_job *job)
{
    frag_lock_destroy(job->lock);
    frag_free(job->recordings);
    frag_experiment_destroy(&job->experiment);
    job->recordings = NULL;
    job->lock = NULL;
}

void frag_sweep_job_digest(const frag_sweep_job *job, char text[33])
{
    const frag_experiment *experiment = &job->experiment;
    frag_digest *digest = frag_digest_create();
    frag_text all = {0};
    frag_text_add(&all, "%s %s %d %d %d\n", frag_version(), frag_commit(), job->has_counts_only,
                  experiment->is_oom_skipped, experiment->has_bounds);
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
    frag_lock_take(job->lock);
    if (!of->is_loaded && frag_recording_load_plain(job->experiment.traces[file], FRAG_FORMAT_AUTO,
                                                    false, &of->recording, error)) {
        of->is_loaded = true;
        of->traces = frag_alloc(of->recording.trace_count, sizeof *of->traces);
        for (uint32_t i = 0; i < of->recording.trace_count; i++)
            of->traces[i] = (frag_sweep_trace){
                .known = frag_sweep_known_create(&of->recording, &of->recording.traces[i]),
                .lock = frag_lock_create(),
            };
        of->is_recorder_known = frag_recorded_by(&of->recording, of->recorded_by) != NULL;
    }
    bool ok = of->is_loaded;
    of->users += ok ? 1 : 0;
    frag_lock_give(job->lock);
    return ok ? of : NULL;
}

void frag_sweep_let_go(frag_sweep_job *job, uint32_t file)
{
    frag_sweep_recording *of = &job->recordings[file];
    frag_lock_take(job->lock);
    of->users--;
    if (of->users == 0) {
        for (uint32_t i = 0; i < of->recording.trace_count; i++) {
            frag_sweep_known_destroy(of->traces[i].known);
            frag_lock_destroy(of->traces[i].lock);
        }
        frag_free(of->traces);
        frag_recording_destroy(&of->recording);
        of->is_loaded = false;
    }
    frag_lock_give(job->lock);
}
