/* One allocator made of five choices, from which the pools of several frameworks are composed:
 *
 *   rounding   what a request is rounded to
 *   lists      which free blocks a request may take: one list of all, one for each stream (with or
 *              without taking from other streams), or one for small and one for large requests
 *   pick       the smallest block that is large enough, at the lowest address; or the newest of
 *              exactly the size
 *   split      when a block is split, and which end of it is handed out
 *   merge      what a freed block is coalesced with
 *   growth     what is asked of the device when no block will do, and what is given back before or
 *              instead
 *
 * Blocks lie in segments, one device malloc each, and know their neighbours; free blocks lie in one
 * index per list (free_index.h), or by exact size (exact_lists.h). The presets and their sources:
 * tf_bfc.c, ort_arena.c, rmm_pool.c, cupy.c, paddle.c, mxnet.c. */
#ifndef FRAG_FRAMEWORKS_COMPOSED_H
#define FRAG_FRAMEWORKS_COMPOSED_H

#include "allocators/index/block_space.h"
#include "allocators/index/exact_lists.h"
#include "allocators/index/free_index.h"
#include "allocators/index/stream_lists.h"
#include "sim/policy_engine.h"

typedef enum frag_rounding {
    FRAG_ROUND_MULTIPLE, /* up to a multiple of unit, a power of two */
    FRAG_ROUND_LEAST,    /* to unit when below it */
    FRAG_ROUND_POWER,    /* to a power of two, at least unit; above linear to multiples of linear */
    FRAG_ROUND_STEPPED   /* up to a multiple of unit; above linear of linear. Any two numbers */
} frag_rounding;

typedef enum frag_lists {
    FRAG_LISTS_ONE,
    FRAG_LISTS_BY_SIZE,   /* [0] large; [1] rounded requests of up to small_bytes */
    FRAG_LISTS_BY_STREAM, /* a block stays with the stream that it was first allocated for */
    FRAG_LISTS_SHARED     /* a block goes to the stream that freed it; streams take from others */
} frag_lists;

typedef enum frag_pick {
    FRAG_PICK_BEST,
    FRAG_PICK_EXACT /* for one list of blocks that are neither split nor coalesced */
} frag_pick;

typedef enum frag_split {
    FRAG_SPLIT_LOW,   /* always; the low end is handed out */
    FRAG_SPLIT_HIGH,  /* always; the high end is handed out */
    FRAG_SPLIT_TWICE, /* low, when it is twice the request or the rest is at least surplus_max */
    FRAG_SPLIT_NEVER
} frag_split;

typedef enum frag_merge {
    FRAG_MERGE_SEGMENT,  /* with free neighbours of its list in its segment */
    FRAG_MERGE_TOUCHING, /* as above; a segment that begins where an earlier one ends becomes part
                            of it */
    FRAG_MERGE_NEVER
} frag_merge;

/* The order in which idle segments go back. The last two need PICK_EXACT. */
typedef enum frag_give_back_order {
    FRAG_GIVE_BACK_BY_CREATION,
    FRAG_GIVE_BACK_BY_ADDRESS,
    FRAG_GIVE_BACK_BY_SIZE, /* ascending, of one size the longest free first */
    FRAG_GIVE_BACK_BY_TABLE /* sizes as a std::unordered_map walks them (walk_order.h), likewise */
} frag_give_back_order;

typedef struct frag_composed frag_composed;

/* A request that no free block will do for. */
typedef struct frag_shortage {
    uint64_t bytes; /* rounded */
    uint32_t list;
} frag_shortage;

/* Gets a segment from the device and adds it (frag_composed_add). *hole: the block to serve the
 * request from. false: out of memory. */
typedef bool frag_growth(frag_composed *composed, const frag_shortage *shortage, uint32_t *hole);

typedef struct frag_composition {
    frag_rounding rounding;
    frag_lists lists;
    frag_pick pick;
    frag_split split;
    frag_merge merge;
    frag_growth *grow;
    uint64_t unit;        /* bytes; of rounding */
    uint64_t linear;      /* bytes; a power of two, ROUND_POWER; any number, ROUND_STEPPED */
    uint64_t small_bytes; /* LISTS_BY_SIZE */
    uint64_t surplus_max; /* bytes; SPLIT_TWICE */
    frag_give_back_order gives_back;
    bool gives_back_at_once; /* a segment goes back when its last block is freed */
    bool keeps_first;        /* the first segment ever made never goes back */
} frag_composition;

/* What the growth rules know and remember (composed_growth.h). */
typedef struct frag_growth_state {
    uint64_t limit_bytes;     /* of all segments; FRAG_UNLIMITED: none */
    uint64_t step_bytes;      /* the size of the next segment, or what the pool counts as its own */
    uint64_t step_max;        /* bfc: doubling ends here */
    uint64_t step_restart;    /* bfc: the step after idle segments were given back */
    uint64_t ask_unit;        /* the device is asked for multiples of it */
    uint64_t chunk_bytes[2];  /* by list: least size of a segment */
    uint64_t reserve_percent; /* of the device's capacity */
    uint64_t segment_max;     /* reserve: larger requests fail */
    bool spares_a_byte;       /* reserve: the request may not take all that is free */
    uint64_t give_up_below;   /* bfc: smaller segments are not worth asking for */
    bool is_exact;            /* bfc: segments have the size of the request */
    bool steps_early;         /* bfc: the step grows before the device answers */
    bool collects;            /* bfc: idle segments are given back when the device refuses */
    bool empties_first;       /* idle segments are given back before the device is asked */
} frag_growth_state;

typedef struct frag_idle_segment {
    uint64_t address;
    uint32_t header;
} frag_idle_segment;

struct frag_composed {
    frag_composition rules;
    frag_block_space space; /* a block's link is its list */
    frag_free_index_store store;
    frag_free_index *lists;
    uint32_t list_count;
    uint32_t first_segment;    /* header of the first one ever made, for keeps_first */
    uint64_t held_bytes;       /* of all segments */
    uint64_t preferred;        /* address to take among equals; 0: the lowest */
    frag_exact_lists exact;    /* PICK_EXACT: instead of lists */
    frag_stream_lists streams; /* LISTS_SHARED */
    frag_growth_state growth;
    frag_idle_segment *idle; /* while segments are given back */
    size_t idle_count;
    bool has_failed; /* what was needed at construction was refused: nothing is ever served */
};

/* How many requests it serves; for another policy that stands on it: more than the program's. */
typedef struct frag_composed_scale {
    uint64_t request_count;
    uint32_t stream_count; /* with one more, for a default stream that the program never names */
} frag_composed_scale;

frag_composed_scale frag_composed_scale_of(const frag_policy_limits *limits);
/* Records, which are handles, are below this. */
uint32_t frag_composed_records(const frag_composed_scale *scale);
size_t frag_composed_bytes(const frag_composed_scale *scale);
/* counter: LISTS_SHARED only; outlives the composed. */
void frag_composed_create(frag_composed *composed, const frag_policy_setup *setup,
                          const frag_composed_scale *scale, const frag_composition *rules,
                          const frag_growth_state *growth, frag_event_counter *counter);

/* As those of a policy (sim/policy.h); the handle is a record. */
bool frag_composed_alloc(frag_composed *composed, const frag_request *request, frag_grant *grant);
void frag_composed_free(frag_composed *composed, frag_handle handle, uint32_t stream);
/* For policies whose state begins with a frag_composed, and whose alloc and free are these two. */
void frag_composed_replay(frag_replay *replay, uint64_t end);
uint64_t frag_composed_rounded(const frag_composed *composed, uint64_t bytes);

/* ---- for growth rules */

/* A new segment of asked bytes, of which the first usable are a free block of the list, joined with
 * what it touches. Returns the block. */
uint32_t frag_composed_add(frag_composed *composed, uint32_t list, uint64_t address, uint64_t asked,
                           uint64_t usable);
uint64_t frag_composed_idle_bytes(const frag_composed *composed);
/* Gives every segment without a block back. */
void frag_composed_give_back(frag_composed *composed);

/* ---- looking, as those of a policy */
void frag_composed_walk(const frag_composed *composed, frag_span_visitor *visit, void *context);
bool frag_composed_check(const frag_composed *composed, frag_error *error);

#endif
