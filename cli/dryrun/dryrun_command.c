/* fraglab dryrun: a training script on the installed PyTorch with no GPU, and the card's answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/dryrun/dryrun_state.h"
#include "cli/inputs.h"

/* ---- recordings that are kept */

static bool copy_file(const char *from, FILE *to)
{
    char bytes[65536];
    FILE *stream = fopen(from, "r");
    size_t count;
    while (stream != NULL && (count = fread(bytes, 1, sizeof bytes, stream)) > 0)
        if (fwrite(bytes, 1, count, to) != count)
            break;
    bool ok = stream != NULL && ferror(stream) == 0 && ferror(to) == 0;
    if (stream != NULL)
        fclose(stream);
    return ok;
}

/* The first process gets FILE, a rank FILE-rankN, another process FILE-PID. */
static void name_recording(const frag_dryrun_process *process, bool is_first, const char *path,
                           frag_text *name)
{
    frag_text_add(name, "%s", path);
    if (is_first)
        return;
    if (process->facts.rank != UINT64_MAX)
        frag_text_add(name, "-rank%" PRIu64, process->facts.rank);
    else
        frag_text_add(name, "-%" PRIu64, process->facts.pid);
}

static bool keep_recording(frag_dryrun_process *process, frag_output *output, const char *name,
                           frag_error *error)
{
    bool ok = copy_file(process->path, frag_output_stream(output));
    if (!ok) {
        frag_output_abandon(output);
        return frag_fail_in(error, FRAG_E_SYSTEM, name, "the recording cannot be copied (%s)",
                            strerror(errno));
    }
    frag_free(process->path);
    process->path = frag_copy_text(name);
    return frag_output_finish(output, error);
}

/* first was opened before the run. */
static bool keep_recordings(const frag_dryrun *dryrun, frag_dryrun_result *result,
                            frag_output *first, frag_error *error)
{
    const char *path = frag_arguments_value(dryrun->arguments, "output");
    bool may_overwrite = frag_arguments_has(dryrun->arguments, "force");
    bool ok = true;
    for (size_t i = 0; ok && i < result->count; i++) {
        frag_dryrun_process *process = &result->processes[i];
        frag_text name = {0};
        if (!process->has_recording)
            continue;
        name_recording(process, first != NULL, path, &name);
        frag_output *output =
            first != NULL ? first : frag_output_open(name.bytes, may_overwrite, error);
        first = NULL;
        ok = output != NULL && keep_recording(process, output, name.bytes, error);
        frag_text_destroy(&name);
    }
    frag_output_abandon(first);
    return ok;
}

/* ---- sizes that a run at one end leaves open */

static bool hangs_on_sizes(const frag_dryrun_result *result)
{
    bool is_open = false;
    for (size_t i = 0; i < result->count; i++) {
        const frag_dryrun_answer *answer = result->processes[i].answer;
        is_open = is_open || (answer != NULL && answer->has_failed && answer->other.fits &&
                              answer->uncertain_requests > 0);
    }
    return is_open && result->fits == FRAG_DRYRUN_FITS_UNKNOWN;
}

/* Memory ran out with the largest sizes, and what the script requests after that is not known: it
 * is run with the smallest. Where memory runs out there too, the answer is sure. */
static bool run_low(const frag_dryrun *dryrun, frag_dryrun_result *result, frag_error *error)
{
    frag_dryrun low = *dryrun;
    frag_dryrun_result other;
    low.has_low_workspaces = true;
    low.log = fopen("/dev/null", "w");
    frag_tell(dryrun->arguments,
              "memory ran out with the largest of the uncertain sizes, and would not "
              "have with the smallest: running it with those, its output is not "
              "shown");
    bool ok = frag_dryrun_once(&low, low.command, &other, NULL, error);
    if (low.log != NULL)
        fclose(low.log);
    if (ok && other.count > 0) {
        result->is_low_run = true;
        result->low_fits = other.fits;
        for (size_t i = 0; i < other.count; i++)
            if (other.processes[i].answer != NULL &&
                other.processes[i].answer->run.peak.reserved_bytes > result->low_reserved_bytes)
                result->low_reserved_bytes = other.processes[i].answer->run.peak.reserved_bytes;
    }
    if (ok && other.fits == FRAG_DRYRUN_FITS_NOT) {
        result->fits = FRAG_DRYRUN_FITS_NOT;
        for (size_t i = 0; i < result->count; i++)
            if (result->processes[i].answer != NULL && result->processes[i].answer->has_failed)
                result->processes[i].fits = FRAG_DRYRUN_FITS_NOT;
    }
    frag_dryrun_result_destroy(&other);
    return ok;
}

/* ---- the command */

static bool check_real(const frag_dryrun *dryrun)
{
    bool is_there = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    if (is_there)
        frag_tell(dryrun->arguments,
                  "this machine has a GPU; the script does not see it, the software "
                  "CUDA answers");
    return is_there;
}

static void tell_start(const frag_dryrun *dryrun)
{
    frag_tell(dryrun->arguments, "dry run on %s (%s): real PyTorch %s, CUDA %s, with no GPU",
              dryrun->gpu.card.name, FRAG_BYTES(dryrun->gpu.memory.capacity_bytes),
              dryrun->python.torch, dryrun->python.cuda);
    check_real(dryrun);
}

static void tell_nothing(const frag_dryrun *dryrun, int code)
{
    const char *program = dryrun->python.program;
    if (code != 0)
        frag_tell(dryrun->arguments,
                  "nothing was recorded: the script ended with exit code %d, and no process of it "
                  "had used CUDA through the torch of %s",
                  code, program);
    else
        frag_tell(dryrun->arguments,
                  "nothing was recorded: no process of the script used CUDA through the torch of "
                  "%s, or a program between started Python with -I, -E or -S, which leave "
                  "PYTHONPATH out",
                  program);
}

typedef struct finish_state {
    const frag_dryrun *dryrun;
    frag_dryrun_result *result;
    frag_output *report; /* NULL: none */
    bool keeps;
} finish_state;

/* Answers, and what was asked beside them. *is_above: see frag_dryrun_check_baseline. */
static bool print_all(const finish_state *state, bool *is_above, frag_error *error)
{
    const frag_dryrun *dryrun = state->dryrun;
    const frag_arguments *arguments = dryrun->arguments;
    frag_dryrun_shown shown = {.context = dryrun->context,
                               .gpu = &dryrun->gpu,
                               .result = state->result,
                               .conf = frag_arguments_value(arguments, "conf"),
                               .keeps_recording = state->keeps};
    bool is_json = frag_arguments_is(arguments, "format", "jsonl");
    if (state->report != NULL)
        frag_dryrun_print_json(frag_output_stream(state->report), &shown);
    if (is_json)
        frag_dryrun_print_json(stdout, &shown);
    else if (!frag_arguments_is_quiet(arguments))
        frag_dryrun_print_text(stderr, &shown);
    bool ok = true;
    for (size_t i = 0; ok && i < state->result->count && !is_json; i++)
        if (state->result->processes[i].answer != NULL)
            ok = frag_dryrun_print_others(dryrun, &state->result->processes[i], stderr, error);
    return ok && frag_dryrun_check_baseline(dryrun, state->result, stderr, is_above, error);
}

/* The exit code of it all: that of the script, unless it ended well and something was found. */
static int finish(const finish_state *state, frag_output *recording)
{
    const frag_dryrun *dryrun = state->dryrun;
    frag_dryrun_result *result = state->result;
    frag_error error = {.code = FRAG_E_NONE};
    bool is_above = false;
    int code = result->end.code;
    if (result->end.is_timed_out)
        frag_tell(dryrun->arguments, "the script was ended after %s s, as --timeout says",
                  frag_arguments_value(dryrun->arguments, "timeout"));
    if (result->count == 0)
        tell_nothing(dryrun, code);
    bool ok = recording == NULL || keep_recordings(dryrun, result, recording, &error);
    ok = print_all(state, &is_above, &error) && ok;
    if (state->report != NULL && !frag_output_finish(state->report, &error))
        ok = false;
    if (!ok && error.code != FRAG_E_NONE) {
        int reported = frag_report(&error);
        return code != 0 ? code : reported;
    }
    bool is_found =
        is_above || result->count == 0 ||
        (frag_arguments_has(dryrun->arguments, "fail-on-oom") && result->fits != FRAG_DRYRUN_FITS);
    return code == 0 && is_found ? 1 : code;
}

static int run_once(const frag_dryrun *dryrun)
{
    const frag_arguments *arguments = dryrun->arguments;
    const char *path = frag_arguments_value(arguments, "output");
    const char *report_path = frag_arguments_value(arguments, "report");
    bool may_overwrite = frag_arguments_has(arguments, "force");
    frag_error error = {.code = FRAG_E_NONE};
    frag_dryrun_result result = {.fits = FRAG_DRYRUN_FITS_UNKNOWN};
    frag_output *recording = NULL;
    frag_output *report = NULL;
    char *folder = NULL;
    if ((path != NULL && (recording = frag_output_open(path, may_overwrite, &error)) == NULL) ||
        (report_path != NULL &&
         (report = frag_output_open(report_path, may_overwrite, &error)) == NULL)) {
        frag_output_abandon(recording);
        return frag_report(&error);
    }
    tell_start(dryrun);
    int code = 0;
    bool ok = frag_dryrun_once(dryrun, dryrun->command, &result, &folder, &error);
    if (ok && frag_arguments_value(arguments, "workspaces") == NULL && hangs_on_sizes(&result))
        ok = run_low(dryrun, &result, &error);
    if (ok) {
        finish_state state = {dryrun, &result, report, recording != NULL};
        code = finish(&state, recording);
    } else {
        int reported = frag_report(&error);
        code = result.end.code != 0 ? result.end.code : reported;
        frag_output_abandon(recording);
        frag_output_abandon(report);
    }
    frag_dryrun_result_destroy(&result);
    frag_dryrun_remove(folder);
    return code;
}

static bool spare_stdout(const frag_arguments *arguments, const char *option, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, option);
    if (path == NULL || strcmp(path, "-") != 0)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, option, "stdout is the script's own; name a file");
}

static bool prepare(frag_dryrun *dryrun, frag_error *error)
{
    size_t count = frag_arguments_operand_count(dryrun->arguments);
    char **words = frag_dryrun_copy_operands(dryrun->arguments);
    bool ok = frag_dryrun_prepare(dryrun, words, count,
                                  frag_arguments_value(dryrun->arguments, "python"), error);
    frag_dryrun_free_words(words);
    return ok;
}

static int dryrun_command(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_dryrun dryrun = {.arguments = arguments, .context = frag_arguments_context(arguments)};
    const char *pattern = frag_arguments_value(arguments, "max");
    int code = 0;
    if (!spare_stdout(arguments, "output", &error) || !spare_stdout(arguments, "report", &error) ||
        !frag_inputs_places(arguments, false, &error) || !prepare(&dryrun, &error))
        code = frag_report(&error);
    else if (pattern != NULL)
        code = frag_dryrun_max(&dryrun, pattern, stderr);
    else
        code = run_once(&dryrun);
    frag_dryrun_destroy(&dryrun);
    return code;
}

static const frag_command_option dryrun_options[] = {
    {"gpu", "NAME|SIZE",
     .help = "the card to pretend: one that 'fraglab device list' lists, or a "
             "size such as 24GiB (default: no card, memory without limit)"},
    {"gpus", "N", .help = "so many of them (default: 1; with --ranks one for each, at most 8)",
     .min = 1, .max = 8},
    {"ranks", "N",
     .help = "ranks in the world of a command that runs one of them; nothing is sent between them: "
             "PyTorch's fake process group",
     .min = 1, .max = 1048576},
    {"only", "RANKS",
     .help = "which of them to run, one after the other, such as 0,63 (default: 0)"},
    {"conf", "SETTINGS", .help = "PYTORCH_CUDA_ALLOC_CONF for the script"},
    {"steps", "N", .help = "end the script after N optimizer steps", .min = 1, .max = UINT32_MAX},
    {"until", "MODULE:FUNCTION[=N]",
     .help = "end it after that function has returned N times, for frameworks that step without "
             "PyTorch's optimizers: torch:Tensor.backward=3"},
    {"timeout", "SECONDS", .help = "end it after so much time; what was recorded is kept"},
    {"output", "FILE", .letter = 'o',
     .help = "keep the recording, which every command of fraglab reads; a second rank's is "
             "FILE-rank1",
     .writes = "recording"},
    {"force", .letter = 'f', .help = "overwrite files"},
    {"report", "FILE", .help = "the answer as JSON, one object for each process",
     .writes = "answer"},
    {"format", "FORMAT", .choices = "text|jsonl",
     .help =
         "text: the answer on stderr; jsonl: on stdout, behind what the script prints (default: "
         "text)"},
    {"stacks", .help = "record Python stacks: which line asked for what"},
    {"value", "FILE:LINE=NUMBER",
     .help = "what is read from the GPU at that line; else values that only a kernel could know "
             "are 0"},
    {"selected", "PERCENT",
     .help = "how many elements a mask selects that only a GPU would know (default: 100, all)",
     .max = 100},
    {"follow", "SIZE",
     .help = "compute on the host what the script makes of numbers that it wrote to the GPU, in "
             "tensors of up to this size (default: 1MiB; at most 64MiB)"},
    {"rounds", "N",
     .help = "end a loop whose condition has read such a value N times (default: 1000)", .min = 2,
     .max = UINT32_MAX},
    {"no-defaults",
     .help = "leave torch.distributions, repeat_interleave, all() and generate() as they are"},
    {"max", "ARGUMENTS",
     .help = "search the largest value that fits: run the command with these arguments behind it, "
             "the value in the place of {}: --max '--batch {}'"},
    {"from", "N", .help = "where --max begins (default: 1)", .min = 1, .max = UINT32_MAX},
    {"to", "N", .help = "where --max ends (default: 65536)", .min = 1, .max = UINT32_MAX},
    {"compare", "SETTINGS",
     .help = "would these settings have needed less? By replay, without "
             "another run; may be repeated"},
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "and this allocator? As in 'fraglab run'"},
    {"matrix", "CARDS", .help = "and these cards? Names with commas between them, or 'all'"},
    {"baseline", "FILE", .help = "compare the peaks with those of an earlier --report"},
    {"fail-above", "PERCENT",
     .help = "exit with 1 when a peak is above the baseline's by more "
             "(default: 0)"},
    {"fail-on-oom",
     .help = "exit with 1 when it is not sure to fit, even if the script ended well"},
    {"workspaces", "END", .choices = "high|low",
     .help = "what sizes that NVIDIA's libraries decide are taken as (default: high)"},
    {"python", "FILE", .help = "the Python whose torch the command runs, if it is not seen in it"},
    {"software", "FOLDER",
     .help = "CUDA libraries to use, with a list 'preload' of them (default: "
             "those of this fraglab)"},
    {.name = NULL},
};

const frag_command frag_command_dryrun = {
    .name = "dryrun",
    .operands = "COMMAND...",
    .summary = "run a training script on the real PyTorch with no GPU: does it fit?",
    .description =
        "Runs the unmodified script with the PyTorch for CUDA that its Python has, on a machine "
        "without a GPU. The CUDA libraries are replaced by software ones, which compute nothing "
        "and account for memory exactly: PyTorch's own allocator serves the script's own requests. "
        "Says whether it fits on the card, how sure that is, the peaks by phase, what is left, "
        "and what would help (docs/dry-run.md).\n"
        "\n"
        "The command may be a launcher (torchrun, accelerate launch, a shell script): every "
        "process that it starts is recorded.\n"
        "\n"
        "Exits with the code of the command, so 1 where memory ran out and the script did not "
        "catch it; 128 + N when signal N ended it. When it ended well: 1 if nothing was "
        "recorded, a peak is above the baseline, or --fail-on-oom finds something; else 0.",
    .examples =
        "fraglab dryrun --gpu rtx4090 -- python train.py --batch 16\n"
        "fraglab dryrun --gpu rtx4090 --steps 3 -o run.pickle -- python train.py\n"
        "fraglab dryrun --gpu l4 --steps 2 --max '--batch {}' -- python train.py  # largest batch\n"
        "fraglab dryrun --gpu h100-80gb --gpus 2 -- torchrun --nproc-per-node 2 train.py\n"
        "fraglab dryrun --gpu h100-80gb --ranks 64 --only 0,63 -- python train.py\n",
    .options = dryrun_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .takes_command = true,
    .run = dryrun_command,
};
