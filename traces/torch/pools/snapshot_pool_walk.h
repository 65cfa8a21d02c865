/* What a walk through a device's history shows of the pools its segments were in: which two were
 * not in one pool (snapshot_pools.h has the rules). The walk takes the pools as they are coloured,
 * and tells more of them apart. */
#ifndef FRAG_POOLS_SNAPSHOT_POOL_WALK_H
#define FRAG_POOLS_SNAPSHOT_POOL_WALK_H

#include "traces/torch/pools/snapshot_colours.h"
#include "traces/torch/pools/snapshot_layout.h"
#include "traces/torch/history/snapshot_rewind.h"

#define FRAG_PIECE_NONE UINT32_MAX
#define FRAG_ENTRY_NEVER UINT64_MAX

/* Most walks; each separates more of the segments that are still in one pool. */
#define FRAG_POOL_WALKS_MAX 32

/* A reserved range of an expandable segment. */
typedef struct frag_pool_range {
    uint64_t base;
    uint64_t end; /* of what was ever mapped; it grows without holes */
    uint64_t mapped_bytes;
    uint32_t piece;
} frag_pool_range;

typedef struct frag_pool_walker {
    frag_snapshot *snapshot;
    const frag_snapshot_device *device;
    frag_rewound *rewound;
    frag_colours colours;
    frag_free_layout layout;
    uint32_t *block_of; /* by block of the rewound history: of the layout */
    uint32_t *piece_of; /* by block of the rewound history */
    uint32_t *pools;    /* by colour: of the snapshot */
    uint32_t known_colours;
    uint32_t lists[2];   /* where the last large and small request were served */
    uint32_t next_piece; /* of the next segment taken */
    uint64_t run_first;  /* since here nothing is recorded but parts of one request */
    uint32_t *given;     /* pieces given back in this run */
    size_t given_count;
    size_t given_capacity;
    size_t edge_max;         /* so many edges may be known at the end of this walk */
    uint64_t looks;          /* at segments */
    uint64_t disorder;       /* large segments of the default pool given back behind small ones */
    frag_pool_range *ranges; /* those that are alive */
    size_t range_count;
    size_t range_capacity;
    uint64_t range_distance; /* least between two that were ever seen; no range is longer */
    bool is_expandable;      /* the device has expandable segments, and no others */
    uint32_t last_piece;     /* that the last request was served from */
    bool sets_pools; /* of requests that failed, and of the entries of expandable segments */
    bool is_in_run;
    bool is_lost; /* something does not go with the rules, whatever the pools are */
} frag_pool_walker;

/* Begins with all pieces in the pools that the rewound history knows of. */
void frag_pool_walker_create(frag_pool_walker *walker, frag_snapshot *snapshot, uint32_t device,
                             frag_rewound *rewound, bool is_expandable);
void frag_pool_walker_destroy(frag_pool_walker *walker);

/* The colour of a pool of the snapshot. */
uint32_t frag_pool_walker_colour(frag_pool_walker *walker, uint32_t pool);
void frag_pool_walker_differ(frag_pool_walker *walker, uint32_t a, uint32_t b);
/* Notes a piece that is given back by an entry. */
void frag_pool_walker_give(frag_pool_walker *walker, uint32_t piece, uint64_t index);
/* Sets the pool of a request that failed. */
void frag_pool_walker_fail(const frag_pool_walker *walker, uint64_t index, uint32_t colour);
/* Says what an entry is: a part of what goes on within one request or release, or its end. */
void frag_pool_walker_enter(frag_pool_walker *walker, uint64_t index, bool is_part);
/* A run of such parts ends before an entry. */
void frag_pool_walker_end_run(frag_pool_walker *walker, uint64_t end);

/* Walks through a history of cudaMalloc'ed segments, or of expandable ones. false: it does not go
 * with the rules, whatever the pools are. */
bool frag_pool_walk_segments(frag_pool_walker *walker);
bool frag_pool_walk_ranges(frag_pool_walker *walker);

#endif
