/* From a rewound history to the events of a trace. */
#ifndef FRAG_TORCH_SNAPSHOT_EMIT_H
#define FRAG_TORCH_SNAPSHOT_EMIT_H

#include "traces/builder.h"
#include "traces/torch/history/snapshot_rewind.h"
#include "traces/torch/snapshot_sites.h"

/* Adds the trace of a device: the state at the start, then the history. */
void frag_snapshot_emit(const frag_snapshot *snapshot, uint32_t device, const frag_rewound *rewound,
                        frag_snapshot_sites *sites, frag_builder *builder, frag_findings *findings);

#endif
