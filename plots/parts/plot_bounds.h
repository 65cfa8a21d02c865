/* What figures say of the bounds of a trace, where --bounds asks for it. */
#ifndef FRAG_PARTS_PLOT_BOUNDS_H
#define FRAG_PARTS_PLOT_BOUNDS_H

#include "plots/plot.h"
#include "studies/capacity/bounds.h"

/* How rows of the data name the packing. */
#define FRAG_PLOT_PACKING_NAME "offline packing"

/* The packing of the trace with --bounds, else one of 0 bytes; and for the script packing_bytes and
 * packing_text. false: as frag_bounds_find. */
bool frag_plot_packing(frag_plot *plot, frag_row_packing *packing, frag_error *error);

#endif
