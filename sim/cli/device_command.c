#include "sim/cli/device_command.h"

static const frag_command *const subcommands[] = {
    &frag_command_device_list,
    &frag_command_device_probe,
    NULL,
};

const frag_command frag_command_device = {
    .name = "device",
    .operands = "COMMAND",
    .summary = "descriptions of cards: list the bundled ones, measure one",
    .description = "A device description says what a card has and does: memory, what the context "
                   "and small mallocs take of it, page and alignment, and what each call costs. "
                   "'fraglab run --gpu' takes it from there; docs/device-description.md is the "
                   "format.",
    .subcommands = subcommands,
};
