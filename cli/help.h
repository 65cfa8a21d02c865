/* Everything that is printed from the table of commands: help and the man page. */
#ifndef FRAG_CLI_HELP_H
#define FRAG_CLI_HELP_H

#include <stdio.h>

#include "cli/command.h"

/* Help of the last command of a path such as fraglab, trace, info; wrapped to 80 columns. */
void frag_help_print(FILE *stream, const frag_command *const *path, size_t path_length);

/* Prints words between a column and the 80th, and ends the line. at: the column the cursor is in.
 */
void frag_help_print_wrapped(FILE *stream, const char *text, unsigned column, unsigned at);

#endif
