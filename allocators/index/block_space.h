/* Blocks and holes in segments: the records that policies with splitting and coalescing share.
 *
 * Blocks of a segment are linked in address order, so that neighbours coalesce in constant time;
 * records are recycled last in, first out. Each segment has a header record that closes its list
 * into a ring: every block has two neighbours. The space is either *growing* (one reserved address
 * range, mapped at its end as needed) or made of *segments* (one device malloc each, whose blocks
 * never merge across). Where holes are found is the policy's choice; the space tells it of holes
 * through two hooks. */
#ifndef FRAG_INDEX_BLOCK_SPACE_H
#define FRAG_INDEX_BLOCK_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/index/free_index.h"
#include "base/bits.h"
#include "base/error.h"
#include "sim/policy.h"

typedef enum frag_block_state {
    FRAG_BLOCK_UNUSED, /* the record names nothing */
    FRAG_BLOCK_BUSY,
    FRAG_BLOCK_HOLE,
    FRAG_BLOCK_HEADER, /* of a segment; its address and bytes */
    FRAG_BLOCK_VOID    /* address space without memory (page_space.h) */
} frag_block_state;

typedef struct frag_block {
    uint64_t address;
    uint64_t bytes;
    uint32_t previous;
    uint32_t next;  /* unused records: the next unused one */
    uint32_t state; /* frag_block_state */
    uint32_t link;  /* headers: the next segment's header; holes and blocks: free for the policy */
} frag_block;

_Static_assert(sizeof(frag_block) == sizeof(frag_free_record), "as free indexes want it");

#define FRAG_BLOCK_NONE UINT32_MAX

typedef enum frag_space_kind { FRAG_SPACE_GROWING, FRAG_SPACE_SEGMENTS } frag_space_kind;

typedef struct frag_block_space frag_block_space;

/* Called on the slow paths only, when the space itself changes a hole. */
typedef struct frag_block_space_hooks {
    void (*insert)(void *context, uint32_t hole);
    void (*remove)(void *context, uint32_t hole);
} frag_block_space_hooks;

struct frag_block_space {
    frag_device *device;
    frag_block *blocks;
    uint32_t record_max;
    uint32_t record_count; /* records ever used, and [0], which names nothing */
    uint32_t unused;       /* list of recycled records */
    frag_space_kind kind;
    uint64_t align;
    uint64_t grow_bytes; /* growing: least step; segments: unit and least size */
    uint32_t first_header;
    uint32_t last_header;
    uint64_t range_end;  /* growing: of the reserved range, */
    bool is_range_whole; /* which is as large as the device */
    bool may_adjoin;     /* holes may lie side by side */
    uint32_t tail_max;   /* bytes at the end of a segment, behind a hole, that may belong to none */
    const frag_block_space_hooks *hooks;
    void *context;
};

typedef struct frag_block_space_setup {
    frag_space_kind kind;
    uint64_t align;
    uint64_t grow_bytes;
    const frag_block_space_hooks *hooks;
    void *context;
} frag_block_space_setup;

/* How many records a space may need, [0] included; also the ids a free index over it needs. */
uint32_t frag_block_space_records(const frag_policy_limits *limits, frag_space_kind kind);
size_t frag_block_space_bytes(const frag_policy_limits *limits, frag_space_kind kind);

bool frag_block_space_create(frag_block_space *space, const frag_policy_setup *setup,
                             const frag_block_space_setup *shape, frag_error *error);

/* An empty space for a policy that gets its memory in its own way and adds it here; holes may lie
 * side by side. Not to be grown or trimmed by the functions below. */
void frag_block_space_create_bare(frag_block_space *space, const frag_policy_setup *setup,
                                  uint32_t record_max);
uint32_t frag_block_space_add_segment(frag_block_space *space, uint64_t address, uint64_t bytes);
/* Adds a hole at the end of a segment. */
uint32_t frag_block_space_append_hole(frag_block_space *space, uint32_t header, uint64_t address,
                                      uint64_t bytes);

/* Takes the headers whose state has become UNUSED out of the list of segments and recycles them.
 */
void frag_block_space_sweep(frag_block_space *space);

/* Makes room for bytes when no hole will do: a hole of at least bytes that no index knows, or false
 * when the device has no room even after all that is free has been given back. */
bool frag_block_space_grow(frag_block_space *space, uint64_t bytes, uint32_t *hole);

/* Gives whole free segments, or the free pages at the end of the range, back to the device. */
void frag_block_space_trim(frag_block_space *space);

void frag_block_space_walk(const frag_block_space *space, frag_span_visitor *visit, void *context);

/* Audits rings, addresses and states; counts the holes. */
bool frag_block_space_check(const frag_block_space *space, uint64_t *hole_count, frag_error *error);

static inline uint32_t frag_block_take_record(frag_block_space *space)
{
    uint32_t id = space->unused;
    if (id != FRAG_BLOCK_NONE) {
        space->unused = space->blocks[id].next;
        return id;
    }
    FRAG_ASSERT(space->record_count < space->record_max);
    return space->record_count++;
}

static inline void frag_block_give_record(frag_block_space *space, uint32_t id)
{
    space->blocks[id].state = FRAG_BLOCK_UNUSED;
    space->blocks[id].next = space->unused;
    space->unused = id;
}

/* Splits the low end of a hole off as a busy block; the hole keeps its record and the remainder. */
static inline uint32_t frag_block_cut(frag_block_space *space, uint32_t hole, uint64_t bytes)
{
    uint32_t id = frag_block_take_record(space);
    frag_block *rest = &space->blocks[hole];
    frag_block *block = &space->blocks[id];
    uint64_t left = rest->bytes - bytes;
    block->address = rest->address;
    block->bytes = bytes;
    block->previous = rest->previous;
    block->next = hole;
    block->state = FRAG_BLOCK_BUSY;
    space->blocks[rest->previous].next = id;
    rest->previous = id;
    rest->address = block->address + bytes;
    rest->bytes = left;
    return id;
}

/* Takes a record out of its ring. */
static inline void frag_block_unlink(frag_block_space *space, uint32_t id)
{
    const frag_block *block = &space->blocks[id];
    FRAG_ASSERT(space->blocks[block->previous].next == id &&
                space->blocks[block->next].previous == id);
    space->blocks[block->previous].next = block->next;
    space->blocks[block->next].previous = block->previous;
    frag_block_give_record(space, id);
}

/* Frees a busy block and coalesces it with the holes beside it, which take_out takes out of where
 * the policy finds them. Returns the record of the whole, which the policy has nowhere yet. */
FRAG_INLINE uint32_t frag_block_release(frag_block_space *space, uint32_t block,
                                        void (*take_out)(void *context, uint32_t hole),
                                        void *context)
{
    frag_block *blocks = space->blocks;
    FRAG_ASSERT(blocks[block].state == FRAG_BLOCK_BUSY);
    uint32_t hole = block;
    uint32_t previous = blocks[block].previous;
    if (blocks[previous].state == FRAG_BLOCK_HOLE) {
        take_out(context, previous);
        blocks[previous].bytes += blocks[block].bytes;
        frag_block_unlink(space, block);
        hole = previous;
    }
    uint32_t next = blocks[hole].next;
    if (blocks[next].state == FRAG_BLOCK_HOLE) {
        take_out(context, next);
        blocks[hole].bytes += blocks[next].bytes;
        frag_block_unlink(space, next);
    }
    blocks[hole].state = FRAG_BLOCK_HOLE;
    return hole;
}

#endif
