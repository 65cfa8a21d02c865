/* What is live at which address while the requests and releases of a log go by: from the calls of
 * an allocator to the slots of a trace. What does not fit together is a finding, under the same
 * words for every format. */
#ifndef FRAG_EXCHANGE_LIVE_BLOCKS_H
#define FRAG_EXCHANGE_LIVE_BLOCKS_H

#include "traces/builder.h"
#include "traces/number_map.h"
#include "traces/formats.h"

typedef struct frag_live_block {
    uint64_t bytes;
    uint64_t stream;
} frag_live_block;

/* Start from {.builder = ..., .findings = ..., .device = ...}; of one device. */
typedef struct frag_live_blocks {
    frag_builder *builder;
    frag_findings *findings;
    uint32_t device;
    frag_number_map by_address; /* slot */
    frag_live_block *blocks;    /* by slot */
    size_t block_capacity;
} frag_live_blocks;

/* A call of the log. entry is its number in the log, from 0; text is what findings show of it. */
typedef struct frag_live_call {
    uint64_t time_ns;
    uint64_t address;
    uint64_t bytes;
    uint64_t stream;
    uint64_t entry;
    const char *text;
    uint8_t group; /* size_pairs.h alone: what sort of memory it is */
    uint32_t site; /* who asked; 0: not known */
} frag_live_call;

/* Of 1 byte or more. An address that is live still ends what has it, as its release is missing. */
void frag_live_alloc(frag_live_blocks *live, const frag_live_call *call);
/* Of 1 byte or more; it ran out of memory. */
void frag_live_alloc_failed(frag_live_blocks *live, const frag_live_call *call);
/* Nothing happens when nothing is live at the address but that it is noted. */
void frag_live_free(frag_live_blocks *live, const frag_live_call *call);
void frag_live_destroy(frag_live_blocks *live);

#endif
