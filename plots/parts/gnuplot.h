/* Runs gnuplot: finds it and its scripts, hands it the data of a figure in a temporary folder, and
 * gives back what it drew. */
#ifndef FRAG_PARTS_GNUPLOT_H
#define FRAG_PARTS_GNUPLOT_H

#include <stdio.h>

#include "plots/plot.h"

typedef struct frag_gnuplot frag_gnuplot;

/* The program is found by PATH of the context's environment, the folder is made in TMPDIR, the
 * scripts are installed files (sim/data_folder.h). wants_figure false: only the script is wanted,
 * and gnuplot itself not needed. FRAG_E_SYSTEM, with the remedy: one of them is not there. */
frag_gnuplot *frag_gnuplot_open(const frag_context *context, const char *kind, bool wants_figure,
                                frag_error *error);
/* Removes the folder with all that is in it, and ends gnuplot if it still draws. NULL is allowed.
 */
void frag_gnuplot_close(frag_gnuplot *gnuplot);

/* Where the data, and the picture of a kind that has one, are written. Both are closed with the
 * rest. NULL: error is filled. */
FILE *frag_gnuplot_data(frag_gnuplot *gnuplot, frag_error *error);
FILE *frag_gnuplot_picture(frag_gnuplot *gnuplot, frag_error *error);
/* The picture as it was written. */
bool frag_gnuplot_read_picture(const frag_gnuplot *gnuplot, frag_text *bytes, frag_error *error);

/* The script of the plot, as a text that needs no other file but a picture beside it. */
bool frag_gnuplot_script(const frag_gnuplot *gnuplot, const frag_plot *plot, frag_text *script,
                         frag_error *error);
/* Draws the plot, whose data and definitions are whole, and writes the figure to stream. A pdf has
 * no date in it, so that equal figures are equal bytes, but that of cairo 1.17.6 and newer, which
 * keeps the date inside a compressed stream. When the context is cancelled, gnuplot is ended and
 * nothing is written. */
bool frag_gnuplot_draw(frag_gnuplot *gnuplot, const frag_plot *plot, FILE *stream,
                       frag_error *error);

#endif
