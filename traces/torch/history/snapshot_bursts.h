/* Why a recorded allocator gave memory back: because the program asked for it, or to serve a
 * request.
 *
 * A snapshot does not record calls of empty_cache, only the segments that go. A run of them
 * followed by a new segment or an out-of-memory belongs to the request that came next, unless
 * something proves that the request did not need it. */
#ifndef FRAG_HISTORY_SNAPSHOT_BURSTS_H
#define FRAG_HISTORY_SNAPSHOT_BURSTS_H

#include "traces/torch/history/snapshot_rewind.h"

typedef enum frag_burst_cause {
    FRAG_BURST_NONE,        /* no memory is given back here */
    FRAG_BURST_EMPTY_CACHE, /* the program asked */
    FRAG_BURST_RETRY,       /* part of a request: garbage collection or a retry */
    FRAG_BURST_POOL,        /* only of private pools: their owners are gone */
    FRAG_BURST_UNKNOWN      /* could be either of the first two */
} frag_burst_cause;

typedef struct frag_burst {
    uint64_t first;    /* entries [first, end): late completions, then segments */
    uint64_t segments; /* the first of the segments */
    uint64_t end;
    frag_burst_cause cause;
} frag_burst;

typedef struct frag_burst_finder {
    const frag_snapshot *snapshot;
    const frag_snapshot_device *device;
    uint64_t reserved_bytes_max; /* ever held: the device and its limit had room for them */
    uint8_t *is_emptying;        /* by object: 1 no, 2 a stack that names empty_cache */
} frag_burst_finder;

void frag_burst_finder_create(frag_burst_finder *finder, const frag_snapshot *snapshot,
                              uint32_t device, const frag_rewound *rewound);
void frag_burst_finder_destroy(frag_burst_finder *finder);

/* The burst that begins at an entry, with reserved_bytes held before it; end == first when none
 * does, and then nothing up to *seen_until begins one either. */
frag_burst frag_burst_at(const frag_burst_finder *finder, uint64_t entry, uint64_t reserved_bytes,
                         uint64_t *seen_until);

/* Is the entry a free_completed that does not directly follow its own free_requested? */
bool frag_snapshot_is_late(const frag_snapshot_device *device, uint64_t entry);

#endif
