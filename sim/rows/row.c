#include "sim/rows/row.h"

bool frag_row_over_bound(const frag_row *row, double *ratio)
{
    const frag_replay_result *replay = &row->result->replay;
    double bound = (double)frag_trace_bound_bytes(row->trace);
    /* The bound is that of all requests; a run that left one out may come lower. */
    bool has = bound > 0 && !replay->oom.has_happened;
    *ratio = has ? (double)replay->peak.reserved_bytes / bound - 1 : 0;
    return has;
}

bool frag_row_utilisation(const frag_row *row, double *ratio)
{
    const frag_level *peak = &row->result->replay.peak;
    bool has = peak->reserved_bytes > 0;
    *ratio = has ? (double)peak->allocated_bytes / (double)peak->reserved_bytes : 0;
    return has;
}
