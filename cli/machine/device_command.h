/* The subcommands of 'fraglab device', a file each. */
#ifndef FRAG_MACHINE_DEVICE_COMMAND_H
#define FRAG_MACHINE_DEVICE_COMMAND_H

#include "cli/command.h"

extern const frag_command frag_command_device_list;
extern const frag_command frag_command_device_probe;

#endif
