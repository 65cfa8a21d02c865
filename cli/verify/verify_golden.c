#include "cli/verify/verify_golden.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "studies/verify/golden_check.h"

#define CONTEXT_LINES 3u
#define CONTEXT_BYTES 240u

typedef struct golden_job {
    char *path;
    const char *name; /* of the file, in path; or "stdin" */
    frag_golden_check_result checked;
    frag_text context; /* lines of the log up to the difference */
    frag_error error;
    bool is_ok;
} golden_job;

typedef struct golden_check {
    const frag_context *context;
    const frag_policy_spec *spec;
    uint64_t check_every;
    golden_job *jobs;
    size_t job_count;
    size_t job_capacity;
    frag_progress *progress;
} golden_check;

/* ---- which logs */

static void add_job(golden_check *state, const char *path)
{
    golden_job *job = FRAG_APPEND(state->jobs, state->job_count, state->job_capacity);
    *job = (golden_job){.path = frag_copy_text(path)};
    job->name = frag_golden_check_name(job->path);
}

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* The logs of a folder by name; what else lies there is left alone. */
static bool add_folder(golden_check *state, const char *folder, frag_error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        return frag_fail_in(error, FRAG_E_SYSTEM, folder, "the folder cannot be read");
    size_t before = state->job_count;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(name);
        const char *ending = strstr(name, ".jsonl");
        if (ending != NULL && name[0] != '.') {
            frag_text path = {0};
            size_t end = strlen(folder);
            while (end > 1 && folder[end - 1] == '/')
                end--;
            frag_text_add_bytes(&path, folder, end);
            frag_text_add(&path, "/");
            frag_text_add_bytes(&path, name, length);
            if (!is_folder(path.bytes))
                add_job(state, path.bytes);
            frag_text_destroy(&path);
        }
        frag_free(entries[i]);
    }
    frag_free(entries);
    if (state->job_count > before)
        return true;
    return frag_fail_in(
        error, FRAG_E_INPUT, folder,
        "the folder holds no logs; expected files such as NAME.jsonl or NAME.jsonl.zst");
}

/* ---- one log */

/* The lines before the difference and the one that showed it, from the file again: a log is not
 * kept as text. What cannot be read a second time (a pipe) has no context. */
static void read_context(golden_job *job)
{
    frag_error ignored = {0};
    frag_input *input = strcmp(job->path, "-") != 0 ? frag_input_open(job->path, &ignored) : NULL;
    uint64_t first =
        job->checked.result.line > CONTEXT_LINES ? job->checked.result.line - CONTEXT_LINES : 1;
    frag_line line = {0};
    while (input != NULL && line.number < job->checked.result.line) {
        if (!frag_line_find(input, &FRAG_GOLDEN_LINE_LIMIT, &line, &ignored) || line.taken == 0)
            break;
        if (line.number >= first) {
            size_t shown = line.length < CONTEXT_BYTES ? line.length : CONTEXT_BYTES;
            frag_text_add(&job->context, "  %10" PRIu64 "  ", line.number);
            frag_text_add_bytes(&job->context, line.bytes, shown);
            frag_text_add(&job->context, shown < CONTEXT_BYTES ? "\n" : "...\n");
        }
        frag_input_skip(input, line.taken);
    }
    frag_input_close(input);
}

static void verify_log(void *context, uint64_t index)
{
    golden_check *state = context;
    golden_job *job = &state->jobs[index];
    if (frag_is_interrupted())
        return;
    const frag_golden_options options = {.check_every = state->check_every,
                                         .context = state->context};
    frag_input *input = frag_input_open(job->path, &job->error);
    job->is_ok = input != NULL && frag_golden_check(input, job->name, state->spec, &options,
                                                    &job->checked, &job->error);
    frag_input_close(input);
    if (!job->is_ok)
        frag_error_in(&job->error, job->path);
    else if (!job->checked.result.is_identical)
        read_context(job);
    frag_progress_add(state->progress, 1);
}

/* ---- printing */

static void print_counts(const frag_golden_result *result)
{
    printf("%s requests", FRAG_COUNT(result->requests));
    printf(", %s device events", FRAG_COUNT(result->device_events));
    if (result->trace_events > 0)
        printf(", %s trace events", FRAG_COUNT(result->trace_events));
    if (result->ooms > 0)
        printf(", %s OOM", FRAG_COUNT(result->ooms));
    if (result->stat_lines > 0)
        printf(", %s lines of statistics", FRAG_COUNT(result->stat_lines));
    if (result->segments > 0)
        printf(", %s segments", FRAG_COUNT(result->segments));
    if (result->has_failed)
        printf(" (the log ends where the library failed)");
}

static void print_difference(const golden_job *job)
{
    const frag_golden_result *result = &job->checked.result;
    char kind[32];
    snprintf(kind, sizeof kind, "%s", result->kind);
    for (char *at = kind; *at != '\0'; at++)
        *at = *at == '_' ? ' ' : *at;
    printf("%s:%" PRIu64 ": different in %s, after %s identical requests\n", job->name,
           result->line, kind, FRAG_COUNT(result->requests));
    printf("  library: %s\n", result->library.bytes);
    printf("  fraglab: %s\n", result->policy.bytes);
    printf("%s", job->context.bytes != NULL ? job->context.bytes : "");
    const frag_policy_spec *spec = &job->checked.spec;
    if (job->checked.conf[0] != '\0' && spec->ops->conf_option != NULL && !spec->wants_recorded)
        printf("  likely: the log was made with other settings; try pytorch:recorded\n");
}

static void print_text(const golden_check *state)
{
    frag_golden_result sum = {0};
    size_t compared = 0;
    size_t different = 0;
    for (size_t i = 0; i < state->job_count; i++) {
        const golden_job *job = &state->jobs[i];
        if (!job->is_ok)
            continue;
        compared++;
        different += job->checked.result.is_identical ? 0 : 1;
        sum.requests += job->checked.result.requests;
        sum.device_events += job->checked.result.device_events;
        sum.trace_events += job->checked.result.trace_events;
        sum.ooms += job->checked.result.ooms;
        sum.stat_lines += job->checked.result.stat_lines;
        sum.segments += job->checked.result.segments;
        sum.has_failed = state->job_count == 1 && job->checked.result.has_failed;
    }
    if (compared == 0)
        return;
    if (different == 0)
        printf("identical: ");
    else
        printf("different: %zu of %zu logs; the same are ", different, compared);
    print_counts(&sum);
    printf(compared > 1 && different == 0 ? " in %zu logs\n" : "\n", compared);
    for (size_t i = 0; i < state->job_count; i++) {
        const golden_job *job = &state->jobs[i];
        if (job->is_ok && !job->checked.result.is_identical) {
            print_difference(job);
        } else if (job->is_ok && state->job_count > 1) {
            printf("%s: identical: ", job->name);
            print_counts(&job->checked.result);
            printf("\n");
        }
    }
}

static int report_jobs(const golden_check *state, bool is_json)
{
    int code = 0;
    bool is_different = false;
    for (size_t i = 0; i < state->job_count; i++) {
        const golden_job *job = &state->jobs[i];
        if (is_json && job->is_ok)
            frag_golden_check_print_json(stdout, job->name, &job->checked);
        int failure = job->error.code != FRAG_E_NONE ? frag_report(&job->error) : 0;
        code = code != 0 ? code : failure;
        is_different = is_different || (job->is_ok && !job->checked.result.is_identical);
    }
    /* Input that could not be read weighs more than a difference. */
    return code != 0 ? code : is_different ? 1 : 0;
}

int frag_verify_golden(const frag_arguments *arguments, const frag_policy_spec *spec, bool is_json,
                       uint32_t threads)
{
    golden_check state = {.context = frag_arguments_context(arguments), .spec = spec};
    frag_error error = {0};
    bool ok = frag_arguments_count(arguments, "check", 1, UINT64_MAX, &state.check_every, &error);
    for (size_t i = 0; ok && i < frag_arguments_operand_count(arguments); i++) {
        const char *path = frag_arguments_operand(arguments, i);
        if (is_folder(path))
            ok = add_folder(&state, path, &error);
        else
            add_job(&state, path);
    }
    int code = 0;
    if (ok) {
        state.progress = frag_progress_start(frag_arguments_context(arguments), "verifying", "logs",
                                             state.job_count);
        frag_for_each(threads, state.job_count, verify_log, &state);
        frag_progress_end(state.progress);
        if (!is_json && !frag_is_interrupted())
            print_text(&state);
        code = frag_is_interrupted() ? 130 : report_jobs(&state, is_json);
    } else {
        code = frag_report(&error);
    }
    for (size_t i = 0; i < state.job_count; i++) {
        frag_free(state.jobs[i].path);
        frag_text_destroy(&state.jobs[i].context);
        frag_golden_check_destroy(&state.jobs[i].checked);
    }
    frag_free(state.jobs);
    return code;
}
