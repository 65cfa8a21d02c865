/* Histories that leave out whole kinds of entries: _record_memory_history(skip_actions=[...]) of
 * PyTorch 2.10 and later.
 *
 * What the recorded entries and the memory at the end prove to have happened is put in: a free when
 * the memory is used again or gone at the end (at the last moment possible), an alloc when it was
 * in the way before (at the first), a segment likewise. */
#ifndef FRAG_HISTORY_SNAPSHOT_SKIPPED_H
#define FRAG_HISTORY_SNAPSHOT_SKIPPED_H

#include "traces/builder.h"
#include "traces/torch/history/snapshot_parse.h"

/* Kinds of entries that are missing, as bits of frag_snapshot_skipped_kinds. */
enum {
    FRAG_SKIPPED_FREE_REQUESTED = 1,
    FRAG_SKIPPED_FREE_COMPLETED = 2,
    FRAG_SKIPPED_ALLOC = 4,
    FRAG_SKIPPED_SEGMENT_ALLOC = 8,
    FRAG_SKIPPED_SEGMENT_FREE = 16,
};

/* Repairs the histories of all devices, before they are rewound, and says in the metadata and the
 * findings what was missing. Returns the kinds. */
uint32_t frag_snapshot_restore(frag_snapshot *snapshot, frag_builder *builder,
                               frag_findings *findings);

#endif
