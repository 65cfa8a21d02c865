/* Requests whose place was not looked for: cudagraph trees of torch.compile bring a private pool
 * back to a layout that it had before (setCheckpointPoolState). */
#ifndef FRAG_POOLS_SNAPSHOT_RESTORES_H
#define FRAG_POOLS_SNAPSHOT_RESTORES_H

#include "traces/torch/history/snapshot_rewind.h"

/* Marks such requests (frag_snapshot_entry.is_placed), before pools that are not named are
 * concluded. */
void frag_snapshot_restores_find(frag_snapshot *snapshot, uint32_t device,
                                 const frag_rewound *rewound, frag_findings *findings);

#endif
