#include "sim/cli/command.h"

const frag_command *const frag_commands[] = {
    &frag_command_doctor,
    &frag_command_help,
    NULL,
};
