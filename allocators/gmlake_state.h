/* The state of gmlake, and its two halves: chunks in segments and stitched ranges
 * (gmlake_chunks.c), and which of them a request gets (gmlake.c).
 *
 * A *home* is a range that was made with its own chunks of 2 MiB; its pieces are free, granted,
 * lent to a stitched range, or lost. A *stitched* range is made of runs of chunks of several homes
 * and has no memory of its own. It can be granted while all its runs are free. A chunk is in one
 * place at a time: at home, or in one run of a stitched range. It is moved only when the block that
 * is granted is the other one. */
#ifndef FRAG_ALLOCATORS_GMLAKE_STATE_H
#define FRAG_ALLOCATORS_GMLAKE_STATE_H

#include "allocators/block_space.h"
#include "allocators/free_index.h"

#define FRAG_LAKE_NONE FRAG_BLOCK_NONE

typedef enum frag_lake_kind {
    FRAG_LAKE_SMALL, /* one device malloc, for requests of up to 1 MiB */
    FRAG_LAKE_HOME,
    FRAG_LAKE_STITCHED /* its ring holds one block, which is all of it */
} frag_lake_kind;

/* Of a block that is not free. */
typedef enum frag_lake_use {
    FRAG_LAKE_GRANTED,
    FRAG_LAKE_LENT, /* a run of a granted stitched range */
    FRAG_LAKE_LOST  /* the device gave the chunks up in a move, and did not map them again */
} frag_lake_use;

/* What is known of a record beside the block. A block's link is the header of its segment. */
typedef struct frag_lake_side {
    uint64_t busy_bytes;  /* stitched headers: bytes of its runs that are not free */
    uint32_t stream;      /* headers */
    uint32_t runs;        /* headers: list of the runs in it, or of a stitched range */
    frag_lake_kind kind;  /* headers */
    frag_lake_use use;    /* busy blocks */
    uint32_t next_chosen; /* free blocks that are to be stitched: the next one */
} frag_lake_side;

/* A run of chunks of a home in a stitched range. */
typedef struct frag_lake_run {
    uint64_t address; /* at home */
    uint64_t bytes;
    uint64_t place;         /* in the stitched range */
    uint32_t home;          /* header */
    uint32_t stitched;      /* header */
    uint32_t next_of_home;  /* doubly linked, for removal */
    uint32_t last_of_home;  /* the one before */
    uint32_t next_of_range; /* in order of place; unused runs: the next unused one */
    uint32_t piece;         /* the block that is lent while the range is granted */
    bool is_here;           /* its chunks are in the stitched range, not at home */
} frag_lake_run;

/* Free blocks of a stream are in three indexes, by frag_lake_kind. */
struct frag_policy {
    frag_block_space space;
    frag_free_index_store store;
    frag_free_index *indexes; /* 3 for each stream */
    uint32_t index_count;
    uint64_t *free_bytes;  /* by stream: in free pieces of homes */
    frag_lake_side *sides; /* by record */
    frag_lake_run *runs;
    uint32_t run_count; /* ever used */
    uint32_t run_max;
    uint32_t spare_run;
    uint64_t chunk_bytes;
    uint64_t stitched_bytes; /* of all stitched ranges */
    uint64_t held_bytes;
    bool has_waited; /* for the stream, since the request being served came */
    const frag_option_value *values;
};

static inline frag_free_index *frag_lake_index(const frag_policy *policy, uint32_t header)
{
    const frag_lake_side *side = &policy->sides[header];
    return &policy->indexes[3 * side->stream + (uint32_t)side->kind];
}

/* May the block be granted as it is? Those of stitched ranges are holes while nobody has them, but
 * only usable while all runs are free. */
static inline bool frag_lake_is_usable(const frag_policy *policy, uint32_t header)
{
    return policy->sides[header].kind != FRAG_LAKE_STITCHED ||
           policy->sides[header].busy_bytes == 0;
}

/* Puts a free block into its index, or takes it out. */
void frag_lake_insert(frag_policy *policy, uint32_t id);
void frag_lake_take_out(frag_policy *policy, uint32_t id);

/* A new segment with one free block, which is in its index. */
uint32_t frag_lake_add(frag_policy *policy, uint64_t address, uint64_t bytes, frag_lake_kind kind,
                       uint32_t stream);

/* Makes a free block of a home or a small segment busy: its low end of these bytes, the rest stays
 * free. Returns the block. */
uint32_t frag_lake_cut(frag_policy *policy, uint32_t hole, uint64_t bytes, frag_lake_use use);
/* Makes it free again and joins it with free neighbours. */
void frag_lake_put(frag_policy *policy, uint32_t id);

/* Brings all chunks of a free piece, of these first bytes, home. false: some were lost on the way,
 * and the piece is no more what it was. */
bool frag_lake_bring_home(frag_policy *policy, uint32_t hole, uint64_t bytes);

/* Makes a stitched range of free pieces, linked through next_chosen and larger than it together;
 * the last one gives its low end. Returns the header; NONE: the device has no address space, or
 * there are no more records for runs. Moves no chunk. */
uint32_t frag_lake_stitch(frag_policy *policy, uint32_t first_chosen, uint64_t bytes);
/* Grants a usable stitched range: its chunks go there. false: some were lost. */
bool frag_lake_grant_stitched(frag_policy *policy, uint32_t header);
void frag_lake_free_stitched(frag_policy *policy, uint32_t header);
/* Takes all stitched ranges apart that are not granted. */
void frag_lake_unstitch(frag_policy *policy);

/* Gives back every segment without a block. Only after frag_lake_unstitch. */
void frag_lake_release(frag_policy *policy);

/* gmlake_look.c */
void frag_lake_walk(const frag_policy *policy, frag_span_visitor *visit, void *context);
bool frag_lake_check(const frag_policy *policy, frag_error *error);

#endif
