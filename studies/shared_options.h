/* Options that commands and figures share, for their tables: policies, the device, the format of
 * recordings, bounds, threads. */
#ifndef FRAG_STUDIES_SHARED_OPTIONS_H
#define FRAG_STUDIES_SHARED_OPTIONS_H

#include "studies/command_table.h"
#include "traces/load.h"

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

#define FRAG_JOBS_OPTION                                                                           \
    {                                                                                              \
        "jobs", "N", .letter = 'j',                                                                \
                     .help = "threads (default: all cores); the output is the same", .min = 1,     \
                     .max = 4096                                                                   \
    }

#define FRAG_LOAD_OPTIONS                                                                          \
    {"from", "FORMAT", .choices = FRAG_FORMAT_CHOICES,                                             \
     .help =                                                                                       \
         "format of the input, instead of by content: " FRAG_FORMAT_LIST " (docs/exchange.md)"},   \
    {                                                                                              \
        "memory", "SIZE",                                                                          \
            .help = "host memory for large arrays; those beyond it lie in temporary files of "     \
                    "$TMPDIR, else /var/tmp (default: no limit)"                                   \
    }

/* A part of the recording; what: what else is said of --events. */
#define FRAG_WINDOW_OPTIONS(what)                                                                  \
    {"events", "A..B",                                                                             \
     .help = "events from index A up to, not including, B; either may be left out" what},          \
        {"time", "S..E",                                                                           \
         .help = "events recorded from time S up to, not including, E, in ns of Unix time"},       \
    {                                                                                              \
        "marks", "NAME[..NAME]",                                                                   \
            .help = "from the first mark of that name to its end, or to the end of a second one"   \
    }
/* Of commands that take whole recordings otherwise. */
#define FRAG_WINDOW_OR_ALL_OPTIONS FRAG_WINDOW_OPTIONS("; as 'fraglab trace cut' takes them out")

#define FRAG_BOUNDS_OPTION                                                                         \
    {                                                                                              \
        .name = "bounds", .help = "also pack the whole trace offline: the memory that a "          \
                                  "policy that knew the future would need, to compare "            \
                                  "policies with"                                                  \
    }

#endif
