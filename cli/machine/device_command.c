#include "cli/machine/device_command.h"

static const frag_command *const subcommands[] = {
    &frag_command_device_list,
    &frag_command_device_probe,
    NULL,
};

const frag_command frag_command_device = {
    .name = "device",
    .operands = "COMMAND",
    .summary = "device descriptions of GPUs: list the bundled ones, measure a GPU",
    .description = "A device description is a YAML file about one model of GPU, here called a "
                   "card: its memory, how much of it the context and small mallocs take, page "
                   "size, alignment, and the time of each device call. 'fraglab run --gpu NAME' "
                   "simulates that card, to see whether a program would fit on it. "
                   "docs/device-description.md describes the format.",
    .subcommands = subcommands,
};
