/* A diff for programs: one JSON object on a line, and collapsed stacks for flame graphs. */
#ifndef FRAG_DIFF_DIFF_JSON_H
#define FRAG_DIFF_DIFF_JSON_H

#include <stdio.h>

#include "studies/diff/diff.h"

/* With every group, in order of the change of its live bytes. */
void frag_diff_print_json(FILE *stream, const frag_diff *diff);
/* One object a line for each call site (or what blocks are added up by) of which the bytes differ,
 * the largest change first. */
void frag_diff_print_rows(FILE *stream, const frag_diff *diff);

/* A line for each call stack: its frames from the outermost inwards with semicolons between them,
 * and the bytes that it holds at the moment of each side. A stack that holds nothing on both sides
 * has none. */
void frag_diff_write_stacks(FILE *stream, const frag_diff *diff);

/* "site", "stack", "purpose", "size". */
const char *frag_use_grouping_name(frag_use_grouping grouping);

#endif
