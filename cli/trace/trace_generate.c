/* `fraglab trace generate`: the trace of a described network, or of requests that are drawn. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/inputs.h"
#include "cli/trace/trace_tools.h"
#include "cli/workload_options.h"
#include "sim/device/card_table.h"
#include "workload/generate.h"
#include "workload/statistical/likeness.h"
#include "workload/statistical/phases.h"
#include "workload/tape_card.h"

/* What PyTorch asks the card: an A100's answers where none is named. */
static bool read_card(const frag_arguments *arguments, frag_tape_card *card, frag_error *error)
{
    const char *name = frag_arguments_value(arguments, "gpu");
    frag_device_description description = {0};
    *card = frag_tape_card_usual;
    return name == NULL || ((frag_card_load(name, &description, NULL, error) &&
                             frag_tape_card_read(&description, name, card, error)) ||
                            frag_error_in(error, "--gpu"));
}

/* ---- what is described in a file */
static bool generate_requests(const frag_arguments *arguments, const char *name,
                              frag_statistical *description, frag_recording *recording,
                              frag_error *error)
{
    static const char *const knobs[] = {"seed", "requests", NULL};
    uint64_t requests = 0;
    return frag_workload_options_refuse(arguments, "the file describes requests, not a network",
                                        knobs, error) &&
           frag_arguments_count(arguments, "seed", 0, UINT32_MAX, &description->seed, error) &&
           frag_arguments_count(arguments, "requests", 1, FRAG_STATISTICAL_REQUESTS_MAX, &requests,
                                error) &&
           (requests == 0 || frag_statistical_scale(description, requests, error) ||
            frag_error_in(error, "--requests")) &&
           frag_statistical_generate(description, name, recording, error);
}

static bool generate_described(const frag_arguments *arguments, frag_recording *recording,
                               frag_error *error)
{
    const char *path = frag_arguments_operand(arguments, 0);
    const char *name = frag_path_name(path);
    frag_workload workload;
    frag_tape_card card;
    frag_statistical statistical = {0};
    bool ok = frag_workload_options_read(arguments, path, &workload, &statistical, error);
    if (ok && statistical.phase_count > 0)
        ok = generate_requests(arguments, name, &statistical, recording, error);
    else
        ok = ok && read_card(arguments, &card, error) &&
             frag_workload_generate(&workload, &card, name, recording, error);
    frag_statistical_destroy(&statistical);
    return ok;
}

/* ---- like a recording */
static bool write_description(const frag_statistical *description, frag_output *output,
                              frag_error *error)
{
    frag_text text = {0};
    frag_statistical_write(description, &text);
    fputs(text.bytes, frag_output_stream(output));
    frag_text_destroy(&text);
    return frag_output_finish(output, error);
}

static bool fit(const frag_arguments *arguments, frag_statistical *description, frag_error *error)
{
    static const char *const knobs[] = {"seed", "requests", NULL};
    const char *path = frag_arguments_value(arguments, "like");
    frag_fit_options options = {.seed = 1};
    options.pieces = (uint32_t)frag_arguments_number(arguments, "phases", 0);
    frag_trace_format format;
    frag_recording recorded = {0};
    const frag_trace *trace = NULL;
    double ratio = 0;
    if (!frag_workload_options_refuse(arguments, "--like describes requests, not a network", knobs,
                                      error) ||
        !frag_arguments_count(arguments, "seed", 0, UINT32_MAX, &options.seed, error) ||
        !frag_arguments_count(arguments, "requests", 1, FRAG_STATISTICAL_REQUESTS_MAX,
                              &options.requests, error) ||
        !frag_inputs_format(arguments, &format, error) ||
        !frag_recording_load_plain(path, format, false, &recorded, error))
        return false;
    bool ok = frag_inputs_trace(arguments, &recorded, &trace, error) &&
              (frag_statistical_fit(&recorded, trace, &options, description, &ratio, error) ||
               frag_error_in(error, path));
    frag_recording_destroy(&recorded);
    if (ok && ratio < 1 - FRAG_FIT_TOLERANCE)
        frag_warn(arguments,
                  "the peak of live bytes is %.1f %% of the recording's; more --requests or "
                  "--phases come closer",
                  100 * ratio);
    return ok;
}

static bool generate_like(const frag_arguments *arguments, frag_output *output, frag_error *error)
{
    frag_statistical description = {0};
    frag_recording recording = {0};
    bool ok = fit(arguments, &description, error);
    bool is_text = frag_arguments_is(arguments, "to", "yaml");
    ok = ok && (is_text || frag_statistical_generate(&description, "like", &recording, error));
    if (!ok)
        frag_output_abandon(output);
    else
        ok = is_text ? write_description(&description, output, error)
                     : frag_trace_tools_write(arguments, &recording, output, error);
    frag_recording_destroy(&recording);
    frag_statistical_destroy(&description);
    return ok;
}

/* ---- the command */
/* A file or a recording; and what goes with the one alone. */
static bool check_sources(const frag_arguments *arguments, frag_error *error)
{
    static const char *const of_recordings[] = {"phases", "trace-device", "from", NULL};
    bool is_like = frag_arguments_has(arguments, "like");
    if (is_like == (frag_arguments_operand_count(arguments) == 1))
        return frag_fail(error, FRAG_E_USAGE, "expected %s",
                         is_like ? "either MODEL or --like RECORDING"
                                 : "MODEL, a workload file or config.json, or --like RECORDING");
    for (size_t i = 0; !is_like && of_recordings[i] != NULL; i++)
        if (frag_arguments_has(arguments, of_recordings[i]))
            return frag_fail(error, FRAG_E_USAGE, "--%s is of recordings; add --like RECORDING",
                             of_recordings[i]);
    if (!is_like && frag_arguments_is(arguments, "to", "yaml"))
        return frag_fail(error, FRAG_E_USAGE,
                         "--to yaml writes what describes a recording; add --like RECORDING");
    if (is_like && frag_arguments_has(arguments, "gpu"))
        return frag_fail(error, FRAG_E_USAGE, "--gpu is of networks; leave it out");
    if (frag_arguments_value(arguments, "output") == NULL)
        return frag_fail(error, FRAG_E_USAGE, "no output is named; add -o FILE (- is stdout)");
    return !is_like || frag_inputs_spare_one(frag_arguments_value(arguments, "like"),
                                             frag_arguments_value(arguments, "output"), error);
}

static int run_generate(const frag_arguments *arguments)
{
    frag_error error = {0};
    frag_recording recording = {0};
    if (!check_sources(arguments, &error))
        return frag_report(&error);
    frag_output *output = frag_inputs_output(arguments, &error);
    if (output == NULL)
        return frag_report(&error);
    if (!frag_trace_tools_check(arguments, output, &error)) {
        frag_output_abandon(output);
        return frag_report(&error);
    }
    if (frag_arguments_has(arguments, "like"))
        return generate_like(arguments, output, &error) ? 0 : frag_report(&error);
    if (!generate_described(arguments, &recording, &error)) {
        frag_output_abandon(output);
        return frag_report(&error);
    }
    bool ok = frag_trace_tools_write(arguments, &recording, output, &error);
    frag_recording_destroy(&recording);
    return ok ? 0 : frag_report(&error);
}

static const frag_command_option options[] = {
    FRAG_WORKLOAD_OPTIONS,
    {"gpu", "CARD", .help = "the card, whose capability decides some sizes (default: an A100)"},
    {"like", "RECORDING",
     .help = "instead of MODEL: requests with the sizes and lifetimes of this recording, drawn"},
    {"phases", "N", .help = "pieces of it that are drawn apart (default: its marks, else 1)",
     .min = 1, .max = FRAG_PHASES_MAX},
    FRAG_TRACE_DEVICE_OPTION,
    FRAG_LOAD_OPTIONS,
    FRAG_TRACE_WRITE_OPTIONS_TO("fgt|text|minimalloc|yaml"),
    {.name = NULL},
};

const frag_command frag_command_trace_generate = {
    .name = "generate",
    .operands = "[MODEL]",
    .summary = "the trace of a described network, or of requests that are drawn",
    .description =
        "MODEL is a workload file in YAML (docs/workloads.md), or the config.json of a model of "
        "Hugging Face. The trace holds the requests that its training, evaluation or generation "
        "makes of PyTorch's allocator, one by one and in order, with marks for steps and phases. "
        "Options "
        "override what stands under 'run' of the file. The same input gives the same bytes "
        "everywhere.\n"
        "\n"
        "A file may describe requests instead ('statistical'): sizes and lifetimes by "
        "distributions, phases, checkerboards, Robson's adversary; of options there are then "
        "--seed "
        "and --requests. --like draws them as often as a recording has them, with at most as many "
        "bytes live; what that loses of a program's order is in docs/workloads.md. --to yaml "
        "writes such a file.",
    .examples = "fraglab trace generate config.json --batch 4 --tokens 2048 -o run.fgt\n"
                "fraglab trace generate traces/workloads/gpt2-small.yaml --precision amp-bf16 -o "
                "amp.fgt  # another knob\n"
                "fraglab trace generate --like run.pickle --to yaml -o like.yaml  # to be edited\n",
    .options = options,
    .operand_min = 0,
    .operand_max = 1,
    .run = run_generate,
};
