/* The gnuplot script of a figure: its variables, its data, and the lines of its kind, in one text
 * that needs neither fraglab nor the files that it was made from. It is what fraglab runs itself.
 */
#ifndef FRAG_PARTS_PLOT_SCRIPT_H
#define FRAG_PARTS_PLOT_SCRIPT_H

#include "plots/plot.h"

/* A picture that belongs to a script lies beside it, under the script's name with this behind. */
#define FRAG_PLOT_PICTURE_ENDING ".rgb"

/* "svg" */
const char *frag_plot_format_name(frag_plot_format format);
bool frag_plot_format_find(const char *name, frag_plot_format *format);

/* Adds all of a file, from its beginning. false: it cannot be read. */
bool frag_plot_read(FILE *stream, frag_text *text);

/* Adds the script. folder: that of the scripts of all kinds; picture: where a figure with one finds
 * it; NULL: beside the script. */
bool frag_plot_compose(const frag_plot *plot, const char *folder, const char *picture,
                       frag_text *script, frag_error *error);

#endif
