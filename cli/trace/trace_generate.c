/* `fraglab trace generate`: the trace of a described network, without PyTorch and without a GPU. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/trace/trace_tools.h"
#include "sim/device/card_table.h"
#include "workload/generate.h"

/* Knobs that the command line gives stand above those of the file. */
static bool read_knobs(const frag_arguments *arguments, frag_workload *workload, frag_error *error)
{
    for (const frag_field *knob = frag_knobs; knob->key != NULL; knob++) {
        char option[64] = "";
        snprintf(option, sizeof option, "%s", knob->key);
        for (char *at = option; *at != '\0'; at++)
            *at = *at == '_' ? '-' : *at;
        const char *value =
            frag_arguments_has(arguments, option) ? frag_arguments_value(arguments, option) : NULL;
        if (value != NULL && !frag_workload_set(workload, knob->key, value, error)) {
            error->code = FRAG_E_USAGE;
            snprintf(error->where, sizeof error->where, "--%s", option);
            return false;
        }
    }
    return true;
}

/* What PyTorch asks the card: an A100's answers where none is named. */
static bool read_card(const frag_arguments *arguments, frag_tape_card *card, frag_error *error)
{
    *card = (frag_tape_card){
        .capability = 80, .multiprocessors = 108, .threads_per_multiprocessor = 2048};
    const char *name = frag_arguments_value(arguments, "gpu");
    if (name == NULL)
        return true;
    frag_device_description description = {0};
    if (!frag_card_load(name, &description, NULL, error))
        return frag_error_in(error, "--gpu");
    const char *capability = description.compute.capability;
    const char *dot = strchr(capability, '.');
    uint64_t minor = 0;
    uint64_t major = 0;
    char text[16] = "";
    if (dot != NULL)
        memcpy(text, capability, (size_t)(dot - capability));
    if (dot == NULL || !frag_count_parse(text, 1, 99, &major, NULL) ||
        !frag_count_parse(dot + 1, 0, 9, &minor, NULL) ||
        description.compute.multiprocessor_count == 0 ||
        description.compute.threads_per_multiprocessor == 0) {
        frag_fail(error, FRAG_E_USAGE,
                  "'%s' has no compute capability of CUDA; expected an NVIDIA card with one", name);
        return frag_error_in(error, "--gpu");
    }
    card->capability = (uint32_t)(10 * major + minor);
    card->multiprocessors = description.compute.multiprocessor_count;
    card->threads_per_multiprocessor = description.compute.threads_per_multiprocessor;
    return true;
}

static bool generate(const frag_arguments *arguments, frag_recording *recording, frag_error *error)
{
    const char *path = frag_arguments_operand(arguments, 0);
    frag_workload workload;
    frag_tape_card card;
    frag_workload_init(&workload);
    if (!frag_workload_load(path, &workload, error) || !read_knobs(arguments, &workload, error) ||
        !read_card(arguments, &card, error))
        return false;
    const char *slash = strrchr(path, '/');
    return (frag_workload_check(&workload, error) || frag_error_in(error, path)) &&
           frag_workload_generate(&workload, &card, slash != NULL ? slash + 1 : path, recording,
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
    {"task", "TASK", .choices = "train|evaluate", .help = "training steps, or forward passes"},
    {"batch", "N", .help = "sequences in a batch"},
    {"tokens", "LENGTHS",
     .help = "tokens in a sequence: N, N,N,... for batch after batch, or MIN..MAX at random"},
    {"steps", "N", .help = "steps"},
    {"accumulate", "N", .help = "batches whose gradients are added up in one step"},
    {"precision", "TYPE", .choices = "fp32|tf32|bf16|fp16|amp-bf16|amp-fp16",
     .help = "of weights and activations; amp: weights in fp32, autocast"},
    {"optimizer", "NAME", .choices = "adamw|adam|sgd|momentum", .help = "as in torch.optim"},
    {"optimizer-loop", "HOW", .choices = "foreach|fused|single",
     .help = "how the optimizer goes over the parameters"},
    {"checkpoint", "WHAT", .choices = "none|blocks",
     .help = "activations of each block are made anew in backward"},
    {"keep-gradients", "FLAG", .choices = "true|false", .help = "zero_grad(set_to_none=False)"},
    {"no-grad", "FLAG", .choices = "true|false", .help = "evaluate under torch.no_grad()"},
    {"empty-cache", "N", .help = "torch.cuda.empty_cache() every N steps"},
    {"seed", "N", .help = "of lengths at random"},
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
        "Hugging Face. The trace holds the requests that its training or evaluation makes of "
        "PyTorch's allocator, one by one and in order, with marks for steps and phases. Options "
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
