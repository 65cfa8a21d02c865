/* The table of commands, in the order in which `fraglab help` lists them. */
#include "cli/command.h"

const frag_command *const frag_commands[] = {
    &frag_command_run,          &frag_command_verify,
    &frag_command_min_capacity, &frag_command_explain,
    &frag_command_sweep,        &frag_command_tune,
    &frag_command_plan,         &frag_command_compare,
    &frag_command_diff,         &frag_command_leaks,
    &frag_command_ranks,        &frag_command_plot,
    &frag_command_report,       &frag_command_trace,
    &frag_command_record,       &frag_command_dryrun,
    &frag_command_bisect,       &frag_command_policies,
    &frag_command_device,       &frag_command_doctor,
    &frag_command_help,         NULL,
};
