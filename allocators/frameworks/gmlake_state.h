/* The state of gmlake, and its two halves: chunks in segments and stitched ranges
 * (gmlake_chunks.c), and which of them a request gets (gmlake.c).
 *
 * A *home* is a range that was made with its own chunks of 2 MiB; its pieces are free, granted, or
 * lent to a stitched range. A *stitched* range is made of runs of chunks of homes, which are mapped
 * there a second time, and has no memory of its own. It can be granted while all its runs are free,
 * and borrows no more of them than the request needs, from its low end. */
#ifndef FRAG_FRAMEWORKS_GMLAKE_STATE_H
#define FRAG_FRAMEWORKS_GMLAKE_STATE_H

#include "allocators/index/block_space.h"
#include "allocators/index/free_index.h"

#define FRAG_LAKE_NONE FRAG_BLOCK_NONE

typedef enum frag_lake_kind {
    FRAG_LAKE_SMALL, /* one device malloc, for requests of up to 1 MiB */
    FRAG_LAKE_HOME,
    FRAG_LAKE_STITCHED /* its ring holds one block, which is all of it */
} frag_lake_kind;

/* What is known of a record beside the block. A block's link is the header of its segment. */
typedef struct frag_lake_side {
    /* Headers of stitched ranges: bytes of its runs that are not free. */
    uint64_t busy_bytes;
    /* Headers of stitched ranges: the bytes granted to the request that has it; 0: no request has
     * it. */
    uint64_t lent_bytes;
    /* Free pieces of homes, headers of stitched ranges: number of the free that came last there, of
     * those of its stream; 0: none. A stitched range begins with the last one of its pieces. */
    uint64_t freed;
    uint32_t stream;      /* headers */
    uint32_t runs;        /* headers: list of the runs in it, or of a stitched range */
    uint32_t next_chosen; /* free blocks: the next one of a list being made */
    uint8_t kind;         /* headers: frag_lake_kind */
    bool is_lent;         /* busy blocks of homes */
} frag_lake_side;

/* A run of chunks of a home in a stitched range. */
typedef struct frag_lake_run {
    uint64_t address; /* at home */
    uint64_t bytes;
    uint32_t home;          /* header */
    uint32_t stitched;      /* header */
    uint32_t next_of_home;  /* doubly linked, for removal; the newest comes first */
    uint32_t last_of_home;  /* the one before */
    uint32_t next_of_range; /* in order of their places; unused runs: the next unused one */
    uint32_t piece;         /* the block that is lent; NONE: none is */
} frag_lake_run;

/* What GMLake keeps of the stitched ranges of a stream that nobody has, while a piece of theirs is
 * in use and while none is: two tables of streams, in which the newest entry comes first. */
typedef struct frag_lake_entries {
    uint32_t broken; /* number of the entry; 0: none yet */
    uint32_t whole;
} frag_lake_entries;

/* A stitched range that is to be taken apart. */
typedef struct frag_lake_doomed {
    bool is_whole;
    uint32_t entry;
    uint64_t freed;
    uint64_t bytes;
    uint64_t address;
    uint32_t header;
} frag_lake_doomed;

/* Free blocks of a stream are in three indexes, by frag_lake_kind. */
struct frag_policy {
    frag_block_space space;
    frag_free_index_store store;
    frag_free_index *indexes; /* 3 for each stream */
    uint32_t index_count;
    uint32_t stream_count;
    uint32_t *streams;          /* all of them, in order of their raw handles */
    uint64_t *free_bytes;       /* by stream: in free pieces of homes */
    uint64_t *freed;            /* by stream: frees so far */
    frag_lake_entries *entries; /* by stream */
    uint32_t entry_count;
    frag_lake_side *sides; /* by record */
    frag_lake_run *runs;
    uint32_t run_count; /* ever used */
    uint32_t run_max;
    uint32_t spare_run;
    frag_lake_doomed *doomed; /* scratch of frag_lake_collect */
    uint64_t chunk_bytes;
    uint64_t stitched_bytes; /* of all stitched ranges */
    /* What collecting goes by: it goes up with every stitched range, and down with those that are
     * collected, but not with those that are taken apart because a home of theirs goes back. */
    uint64_t counted_bytes;
    uint64_t held_bytes;
    uint64_t limit_bytes; /* of held_bytes, as the program set it */
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
           (policy->sides[header].busy_bytes == 0 && policy->sides[header].lent_bytes == 0);
}

/* Puts a free block into its index, or takes it out. */
void frag_lake_insert(frag_policy *policy, uint32_t id);
void frag_lake_take_out(frag_policy *policy, uint32_t id);

/* A new segment with one free block, which is in its index. */
uint32_t frag_lake_add(frag_policy *policy, uint64_t address, uint64_t bytes, frag_lake_kind kind,
                       uint32_t stream);

/* Makes a free block of a home or a small segment busy: its low end of these bytes, the remainder
 * stays free. Returns the block. */
uint32_t frag_lake_cut(frag_policy *policy, uint32_t hole, uint64_t bytes);
/* Makes it free again, by that free of its stream, and coalesces it with free neighbours. */
void frag_lake_put(frag_policy *policy, uint32_t id, uint64_t freed);

/* Makes a stitched range of free pieces, linked through next_chosen and larger than it together;
 * the last one gives its low end. Returns the header; NONE: the device has no address space or no
 * room for mappings, or there are no more records for runs. */
uint32_t frag_lake_stitch(frag_policy *policy, uint32_t first_chosen, uint64_t bytes);
/* Grants the low end of a usable stitched range. */
void frag_lake_lend(frag_policy *policy, uint32_t header, uint64_t bytes);
void frag_lake_free_stitched(frag_policy *policy, uint32_t header);
/* Takes all stitched ranges apart that nobody has. */
void frag_lake_collect(frag_policy *policy);

/* Notes that GMLake looked a stream up in both of its tables. */
void frag_lake_enter_both(frag_policy *policy, uint32_t stream);

/* Gives back every segment that is one free block, and the stitched ranges made of it. */
void frag_lake_release(frag_policy *policy);

/* gmlake_look.c */
void frag_lake_walk(const frag_policy *policy, frag_span_visitor *visit, void *context);
bool frag_lake_check(const frag_policy *policy, frag_error *error);

#endif
