/* Pairs releases with requests in logs that have sizes but no addresses. A guess: a release ends
 * the request of its size that has been live longest. Peaks of requested bytes are as recorded
 * whatever is guessed; lifetimes, and with them what a policy reserves, are only near
 * (docs/exchange.md has figures).
 *
 * Where one request of the size is live, nothing is guessed. */
#ifndef FRAG_EXCHANGE_SIZE_PAIRS_H
#define FRAG_EXCHANGE_SIZE_PAIRS_H

#include "traces/builder.h"
#include "traces/number_map.h"
#include "traces/exchange/live_blocks.h"
#include "traces/formats.h"

typedef struct frag_size_queue {
    uint32_t first; /* slots that are live, the oldest first; FRAG_SLOT_NONE: none */
    uint32_t last;
} frag_size_queue;

/* Where a log also says what sort of memory a request is, a release is first looked for among those
 * of its group. */
#define FRAG_SIZE_GROUPS 8u

/* Start from {.builder = ..., .findings = ..., .device = ...}; of one device. */
typedef struct frag_size_pairs {
    frag_builder *builder;
    frag_findings *findings;
    uint32_t device;
    frag_number_map by_size; /* bytes * FRAG_SIZE_GROUPS + group: index into queues */
    frag_size_queue *queues;
    size_t queue_count;
    size_t queue_capacity;
    uint32_t *next; /* by slot: the next younger one of its size */
    size_t next_capacity;
} frag_size_pairs;

/* As those of live_blocks.h; the addresses of calls are not looked at. */
void frag_size_pairs_alloc(frag_size_pairs *pairs, const frag_live_call *call);
void frag_size_pairs_free(frag_size_pairs *pairs, const frag_live_call *call);
/* Memory of this size and group becomes one of another group; it stays the same memory. */
void frag_size_pairs_move(frag_size_pairs *pairs, uint64_t bytes, uint8_t from, uint8_t to);
void frag_size_pairs_destroy(frag_size_pairs *pairs);

#endif
