/* What commands that replay have in common: recordings, policies and the device of the command
 * line. */
#ifndef FRAG_CLI_INPUTS_H
#define FRAG_CLI_INPUTS_H

#include "cli/command.h"
#include "sim/device/device_description.h"
#include "sim/run.h"
#include "studies/policy_settings.h"
#include "traces/load.h"

/* Options for a command's table. */
#define FRAG_POLICY_OPTIONS                                                                        \
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',                                              \
     .help = "allocator policy, with options; repeat the option for "                              \
             "several, or join bare names with commas; 'all' is every policy. After pytorch: a "   \
             "literal PYTORCH_CUDA_ALLOC_CONF "                                                    \
             "works too, 'pytorch:recorded' takes the recording's settings, 'pytorch:env' those "  \
             "of the environment. 'fraglab policies' lists them"},                                 \
    {                                                                                              \
        "label", "TEXT", .help = "names the row of the policy given before it"                     \
    }

#define FRAG_DEVICE_OPTIONS_OF(devices, device_help, device_choices, rules)                        \
    {"device", devices, .choices = device_choices, .help = device_help},                           \
        {"capacity", "SIZE", .help = "memory of the device (default: unlimited, or the card's)"},  \
        {"gpu", "NAME|FILE",                                                                       \
         .help = "simulate this card: its capacity less its context, what "                        \
                 "small mallocs take, its pages and latencies; 'fraglab device list' lists the "   \
                 "bundled ones"},                                                                  \
        {"used-by-others", "SIZE",                                                                 \
         .help = "memory that other programs and the driver's context hold"},                      \
        {"address-rule", "RULE", .choices = rules,                                                 \
         .help = "where segments are placed: in the lowest free range "                            \
                 "(lowest), at addresses never used before (bump), or as "                         \
                 "recorded (default: recorded if the trace has addresses, "                        \
                 "else lowest)"},                                                                  \
        {"fail-call", "N", .help = "the N-th malloc or map fails as if the device were full"},     \
    {                                                                                              \
        "latency", "FILE",                                                                         \
            .help = "latencies of device calls, for the modelled time (YAML, "                     \
                    "as in a device description)"                                                  \
    }

#define FRAG_DEVICE_OPTIONS                                                                        \
    FRAG_DEVICE_OPTIONS_OF("sim", "where segments come from", "sim", "lowest|bump|recorded")

#define FRAG_OUTPUT_OPTIONS                                                                        \
    {"output", "FILE", .letter = 'o', .help = "write there instead of to stdout",                  \
     .writes = "rows"},                                                                            \
    {                                                                                              \
        "force", .letter = 'f', .help = "overwrite the output file"                                \
    }

#define FRAG_JOBS_OPTION                                                                           \
    {                                                                                              \
        "jobs", "N", .letter = 'j',                                                                \
                     .help = "threads (default: all cores); the output is the same", .min = 1,     \
                     .max = 4096                                                                   \
    }

#define FRAG_LOAD_OPTIONS                                                                          \
    {                                                                                              \
        "from", "FORMAT", .choices = FRAG_FORMAT_CHOICES,                                          \
                          .help = "format of the input, instead of by content: " FRAG_FORMAT_LIST  \
                                  " (docs/exchange.md)"                                            \
    }

#define FRAG_BOUNDS_OPTION                                                                         \
    {                                                                                              \
        .name = "bounds", .help = "also pack the whole trace offline: the memory that a "          \
                                  "policy that knew the future would need, to compare "            \
                                  "policies with"                                                  \
    }

/* --policy and --label. None given: FRAG_E_USAGE unless fallback names the default. */
bool frag_inputs_policies(const frag_arguments *arguments, const char *fallback,
                          frag_policy_list *policies, frag_error *error);

/* The device options. gpu holds what --gpu and --latency say, and must outlive the spec. */
bool frag_inputs_device(const frag_arguments *arguments, frag_device_spec *device,
                        frag_device_description *gpu, frag_error *error);

bool frag_inputs_format(const frag_arguments *arguments, frag_trace_format *format,
                        frag_error *error);

/* false when path (NULL: none) names the same file as the input, or as one of the operands, with -f
 * or without. */
bool frag_inputs_spare_one(const char *input, const char *path, frag_error *error);
bool frag_inputs_spare(const frag_arguments *arguments, const char *path, frag_error *error);

/* Opens -o (default stdout), honouring -f. An input is never overwritten. */
struct frag_output *frag_inputs_output(const frag_arguments *arguments, frag_error *error);

/* false: the output is a terminal, which bytes that are no text would garble. what: "a .fgt file";
 * otherwise: what to do instead. */
bool frag_inputs_spare_terminal(struct frag_output *output, const char *what, const char *otherwise,
                                frag_error *error);

#endif
