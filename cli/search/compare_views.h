/* A comparison of result rows as people and machines read it. */
#ifndef FRAG_SEARCH_COMPARE_VIEWS_H
#define FRAG_SEARCH_COMPARE_VIEWS_H

#include <stdio.h>

#include "studies/compare/comparison.h"

typedef struct frag_compare_view {
    bool shows_all;          /* metrics that did not change, too */
    bool is_missing_a_fault; /* rows that cannot be compared are findings */
} frag_compare_view;

/* What is worse, what cannot be compared, what is better; then one line of counts. */
void frag_compare_print_table(FILE *stream, const frag_comparison *comparison,
                              const frag_compare_view *view);
void frag_compare_print_markdown(FILE *stream, const frag_comparison *comparison,
                                 const frag_compare_view *view);
/* JUnit's XML: a test case for each metric of each row. */
void frag_compare_print_junit(FILE *stream, const frag_comparison *comparison,
                              const frag_compare_view *view);
/* Workflow commands of GitHub Actions: an error for each finding. */
void frag_compare_print_github(FILE *stream, const frag_comparison *comparison,
                               const frag_compare_view *view);

#endif
