/* `fraglab min-capacity`: the smallest device on which a trace runs without an OOM. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/inputs.h"
#include "sim/rows/result.h"
#include "sim/rows/row_fields.h"
#include "sim/version.h"
#include "studies/capacity/bounds.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"format", "FORMAT", .choices = "table|jsonl|markdown",
     .help = "how rows are printed (default: table)"},
    FRAG_BOUNDS_OPTION,
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {.name = NULL},
};

typedef struct job {
    const frag_trace *trace;
    const frag_policy_spec *spec;
    const frag_repeats *repeats;
    frag_capacity_result result;
    frag_error error;
    bool is_ok;
} job;

/* Of one trace, for all of its jobs. */
typedef struct bound {
    const frag_trace *trace;
    frag_repeats repeats;
    frag_row_packing packing;
    frag_error error;
    bool has_packing;
} bound;

typedef struct capacity_run {
    const frag_arguments *arguments;
    frag_policy_list policies;
    frag_device_spec device;
    frag_device_description gpu;
    frag_trace_format format;
    frag_result_format result_format;
    uint64_t threads;
    frag_recording recording;
    char recorded_by[64];
    job *jobs;          /* the policies of the first trace, then those of the next */
    bound *bounds;      /* a trace each */
    size_t row_count;   /* printed */
    size_t table_count; /* printed */
    frag_progress *progress;
} capacity_run;

static void search_job(void *context, uint64_t index)
{
    capacity_run *state = context;
    job *task = &state->jobs[index];
    frag_policy_spec resolved = {0};
    if (!frag_is_interrupted() &&
        frag_policy_resolve(frag_arguments_context(state->arguments), task->spec, &state->recording,
                            &resolved, &task->error)) {
        task->is_ok = frag_find_capacity(
            &(frag_run_setup){&state->recording, task->trace, resolved.ops, resolved.values,
                              &state->device},
            task->repeats, frag_arguments_context(state->arguments), &task->result, &task->error);
        frag_policy_spec_destroy(&resolved);
    }
    frag_progress_add(state->progress, 1);
}

static void find_bound(void *context, uint64_t index)
{
    capacity_run *state = context;
    bound *task = &state->bounds[index];
    if (!frag_is_interrupted())
        task->has_packing =
            frag_bounds_find(frag_arguments_context(state->arguments), &state->recording,
                             task->trace, &task->packing, &task->error);
}

/* ---- the table of a trace */

static void add_line(frag_text_table *table, const capacity_run *state, const job *task,
                     bool has_failing)
{
    const frag_capacity_result *result = &task->result;
    uint64_t least = frag_trace_bound_bytes(task->trace) + state->device.used_by_others_bytes;
    frag_text_table_add(table, task->spec->text);
    if (result->is_found)
        frag_text_table_add(table, FRAG_BYTES(result->capacity_bytes));
    else
        frag_text_table_add(table, "none is enough");
    if (result->is_found && least > 0)
        frag_text_add(frag_text_table_cell(table), "%+.1f%%",
                      ((double)result->capacity_bytes / (double)least - 1) * 100);
    else
        frag_text_table_add(table, "–");
    if (result->is_found)
        frag_text_add(frag_text_table_cell(table), "%" PRIu64, result->capacity_bytes);
    else
        frag_text_table_add(table, "–");
    if (has_failing && result->is_found && !result->is_monotone)
        frag_text_table_add(table, FRAG_BYTES(result->failing_above_bytes));
    else if (has_failing)
        frag_text_table_add(table, "–");
    if (result->is_found && result->has_below)
        frag_result_oom_text(frag_text_table_cell(table), &result->below);
    else
        frag_text_table_add(table, "–");
}

/* The jobs of one trace that have a result. */
static void print_table(FILE *stream, capacity_run *state, const job *jobs, const bound *limits)
{
    bool has_failing = false;
    size_t count = 0;
    for (size_t i = 0; i < state->policies.count; i++) {
        count += jobs[i].is_ok ? 1 : 0;
        has_failing = has_failing ||
                      (jobs[i].is_ok && jobs[i].result.is_found && !jobs[i].result.is_monotone);
    }
    if (count == 0)
        return;
    const frag_row row = {
        .trace_name = state->recording.name,
        .trace = jobs[0].trace,
        .recorded_by = state->recorded_by[0] != '\0' ? state->recorded_by : NULL,
        .device = &state->device,
        .packing = limits->has_packing ? &limits->packing : NULL,
    };
    frag_text_table table = {.columns = has_failing ? 6 : 5, .is_last_text = true};
    static const char *const headers[] = {"policy",   "least capacity", "over bound",
                                          "in bytes", "fails again at", "OOM with one page less"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (i != 4 || has_failing)
            frag_text_table_add(&table, headers[i]);
    for (size_t i = 0; i < state->policies.count; i++)
        if (jobs[i].is_ok)
            add_line(&table, state, &jobs[i], has_failing);
    frag_result_table_bounds(&table, &row, state->device.used_by_others_bytes);
    if (state->table_count++ > 0)
        fputc('\n', stream);
    frag_result_table_head(state->result_format, stream, &row, "any capacity");
    frag_text_table_print(&table, state->result_format == FRAG_RESULT_MARKDOWN, stream);
}

/* ---- rows */

static void add_device(frag_json *json, const frag_device_spec *device, const frag_trace *trace)
{
    const frag_device_description *gpu = device->gpu;
    frag_json_number(json, "device.used_by_others_bytes", device->used_by_others_bytes);
    frag_json_number(json, "device.page_bytes", frag_device_page(device, trace));
    frag_json_text(json, "device.address_rule",
                   device->is_rule_given ? frag_address_rule_name(device->address_rule) : NULL);
    frag_json_number(json, "device.fail_call",
                     device->fail_call > 0 ? device->fail_call : FRAG_UNLIMITED);
    frag_json_text(json, "device.gpu", gpu != NULL ? gpu->name : NULL);
    frag_json_text(json, "device.gpu_digest", gpu != NULL ? gpu->digest : NULL);
}

static void print_json_row(FILE *stream, const capacity_run *state, const job *task,
                           const bound *limits)
{
    const frag_capacity_result *result = &task->result;
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", FRAG_SCHEMA_MIN_CAPACITY);
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "trace.name", state->recording.name);
    frag_json_text(json, "trace.digest", task->trace->digest);
    frag_json_number(json, "trace.device", task->trace->device);
    frag_json_number(json, "trace.peak_requested_bytes", task->trace->stats.peak_requested_bytes);
    frag_json_text(json, "policy.name", task->spec->ops->name);
    frag_json_text(json, "policy.label", task->spec->text);
    frag_result_add_options(json, task->spec->ops, task->spec->values);
    add_device(json, &state->device, task->trace);
    frag_json_number(json, "capacity_bytes",
                     result->is_found ? result->capacity_bytes : FRAG_UNLIMITED);
    frag_json_flag(json, "is_monotone", result->is_monotone);
    frag_json_number(json, "failing_above_bytes",
                     result->is_monotone ? FRAG_UNLIMITED : result->failing_above_bytes);
    frag_json_number(json, "enough_bytes",
                     result->enough_bytes > 0 ? result->enough_bytes : FRAG_UNLIMITED);
    frag_json_number(json, "runs", result->runs);
    frag_json_number(json, "bounds.peak_requested_bytes", frag_trace_bound_bytes(task->trace));
    if (limits->has_packing) {
        frag_json_number(json, "bounds.packing_bytes", limits->packing.bytes);
        frag_json_flag(json, "bounds.packing_proved", limits->packing.is_proved);
    } else {
        frag_json_null(json, "bounds.packing_bytes");
        frag_json_null(json, "bounds.packing_proved");
    }
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
    frag_row_write(json, stream);
}

/* The exit code of the first failure, else 0. */
static int report_problems(const capacity_run *state, size_t count)
{
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        const bound *limits = &state->bounds[i / state->policies.count];
        const job *task = &state->jobs[i];
        if (i % state->policies.count == 0 && limits->error.code != FRAG_E_NONE) {
            frag_error problem = limits->error;
            frag_error_in(&problem, state->recording.name);
            int failure = frag_report(&problem);
            code = code != 0 ? code : failure;
        }
        if (!task->is_ok && task->error.code != FRAG_E_NONE) {
            int failure = frag_report(&task->error);
            code = code != 0 ? code : failure;
        }
    }
    return code;
}

static void print_rows(capacity_run *state, size_t count, FILE *stream)
{
    for (size_t i = 0; i < count && !frag_is_interrupted(); i++) {
        const bound *limits = &state->bounds[i / state->policies.count];
        state->row_count += state->jobs[i].is_ok ? 1 : 0;
        if (state->result_format == FRAG_RESULT_JSONL && state->jobs[i].is_ok)
            print_json_row(stream, state, &state->jobs[i], limits);
        else if (state->result_format != FRAG_RESULT_JSONL && i % state->policies.count == 0)
            print_table(stream, state, &state->jobs[i], limits);
    }
}

static int search_file(capacity_run *state, const char *path, FILE *stream)
{
    frag_error error = {0};
    if (!frag_recording_load_plain(path, state->format, false, &state->recording, &error))
        return frag_report(&error);
    size_t traces = state->recording.trace_count;
    size_t count = traces * state->policies.count;
    state->recorded_by[0] = '\0';
    frag_recorded_by(&state->recording, state->recorded_by);
    state->jobs = frag_alloc(count, sizeof *state->jobs);
    state->bounds = frag_alloc(traces, sizeof *state->bounds);
    for (size_t i = 0; i < traces; i++) {
        state->bounds[i].trace = &state->recording.traces[i];
        frag_repeats_find(state->bounds[i].trace, &state->bounds[i].repeats);
    }
    for (size_t i = 0; i < count; i++) {
        state->jobs[i].repeats = &state->bounds[i / state->policies.count].repeats;
        state->jobs[i].trace = &state->recording.traces[i / state->policies.count];
        state->jobs[i].spec = &state->policies.specs[i % state->policies.count];
    }
    frag_for_each((uint32_t)state->threads, count, search_job, state);
    if (frag_arguments_has(state->arguments, "bounds"))
        frag_for_each((uint32_t)state->threads, traces, find_bound, state);
    frag_progress_pause(state->progress);
    int code = report_problems(state, count);
    print_rows(state, count, stream);
    for (size_t i = 0; i < traces; i++)
        frag_repeats_destroy(&state->bounds[i].repeats);
    frag_free(state->bounds);
    frag_free(state->jobs);
    frag_recording_destroy(&state->recording);
    return code;
}

static int min_capacity_command(const frag_arguments *arguments)
{
    capacity_run state = {.arguments = arguments, .threads = frag_core_count()};
    frag_error error = {0};
    frag_output *output = NULL;
    int code = 0;
    if (frag_arguments_has(arguments, "capacity")) {
        frag_fail(&error, FRAG_E_USAGE,
                  "the capacity is what this command looks for; leave --capacity out");
        return frag_report(&error);
    }
    if (!frag_inputs_policies(arguments, NULL, &state.policies, &error) ||
        !frag_inputs_device(arguments, &state.device, &state.gpu, &error) ||
        !frag_inputs_format(arguments, &state.format, &error) ||
        !frag_arguments_count(arguments, "jobs", 1, 4096, &state.threads, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        const char *format = frag_arguments_value(arguments, "format");
        if (format != NULL)
            frag_result_format_find(format, &state.result_format);
        size_t count = frag_arguments_operand_count(arguments);
        state.progress = frag_progress_start(frag_arguments_context(arguments), "searching",
                                             "searches", count * state.policies.count);
        for (size_t i = 0; i < count && !frag_is_interrupted(); i++) {
            int failure = search_file(&state, frag_arguments_operand(arguments, i),
                                      frag_output_stream(output));
            code = code != 0 ? code : failure;
        }
        frag_progress_end(state.progress);
        bool is_whole = !frag_is_interrupted() && (code == 0 || state.row_count > 0);
        if (!frag_output_end(output, is_whole, &error))
            code = code != 0 ? code : frag_report(&error);
    }
    frag_policy_list_destroy(&state.policies);
    return frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_min_capacity = {
    .name = "min-capacity",
    .operands = "TRACE...",
    .summary = "the smallest device on which a trace does not run out of memory",
    .description = "Finds, to 2 MiB, the least capacity with which every request of the trace is "
                   "served, and the OOM point with one page less. The search is exact: each "
                   "replay also tells for which other capacities nothing would change, and the "
                   "search goes from one such interval to the next. A policy that reacts to a "
                   "full device can survive on one capacity and fail on a larger one; the row "
                   "then says so. The lower bounds, which no policy can beat, are printed below "
                   "the rows; --bounds adds what a policy that knew the future would need.",
    .examples = "fraglab min-capacity train.pickle --policy pytorch,best-fit,tlsf --bounds",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = min_capacity_command,
};
