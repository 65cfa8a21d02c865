/* fraglab record: run a program under a recorder, then make recordings of what it left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/machine/record_run.h"
#include "cli/trace/trace_tools.h"
#include "traces/exchange/device_log.h"

/* A log that a process left. */
typedef struct left_log {
    char *name; /* without folder and ending: "4242-0" */
    frag_device_log_header header;
    char command[64];
} left_log;

typedef struct recording_run {
    const frag_arguments *arguments;
    const char *path; /* of the output */
    char *folder;     /* of the logs */
    left_log *logs;   /* the one with most calls first */
    size_t log_count;
    size_t log_capacity;
    bool keeps_logs;
    bool has_failed;
} recording_run;

/* ---- the folder of logs */

static bool make_folder(recording_run *run, frag_error *error)
{
    frag_text name = {0};
    frag_text_add(&name, "%s.logs-XXXXXX", run->path);
    if (mkdtemp(name.bytes) == NULL) {
        frag_fail(error, FRAG_E_SYSTEM, "a folder for logs cannot be made (%s)", strerror(errno));
        frag_error_in(error, name.bytes);
        frag_text_destroy(&name);
        return false;
    }
    run->folder = realpath(name.bytes, NULL);
    frag_text_destroy(&name);
    return run->folder != NULL ||
           frag_fail(error, FRAG_E_SYSTEM, "the folder for logs is gone (%s)", strerror(errno));
}

static char *log_path(const recording_run *run, const char *name)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/%s" FRAG_DEVICE_LOG_ENDING, run->folder, name);
    return path.bytes;
}

static void remove_folder(const recording_run *run)
{
    for (size_t i = 0; i < run->log_count; i++) {
        char *path = log_path(run, run->logs[i].name);
        unlink(path);
        frag_free(path);
    }
    rmdir(run->folder);
}

/* Most calls first; what began earlier first. */
static int compare_logs(const void *left, const void *right)
{
    const left_log *a = left, *b = right;
    if (a->header.begun_count != b->header.begun_count)
        return a->header.begun_count > b->header.begun_count ? -1 : 1;
    if (a->header.start_monotonic_ns != b->header.start_monotonic_ns)
        return a->header.start_monotonic_ns < b->header.start_monotonic_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool read_log(const char *path, frag_device_log *log, frag_error *error)
{
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    bool ok = frag_device_log_read(input, log, error);
    frag_input_close(input);
    return ok || frag_error_in(error, path);
}

static void add_log(recording_run *run, const char *file)
{
    size_t length = strlen(file);
    size_t ending = strlen(FRAG_DEVICE_LOG_ENDING);
    if (length <= ending || strcmp(file + length - ending, FRAG_DEVICE_LOG_ENDING) != 0)
        return;
    run->logs = frag_grow(run->logs, &run->log_capacity, run->log_count + 1, sizeof *run->logs);
    left_log *added = &run->logs[run->log_count];
    *added = (left_log){.name = frag_copy_text(file)};
    added->name[length - ending] = '\0';
    char *path = log_path(run, added->name);
    frag_device_log log;
    frag_error error = {.code = FRAG_E_NONE};
    if (read_log(path, &log, &error)) {
        added->header = log.header;
        snprintf(added->command, sizeof added->command, "%.63s", log.command);
        frag_device_log_destroy(&log);
        run->log_count++;
    } else {
        frag_report(&error);
        run->has_failed = true;
        frag_free(added->name);
    }
    frag_free(path);
}

static void find_logs(recording_run *run)
{
    struct dirent **entries = NULL;
    int count = scandir(run->folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        add_log(run, entries[i]->d_name);
        frag_free(entries[i]);
    }
    frag_free(entries);
    if (run->log_count > 0)
        qsort(run->logs, run->log_count, sizeof *run->logs, compare_logs);
}

/* ---- from logs to recordings */

static void tell_recording(const recording_run *run, const left_log *log,
                           const frag_recording *recording, const frag_findings *findings,
                           const char *path)
{
    uint64_t oom_count = 0;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        const frag_trace_stats *stats = &recording->traces[i].stats;
        uint64_t reserved = stats->observed_reserved_peak_bytes;
        oom_count += stats->op_counts[FRAG_OP_OOM];
        peak += stats->peak_requested_bytes > reserved ? stats->peak_requested_bytes : reserved;
    }
    frag_tell(run->arguments,
              "recorded process %" PRIu32 " (%s): %s calls, %" PRIu32 " %s, peak %s, %" PRIu64
              " out of memory -> %s",
              log->header.pid, log->command, FRAG_COUNT(log->header.begun_count),
              recording->trace_count, recording->trace_count == 1 ? "device" : "devices",
              FRAG_BYTES(peak), oom_count, path);
    for (uint32_t i = 0; i < findings->count; i++)
        frag_tell(run->arguments, "  %s, %" PRIu64 " times: %s", findings->items[i].kind,
                  findings->items[i].count, findings->items[i].meaning);
}

/* output is used up. */
static bool write_log(recording_run *run, const left_log *log, frag_output *output,
                      const char *path, frag_error *error)
{
    frag_device_log_view view = frag_arguments_is(run->arguments, "as", "segments")
                                    ? FRAG_DEVICE_LOG_AS_SEGMENTS
                                    : FRAG_DEVICE_LOG_AS_REQUESTS;
    char *from = log_path(run, log->name);
    frag_device_log read;
    frag_recording recording = {0};
    frag_findings findings = {0};
    bool ok = read_log(from, &read, error);
    if (ok) {
        ok = frag_device_log_record(&read, view, log->name, &recording, &findings, error) ||
             frag_error_in(error, from);
        frag_device_log_destroy(&read);
    }
    frag_free(from);
    if (!ok) {
        frag_output_abandon(output);
        return false;
    }
    ok = frag_trace_tools_write(run->arguments, &recording, output, error);
    if (ok)
        tell_recording(run, log, &recording, &findings, path);
    frag_recording_destroy(&recording);
    return ok;
}

/* "train.fgt" and "4242-0" make "train-4242-0.fgt". */
static char *other_path(const recording_run *run, const char *name)
{
    const char *slash = strrchr(run->path, '/');
    const char *dot = strrchr(run->path, '.');
    size_t length = strlen(run->path);
    size_t stem = dot != NULL && dot > run->path && (slash == NULL || dot > slash + 1)
                      ? (size_t)(dot - run->path)
                      : length;
    frag_text path = {0};
    frag_text_add(&path, "%.*s-%s%s", (int)stem, run->path, name, run->path + stem);
    return path.bytes;
}

static void write_others(recording_run *run)
{
    for (size_t i = 1; i < run->log_count && run->logs[i].header.begun_count > 0; i++) {
        frag_error error = {.code = FRAG_E_NONE};
        char *path = other_path(run, run->logs[i].name);
        frag_output *output =
            frag_output_open(path, frag_arguments_has(run->arguments, "force"), &error);
        if (output == NULL || !write_log(run, &run->logs[i], output, path, &error)) {
            frag_report(&error);
            run->has_failed = true;
        }
        frag_free(path);
    }
}

static void tell_nothing(const recording_run *run, const frag_record_choice *choice)
{
    bool has_driver = run->log_count > 0;
    frag_tell(
        run->arguments, "nothing was recorded: %s; %s",
        has_driver ? "a process loaded the GPU driver but made no memory call that could be seen"
                   : "no process made a device call that could be seen",
        choice->is_cupti
            ? "'--by preload' sees calls of a software CUDA, and works beside a profiler"
            : "a program that takes memory only by calls that docs/recording.md does not list, or "
              "that drops LD_PRELOAD, needs '--by cupti' and a GPU");
}

/* The exit code of it all. */
static int finish(recording_run *run, const frag_record_choice *choice, frag_output *output,
                  int code)
{
    frag_error error = {.code = FRAG_E_NONE};
    find_logs(run);
    bool is_empty = run->log_count == 0 || run->logs[0].header.begun_count == 0;
    if (is_empty) {
        frag_output_abandon(output);
        tell_nothing(run, choice);
    } else if (write_log(run, &run->logs[0], output, run->path, &error)) {
        write_others(run);
        frag_text path = {.bytes = NULL};
        frag_text_add_word(&path, run->path);
        frag_tell(run->arguments, "next: fraglab trace info %s; fraglab run %s --policy all",
                  path.bytes, path.bytes);
        frag_text_destroy(&path);
    } else {
        frag_report(&error);
        run->has_failed = true;
    }
    if ((run->keeps_logs && run->log_count > 0) || run->has_failed)
        frag_tell(run->arguments, "the logs are in %s", run->folder);
    else
        remove_folder(run);
    if (run->has_failed && code == 0)
        code = error.code != FRAG_E_NONE ? (int)error.code : (int)FRAG_E_SYSTEM;
    return code == 0 && is_empty ? 1 : code;
}

static int record(recording_run *run, const frag_record_choice *choice, frag_output *output)
{
    frag_error error = {.code = FRAG_E_NONE};
    size_t count = frag_arguments_operand_count(run->arguments);
    char **command = frag_alloc(count + 1, sizeof *command);
    for (size_t i = 0; i < count; i++)
        command[i] = frag_copy_text(frag_arguments_operand(run->arguments, i));
    int code = 0;
    fflush(NULL);
    bool ok = frag_record_run(choice, run->folder, command, &code, &error);
    for (size_t i = 0; i < count; i++)
        frag_free(command[i]);
    frag_free(command);
    if (ok && error.code == FRAG_E_NONE)
        return finish(run, choice, output, code);
    frag_output_abandon(output);
    remove_folder(run);
    int reported = frag_report(&error);
    return ok ? code : reported;
}

static int run_record(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_record_choice choice;
    recording_run run = {
        .arguments = arguments,
        .path = frag_arguments_value(arguments, "output"),
        .keeps_logs = frag_arguments_has(arguments, "keep-logs"),
    };
    if (run.path == NULL)
        run.path = frag_arguments_is(arguments, "to", "text") ? "recording.txt" : "recording.fgt";
    if (strcmp(run.path, "-") == 0) {
        frag_fail(&error, FRAG_E_USAGE, "stdout is the program's own; name a file");
        frag_error_in(&error, "--output");
        return frag_report(&error);
    }
    if (!frag_inputs_spare(arguments, run.path, &error) ||
        !frag_record_choose(frag_arguments_value(arguments, "by"), &choice, &error))
        return frag_report(&error);
    frag_output *output =
        frag_output_open(run.path, frag_arguments_has(arguments, "force"), &error);
    if (output == NULL)
        return frag_report(&error);
    if (!make_folder(&run, &error)) {
        frag_output_abandon(output);
        return frag_report(&error);
    }
    fcntl(fileno(frag_output_stream(output)), F_SETFD, FD_CLOEXEC);
    frag_tell(run.arguments, "recording by %s, as %s", choice.is_cupti ? "cupti" : "preload",
              choice.reason);
    int code = record(&run, &choice, output);
    for (size_t i = 0; i < run.log_count; i++)
        frag_free(run.logs[i].name);
    frag_free(run.logs);
    frag_free(run.folder);
    return code;
}

static const frag_command_option record_options[] = {
    {"output", "FILE", .letter = 'o', .help = "the recording (default: recording.fgt)"},
    {"force", .letter = 'f', .help = "overwrite the output file"},
    {"to", "FORMAT", .choices = "fgt|text", .help = "format to write (default: fgt)"},
    {"by", "RECORDER", .choices = "preload|cupti",
     .help = "preload replaces the functions that the program calls; cupti is loaded by the GPU "
             "driver (default: cupti if it and a driver are installed)"},
    {"as", "VIEW", .choices = "requests|segments",
     .help = "what the calls are. requests: requests that a policy could serve; segments: "
             "segments of the program's own allocator (default: requests)"},
    {"keep-logs", .help = "keep the logs of all processes beside the recording"},
    {.name = NULL},
};

const frag_command frag_command_record = {
    .name = "record",
    .operands = "COMMAND...",
    .summary = "record the device calls of a program",
    .description =
        "Runs the command and records every call with which it, or a process it starts, allocates "
        "or frees GPU memory: cudaMalloc and its variants, pools, virtual memory. The recording "
        "is kept however the program ends. FILE holds the process with the most calls; the others "
        "are written beside it, as FILE-PID-N.\n"
        "\n"
        "A recording of device calls shows what reached the driver. For the requests of a PyTorch "
        "program, which its own allocator serves from larger segments, use fraglab_record.py "
        "(docs/recording.md) instead, or take the calls as segments.\n"
        "\n"
        "Exits with the code of the command, 128 + N when signal N ended it, 127 or 126 when it "
        "could not be started; when it ended well but nothing was recorded, 1.",
    .examples = "fraglab record -o solver.fgt ./solver --steps 10  # then: fraglab run solver.fgt\n"
                "fraglab record --as segments -o seg.fgt python3 train.py\n",
    .options = record_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .takes_command = true,
    .run = run_record,
};
