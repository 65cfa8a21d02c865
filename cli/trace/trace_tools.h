/* The subcommands of `fraglab trace`, and what they share. */
#ifndef FRAG_TRACE_TRACE_TOOLS_H
#define FRAG_TRACE_TRACE_TOOLS_H

#include "base/file.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "traces/load.h"

extern const frag_command frag_command_trace_info;
extern const frag_command frag_command_trace_cut;
extern const frag_command frag_command_trace_generate;

/* Options for a subcommand's table. */
#define FRAG_TRACE_WRITE_OPTIONS_TO(formats)                                                       \
    {"output", "FILE", .letter = 'o', .help = "write there; - is stdout"},                         \
        {"force", .letter = 'f', .help = "overwrite the output file"},                             \
    {                                                                                              \
        "to", "FORMAT", .choices = formats, .help = "format to write (default: fgt)"               \
    }
#define FRAG_TRACE_WRITE_OPTIONS FRAG_TRACE_WRITE_OPTIONS_TO("fgt|text|minimalloc")

/* Loads what the options ask for; --from sets their format. */
bool frag_trace_tools_load_as(const frag_arguments *arguments, const char *path,
                              frag_load_options *options, frag_recording *recording,
                              frag_findings *findings, frag_error *error);

/* false: the output is a terminal and the format of --to is no text. */
bool frag_trace_tools_check(const frag_arguments *arguments, frag_output *output,
                            frag_error *error);

/* Writes to an opened output in the format of --to and puts it in place; the output is used up. */
bool frag_trace_tools_write(const frag_arguments *arguments, const frag_recording *recording,
                            frag_output *output, frag_error *error);

#endif
