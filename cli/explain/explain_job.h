/* `fraglab explain` of several recordings: the ranks of one job. */
#ifndef FRAG_EXPLAIN_EXPLAIN_JOB_H
#define FRAG_EXPLAIN_EXPLAIN_JOB_H

#include "cli/command.h"
#include "studies/explain/explain_trace.h"
#include "traces/load.h"

/* A folder, three files or more, or two whose names have numbers of ranks that differ. */
bool frag_explain_is_job(const frag_arguments *arguments);

/* Prints the ranks, which runs out of memory first, and what of the settings that are tried keeps
 * all of them going. *first: the path of that rank's recording, NULL: none runs out; options get
 * the capacity, unless that rank's recording has it. false: FRAG_E_USAGE, there is nothing to
 * explain; or a recording cannot be read. */
bool frag_explain_job(const frag_arguments *arguments, const frag_context *context,
                      frag_trace_format format, frag_explain_options *options, FILE *stream,
                      const char **first, frag_error *error);

#endif
