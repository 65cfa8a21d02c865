/* Sweeps over an experiment. */
#include <string.h>

#include "api/api_call.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "studies/sweep/sweep_ranks.h"

#define EXPERIMENT_BYTES_MAX ((size_t)1 << 20)
/* Units whose rows may wait for one before them, for each thread. */
#define WINDOW_PER_THREAD 128u

typedef struct sweep_call {
    const fraglab_context *context;
    const char *path; /* NULL: text */
    const char *text;
    size_t length;
    const fraglab_sweep_options *given;
    fraglab_sweep_options options;
    char **rows_out;              /* NULL: not wanted */
    fraglab_sweep_totals *totals; /* NULL: not wanted */
    frag_text line;
    frag_text rows;
} sweep_call;

static bool open_job(const sweep_call *call, frag_sweep_job *job, frag_error *error)
{
    frag_text folder = {0};
    if (call->path != NULL)
        return frag_sweep_job_open(call->path, job, error);
    if (call->length > EXPERIMENT_BYTES_MAX)
        return frag_fail_in(error, FRAG_E_INPUT, "experiment",
                            "has more than 1 MiB; expected a document written by hand");
    frag_text_add(&folder, "%s%s", call->options.folder != NULL ? call->options.folder : "",
                  call->options.folder != NULL ? "/" : "");
    bool ok = frag_sweep_job_parse(call->length > 0 ? call->text : "", call->length, folder.bytes,
                                   job, error);
    frag_text_destroy(&folder);
    return ok;
}

/* Rows come in whole lines; the caller gets them one by one. */
static bool hand_rows(sweep_call *call, const char *rows, size_t length, frag_error *error)
{
    while (length > 0) {
        const char *end = memchr(rows, '\n', length);
        size_t taken = end != NULL ? (size_t)(end - rows) + 1 : length;
        frag_text_clear(&call->line);
        frag_text_add_bytes(&call->line, rows, taken);
        if (call->options.row(call->options.user, call->line.bytes, taken) != 0)
            return frag_fail(error, (frag_error_code)FRAGLAB_E_CANCELLED, "the call was cancelled");
        rows += taken;
        length -= taken;
    }
    return true;
}

/* From one thread at a time. */
static bool put_rows(void *user, const char *rows, size_t length, frag_error *error)
{
    sweep_call *call = user;
    if (call->rows_out != NULL)
        frag_text_add_bytes(&call->rows, rows, length);
    return call->options.row == NULL || hand_rows(call, rows, length, error);
}

static bool open_output(const sweep_call *call, frag_sweep_file *file, frag_error *error)
{
    const char *path = call->options.output;
    if (path == NULL)
        return true;
    if (!frag_output_is_stdout(path))
        return frag_sweep_file_open(path, call->options.overwrite != 0, file, error);
    return frag_fail_in(error, FRAG_E_USAGE, "output", "rows are not printed; name a file");
}

static bool sweep_all(sweep_call *call, frag_sweep_job *job, fraglab_sweep_totals *totals,
                      frag_error *error)
{
    const frag_experiment *experiment = &job->experiment;
    frag_sweep_totals written = {0};
    frag_sweep_file file = {.put = put_rows,
                            .user = call,
                            .has_layout = !job->has_counts_only,
                            .has_bounds = experiment->has_bounds};
    if (!open_output(call, &file, error))
        return false;
    job->progress = frag_progress_start(job->context, "sweeping", "runs",
                                        experiment->trace_count * experiment->policy_count *
                                            experiment->capacity_count);
    frag_sweep_order *order = frag_sweep_order_create(
        job, &file, (size_t)frag_context_threads(job->context) * WINDOW_PER_THREAD);
    frag_sweep_work_alone(job, order);
    bool ok = frag_sweep_order_finish(order, &written, error);
    frag_progress_end(job->progress);
    totals->rows = written.rows;
    totals->replayed = written.replayed;
    totals->found = file.next;
    frag_sweep_file_close(&file);
    return frag_call_goes_on(job->context, error) && ok;
}

static bool sweep_work(void *arguments, frag_error *error)
{
    sweep_call *call = arguments;
    fraglab_sweep_totals totals = {.size = sizeof totals};
    if (!frag_call_read(call->given, &call->options, sizeof call->options, "fraglab_sweep_options",
                        error))
        return false;
    frag_sweep_job *job = frag_alloc(1, sizeof *job);
    *job = (frag_sweep_job){.context = frag_call_context(call->context),
                            .has_counts_only = call->options.counts_only != 0,
                            .is_all_replayed = call->options.replay_all != 0};
    if (!open_job(call, job, error) || !sweep_all(call, job, &totals, error))
        return false;
    if (call->totals != NULL &&
        !frag_call_write(&totals, sizeof totals, call->totals, "fraglab_sweep_totals", error))
        return false;
    frag_sweep_job_close(job);
    frag_text_add(&call->rows, "%s", "");
    if (call->rows_out != NULL)
        *call->rows_out = frag_call_hand_out(call->rows.bytes);
    return true;
}

static int sweep(sweep_call *call, char **rows, fraglab_error *error)
{
    if (rows != NULL)
        *rows = NULL;
    call->rows_out = rows;
    return frag_call_once(sweep_work, call, error);
}

int fraglab_sweep_path(const fraglab_context *context, const char *path,
                       const fraglab_sweep_options *options, char **rows,
                       fraglab_sweep_totals *totals, fraglab_error *error)
{
    sweep_call call = {.context = context, .path = path, .given = options, .totals = totals};
    return sweep(&call, rows, error);
}

int fraglab_sweep_memory(const fraglab_context *context, const char *experiment, size_t length,
                         const fraglab_sweep_options *options, char **rows,
                         fraglab_sweep_totals *totals, fraglab_error *error)
{
    sweep_call call = {.context = context,
                       .text = experiment,
                       .length = length,
                       .given = options,
                       .totals = totals};
    return sweep(&call, rows, error);
}
