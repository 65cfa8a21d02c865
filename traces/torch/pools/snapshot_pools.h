/* Which segments of a history belonged to private pools (CUDA graphs, torch.cuda.MemPool) that the
 * snapshot does not name.
 *
 * Before PyTorch 2.12 entries carry no pool, and only segments that are there at the end name
 * theirs. But PyTorch's choice among the free blocks of a pool is known. Where it took a new
 * segment, or cut a block out of one, although a free block elsewhere would have served better, the
 * two segments were in different pools; also where it gave one back and kept the other, free as a
 * whole. A segment is in one pool all its life, and a private pool that gives memory back is never
 * allocated from again. All segments are taken for the default pool's, but for those that this
 * rules out, and for these as few private pools are assumed as will do. Where what remains is not
 * explained, nothing is concluded. */
#ifndef FRAG_POOLS_SNAPSHOT_POOLS_H
#define FRAG_POOLS_SNAPSHOT_POOLS_H

#include "traces/torch/history/snapshot_rewind.h"

/* Sets the pools of entries, blocks and ranges of a device, and names new pools {0, n}. */
void frag_snapshot_pools_infer(frag_snapshot *snapshot, uint32_t device, frag_rewound *rewound,
                               frag_findings *findings);

#endif
