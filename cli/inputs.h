/* What commands that replay have in common: recordings, policies and the device of the command
 * line. */
#ifndef FRAG_CLI_INPUTS_H
#define FRAG_CLI_INPUTS_H

#include "cli/command.h"
#include "sim/device/device_description.h"
#include "sim/run.h"
#include "studies/policy_settings.h"
#include "studies/shared_options.h"
#include "traces/load.h"
#include "traces/window.h"

/* Options for a command's table. */
#define FRAG_OUTPUT_OPTIONS                                                                        \
    {"output", "FILE", .letter = 'o', .help = "write there instead of to stdout",                  \
     .writes = "rows"},                                                                            \
    {                                                                                              \
        "force", .letter = 'f', .help = "overwrite the output file"                                \
    }

/* --policy and --label. None given: FRAG_E_USAGE unless fallback names the default. */
bool frag_inputs_policies(const frag_arguments *arguments, const char *fallback,
                          frag_policy_list *policies, frag_error *error);

/* The one policy of --policy; none given: an empty list, the command takes pytorch with the
 * settings of the recording where it holds some. */
bool frag_inputs_one_policy(const frag_arguments *arguments, frag_policy_list *policies,
                            frag_error *error);

/* --trace-device: which GPU of the program; not given: the one that requests most. */
#define FRAG_TRACE_DEVICE_OPTION                                                                   \
    {                                                                                              \
        "trace-device", "N",                                                                       \
            .help = "the GPU of the program (default: the one that requests most)", .min = 0,      \
            .max = UINT32_MAX                                                                      \
    }
bool frag_inputs_trace(const frag_arguments *arguments, const frag_recording *recording,
                       const frag_trace **trace, frag_error *error);

/* The part of a recording that --events, --time and --marks name, of the GPU that device_option
 * does: "--device" or "--trace-device". */
bool frag_inputs_window(const frag_arguments *arguments, const char *device_option,
                        frag_window *window, frag_error *error);

/* The device options. gpu holds what --gpu and --latency say, and must outlive the spec. */
bool frag_inputs_device(const frag_arguments *arguments, frag_device_spec *device,
                        frag_device_description *gpu, frag_error *error);

bool frag_inputs_format(const frag_arguments *arguments, frag_trace_format *format,
                        frag_error *error);

/* false when path (NULL: none) names the same file as the input; or as an operand, or as the value
 * of an option that names a file to read. With -f or without. */
bool frag_inputs_spare_one(const char *input, const char *path, frag_error *error);
bool frag_inputs_spare(const frag_arguments *arguments, const char *path, frag_error *error);
/* For a file that no option names, as it comes beside another: false when it is an input, or where
 * another output goes. writes: what is written there. */
bool frag_inputs_beside(const frag_arguments *arguments, const char *path, const char *writes,
                        frag_error *error);

/* Of the options of the command that name files to write: false when one of them is an input, or
 * two go to one place, where they would be mixed or the last take the place of the other.
 * uses_stdout: without -o what goes there goes to stdout. */
bool frag_inputs_places(const frag_arguments *arguments, bool uses_stdout, frag_error *error);

/* Opens -o (default stdout), honouring -f. An input is never overwritten. */
struct frag_output *frag_inputs_output(const frag_arguments *arguments, frag_error *error);

/* false: the output is a terminal, which bytes that are no text would garble. what: "a .fgt file";
 * otherwise: what to do instead. */
bool frag_inputs_spare_terminal(struct frag_output *output, const char *what, const char *otherwise,
                                frag_error *error);

#endif
