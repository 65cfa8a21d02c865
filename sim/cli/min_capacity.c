#include <inttypes.h>
#include <stdlib.h>

#include "sim/base/bytes.h"
#include "sim/base/file.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "sim/cli/inputs.h"
#include "sim/version.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {.name = "format",
     .argument = "FORMAT",
     .choices = "table|jsonl",
     .help = "how rows are printed (default: table)"},
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

typedef struct job {
    const frag_trace *trace;
    const frag_policy_spec *spec;
    frag_capacity_result result;
    frag_error error;
    bool is_ok;
} job;

typedef struct searching {
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_recording recording;
    job *jobs;
    size_t row_count; /* printed */
    frag_progress *progress;
} searching;

static void search_job(void *context, uint64_t index)
{
    searching *state = context;
    job *task = &state->jobs[index];
    frag_policy_spec resolved = {0};
    if (!frag_is_interrupted() &&
        frag_inputs_resolve(task->spec, &state->recording, &resolved, &task->error)) {
        task->is_ok =
            frag_find_capacity(&state->recording, task->trace, resolved.ops, resolved.values,
                               &state->device, frag_is_interrupted, &task->result, &task->error);
        frag_policy_spec_destroy(&resolved);
    }
    frag_progress_add(state->progress, 1);
}

static void print_table_row(FILE *stream, const searching *state, const job *task)
{
    char a[FRAG_BYTES_TEXT_MAX];
    char b[FRAG_BYTES_TEXT_MAX];
    char c[FRAG_BYTES_TEXT_MAX];
    const frag_capacity_result *result = &task->result;
    if (state->recording.trace_count > 1)
        fprintf(stream, "%s device %" PRIu32 "  ", state->recording.name, task->trace->device);
    else
        fprintf(stream, "%s  ", state->recording.name);
    fprintf(stream, "%s  ", task->spec->text);
    if (!result->is_found) {
        fprintf(stream, "no capacity is enough\n");
        return;
    }
    double bound =
        (double)(task->trace->stats.peak_requested_bytes + state->device.used_by_others_bytes);
    fprintf(stream, "%s (%" PRIu64 " bytes", frag_bytes_text(result->capacity_bytes, a),
            result->capacity_bytes);
    if (bound > 0)
        fprintf(stream, ", %+.1f%% over bound", ((double)result->capacity_bytes / bound - 1) * 100);
    fprintf(stream, ")");
    if (result->has_below)
        fprintf(stream, "; 2 MiB less: OOM at event %s (needs %s, largest hole %s)",
                frag_count_text(result->below.event, a),
                frag_bytes_text(result->below.requested_bytes, b),
                frag_bytes_text(result->below.largest_hole_bytes, c));
    if (!result->is_monotone)
        fprintf(stream, "; not monotone: %s fails again",
                frag_bytes_text(result->failing_above_bytes, a));
    fprintf(stream, "\n");
}

static void print_json_row(FILE *stream, const searching *state, const job *task)
{
    const frag_capacity_result *result = &task->result;
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.min-capacity/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "trace.name", state->recording.name);
    frag_json_text(json, "trace.digest", task->trace->digest);
    frag_json_number(json, "trace.device", task->trace->device);
    frag_json_number(json, "trace.peak_requested_bytes", task->trace->stats.peak_requested_bytes);
    frag_json_text(json, "policy.name", task->spec->ops->name);
    frag_json_text(json, "policy.label", task->spec->text);
    frag_json_number(json, "device.used_by_others_bytes", state->device.used_by_others_bytes);
    frag_json_number(json, "capacity_bytes",
                     result->is_found ? result->capacity_bytes : FRAG_UNLIMITED);
    frag_json_flag(json, "is_monotone", result->is_monotone);
    frag_json_number(json, "failing_above_bytes",
                     result->is_monotone ? FRAG_UNLIMITED : result->failing_above_bytes);
    frag_json_number(json, "enough_bytes", result->enough_bytes);
    frag_json_number(json, "runs", result->runs);
    if (result->has_below) {
        frag_json_number(json, "below.event", result->below.event);
        frag_json_number(json, "below.requested_bytes", result->below.requested_bytes);
        frag_json_number(json, "below.segment_bytes", result->below.segment_bytes);
        frag_json_number(json, "below.free_bytes", result->below.free_bytes);
        frag_json_number(json, "below.largest_hole_bytes", result->below.largest_hole_bytes);
        frag_json_number(json, "below.total_hole_bytes", result->below.total_hole_bytes);
    } else {
        frag_json_null(json, "below");
    }
    frag_json_write(json, stream, false);
}

static int search_file(searching *state, const char *path, frag_trace_format format,
                       uint32_t threads, bool is_json, FILE *stream)
{
    frag_error error = {0};
    if (!frag_inputs_load(path, format, false, &state->recording, &error))
        return frag_report(&error);
    size_t count = state->recording.trace_count * state->policies.count;
    state->jobs = frag_alloc(count, sizeof *state->jobs);
    for (size_t i = 0; i < count; i++) {
        state->jobs[i].trace = &state->recording.traces[i / state->policies.count];
        state->jobs[i].spec = &state->policies.specs[i % state->policies.count];
    }
    frag_for_each(threads, count, search_job, state);
    frag_progress_hide(state->progress);
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        const job *task = &state->jobs[i];
        if (!task->is_ok && task->error.code != FRAG_E_NONE) {
            int failure = frag_report(&task->error);
            code = code != 0 ? code : failure;
        } else if (task->is_ok && !frag_is_interrupted()) {
            state->row_count++;
            if (is_json)
                print_json_row(stream, state, task);
            else
                print_table_row(stream, state, task);
        }
    }
    free(state->jobs);
    frag_recording_destroy(&state->recording);
    return code;
}

static int min_capacity_command(const frag_arguments *arguments)
{
    searching state = {.jobs = NULL};
    frag_error error = {0};
    frag_trace_format format = FRAG_FORMAT_AUTO;
    uint64_t threads = frag_core_count();
    frag_output *output = NULL;
    int code = 0;
    if (frag_arguments_has(arguments, "capacity")) {
        frag_fail(&error, FRAG_E_USAGE,
                  "the capacity is what this command looks for; leave --capacity out");
        return frag_report(&error);
    }
    if (!frag_inputs_policies(arguments, NULL, &state.policies, &error) ||
        !frag_inputs_device(arguments, &state.device, &state.gpu, &error) ||
        !frag_inputs_format(arguments, &format, &error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &threads, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        bool is_json = frag_arguments_is(arguments, "format", "jsonl");
        size_t count = frag_arguments_operand_count(arguments);
        state.progress =
            frag_progress_start(arguments, "searching", "searches", count * state.policies.count);
        for (size_t i = 0; i < count && !frag_is_interrupted(); i++) {
            int failure = search_file(&state, frag_arguments_operand(arguments, i), format,
                                      (uint32_t)threads, is_json, frag_output_stream(output));
            code = code != 0 ? code : failure;
        }
        frag_progress_end(state.progress);
        if (frag_is_interrupted() || (code != 0 && state.row_count == 0))
            frag_output_abandon(output);
        else if (!frag_output_finish(output, &error))
            code = code != 0 ? code : frag_report(&error);
    }
    frag_inputs_policies_destroy(&state.policies);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_min_capacity = {
    .name = "min-capacity",
    .operands = "TRACE...",
    .summary = "the smallest device on which a trace survives",
    .description = "Finds, to 2 MiB, the least capacity with which every request of the trace is "
                   "served, and the OOM point with "
                   "one page less. The search is exact: each replay tells for which other "
                   "capacities nothing would change, and "
                   "the search goes from one such interval to the next. Policies that react to a "
                   "full device can survive on one "
                   "capacity and fail on a larger one; the row says when that is so.",
    .examples = "fraglab min-capacity train.pickle --policy pytorch,best-fit,tlsf  # one line each",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = min_capacity_command,
};
