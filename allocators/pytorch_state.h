/* What the parts of the pytorch policy share: its records and the steps that move them between
 * lists.
 *
 * A block is a piece of a segment: in use, free (in the free list of its pool and stream), or, in
 * an expandable segment, unmapped. The blocks of a segment are linked in address order. */
#ifndef FRAG_ALLOCATORS_PYTORCH_STATE_H
#define FRAG_ALLOCATORS_PYTORCH_STATE_H

#include "allocators/free_index.h"
#include "allocators/pytorch_settings.h"
#include "sim/policy.h"

#define FRAG_PYTORCH_NONE 0u

/* Bits of block.list above the number of the list. */
#define FRAG_PYTORCH_IN_USE 0x80000000u
#define FRAG_PYTORCH_UNMAPPED 0x40000000u
#define FRAG_PYTORCH_EXPANDABLE 0x20000000u
#define FRAG_PYTORCH_LIST_MASK 0x1fffffffu
#define FRAG_PYTORCH_UNUSED UINT32_MAX /* block.list of a recycled record */

/* Addresses are below 2^49 and multiples of 512: the tie of 2.13 has 40 bits of them, 24 of the
 * segment. */
#define FRAG_PYTORCH_SEGMENT_NUMBER_MAX (((uint64_t)1 << 24) - 1)

typedef struct frag_pytorch_block {
    uint64_t address;
    uint64_t bytes;
    uint32_t prev; /* neighbours in the segment */
    uint32_t next;
    uint32_t list;   /* the free list it belongs to, and the bits above */
    uint32_t number; /* of the block (2.12) or its segment (2.13), for ties */
} frag_pytorch_block;

typedef struct frag_pytorch_list {
    frag_free_index index;
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

struct frag_policy {
    frag_pytorch_settings settings;
    frag_device *device;
    uint64_t limit_bytes; /* FRAG_UNLIMITED: none */
    uint64_t throw_bytes; /* requests beyond are refused at once; FRAG_UNLIMITED: none are */
    uint64_t reserved_bytes;
    uint64_t gc_mark_bytes; /* 0: garbage collection is not armed */
    frag_pytorch_block *blocks;
    /* Of each block, and seldom needed, so kept apart. Free: the pool's count of searches when it
     * became so (garbage collection); unmapped: the next unmapped block of the list. */
    uint32_t *ages;
    uint32_t block_count; /* records ever used, [0] included */
    uint32_t block_max;
    uint32_t spare; /* recycled records, linked by next */
    uint32_t next_number;
    frag_pytorch_list *lists; /* [(pool x 2 + is_large) x streams + stream] */
    uint32_t list_count;
    uint32_t stream_count;
    uint32_t pool_count;
    bool *is_pool_freeable;   /* private pools whose owner is gone */
    uint32_t *large_searches; /* per pool: searches of its large lists while collection is armed */
    frag_free_index_store store;
    uint32_t *scratch; /* block ids, for sorted walks of a free list */
    /* ---- expandable segments */
    frag_pytorch_range *ranges; /* [0] is none; few, so that they are searched one by one */
    uint32_t range_count;
    uint32_t range_max;
    uint32_t spare_range;
    uint64_t range_bytes; /* how much address space one reserves */
};

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

static inline bool frag_pytorch_is_free(const frag_pytorch_block *at)
{
    return (at->list & (FRAG_PYTORCH_IN_USE | FRAG_PYTORCH_UNMAPPED)) == 0;
}

static inline uint32_t frag_pytorch_take_record(frag_policy *policy)
{
    uint32_t id = policy->spare;
    if (id != FRAG_PYTORCH_NONE) {
        policy->spare = policy->blocks[id].next;
        return id;
    }
    FRAG_ASSERT(policy->block_count < policy->block_max);
    return policy->block_count++;
}

static inline void frag_pytorch_give_record(frag_policy *policy, uint32_t id)
{
    policy->blocks[id].next = policy->spare;
    policy->blocks[id].list = FRAG_PYTORCH_UNUSED;
    policy->spare = id;
}

static inline uint64_t frag_pytorch_tie_of(const frag_policy *policy, const frag_pytorch_block *at)
{
    if (policy->settings.tie == FRAG_PYTORCH_TIE_ADDRESS)
        return at->address;
    if (policy->settings.tie == FRAG_PYTORCH_TIE_SEGMENT_NUMBER)
        return (uint64_t)at->number << 40 | at->address >> 9;
    return at->number;
}

static inline void frag_pytorch_insert_free(frag_policy *policy, uint32_t id)
{
    frag_pytorch_block *at = &policy->blocks[id];
    frag_pytorch_list *list = frag_pytorch_list_at(policy, at);
    if (FRAG_UNLIKELY(policy->settings.gc_threshold > 0))
        policy->ages[id] = list->is_small ? 0 : policy->large_searches[list->pool];
    frag_free_index_insert(&list->index, id, at->bytes, frag_pytorch_tie_of(policy, at));
}

static inline void frag_pytorch_remove_free(frag_policy *policy, uint32_t id)
{
    const frag_pytorch_block *at = &policy->blocks[id];
    frag_free_index_remove(&frag_pytorch_list_at(policy, at)->index, id, at->bytes);
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
static inline uint32_t frag_pytorch_cut_front(frag_policy *policy, uint32_t id, uint64_t bytes)
{
    uint32_t front = frag_pytorch_take_record(policy);
    frag_pytorch_block *rest = &policy->blocks[id];
    policy->blocks[front] = (frag_pytorch_block){
        .address = rest->address,
        .bytes = bytes,
        .prev = rest->prev,
        .next = id,
        .list = rest->list,
        .number = frag_pytorch_number_beside(policy, rest),
    };
    if (rest->prev != FRAG_PYTORCH_NONE)
        policy->blocks[rest->prev].next = front;
    rest->prev = front;
    rest->address += bytes;
    rest->bytes -= bytes;
    return front;
}

/* The number of a new segment. */
static inline uint32_t frag_pytorch_next_number(frag_policy *policy)
{
    FRAG_ASSERT(policy->next_number < FRAG_PYTORCH_SEGMENT_NUMBER_MAX ||
                policy->settings.tie != FRAG_PYTORCH_TIE_SEGMENT_NUMBER);
    return policy->next_number++;
}

/* ---- pytorch_release.c: giving back */

/* Everything cached: the default pool's segments, then private pools nobody owns. */
void frag_pytorch_release_cached(frag_policy *policy);
/* One pool, whole segments only. */
void frag_pytorch_release_pool(frag_policy *policy, uint32_t pool, bool is_small);
/* With a split limit: one cached oversize block that is large enough, or several that add up. */
bool frag_pytorch_release_oversize(frag_policy *policy, const frag_pytorch_list *list,
                                   uint64_t bytes);
/* Old cached segments of the default large pool, until reserved bytes are below the mark. */
void frag_pytorch_collect_garbage(frag_policy *policy);
/* The free blocks of a list by size, then tie, into policy->scratch; returns how many. */
uint32_t frag_pytorch_sort_free(frag_policy *policy, const frag_pytorch_list *list);

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
bool frag_pytorch_check_ranges(const frag_policy *policy, frag_error *error);

#endif
