/* A comparison of result rows as JSON: docs/ci.md, "Views". */
#ifndef FRAG_COMPARE_COMPARISON_JSON_H
#define FRAG_COMPARE_COMPARISON_JSON_H

#include <stdio.h>

#include "studies/compare/comparison.h"

/* Every metric, one object a line, and a summary at the end. */
void frag_comparison_print_json(FILE *stream, const frag_comparison *comparison);

#endif
