/* The blocks of a statistical workload that are live: which of them goes next, and the events that
 * come of it. */
#ifndef FRAG_STATISTICAL_LIVE_SET_H
#define FRAG_STATISTICAL_LIVE_SET_H

#include "traces/builder.h"
#include "workload/description/statistical.h"

#define FRAG_NO_BLOCK UINT32_MAX

typedef struct frag_live_block {
    uint64_t bytes;
    uint32_t slot;
    uint32_t place; /* in live; FRAG_NO_BLOCK: released */
    uint32_t older; /* of those that are live */
    uint32_t newer;
} frag_live_block;

typedef struct frag_due_block {
    uint64_t request; /* before which it is released */
    uint32_t block;
} frag_due_block;

typedef struct frag_live_set {
    frag_builder *builder;
    frag_live_block *blocks; /* of all requests so far, by number */
    uint32_t block_count;
    uint32_t *live; /* blocks, in no order */
    uint32_t live_count;
    uint32_t oldest;
    uint32_t newest;
    frag_due_block *due; /* a heap, with blocks that went otherwise still in it */
    uint32_t due_count;
    uint64_t bytes; /* live */
} frag_live_set;

/* request_max: that there will be. */
void frag_live_set_begin(frag_live_set *set, frag_builder *builder, uint64_t request_max);
void frag_live_set_end(frag_live_set *set);

/* lifetime: requests until it is released; FRAG_UNLIMITED: it is not. Returns the block. */
uint32_t frag_live_set_request(frag_live_set *set, uint64_t bytes, uint64_t stream,
                               uint64_t lifetime);
void frag_live_set_release(frag_live_set *set, uint32_t block);
/* Those whose lifetime is over before the next request. */
void frag_live_set_expire(frag_live_set *set);
/* Releases one block after the other until at most so many bytes are live. */
void frag_live_set_shrink(frag_live_set *set, uint64_t bytes, frag_release release,
                          uint64_t *random);

#endif
