/* Shell completion, printed from the tables of commands, policies and their options. */
#ifndef FRAG_CLI_COMPLETION_H
#define FRAG_CLI_COMPLETION_H

#include <stdio.h>

/* A completion script for bash. */
void frag_completion_print(FILE *stream);

#endif
