#include "planner/skyline.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

#define NONE UINT32_MAX

/* The buffers left stand in order of their first section, in blocks of so many. */
#define BLOCK_PLACES 16u

/* No rank: every rank is lower. Numbers below it are compared several at a time. */
#define NO_RANK INT32_MAX
_Static_assert(FRAG_BUFFER_COUNT_MAX < NO_RANK, "ranks and sections fit");

/* Those of each place: the rank of what is left there, or NO_RANK, and the end of its sections. */
typedef struct block {
    int32_t ranks[BLOCK_PLACES];
    int32_t uppers[BLOCK_PLACES];
} block;

/* What a block, or a node of the tree over them, knows of the buffers left in it. */
typedef struct summary {
    int32_t first_rank; /* NO_RANK: there are none */
    int32_t upper_min;
    int32_t upper_max;
} summary;

/* A flat stretch of the skyline, known by its first section. */
typedef struct stretch {
    uint32_t end;    /* the section after its last; 0: no stretch begins here */
    uint32_t before; /* where the stretch before begins; NONE: at the start */
    uint64_t height;
} stretch;

struct frag_skyline {
    const frag_sections *sections;
    block *blocks;
    uint32_t block_count;
    uint32_t leaf_count; /* of the tree, a power of two: one for each block */
    summary *tree;       /* children of i: 2 i and 2 i + 1 */
    uint32_t *place_of;  /* by number of the buffer */
    uint32_t *
        first_start; /* of section s: buffers that begin there are at place first_start[s] and on */
    stretch *stretches;
};

frag_skyline *frag_skyline_create(const frag_sections *sections)
{
    frag_skyline *skyline = frag_alloc(1, sizeof *skyline);
    size_t count = (size_t)sections->buffer_count + 1;
    skyline->sections = sections;
    skyline->block_count = (uint32_t)(count / BLOCK_PLACES) + 1;
    skyline->leaf_count = (uint32_t)frag_power_of_two_up(skyline->block_count);
    skyline->tree = frag_alloc((size_t)skyline->leaf_count * 2, sizeof *skyline->tree);
    skyline->blocks = frag_alloc(skyline->block_count, sizeof *skyline->blocks);
    skyline->place_of = frag_alloc(count, sizeof *skyline->place_of);
    skyline->first_start = frag_alloc((size_t)sections->count + 2, sizeof *skyline->first_start);
    skyline->stretches = frag_alloc((size_t)sections->count + 1, sizeof *skyline->stretches);
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        skyline->first_start[sections->lower[i] + 1]++;
    for (uint32_t s = 0; s < sections->count; s++)
        skyline->first_start[s + 1] += skyline->first_start[s];
    uint32_t *next = frag_alloc(sections->count, sizeof *next);
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        uint32_t start = sections->lower[i];
        uint32_t at = skyline->first_start[start] + next[start]++;
        skyline->place_of[i] = at;
        skyline->blocks[at / BLOCK_PLACES].uppers[at % BLOCK_PLACES] = (int32_t)sections->upper[i];
    }
    frag_free(next);
    return skyline;
}

void frag_skyline_destroy(frag_skyline *skyline)
{
    if (skyline == NULL)
        return;
    frag_free(skyline->tree);
    frag_free(skyline->blocks);
    frag_free(skyline->place_of);
    frag_free(skyline->first_start);
    frag_free(skyline->stretches);
    frag_free(skyline);
}

/* ---- buffers left */

static int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t greater(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static summary join(const summary *a, const summary *b)
{
    return (summary){lesser(a->first_rank, b->first_rank), lesser(a->upper_min, b->upper_min),
                     greater(a->upper_max, b->upper_max)};
}

static const summary nothing = {NO_RANK, INT32_MAX, 0};

static summary sum_up_block(const block *at)
{
    summary sum = nothing;
    for (uint32_t i = 0; i < BLOCK_PLACES; i++) {
        bool is_left = at->ranks[i] != NO_RANK;
        sum.first_rank = lesser(sum.first_rank, at->ranks[i]);
        sum.upper_min = lesser(sum.upper_min, is_left ? at->uppers[i] : INT32_MAX);
        sum.upper_max = greater(sum.upper_max, is_left ? at->uppers[i] : 0);
    }
    return sum;
}

static void plant(frag_skyline *skyline, const uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < skyline->block_count; i++)
        for (uint32_t k = 0; k < BLOCK_PLACES; k++)
            skyline->blocks[i].ranks[k] = NO_RANK;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = skyline->place_of[order[i]];
        skyline->blocks[at / BLOCK_PLACES].ranks[at % BLOCK_PLACES] = (int32_t)i;
    }
    summary *leaves = skyline->tree + skyline->leaf_count;
    for (uint32_t i = 0; i < skyline->leaf_count; i++)
        leaves[i] = i < skyline->block_count ? sum_up_block(&skyline->blocks[i]) : nothing;
    for (uint32_t i = skyline->leaf_count - 1; i > 0; i--)
        skyline->tree[i] = join(&skyline->tree[(size_t)i * 2], &skyline->tree[(size_t)i * 2 + 1]);
}

/* What is known further up the tree stays where nothing changed below. */
static void uproot(frag_skyline *skyline, uint32_t at)
{
    block *of = &skyline->blocks[at / BLOCK_PLACES];
    of->ranks[at % BLOCK_PLACES] = NO_RANK;
    uint32_t node = at / BLOCK_PLACES + skyline->leaf_count;
    summary now = sum_up_block(of);
    while (node > 0 && memcmp(&now, &skyline->tree[node], sizeof now) != 0) {
        skyline->tree[node] = now;
        node /= 2;
        now = join(&skyline->tree[(size_t)node * 2], &skyline->tree[(size_t)node * 2 + 1]);
    }
}

/* The first rank below `best` among places [first, last) of a block of buffers that end at or
 * before `end`; else best. */
static int32_t find_in_block(const block *at, uint32_t first, uint32_t last, int32_t end,
                             int32_t best)
{
    int32_t from = (int32_t)first;
    int32_t to = (int32_t)last;
    for (int32_t i = 0; i < (int32_t)BLOCK_PLACES; i++) {
        bool fits = i >= from && i < to && at->uppers[i] <= end;
        best = lesser(best, fits ? at->ranks[i] : NO_RANK);
    }
    return best;
}

/* The same among blocks [first, last) under the node, which has the blocks [lower, upper). */
static int32_t find_in_blocks(const frag_skyline *skyline, uint32_t node, uint32_t lower,
                              uint32_t upper, uint32_t first, uint32_t last, int32_t end,
                              int32_t best)
{
    const summary *known = &skyline->tree[node];
    if (upper <= first || last <= lower || known->first_rank >= best || known->upper_min > end)
        return best;
    if (first <= lower && upper <= last && known->upper_max <= end)
        return known->first_rank;
    if (node >= skyline->leaf_count)
        return find_in_block(&skyline->blocks[lower], 0, BLOCK_PLACES, end, best);
    uint32_t middle = lower + (upper - lower) / 2;
    uint32_t left = node * 2;
    bool is_left_first =
        skyline->tree[left].first_rank <= skyline->tree[(size_t)left + 1].first_rank;
    for (uint32_t i = 0; i < 2; i++)
        best = is_left_first == (i == 0)
                   ? find_in_blocks(skyline, left, lower, middle, first, last, end, best)
                   : find_in_blocks(skyline, left + 1, middle, upper, first, last, end, best);
    return best;
}

/* The same among any places; NO_RANK: there is none. */
static int32_t find_first(const frag_skyline *skyline, uint32_t first, uint32_t last, int32_t end)
{
    uint32_t first_block = first / BLOCK_PLACES;
    uint32_t last_block = last / BLOCK_PLACES;
    const block *blocks = skyline->blocks;
    if (first_block == last_block)
        return find_in_block(&blocks[first_block], first % BLOCK_PLACES, last % BLOCK_PLACES, end,
                             NO_RANK);
    int32_t best =
        find_in_block(&blocks[first_block], first % BLOCK_PLACES, BLOCK_PLACES, end, NO_RANK);
    best = find_in_block(&blocks[last_block], 0, last % BLOCK_PLACES, end, best);
    first_block++;
    if (first_block == last_block)
        return best;
    /* The least node that all the blocks are under. */
    uint32_t differ = first_block ^ (last_block - 1);
    uint32_t levels = differ == 0 ? 0 : frag_bit_high(differ) + 1;
    uint32_t lower = first_block >> levels << levels;
    uint32_t node = (first_block + skyline->leaf_count) >> levels;
    return find_in_blocks(skyline, node, lower, lower + (1u << levels), first_block, last_block,
                          end, best);
}

/* ---- the skyline */

/* Downhill from a stretch to one whose neighbours are both higher. What happens there depends on
 * nothing outside it, and it changes nothing outside it before it is as high as a neighbour: so
 * offsets are the same as if the lowest stretch of all came first, but a walk stays where the facts
 * are in the processor's cache. Left of where it stands the stretches always fall towards it, so
 * that it takes few steps. */
static uint32_t walk_down(const frag_skyline *skyline, uint32_t start)
{
    const stretch *all = skyline->stretches;
    for (;;) {
        const stretch *at = &all[start];
        if (at->before != NONE && all[at->before].height < at->height)
            start = at->before;
        else if (at->end < skyline->sections->count && all[at->end].height < at->height)
            start = at->end;
        else
            return start;
    }
}

/* Makes a stretch of [start, end), which took the place of others: joins neighbours of the same
 * height. The start of what it is part of. */
static uint32_t settle(frag_skyline *skyline, uint32_t start, uint32_t end, uint32_t before,
                       uint64_t height)
{
    stretch *all = skyline->stretches;
    if (before != NONE && all[before].height == height) {
        all[start].end = 0;
        start = before;
        before = all[before].before;
    }
    if (end < skyline->sections->count && all[end].height == height) {
        uint32_t next = end;
        end = all[next].end;
        all[next].end = 0;
    }
    all[start] = (stretch){end, before, height};
    if (end < skyline->sections->count)
        all[end].before = start;
    return start;
}

/* Nothing fits here any more: the stretch comes up to its lower neighbour. */
static uint32_t fill_up(frag_skyline *skyline, uint32_t start)
{
    stretch *all = skyline->stretches;
    stretch at = all[start];
    uint64_t height = UINT64_MAX;
    if (at.before != NONE)
        height = all[at.before].height;
    if (at.end < skyline->sections->count && all[at.end].height < height)
        height = all[at.end].height;
    FRAG_ASSERT(height != UINT64_MAX);
    return settle(skyline, start, at.end, at.before, height);
}

/* Puts a buffer of these sections on the stretch that begins at start. The first stretch that is
 * there now. */
static uint32_t put(frag_skyline *skyline, uint32_t start, uint32_t lower, uint32_t upper,
                    uint64_t height)
{
    stretch *all = skyline->stretches;
    stretch at = all[start];
    uint32_t before = at.before;
    if (start < lower) {
        all[start].end = lower;
        before = start;
    }
    if (upper < at.end) {
        all[upper] = (stretch){at.end, lower, at.height};
        if (at.end < skyline->sections->count)
            all[at.end].before = upper;
    }
    lower = settle(skyline, lower, upper, before, height);
    return start < lower ? start : lower;
}

uint64_t frag_skyline_place(frag_skyline *skyline, const uint32_t *order, uint32_t count,
                            uint64_t *offsets)
{
    const frag_sections *sections = skyline->sections;
    if (count == 0)
        return 0;
    plant(skyline, order, count);
    memset(skyline->stretches, 0, ((size_t)sections->count + 1) * sizeof *skyline->stretches);
    skyline->stretches[0] = (stretch){sections->count, NONE, 0};
    uint64_t top = 0;
    uint32_t start = 0;
    for (uint32_t left = count; left > 0;) {
        start = walk_down(skyline, start);
        stretch at = skyline->stretches[start];
        int32_t rank = find_first(skyline, skyline->first_start[start],
                                  skyline->first_start[at.end], (int32_t)at.end);
        if (rank == NO_RANK) {
            start = fill_up(skyline, start);
            continue;
        }
        uint32_t chosen = order[rank];
        const frag_buffer *buffer = &sections->buffers[chosen];
        uint64_t offset = frag_round_up(at.height, buffer->alignment);
        uint64_t end = offset + buffer->size;
        offsets[chosen] = offset;
        top = end > top ? end : top;
        uproot(skyline, skyline->place_of[chosen]);
        start = put(skyline, start, sections->lower[chosen], sections->upper[chosen], end);
        left--;
    }
    return top;
}
