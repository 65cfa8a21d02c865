/* What `fraglab tune` found, as tables for a person. */
#ifndef FRAG_SEARCH_TUNE_PRINT_H
#define FRAG_SEARCH_TUNE_PRINT_H

#include <stdio.h>

#include "cli/command.h"
#include "studies/tune/tune.h"

void frag_tune_print_table(FILE *stream, const frag_arguments *arguments, const frag_tuned *tuned);

#endif
