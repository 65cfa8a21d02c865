/* The state before the first entry of a device's history, found by undoing the entries one by one
 * from the final state, and which entries belong to which block.
 *
 * A snapshot shows the memory at its end and what happened before; whatever was allocated before
 * the history began appears only there. Every expectation that an entry violates is a finding, and
 * that entry is dropped, so that what remains fits together. */
#ifndef FRAG_HISTORY_SNAPSHOT_REWIND_H
#define FRAG_HISTORY_SNAPSHOT_REWIND_H

#include "traces/torch/history/snapshot_ranges.h"
#include "traces/torch/history/snapshot_parse.h"

#define FRAG_REWOUND_NONE UINT32_MAX

typedef struct frag_rewound_block {
    uint64_t address;
    uint64_t requested_bytes;
    uint64_t block_bytes; /* 0 not known */
    uint32_t pool;
    uint32_t origin : 30;
    bool is_pending : 1; /* freed, waiting for a stream, before the first entry */
    bool is_guessed : 1; /* nothing shows its size */
} frag_rewound_block;

_Static_assert(sizeof(frag_rewound_block) == 32, "a block has 32 bytes");

typedef struct frag_rewound {
    frag_rewound_block *blocks; /* entry.block is an index; first come those in use at the end */
    size_t block_count;
    size_t block_capacity;
    uint32_t *final_frames; /* of the blocks in use at the end, as in an entry */
    size_t final_count;
    frag_held_range *ranges; /* at the start, by address */
    size_t range_count;
    uint32_t *initial; /* blocks at the start, by address, each inside a range and apart */
    size_t initial_count;
    uint32_t *misplaced; /* blocks that were in use then, but left out */
    size_t misplaced_count;
    size_t misplaced_capacity;
    uint32_t *segment_entries; /* entries of segments and ranges, in the order of the history */
    size_t segment_entry_count;
    size_t segment_entry_capacity;
    bool has_doubtful; /* an entry was dropped or is of no known action */
    bool has_pools;    /* an entry names its pool */
    bool has_failed;   /* an entry is of a request that failed */
} frag_rewound;

void frag_snapshot_rewind(frag_snapshot *snapshot, uint32_t device, frag_rewound *rewound,
                          frag_findings *findings);
void frag_rewound_destroy(frag_rewound *rewound);

/* The block size that PyTorch 2.4 and later cut for a request, when nothing larger was left whole.
 */
uint64_t frag_snapshot_round(const frag_snapshot_settings *settings, uint64_t bytes);

#endif
