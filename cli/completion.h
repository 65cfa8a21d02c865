/* Shell completion, printed from the tables of commands, policies and their options. */
#ifndef FRAG_CLI_COMPLETION_H
#define FRAG_CLI_COMPLETION_H

#include <stdbool.h>
#include <stdio.h>

/* The completion script for bash, zsh or fish. false: another shell; nothing is printed. */
bool frag_completion_print(FILE *stream, const char *shell);

#endif
