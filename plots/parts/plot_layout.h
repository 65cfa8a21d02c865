/* The whole life of a memory layout: when each segment and each block began and ended, and where.
 */
#ifndef FRAG_PARTS_PLOT_LAYOUT_H
#define FRAG_PARTS_PLOT_LAYOUT_H

#include "sim/run.h"

/* Held from after begin up to end, both event indices. */
typedef struct frag_life {
    uint64_t begin;
    uint64_t end;
    uint64_t address;
    uint64_t bytes;
    uint64_t offset;          /* address without the gaps that no segment ever covered */
    uint64_t requested_bytes; /* blocks */
    uint32_t stream;
    uint32_t site;
    bool is_mapped; /* segments: a mapped piece of a range that grows */
} frag_life;

typedef struct frag_layout {
    frag_life *segments; /* in order of begin */
    size_t segment_count;
    frag_life *blocks; /* in order of their requests */
    size_t block_count;
    uint64_t offset_end; /* of the last segment */
    uint64_t event_end;  /* events replayed */
    frag_oom oom;
} frag_layout;

/* Replays, and keeps its history (sim/replay/history.h) as a picture needs it: what was there at
 * the start begins with the first event, what was never given back ends with the run. false: as
 * frag_history_record. The caller destroys. */
bool frag_layout_record(const frag_recording *recording, const frag_trace *trace,
                        const frag_policy_ops *ops, const frag_option_value *values,
                        const frag_device_spec *device, const frag_context *context,
                        frag_layout *layout, frag_error *error);
void frag_layout_destroy(frag_layout *layout);

#endif
