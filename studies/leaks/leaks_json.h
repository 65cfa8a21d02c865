/* Leaks for programs: one JSON object on a line. */
#ifndef FRAG_LEAKS_LEAKS_JSON_H
#define FRAG_LEAKS_LEAKS_JSON_H

#include <stdio.h>

#include "studies/leaks/leaks.h"

void frag_leaks_print_json(FILE *stream, const frag_recording *recording, const frag_trace *trace,
                           const frag_leaks *leaks);
/* One object a line for each leak, the fastest first; nothing where nothing leaks. */
void frag_leaks_print_rows(FILE *stream, const frag_leaks *leaks);

#endif
