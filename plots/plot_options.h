/* Options that several kinds of figures have, for their tables. */
#ifndef FRAG_PLOTS_PLOT_OPTIONS_H
#define FRAG_PLOTS_PLOT_OPTIONS_H

#include "studies/shared_options.h"

/* Options that every kind has. */
#define FRAG_PLOT_OPTIONS                                                                          \
    {"format", "FORMAT", .choices = "svg|png|pdf|terminal|csv",                                    \
     .help = "what is written: a figure, characters for a terminal, or the data it is drawn "      \
             "from (default: by the ending of the name after -o; without "                         \
             "-o: terminal)"},                                                                     \
        {"output", "FILE", .letter = 'o', .help = "write there instead of to stdout",              \
         .writes = "figure"},                                                                      \
        {"data", "FILE", .help = "also write the data of the figure there, as CSV",                \
         .writes = "data"},                                                                        \
        {"script", "FILE",                                                                         \
         .help = "write the figure there as a gnuplot script with its data, to change and to "     \
                 "draw with 'gnuplot FILE'; without -o nothing else is written",                   \
         .writes = "script"},                                                                      \
        {"force", .letter = 'f', .help = "overwrite the files written"},                           \
        {"title", "TEXT", .help = "title of the figure; '' for none"},                             \
        {"width", "N",                                                                             \
         .help = "pixels, for pdf at 96 an inch (default: 800; png: 1600), or columns of the "     \
                 "terminal"},                                                                      \
    {                                                                                              \
        "height", "N",                                                                             \
            .help = "pixels (default: in proportion to --width), or lines of "                     \
                    "the terminal"                                                                 \
    }

/* What a kind is told that replays one trace. */
#define FRAG_PLOT_REPLAY_OPTIONS                                                                   \
    FRAG_POLICY_OPTIONS, FRAG_DEVICE_OPTIONS, FRAG_LOAD_OPTIONS, FRAG_WINDOW_OR_ALL_OPTIONS,       \
        FRAG_PLOT_DEVICE_OPTION

#define FRAG_PLOT_DEVICE_OPTION                                                                    \
    {                                                                                              \
        "trace-device", "N",                                                                       \
            .help = "draw this device of a recording that has several (default: that with the "    \
                    "greatest peak of requested bytes)"                                            \
    }

#define FRAG_PLOT_MOMENT_OPTION                                                                    \
    {                                                                                              \
        "at", "WHERE",                                                                             \
            .help = "what is held: end; N, right after that event; A..B, a mark's name ('step "    \
                    "3') or NAME[N], its N-th up to the next: at the peak of those events "        \
                    "(default: the first event at which most is held)"                             \
    }

#define FRAG_PLOT_AXIS_OPTION                                                                      \
    {                                                                                              \
        "x", "AXIS", .choices = "events|time",                                                     \
                     .help = "the horizontal axis (default: events; time needs a recording that "  \
                             "has times)"                                                          \
    }

#define FRAG_PLOT_OOM_OPTION                                                                       \
    {                                                                                              \
        "on-oom", "WHAT", .choices = "stop|skip",                                                  \
                          .help = "after the first request that cannot be served: stop, or skip "  \
                                  "the request and go on (default: stop)"                          \
    }

#endif
