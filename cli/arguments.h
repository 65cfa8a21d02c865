/* From a command's table of options to what was given; the commands see only command.h. */
#ifndef FRAG_CLI_ARGUMENTS_H
#define FRAG_CLI_ARGUMENTS_H

#include "cli/command.h"
#include "cli/command_context.h"

/* What every command understands, beside its own options; ends with name NULL. */
extern const frag_command_option frag_global_options[];

/* The program as a command whose subcommands are the whole table. */
extern const frag_command frag_program;

#define FRAG_COMMAND_DEPTH_MAX 3

struct frag_arguments {
    const frag_command *path[FRAG_COMMAND_DEPTH_MAX]; /* the program, the command, its subcommand */
    size_t path_length;
    const char **operands;
    size_t operand_count;
    char **folder_paths; /* of the operands, those that come from folders; owned */
    size_t folder_path_count;
    struct frag_given *given; /* options in order of the command line */
    size_t given_count;
    size_t given_capacity;
    bool is_quiet;
    bool is_verbose;
    bool is_help;
    bool is_version;
    frag_context context;
    frag_cli_status status; /* of the context */
};

/* Which command, and what it is given. false: a usage error. With --help or --version nothing else
 * is checked. The arguments point into argv, and must be destroyed either way. */
bool frag_arguments_parse(frag_arguments *arguments, int argc, char **argv, frag_error *error);
void frag_arguments_destroy(frag_arguments *arguments);

/* The command of that name in a list that ends with NULL. NULL: a usage error that names the
 * nearest. */
const frag_command *frag_command_find(const frag_command *const *commands, const char *name,
                                      frag_error *error);

#endif
