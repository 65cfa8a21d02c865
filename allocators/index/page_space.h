/* Address space whose pages come and go: holes with memory, voids without, blocks between.
 *
 * One range is reserved once and divided into areas. An area is a ring of records in address order:
 * busy blocks, holes (free, mapped) and voids (free, not mapped, whole pages); it begins as one
 * void. Neighbours of one kind are coalesced. What a hole's memory was last used for is its label:
 * a stream, whose order makes it safe for that stream; CLEAN, safe for all; or MIXED, used by
 * several. Holes are found by area and label, voids by area. */
#ifndef FRAG_INDEX_PAGE_SPACE_H
#define FRAG_INDEX_PAGE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/index/block_space.h"
#include "allocators/index/free_index.h"
#include "sim/policy.h"

typedef struct frag_page_area {
    uint32_t header; /* record that closes the ring; its bytes are those of the area */
    uint64_t mapped_bytes;
} frag_page_area;

typedef struct frag_page_space {
    frag_device *device;
    frag_block_space records; /* a block's and a hole's link is its label */
    frag_free_index_store store;
    frag_free_index *holes; /* area_count x label_count */
    frag_free_index *voids; /* area_count */
    frag_page_area *areas;
    uint32_t area_count;
    uint32_t label_count;
    uint32_t mixed; /* the labels that are no stream */
    uint32_t clean;
    uint32_t void_count;
    uint32_t void_max;
    uint64_t base;
    uint64_t last_base; /* the last area begins here; the others have 1 << shift bytes each */
    uint32_t shift;
    uint64_t mapped_bytes;
} frag_page_space;

/* A free place, and what is to be mapped of the void in it. */
typedef struct frag_page_run {
    uint32_t hollow;  /* the void */
    uint64_t missing; /* bytes to map, whole pages */
    uint64_t room;    /* bytes of the void when it was found: that could be mapped */
    bool is_high;     /* mapped at the end of the void, below the hole above; else at its start */
} frag_page_run;

/* Which hole is looked for to lose pages. */
typedef struct frag_page_donor {
    uint64_t least;              /* bytes of whole pages it has, or more */
    uint64_t enough;             /* more of them are of no use */
    const frag_page_run *spared; /* the holes that become part of it lose nothing; NULL: any may */
    uint64_t best_bytes;         /* of the best one so far; 0: there is none yet */
} frag_page_donor;

size_t frag_page_space_bytes(const frag_policy_limits *limits, uint32_t area_count);
/* Reserves the range: as much as needed_bytes for the last area where there is that much. */
bool frag_page_space_create(frag_page_space *space, const frag_policy_setup *setup,
                            uint32_t area_count, uint64_t needed_bytes, frag_error *error);

/* The free place in an area that becomes bytes long with the fewest bytes mapped, lowest first.
 * false: there is none. */
bool frag_page_space_place(const frag_page_space *space, uint32_t area, uint64_t bytes,
                           frag_page_run *run);
/* Maps bytes of the run, missing or more; they are coalesced with the holes they touch. *hole: what
 * became of them. false: the device refused. */
bool frag_page_space_map(frag_page_space *space, const frag_page_run *run, uint64_t bytes,
                         uint32_t *hole);
/* Unmaps the last pages inside a hole, at most bytes of them, for the run (NULL: for none), which
 * follows its void into a larger one. Returns how many bytes that were. */
uint64_t frag_page_space_unmap(frag_page_space *space, uint32_t hole, uint64_t bytes,
                               frag_page_run *run);
/* Unmaps all pages inside the holes of an area, lowest first. Returns how many calls that took. */
uint64_t frag_page_space_give_back(frag_page_space *space, uint32_t area);
/* Looks for a hole that can lose pages in an area: the one with the fewest whole pages that are
 * enough, else the one with the most. false: none is better than what wanted has already; else
 * wanted->best_bytes is what it has. */
bool frag_page_space_donor(const frag_page_space *space, uint32_t area, frag_page_donor *wanted,
                           uint32_t *hole);

/* The memory of a hole was last used for another label. */
void frag_page_space_relabel(frag_page_space *space, uint32_t hole, uint32_t label);
/* Makes a block of the low end of a hole, or of all of it. Returns the block. */
uint32_t frag_page_space_cut(frag_page_space *space, uint32_t area, uint32_t hole, uint64_t bytes);
/* A block becomes a hole, and one with those it touches. */
void frag_page_space_free(frag_page_space *space, uint32_t block, uint32_t label);

void frag_page_space_walk(const frag_page_space *space, frag_span_visitor *visit, void *context);
bool frag_page_space_check(const frag_page_space *space, frag_error *error);

static inline uint32_t frag_page_space_area_of(const frag_page_space *space, uint64_t address)
{
    return address >= space->last_base ? space->area_count - 1
                                       : (uint32_t)((address - space->base) >> space->shift);
}

static inline frag_free_index *frag_page_space_holes(const frag_page_space *space, uint32_t area,
                                                     uint32_t label)
{
    return &space->holes[(size_t)area * space->label_count + label];
}

static inline uint32_t frag_page_label_join(const frag_page_space *space, uint32_t a, uint32_t b)
{
    if (a == b || b == space->clean)
        return a;
    return a == space->clean ? b : space->mixed;
}

#endif
