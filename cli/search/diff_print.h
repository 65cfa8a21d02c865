/* A diff for people. */
#ifndef FRAG_SEARCH_DIFF_PRINT_H
#define FRAG_SEARCH_DIFF_PRINT_H

#include <stdio.h>

#include "studies/diff/diff.h"

/* rows: how many lines of the table of groups at most. */
void frag_diff_print(FILE *stream, const frag_diff *diff, uint64_t rows);

#endif
