#include "planner/skyline.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

#define NONE UINT32_MAX

/* What a node of the tree over the buffers left, in order of their first section, knows of those
 * below it. */
typedef struct summary {
    uint32_t first_rank; /* NONE: there are none */
    uint32_t upper_min;
    uint32_t upper_max;
} summary;

/* A flat stretch of the skyline, known by its first section. */
typedef struct stretch {
    uint32_t end;    /* the section after its last; 0: no stretch begins here */
    uint32_t before; /* where the stretch before begins; NONE: at the start */
    uint64_t height;
} stretch;

typedef struct entry {
    uint64_t height;
    uint32_t start;
} entry;

struct frag_skyline {
    const frag_sections *sections;
    uint32_t leaf_count;
    summary *tree; /* children of i: 2 i and 2 i + 1 */
    uint32_t *by_start;
    uint32_t *leaf_of; /* by number of the buffer */
    uint32_t
        *first_start; /* of section s: buffers that begin there are by_start[first_start[s]..] */
    uint32_t *rank_of;
    stretch *stretches;
    entry *heap; /* every stretch, and some that are no more */
    size_t heap_count;
    size_t heap_capacity;
};

frag_skyline *frag_skyline_create(const frag_sections *sections)
{
    frag_skyline *skyline = frag_alloc(1, sizeof *skyline);
    size_t count = (size_t)sections->buffer_count + 1;
    skyline->sections = sections;
    skyline->leaf_count = (uint32_t)frag_power_of_two_up(count);
    skyline->tree = frag_alloc((size_t)skyline->leaf_count * 2, sizeof *skyline->tree);
    skyline->by_start = frag_alloc(count, sizeof *skyline->by_start);
    skyline->leaf_of = frag_alloc(count, sizeof *skyline->leaf_of);
    skyline->rank_of = frag_alloc(count, sizeof *skyline->rank_of);
    skyline->first_start = frag_alloc((size_t)sections->count + 2, sizeof *skyline->first_start);
    skyline->stretches = frag_alloc((size_t)sections->count + 1, sizeof *skyline->stretches);
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        skyline->first_start[sections->lower[i] + 1]++;
    for (uint32_t s = 0; s < sections->count; s++)
        skyline->first_start[s + 1] += skyline->first_start[s];
    uint32_t *next = frag_alloc((size_t)sections->count + 1, sizeof *next);
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        uint32_t start = sections->lower[i];
        skyline->leaf_of[i] = skyline->first_start[start] + next[start]++;
        skyline->by_start[skyline->leaf_of[i]] = i;
    }
    frag_free(next);
    return skyline;
}

void frag_skyline_destroy(frag_skyline *skyline)
{
    if (skyline == NULL)
        return;
    frag_free(skyline->tree);
    frag_free(skyline->by_start);
    frag_free(skyline->leaf_of);
    frag_free(skyline->first_start);
    frag_free(skyline->rank_of);
    frag_free(skyline->stretches);
    frag_free(skyline->heap);
    frag_free(skyline);
}

/* ---- buffers left */

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static summary join(const summary *a, const summary *b)
{
    return (summary){lesser(a->first_rank, b->first_rank), lesser(a->upper_min, b->upper_min),
                     a->upper_max > b->upper_max ? a->upper_max : b->upper_max};
}

static void plant(frag_skyline *skyline, const uint32_t *order, uint32_t count)
{
    static const summary nothing = {NONE, NONE, 0};
    summary *leaves = skyline->tree + skyline->leaf_count;
    for (uint32_t i = 0; i < skyline->leaf_count; i++)
        leaves[i] = nothing;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t upper = skyline->sections->upper[order[i]];
        skyline->rank_of[order[i]] = i;
        leaves[skyline->leaf_of[order[i]]] = (summary){i, upper, upper};
    }
    for (uint32_t i = skyline->leaf_count - 1; i > 0; i--)
        skyline->tree[i] = join(&skyline->tree[(size_t)i * 2], &skyline->tree[(size_t)i * 2 + 1]);
}

static void uproot(frag_skyline *skyline, uint32_t buffer)
{
    uint32_t at = skyline->leaf_of[buffer] + skyline->leaf_count;
    skyline->tree[at] = (summary){NONE, NONE, 0};
    for (at /= 2; at > 0; at /= 2)
        skyline->tree[at] =
            join(&skyline->tree[(size_t)at * 2], &skyline->tree[(size_t)at * 2 + 1]);
}

/* The first rank below `best` among leaves [first, last) under the node, which has the leaves
 * [lower, upper), of buffers that end at or before `end`; else best. */
static uint32_t find_first(const frag_skyline *skyline, uint32_t node, uint32_t lower,
                           uint32_t upper, uint32_t first, uint32_t last, uint32_t end,
                           uint32_t best)
{
    const summary *known = &skyline->tree[node];
    if (upper <= first || last <= lower || known->first_rank >= best || known->upper_min > end)
        return best;
    if (first <= lower && upper <= last && known->upper_max <= end)
        return known->first_rank;
    uint32_t middle = lower + (upper - lower) / 2;
    uint32_t left = node * 2;
    bool is_left_first =
        skyline->tree[left].first_rank <= skyline->tree[(size_t)left + 1].first_rank;
    for (uint32_t i = 0; i < 2; i++)
        best = is_left_first == (i == 0)
                   ? find_first(skyline, left, lower, middle, first, last, end, best)
                   : find_first(skyline, left + 1, middle, upper, first, last, end, best);
    return best;
}

/* ---- the skyline */

static bool is_lower(const entry *a, const entry *b)
{
    return a->height != b->height ? a->height < b->height : a->start < b->start;
}

static void push(frag_skyline *skyline, uint32_t start)
{
    skyline->heap = frag_grow(skyline->heap, &skyline->heap_capacity, skyline->heap_count + 1,
                              sizeof *skyline->heap);
    entry item = {skyline->stretches[start].height, start};
    size_t at = skyline->heap_count++;
    for (; at > 0 && is_lower(&item, &skyline->heap[(at - 1) / 2]); at = (at - 1) / 2)
        skyline->heap[at] = skyline->heap[(at - 1) / 2];
    skyline->heap[at] = item;
}

static void pop(frag_skyline *skyline)
{
    entry item = skyline->heap[--skyline->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= skyline->heap_count)
            break;
        if (child + 1 < skyline->heap_count &&
            is_lower(&skyline->heap[child + 1], &skyline->heap[child]))
            child++;
        if (!is_lower(&skyline->heap[child], &item))
            break;
        skyline->heap[at] = skyline->heap[child];
        at = child;
    }
    skyline->heap[at] = item;
}

/* The lowest stretch, the first among equals. */
static uint32_t find_lowest(frag_skyline *skyline)
{
    for (;;) {
        const entry *top = &skyline->heap[0];
        const stretch *at = &skyline->stretches[top->start];
        if (at->end != 0 && at->height == top->height)
            return top->start;
        pop(skyline);
    }
}

/* Makes a stretch of [start, end), which took the place of others: joins neighbours of the same
 * height. */
static void settle(frag_skyline *skyline, uint32_t start, uint32_t end, uint32_t before,
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
    push(skyline, start);
}

/* Nothing fits here any more: the stretch comes up to its lower neighbour. */
static void fill_up(frag_skyline *skyline, uint32_t start)
{
    stretch *all = skyline->stretches;
    stretch at = all[start];
    uint64_t height = UINT64_MAX;
    if (at.before != NONE)
        height = all[at.before].height;
    if (at.end < skyline->sections->count && all[at.end].height < height)
        height = all[at.end].height;
    FRAG_ASSERT(height != UINT64_MAX);
    settle(skyline, start, at.end, at.before, height);
}

/* Puts a buffer of these sections on the stretch that begins at start. */
static void put(frag_skyline *skyline, uint32_t start, uint32_t lower, uint32_t upper,
                uint64_t height)
{
    stretch *all = skyline->stretches;
    stretch at = all[start];
    uint32_t before = at.before;
    if (start < lower) {
        all[start].end = lower;
        before = start;
        push(skyline, start);
    }
    if (upper < at.end) {
        all[upper] = (stretch){at.end, lower, at.height};
        if (at.end < skyline->sections->count)
            all[at.end].before = upper;
        push(skyline, upper);
    }
    settle(skyline, lower, upper, before, height);
}

uint64_t frag_skyline_place(frag_skyline *skyline, const uint32_t *order, uint32_t count,
                            uint64_t *offsets)
{
    const frag_sections *sections = skyline->sections;
    if (count == 0)
        return 0;
    plant(skyline, order, count);
    memset(skyline->stretches, 0, ((size_t)sections->count + 1) * sizeof *skyline->stretches);
    skyline->heap_count = 0;
    skyline->stretches[0] = (stretch){sections->count, NONE, 0};
    push(skyline, 0);
    uint64_t top = 0;
    for (uint32_t left = count; left > 0;) {
        uint32_t start = find_lowest(skyline);
        stretch at = skyline->stretches[start];
        uint32_t rank = find_first(skyline, 1, 0, skyline->leaf_count, skyline->first_start[start],
                                   skyline->first_start[at.end], at.end, NONE);
        if (rank == NONE) {
            fill_up(skyline, start);
            continue;
        }
        uint32_t buffer = order[rank];
        uint64_t offset = frag_round_up(at.height, sections->buffers[buffer].alignment);
        uint64_t end = offset + sections->buffers[buffer].size;
        offsets[buffer] = offset;
        top = end > top ? end : top;
        uproot(skyline, buffer);
        put(skyline, start, sections->lower[buffer], sections->upper[buffer], end);
        left--;
    }
    return top;
}
