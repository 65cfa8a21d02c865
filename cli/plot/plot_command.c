/* `fraglab plot`: its kinds of figures as subcommands, from their options to the exit code. */
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/plot/plot_gnuplot.h"

/* ---- from the options to the exit code */

/* Options of one command, with all values that were given. */
static frag_plot_setting *read_settings(const frag_arguments *arguments,
                                        const frag_command_option *options, size_t *count)
{
    frag_plot_setting *settings = NULL;
    size_t capacity = 0;
    *count = 0;
    for (const frag_command_option *at = options; at->name != NULL; at++)
        for (size_t i = 0; i < frag_arguments_value_count(arguments, at->name); i++) {
            const char *value = frag_arguments_value_at(arguments, at->name, i);
            settings = frag_grow(settings, &capacity, *count + 1, sizeof *settings);
            settings[(*count)++] =
                (frag_plot_setting){.name = at->name, .value = value != NULL ? value : ""};
        }
    return settings;
}

static int draw(const frag_arguments *arguments)
{
    const frag_plot_kind *kind = frag_plot_kind_find(frag_arguments_command(arguments)->name);
    const char *policies = kind->policies;
    frag_error error = {0};
    frag_policy_list listed = {0};
    frag_device_spec device;
    frag_device_description gpu;
    frag_context context = *frag_arguments_context(arguments);
    size_t operand_count = frag_arguments_operand_count(arguments);
    const char **operands = frag_alloc(operand_count, sizeof *operands);
    for (size_t i = 0; i < operand_count; i++)
        operands[i] = frag_arguments_operand(arguments, i);
    frag_plot_request request = {.context = &context,
                                 .operands = operands,
                                 .operand_count = operand_count,
                                 .policies = &listed,
                                 .device = &device};
    frag_plot_setting *settings =
        read_settings(arguments, kind->command.options, &request.setting_count);
    request.settings = settings;
    bool ok = (policies == NULL || (frag_inputs_policies(arguments, policies, &listed, &error) &&
                                    frag_inputs_device(arguments, &device, &gpu, &error))) &&
              (!frag_arguments_knows(arguments, "from") ||
               frag_inputs_format(arguments, &request.input_format, &error));
    if (frag_arguments_knows(arguments, "jobs"))
        context.threads = (uint32_t)frag_arguments_number(arguments, "jobs", context.threads);
    ok = ok && frag_plot_with_gnuplot(arguments, &request, kind, &error);
    frag_policy_list_destroy(&listed);
    frag_free(settings);
    frag_free(operands);
    int code = ok ? 0 : frag_report(&error);
    return frag_is_interrupted() ? 130 : code;
}

/* ---- the command */

#define COMMAND(kind) &frag_plot_##kind.command,
static const frag_command *const kinds[] = {FRAG_PLOT_KINDS(COMMAND) NULL};
#undef COMMAND

const frag_command frag_command_plot = {
    .name = "plot",
    .operands = "KIND",
    .summary = "draw timelines, memory maps, holes, call sites, sweeps, survival curves, fronts",
    .description = "Draws a figure with gnuplot: svg, pdf or png for a paper, characters for a "
                   "terminal, or the data alone as CSV. The scripts are in plots/; docs/plots.md "
                   "says how to draw from the CSV "
                   "by hand.",
    .subcommands = kinds,
    .run = draw,
};
