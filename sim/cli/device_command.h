/* The subcommands of 'fraglab device', a file each. */
#ifndef FRAG_CLI_DEVICE_COMMAND_H
#define FRAG_CLI_DEVICE_COMMAND_H

#include "sim/cli/command.h"

extern const frag_command frag_command_device_list;
extern const frag_command frag_command_device_probe;

#endif
