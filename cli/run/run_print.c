/* Prints the rows of `fraglab run`, and the notes beside them. */
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/run/run_state.h"
#include "sim/policy_engine.h"
#include "sim/version.h"

static void fill_row(const frag_run_state *state, const frag_run_job *task, frag_row *row)
{
    const frag_run_source *from = state->sources;
    while (&from->recording != task->recording)
        from++;
    const frag_run_job *first = task;
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
        .has_timing = state->run.is_timed,
        .stats = state->stats_at.text != NULL ? &task->stats : NULL,
    };
}

/* Did the same trace fail in the same way under the policy before? */
static bool is_said(const frag_run_state *state, size_t index)
{
    const frag_run_job *task = &state->jobs[index];
    for (size_t i = index; i > 0 && state->jobs[i - 1].trace == task->trace; i--)
        if (state->jobs[i - 1].is_gpu == task->is_gpu)
            return strcmp(state->jobs[i - 1].error.sentence, task->error.sentence) == 0;
    return false;
}

/* What went wrong, in the order of the command line, so that threads change nothing; the exit code
 * of the first failure, else 0. */
int frag_run_report_problems(const frag_run_state *state, size_t source_count, size_t job_count)
{
    int code = 0;
    size_t next = 0;
    for (size_t i = 0; i < source_count; i++) {
        const frag_run_source *from = &state->sources[i];
        if (!from->is_loaded) {
            int failure = frag_report(&from->error);
            code = code != 0 ? code : failure;
        }
        for (; next < job_count && state->jobs[next].recording == &from->recording; next++) {
            const frag_run_job *task = &state->jobs[next];
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
static void warn_of_others(const frag_run_state *state, const frag_row *row)
{
    uint64_t before = row->gpu->report.free_before_bytes;
    uint64_t after = row->gpu->report.free_after_bytes;
    uint64_t by = before > after ? before - after : after - before;
    if (by >= OTHERS_BYTES_MIN)
        frag_warn(state->arguments,
                  "%s: %s: %s %s of the card's memory while it ran; what was measured may be due "
                  "to that",
                  row->trace_name, row->label,
                  before > after ? "other programs took" : "other programs gave back",
                  FRAG_BYTES(by));
}

/* The rows of one trace: a table for each device, then how they differ. */
static void print_tables(const frag_run_state *state, FILE *stream, const frag_row *rows,
                         size_t count)
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
    frag_free(sim);
    frag_free(gpu);
}

static void print_all_tables(const frag_run_state *state, FILE *stream, const frag_row *rows,
                             size_t count)
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

static void print_data(const frag_run_state *state, FILE *stream, const frag_row *rows,
                       size_t count)
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
static void say_plan(const frag_run_state *state, const frag_row *row)
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

/* Was the option given, as a share above 0? */
static bool is_set(const frag_policy_spec *spec, const char *key)
{
    const frag_option_value *value = frag_policy_spec_value(spec, key);
    return value != NULL && value->is_given && value->ratio > 0;
}

/* PyTorch collects only below a memory limit; without one the setting looks as if it were useless.
 */
static void warn_of_no_limit(const frag_run_state *state, const frag_run_job *task)
{
    const frag_policy_ops *ops = task->spec.ops;
    if (ops->conf_option == NULL || ops->fraction_option == NULL)
        return;
    const char *conf = frag_policy_spec_text(&task->spec, ops->conf_option);
    bool collects = is_set(&task->spec, "garbage_collection_threshold") ||
                    strstr(conf, "garbage_collection_threshold") != NULL;
    if (collects && !is_set(&task->spec, ops->fraction_option) &&
        strstr(conf, ops->fraction_option) == NULL &&
        task->trace->stats.op_counts[FRAG_OP_LIMIT] == 0)
        frag_warn(state->arguments,
                  "%s: %s: garbage_collection_threshold does nothing without a memory limit; add "
                  "per_process_memory_fraction=F and --capacity",
                  task->recording->name, task->spec.text);
}

void frag_run_print_rows(frag_run_state *state, size_t count, FILE *stream)
{
    frag_row *rows = frag_alloc(count, sizeof *rows);
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        const frag_run_job *task = &state->jobs[i];
        if (!task->is_ok || task->result.replay.is_interrupted)
            continue;
        state->has_oom = state->has_oom || task->result.replay.oom.has_happened;
        fill_row(state, task, &rows[done++]);
    }
    frag_progress_pause(state->progress);
    if (state->result_format == FRAG_RESULT_TABLE || state->result_format == FRAG_RESULT_MARKDOWN)
        print_all_tables(state, stream, rows, done);
    else
        print_data(state, stream, rows, done);
    fflush(stream);
    state->row_count += done;
    for (size_t i = 0; i < count; i++)
        if (state->jobs[i].is_ok)
            warn_of_no_limit(state, &state->jobs[i]);
    for (size_t i = 0; i < done; i++) {
        say_plan(state, &rows[i]);
        if (rows[i].result->replay.oom.message[0] != '\0')
            frag_say(state->arguments, "%s: %s: %s", rows[i].trace_name, rows[i].label,
                     rows[i].result->replay.oom.message);
        if (rows[i].gpu != NULL)
            warn_of_others(state, &rows[i]);
    }
    frag_free(rows);
}
