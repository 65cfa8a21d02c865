/* `fraglab trace generate`: the trace of a described network, without PyTorch and without a GPU. */
#include <string.h>

#include "cli/inputs.h"
#include "cli/trace/trace_tools.h"
#include "cli/workload_options.h"
#include "sim/device/card_table.h"
#include "workload/generate.h"
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

static bool generate(const frag_arguments *arguments, frag_recording *recording, frag_error *error)
{
    const char *path = frag_arguments_operand(arguments, 0);
    frag_workload workload;
    frag_tape_card card;
    if (!frag_workload_options_read(arguments, path, &workload, error) ||
        !read_card(arguments, &card, error))
        return false;
    const char *slash = strrchr(path, '/');
    return frag_workload_generate(&workload, &card, slash != NULL ? slash + 1 : path, recording,
                                  error);
}

static int run_generate(const frag_arguments *arguments)
{
    frag_error error = {0};
    frag_recording recording = {0};
    if (frag_arguments_value(arguments, "output") == NULL) {
        frag_fail(&error, FRAG_E_USAGE, "no output is named; add -o FILE (- is stdout)");
        return frag_report(&error);
    }
    frag_output *output = frag_inputs_output(arguments, &error);
    if (output == NULL)
        return frag_report(&error);
    if (!frag_trace_tools_check(arguments, output, &error) ||
        !generate(arguments, &recording, &error)) {
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
    FRAG_TRACE_WRITE_OPTIONS,
    {.name = NULL},
};

const frag_command frag_command_trace_generate = {
    .name = "generate",
    .operands = "MODEL",
    .summary = "the trace of a described network, without PyTorch",
    .description =
        "MODEL is a workload file in YAML (docs/workloads.md), or the config.json of a model of "
        "Hugging Face. The trace holds the requests that its training, evaluation or generation "
        "makes of PyTorch's allocator, one by one and in order, with marks for steps and phases. "
        "Options "
        "override what stands under 'run' of the file. The same input gives the same bytes "
        "everywhere.",
    .examples = "fraglab trace generate config.json --batch 4 --tokens 2048 -o run.fgt\n"
                "fraglab trace generate traces/workloads/gpt2-small.yaml --precision amp-bf16 -o "
                "amp.fgt  # another knob\n",
    .options = options,
    .operand_min = 1,
    .operand_max = 1,
    .run = run_generate,
};
