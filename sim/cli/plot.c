#include "sim/cli/plot.h"

static const frag_command *const kinds[] = {
    &frag_command_plot_timeline,
    &frag_command_plot_map,
    &frag_command_plot_bars,
    &frag_command_plot_survival,
    &frag_command_plot_front,
    &frag_command_plot_fragmentation,
    &frag_command_plot_sites,
    &frag_command_plot_heat,
    NULL,
};

const frag_command frag_command_plot = {
    .name = "plot",
    .operands = "KIND",
    .summary = "draw timelines, memory maps, holes, call sites, sweeps, survival curves, fronts",
    .description =
        "Draws a figure with gnuplot: svg, pdf or png for a paper, characters for a terminal, or "
        "the "
        "data alone as CSV. The scripts are in plots/; docs/plots.md says how to draw from the CSV "
        "by hand.",
    .subcommands = kinds,
};
