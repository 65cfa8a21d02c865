#include "plots/parts/plot_bounds.h"

#include "base/bytes.h"

bool frag_plot_packing(frag_plot *plot, const frag_recording *recording, const frag_trace *trace,
                       frag_row_packing *packing, frag_error *error)
{
    *packing = (frag_row_packing){0};
    if (frag_arguments_has(plot->arguments, "bounds") &&
        !frag_bounds_find(frag_arguments_context(plot->arguments), recording, trace, packing,
                          error))
        return false;
    frag_plot_define_number(plot, "packing_bytes", (double)packing->bytes);
    frag_plot_define_text(plot, "packing_text",
                          packing->bytes > 0 ? FRAG_BYTES(packing->bytes) : "");
    return true;
}
