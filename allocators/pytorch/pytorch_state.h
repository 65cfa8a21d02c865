/* What the parts of the pytorch policy share: its records and the steps that move them between
 * lists.
 *
 * A block is a piece of a segment: in use, free (in the free list of its pool and stream), or, in
 * an expandable segment, unmapped. The blocks of a segment are linked in address order. */
#ifndef FRAG_PYTORCH_PYTORCH_STATE_H
#define FRAG_PYTORCH_PYTORCH_STATE_H

#include "allocators/index/free_index.h"
#include "allocators/index/ordered_table.h"
#include "allocators/pytorch/pytorch_settings.h"
#include "sim/policy_engine.h"

#define FRAG_PYTORCH_NONE 0u

/* Address space of one expandable segment; several such fit into that of a device. */
#define FRAG_PYTORCH_RANGE_MAX ((uint64_t)1 << 59)

/* Bits of block.list above the number of the list. */
#define FRAG_PYTORCH_IN_USE 0x80000000u
#define FRAG_PYTORCH_UNMAPPED 0x40000000u
#define FRAG_PYTORCH_EXPANDABLE 0x20000000u
#define FRAG_PYTORCH_SHARED 0x10000000u  /* in use: another stream uses the block too */
#define FRAG_PYTORCH_WAITING 0x08000000u /* in use no more, but not yet safe to reuse */
#define FRAG_PYTORCH_LIST_MASK 0x07ffffffu
#define FRAG_PYTORCH_UNUSED UINT32_MAX /* block.list of a recycled record */

/* Record 0 stands for no block: it is always in use, so that nothing coalesces with it, and takes
 * what is written to a neighbour that is not there. */
typedef struct frag_pytorch_block {
    uint64_t address;
    uint64_t bytes;
    uint32_t prev; /* neighbours in the segment */
    uint32_t next;
    uint32_t list; /* the free list it belongs to, and the bits above */
    /* Orders blocks of one size before their addresses do: of the block (2.12), of its segment
     * (2.13), or 0. */
    uint32_t number;
} frag_pytorch_block;

_Static_assert(sizeof(frag_pytorch_block) == sizeof(frag_free_record) &&
                   offsetof(frag_pytorch_block, number) == offsetof(frag_free_record, rank),
               "as the index wants it");

typedef struct frag_pytorch_list {
    uint32_t stream;
    uint32_t pool;
    uint32_t first_unmapped; /* in address order */
    bool is_small;
} frag_pytorch_list;

/* A reserved address range that is mapped page by page. */
typedef struct frag_pytorch_range {
    uint64_t base;
    uint64_t bytes;
    uint64_t page_bytes;
    uint32_t list;
    uint32_t next;   /* recycled ranges */
    bool is_adopted; /* from before the trace: reserved by nobody here */
} frag_pytorch_range;

/* A private pool: of CUDA graphs, or a MemPool. */
typedef struct frag_pytorch_pool {
    uint32_t owners;      /* scopes and objects that hold it */
    int64_t device_count; /* allocations from the device that were not given back */
    bool exists;
    bool is_unsplit; /* blocks are whole segments */
} frag_pytorch_pool;

/* While it is open, requests go to a private pool. */
typedef struct frag_pytorch_scope {
    uint32_t pool;
    uint32_t stream; /* whose requests; FRAG_STREAM_EVERY: all */
} frag_pytorch_scope;

/* A stream that uses a block, and later the event that block waits for. */
typedef struct frag_pytorch_use {
    uint64_t event;
    uint32_t block;
    uint32_t stream;
    uint32_t next; /* of the block, then of the stream's queue; 0: the last */
    bool is_captured;
} frag_pytorch_use;

typedef struct frag_pytorch_stats frag_pytorch_stats; /* pytorch_stats.c */

/* How near a run came to the limits of its settings; see pytorch_repeat.c. Sizes in bytes; a
 * minimum is FRAG_UNLIMITED, a maximum 0, if there was none. */
typedef struct frag_pytorch_met {
    uint64_t segment_max;      /* largest segment that was taken whole */
    uint64_t below_split_max;  /* largest size that was found to be below max_split_size */
    uint64_t over_split_min;   /* smallest that was not */
    uint64_t within_slack_max; /* largest surplus with which an oversize block was reused */
    uint64_t over_slack_min;   /* smallest with which none was */
    uint64_t asked_max; /* most reserved bytes when a segment was requested: when garbage collection
                           is considered */
    uint64_t below_mark_max;   /* with collection: most reserved bytes that were not too many */
    uint64_t over_mark_min;    /* least that were */
    uint64_t within_limit_max; /* most reserved bytes that were within the memory limit */
    uint64_t over_limit_min;   /* least that were not */
    bool has_failed;           /* a request */
    bool has_changed;          /* settings or limit, after the start */
} frag_pytorch_met;

_Static_assert(sizeof(frag_pytorch_met) <= sizeof(frag_policy_met), "what was met fits");

struct frag_policy {
    frag_pytorch_settings settings;
    frag_device *device;
    uint64_t limit_bytes; /* FRAG_UNLIMITED: none */
    double limit_share;   /* of the capacity, where the limit is such a share; else 0 */
    uint64_t throw_bytes; /* requests beyond are refused at once; FRAG_UNLIMITED: none are */
    uint64_t reserved_bytes;
    uint64_t gc_mark_bytes;
    uint64_t small_calls;      /* of the device, for small pools */
    uint64_t wait_count;       /* blocks that wait for streams: queued or deferred */
    frag_pytorch_list *lists;  /* [(pool x 2 + is_large) x streams + stream] */
    frag_free_index *indexes;  /* of the free blocks of each list */
    frag_pytorch_stats *stats; /* NULL: not kept */
    /* Of each block, and seldom needed, so kept apart. Free: the count of searches when it became
     * so (garbage collection); unmapped: the next unmapped block of the list. */
    uint32_t *ages;
    uint32_t block_count; /* records ever used, [0] included */
    uint32_t block_max;
    uint32_t spare; /* recycled records, linked by next */
    uint32_t next_number;
    uint32_t list_count;
    uint32_t stream_count;
    uint32_t pool_count;
    uint32_t large_searches; /* of the default large pool while collection is armed */
    uint32_t scope_count;
    uint32_t capture_count;
    bool is_plain; /* nothing out of the ordinary is on: see frag_pytorch_settle */
    bool is_gc_armed;
    bool tracks_ages;    /* collection was on at some time */
    bool has_kept_old;   /* a collection compared ages and called no device */
    bool knows_captures; /* the trace says where they begin and end */
    bool is_rejected;    /* the request being served was refused before the device was asked */
    bool is_watched;     /* statistics or places are kept: each free takes the longer way */
    /* Where is_plain: the least that is split off a block, of the large pool and of the small one.
     */
    uint64_t least_rest[2];
    frag_free_index_store store;
    uint32_t *scratch;       /* block ids, for sorted walks of a free list */
    uint32_t *stream_order;  /* streams by handle, as the library sorts them */
    const uint64_t *handles; /* of streams */
    const frag_pool_id *pool_ids;
    /* ---- expandable segments */
    frag_pytorch_range *ranges; /* [0] is none; few, so that they are searched one by one */
    uint32_t range_count;
    uint32_t range_max;
    uint32_t spare_range;
    uint64_t unlimited_range_bytes; /* address space of one, where there is no capacity */
    /* ---- private pools */
    frag_pytorch_pool *pools;   /* [0] is not used: the default pool */
    frag_pytorch_scope *scopes; /* pool_count, in the order in which they were opened */
    uint32_t *pool_scratch;
    uint64_t placed_address;     /* where the next request goes; 0: where the policy finds room */
    uint32_t *place_chains;      /* of free blocks, by address; see pytorch_places.c */
    uint32_t *place_next;        /* by block */
    uint32_t place_count;        /* free blocks in all chains */
    uint32_t place_bits;         /* of the number of chains; 0: they are not kept */
    frag_ordered_table freeable; /* pools that nobody owns */
    frag_ordered_table on_oom;   /* pools that serve requests which find no other memory */
    /* ---- blocks used by several streams */
    frag_pytorch_use *uses; /* [0] is none */
    uint32_t use_count;
    uint32_t spare_use;
    uint32_t *first_uses;   /* by block, valid while it is SHARED */
    uint32_t *event_counts; /* by block: events it waits for, valid while it is WAITING */
    uint32_t *queue_heads;  /* by stream: uses, oldest first */
    uint32_t *queue_tails;
    uint32_t *stream_scratch;
    uint32_t *deferred; /* blocks freed while a scope was open */
    uint32_t deferred_count;
    frag_ordered_table queues; /* streams with a queue */
    frag_ordered_table set;    /* the streams of one block */
    void (*on_complete)(void *context, frag_handle handle);
    void *on_complete_context;
    /* ---- statistics, when kept */
    frag_pytorch_stats *stats_room;
    uint64_t *requested; /* by block */
    frag_pytorch_met met;
};

static inline frag_pytorch_block *frag_pytorch_at(const frag_policy *policy, uint32_t id)
{
    frag_pytorch_block *blocks = policy->store.records;
    return &blocks[id];
}

static inline uint32_t frag_pytorch_list_of(const frag_policy *policy, uint32_t pool, bool is_small,
                                            uint32_t stream)
{
    return (pool * 2 + (is_small ? 0 : 1)) * policy->stream_count + stream;
}

static inline frag_pytorch_list *frag_pytorch_list_at(const frag_policy *policy,
                                                      const frag_pytorch_block *at)
{
    return &policy->lists[at->list & FRAG_PYTORCH_LIST_MASK];
}

static inline frag_free_index *frag_pytorch_index_of(const frag_policy *policy,
                                                     const frag_pytorch_list *list)
{
    return &policy->indexes[list - policy->lists];
}

/* The index that a block is in while it is free. */
static inline frag_free_index *frag_pytorch_index_at(const frag_policy *policy,
                                                     const frag_pytorch_block *at)
{
    return &policy->indexes[at->list & FRAG_PYTORCH_LIST_MASK];
}

static inline bool frag_pytorch_is_free(const frag_pytorch_block *at)
{
    return (at->list & (FRAG_PYTORCH_IN_USE | FRAG_PYTORCH_UNMAPPED)) == 0;
}

static inline uint32_t frag_pytorch_take_record(frag_policy *policy)
{
    uint32_t id = policy->spare;
    if (id != FRAG_PYTORCH_NONE) {
        policy->spare = frag_pytorch_at(policy, id)->next;
        return id;
    }
    FRAG_ASSERT(policy->block_count < policy->block_max);
    return policy->block_count++;
}

static inline void frag_pytorch_give_record(frag_policy *policy, uint32_t id)
{
    frag_pytorch_at(policy, id)->next = policy->spare;
    frag_pytorch_at(policy, id)->list = FRAG_PYTORCH_UNUSED;
    policy->spare = id;
}

/* ---- pytorch_places.c: free blocks by address, while policy->place_bits is not 0 */

/* From now on; nothing is done where they are kept already. */
void frag_pytorch_keep_places(frag_policy *policy);
/* While a block is kept its address does not change. */
void frag_pytorch_add_place(frag_policy *policy, uint32_t id);
void frag_pytorch_remove_place(frag_policy *policy, uint32_t id);
/* The free block of a pool that begins at the address and is large enough; NONE: there is none. */
uint32_t frag_pytorch_find_place(const frag_policy *policy, uint32_t pool, uint64_t address,
                                 uint64_t bytes);

static inline void frag_pytorch_insert_free(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *block = frag_pytorch_at(policy, id);
    if (FRAG_UNLIKELY(policy->tracks_ages))
        policy->ages[id] = policy->large_searches;
    if (FRAG_UNLIKELY(policy->place_bits != 0))
        frag_pytorch_add_place(policy, id);
    frag_free_index_insert(&policy->store, frag_pytorch_index_at(policy, block), id);
}

static inline void frag_pytorch_remove_free(frag_policy *policy, uint32_t id)
{
    frag_free_index *index = frag_pytorch_index_at(policy, frag_pytorch_at(policy, id));
    if (FRAG_UNLIKELY(policy->place_bits != 0))
        frag_pytorch_remove_place(policy, id);
    frag_free_index_remove(&policy->store, index, id);
}

static inline void frag_pytorch_note_most(uint64_t *most, uint64_t bytes)
{
    *most = bytes > *most ? bytes : *most;
}

static inline void frag_pytorch_note_least(uint64_t *least, uint64_t bytes)
{
    *least = bytes < *least ? bytes : *least;
}

/* Is a size below the split limit? Notes the answer, for repeats. */
static inline bool frag_pytorch_is_below_split(frag_policy *policy, uint64_t bytes)
{
    bool is_below = bytes < policy->settings.max_split_bytes;
    if (is_below)
        frag_pytorch_note_most(&policy->met.below_split_max, bytes);
    else
        frag_pytorch_note_least(&policy->met.over_split_min, bytes);
    return is_below;
}

/* The number of a block that is made out of another one. */
static inline uint32_t frag_pytorch_number_beside(frag_policy *policy,
                                                  const frag_pytorch_block *other)
{
    return policy->settings.tie == FRAG_PYTORCH_TIE_BLOCK_NUMBER ? policy->next_number++
                                                                 : other->number;
}

/* Cuts the front of a block off as a block of its own, in no list; the record keeps the remainder
 * and its number. */
FRAG_INLINE uint32_t frag_pytorch_cut_front(frag_policy *policy, uint32_t id, uint64_t bytes)
{
    uint32_t front = frag_pytorch_take_record(policy);
    frag_pytorch_block *rest = frag_pytorch_at(policy, id);
    *frag_pytorch_at(policy, front) = (frag_pytorch_block){
        .address = rest->address,
        .bytes = bytes,
        .prev = rest->prev,
        .next = id,
        .list = rest->list,
        .number = frag_pytorch_number_beside(policy, rest),
    };
    frag_pytorch_at(policy, rest->prev)->next = front;
    rest->prev = front;
    rest->address += bytes;
    rest->bytes -= bytes;
    return front;
}

/* The number of a new segment. */
static inline uint32_t frag_pytorch_next_number(frag_policy *policy)
{
    return policy->settings.tie != FRAG_PYTORCH_TIE_ADDRESS ? policy->next_number++ : 0;
}

/* Do the side effects of an open scope apply: frees of shared blocks put off, no release of cached
 * memory? From 2.13 on only captures have them. */
static inline bool frag_pytorch_is_busy(const frag_policy *policy)
{
    return policy->settings.version >= 213 ? policy->capture_count > 0 : policy->scope_count > 0;
}

/* The private pool of a list, NULL for the default pool. */
static inline frag_pytorch_pool *frag_pytorch_pool_at(const frag_policy *policy,
                                                      const frag_pytorch_list *list)
{
    return list->pool == 0 ? NULL : &policy->pools[list->pool];
}

/* The hash of a private pool's name in the library. */
static inline uint64_t frag_pytorch_pool_key(const frag_policy *policy, uint32_t pool)
{
    const frag_pool_id *name = &policy->pool_ids[pool];
    return name->high != 0 ? name->high : name->low;
}

/* To be called when something changes that a request must look at: most of the time there is
 * nothing, and a request then takes a shorter way. */
static inline void frag_pytorch_settle(frag_policy *policy)
{
    const frag_pytorch_settings *settings = &policy->settings;
    bool has_plain_settings = !settings->has_divisions && settings->max_split_bytes == UINT64_MAX &&
                              (settings->is_expandable || policy->range_count <= 1);
    policy->is_plain = has_plain_settings && policy->wait_count == 0 && policy->scope_count == 0 &&
                       !policy->is_gc_armed && !policy->tracks_ages && !policy->is_watched;
    policy->least_rest[0] =
        settings->is_expandable ? FRAG_PYTORCH_ROUND : FRAG_PYTORCH_SMALL_MAX + 1;
    policy->least_rest[1] = FRAG_PYTORCH_ROUND;
}

/* Names the list that the next device calls are for, to those who watch. */
static inline void frag_pytorch_call_for(frag_policy *policy, const frag_pytorch_list *list)
{
    policy->small_calls += list->is_small;
    frag_device_for(policy->device, list->stream, list->pool);
}

/* ---- pytorch.c */

/* A block that is safe to reuse becomes free and is coalesced with its neighbours. */
void frag_pytorch_complete(frag_policy *policy, uint32_t id);
/* Best fit; with a split limit, blocks on the other side of it and far larger ones will not do. */
uint32_t frag_pytorch_find(frag_policy *policy, const frag_pytorch_list *list, uint64_t rounded,
                           bool may_grow);
/* What a request of so many rounded bytes asks the device for. */
uint64_t frag_pytorch_segment_bytes(const frag_policy *policy, uint64_t rounded);

/* ---- pytorch_small.c */

extern const frag_policy_small frag_pytorch_small;
/* Of it; where nothing is out of the ordinary. */
bool frag_pytorch_alloc_cached(frag_policy *policy, const frag_request *request, frag_grant *grant);

/* ---- pytorch_streams.c: blocks used by several streams */

bool frag_pytorch_use_block(frag_policy *policy, frag_handle handle, uint32_t stream);
/* The program has freed a shared block. */
void frag_pytorch_free_shared(frag_policy *policy, uint32_t id);
/* Blocks whose events are done become free. */
void frag_pytorch_process_events(frag_policy *policy);
/* With graph_capture_record_stream_reuse, from 2.12 on: at the end of a scope of the pool its
 * blocks whose frees were put off are over, but for uses from before. */
void frag_pytorch_end_deferred(frag_policy *policy, uint32_t pool);
/* Waits for all events, or those of one private pool's blocks (0: all). */
void frag_pytorch_wait_for_events(frag_policy *policy, uint32_t pool);

/* ---- pytorch_pools.c: private pools */

/* The pool a request goes to: that of the innermost scope that takes it (up to 2.9: the outermost).
 */
uint32_t frag_pytorch_route(const frag_policy *policy, uint32_t stream);
/* A pool of which the recording only shows that requests went there has one owner. */
void frag_pytorch_pool_ensure(frag_policy *policy, uint32_t pool);
void frag_pytorch_pool_change(frag_policy *policy, frag_pool_change change, uint32_t pool,
                              uint32_t stream);
/* A free block of a pool that serves OOMs, still in its list; NONE: there is none. */
uint32_t frag_pytorch_fall_back(frag_policy *policy, const frag_pytorch_list *list,
                                uint64_t rounded);
/* Forgets a freeable pool that holds nothing any more. */
void frag_pytorch_pool_forget(frag_policy *policy, uint32_t pool);

/* ---- pytorch_stats.c: what torch.cuda.memory_stats counts; all expect policy->stats */

typedef enum frag_pytorch_event {
    FRAG_PYTORCH_RETRY,
    FRAG_PYTORCH_OOM,
    FRAG_PYTORCH_REJECTION,
    FRAG_PYTORCH_SYNC_ALL
} frag_pytorch_event;

size_t frag_pytorch_stats_bytes(uint32_t pool_count);
void frag_pytorch_keep_stats(frag_policy *policy);
void frag_pytorch_count_alloc(frag_policy *policy, uint32_t id, uint64_t requested, bool is_split);
/* The same for a block that was in use before the trace. */
void frag_pytorch_count_grant(frag_policy *policy, uint32_t id, uint64_t requested);
void frag_pytorch_count_free(frag_policy *policy, uint32_t id);
/* Just before the block is coalesced with its neighbours. */
void frag_pytorch_count_complete(frag_policy *policy, uint32_t id);
/* Bytes got from the device (given back when negative): a whole segment, or pages. */
void frag_pytorch_count_device(frag_policy *policy, const frag_pytorch_list *list, int64_t bytes,
                               bool is_segment);
/* A free part of a segment from before the trace. */
void frag_pytorch_count_adopted_hole(frag_policy *policy, uint32_t id);
void frag_pytorch_count_event(frag_policy *policy, frag_pytorch_event event);
void frag_pytorch_stats_visit(const frag_policy *policy, frag_stat_visitor *visit, void *context);
void frag_pytorch_reset_stats(frag_policy *policy, bool resets_peaks, bool resets_sums);

static inline void frag_pytorch_note_event(frag_policy *policy, frag_pytorch_event event)
{
    if (policy->stats != NULL)
        frag_pytorch_count_event(policy, event);
}

/* ---- pytorch_walk.c: as policy.h says of walk and check */

void frag_pytorch_walk(const frag_policy *policy, frag_span_visitor *visit, void *context);
bool frag_pytorch_check(const frag_policy *policy, frag_error *error);

/* ---- pytorch_repeat.c: as policy.h says of terms, met and repeats */

bool frag_pytorch_terms(const frag_option_value *values, const char *recorded_version,
                        frag_policy_terms *terms);
void frag_pytorch_tell_met(const frag_policy *policy, frag_policy_met *met);
bool frag_pytorch_repeats(const frag_policy_pair *pair);

/* ---- pytorch_message.c */

/* The message of the OutOfMemoryError; false: the request was rejected before any device call. */
bool frag_pytorch_describe_oom(const frag_policy *policy, const frag_request *request, char *text,
                               size_t size);

/* ---- pytorch_release.c: giving back */

/* Everything cached: the default pool's segments unless a scope is open, then private pools nobody
 * owns. */
void frag_pytorch_release_cached(frag_policy *policy);
/* The cached memory of one private pool, if nobody owns it. */
void frag_pytorch_release_private(frag_policy *policy, uint32_t pool);
/* With a split limit: one cached oversize block that is large enough, or several that add up. */
bool frag_pytorch_release_oversize(frag_policy *policy, const frag_pytorch_list *list,
                                   uint64_t bytes);
/* Old cached segments of the default large pool, until reserved bytes are below the mark. */
void frag_pytorch_collect_garbage(frag_policy *policy);

/* ---- pytorch_expandable.c: segments that grow */

/* Makes room for bytes in the expandable segments of a list by mapping pages. The block it returns
 * is in no list, and at least as large; NONE: out of memory. */
uint32_t frag_pytorch_expand(frag_policy *policy, uint32_t list, uint64_t bytes);
/* Best fit among blocks that could also grow into unmapped space behind them: from the best fit on,
 * the next larger block as long as its reach is smaller. */
uint32_t frag_pytorch_least_reach(const frag_policy *policy, const frag_pytorch_list *list,
                                  uint32_t id);
/* Best fit from id on that is not in an expandable segment. */
uint32_t frag_pytorch_skip_expandable(const frag_policy *policy, const frag_pytorch_list *list,
                                      uint32_t id);
/* Unmaps the whole pages of a free block, and gives the range back when nothing of it is mapped. */
void frag_pytorch_unmap(frag_policy *policy, uint32_t id);
/* Makes a block of a range that was mapped before the trace; it is linked, and in no list. */
uint32_t frag_pytorch_adopt_range(frag_policy *policy, uint32_t list, uint64_t address,
                                  uint64_t bytes);
/* What lies at an address from before the trace, and is no part of an adopted range below it, ends
 * those ranges. In order of address. */
void frag_pytorch_end_ranges(frag_policy *policy, uint64_t address);
/* The address space that one expandable segment reserves, before it is rounded up to pages. */
uint64_t frag_pytorch_range_bytes(const frag_policy *policy);
bool frag_pytorch_check_ranges(const frag_policy *policy, frag_error *error);

#endif
