/* Drawing with gnuplot: finds it and its scripts, passes it the data of a figure, writes the figure
 * and what is kept beside it. */
#ifndef FRAG_PLOT_PLOT_GNUPLOT_H
#define FRAG_PLOT_PLOT_GNUPLOT_H

#include "cli/command.h"
#include "plots/plot.h"

/* Reads the options that every kind has (FRAG_PLOT_OPTIONS), opens what will be written, and looks
 * for gnuplot and the script before anything is computed; then draws. */
bool frag_plot_with_gnuplot(const frag_arguments *arguments, frag_plot_request *request,
                            const frag_plot_kind *kind, frag_error *error);

#endif
