#include "plots/parts/plot_bounds.h"

#include "base/bytes.h"

bool frag_plot_packing(frag_plot *plot, frag_row_packing *packing, frag_error *error)
{
    *packing = (frag_row_packing){0};
    if (frag_plot_setting_text(plot->request, "bounds") != NULL &&
        !frag_bounds_find(plot->request->context, &plot->recording, plot->trace, packing, error))
        return false;
    frag_plot_define_number(plot, "packing_bytes", (double)packing->bytes);
    frag_plot_define_text(plot, "packing_text",
                          packing->bytes > 0 ? FRAG_BYTES(packing->bytes) : "");
    return true;
}
