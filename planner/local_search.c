#include "planner/local_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

/* Passes of a walk that lead nowhere before it goes back to the best. */
#define WALK_PASSES 20u
#define PEAK_MAX 256u

typedef struct keyed {
    uint64_t key;
    uint32_t buffer;
} keyed;

struct frag_local_search {
    frag_portfolio *portfolio;
    uint64_t chance;
    uint64_t pass;
    keyed *keyed;
    uint32_t *walk;         /* an order that may be worse than the best, */
    uint64_t *walk_offsets; /* and its packing */
    uint32_t walk_passes;
};

frag_local_search *frag_local_search_create(frag_portfolio *portfolio)
{
    size_t count = (size_t)portfolio->sections->buffer_count + 1;
    frag_local_search *search = frag_alloc(1, sizeof *search);
    search->portfolio = portfolio;
    search->chance = 0x9e3779b97f4a7c15;
    search->keyed = frag_alloc(count, sizeof *search->keyed);
    search->walk = frag_alloc(count, sizeof *search->walk);
    search->walk_offsets = frag_alloc(count, sizeof *search->walk_offsets);
    search->walk_passes = WALK_PASSES;
    return search;
}

void frag_local_search_destroy(frag_local_search *search)
{
    if (search == NULL)
        return;
    frag_free(search->keyed);
    frag_free(search->walk);
    frag_free(search->walk_offsets);
    frag_free(search);
}

/* xorshift64 */
static uint64_t draw(frag_local_search *search, uint64_t below)
{
    search->chance ^= search->chance << 13;
    search->chance ^= search->chance >> 7;
    search->chance ^= search->chance << 17;
    return (search->chance >> 11) % below;
}

static int compare_keyed(const void *one, const void *other)
{
    const keyed *a = one, *b = other;
    return frag_compare_then(frag_compare(a->key, b->key), frag_compare(a->buffer, b->buffer));
}

/* Every buffer of the walk that ends above the goal comes earlier, by some chance how much. */
static void promote_all(frag_local_search *search, uint64_t goal)
{
    frag_portfolio *portfolio = search->portfolio;
    uint32_t count = portfolio->sections->buffer_count;
    if (search->walk_passes >= WALK_PASSES) {
        memcpy(search->walk, portfolio->best_order, count * sizeof *search->walk);
        memcpy(search->walk_offsets, portfolio->best_offsets, count * sizeof *search->walk_offsets);
        search->walk_passes = 0;
    }
    search->walk_passes++;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = search->walk[i];
        uint64_t end = search->walk_offsets[at] + portfolio->sections->buffers[at].size;
        uint64_t key = (uint64_t)i << 10;
        search->keyed[i] = (keyed){end > goal ? key / 1000 * draw(search, 1000) : key, at};
    }
    qsort(search->keyed, count, sizeof *search->keyed, compare_keyed);
    for (uint32_t i = 0; i < count; i++)
        portfolio->order[i] = search->keyed[i].buffer;
}

static void move(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t buffer = order[from];
    if (to < from)
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    else
        memmove(order + from, order + from + 1, (to - from) * sizeof *order);
    order[to] = buffer;
}

/* The buffers that make the best packing so high each come before one, drawn by lot, that stands
 * in their way. */
static void promote_peaks(frag_local_search *search)
{
    frag_portfolio *portfolio = search->portfolio;
    const frag_sections *sections = portfolio->sections;
    uint32_t *order = portfolio->order;
    uint32_t peaks[PEAK_MAX];
    uint32_t peak_count = 0;
    memcpy(order, portfolio->best_order, sections->buffer_count * sizeof *order);
    for (uint32_t i = 0; i < sections->buffer_count && peak_count < PEAK_MAX; i++)
        if (portfolio->best_offsets[order[i]] + sections->buffers[order[i]].size ==
            portfolio->best_height)
            peaks[peak_count++] = i;
    for (uint32_t p = 0; p < peak_count; p++) {
        uint32_t at = order[peaks[p]];
        uint32_t to = peaks[p];
        uint64_t seen = 0;
        for (uint32_t i = 0; i < peaks[p]; i++)
            if (sections->lower[order[i]] < sections->upper[at] &&
                sections->lower[at] < sections->upper[order[i]] && draw(search, ++seen) == 0)
                to = i;
        move(order, peaks[p], to);
    }
}

void frag_local_search_run(frag_local_search *search, uint64_t goal, uint64_t *steps)
{
    frag_portfolio *portfolio = search->portfolio;
    uint32_t count = portfolio->sections->buffer_count;
    uint64_t cost = frag_portfolio_steps(portfolio, portfolio->best_placing);
    while (portfolio->best_height > goal && *steps >= cost) {
        uint64_t kind = search->pass++ % 3;
        if (kind == 0)
            promote_all(search, goal);
        else
            promote_peaks(search);
        if (kind == 2) {
            uint32_t to = (uint32_t)draw(search, count);
            move(portfolio->order, (uint32_t)draw(search, count), to);
        }
        uint64_t height = frag_portfolio_place(portfolio, portfolio->best_placing);
        if (kind == 0) {
            memcpy(search->walk, portfolio->order, count * sizeof *search->walk);
            memcpy(search->walk_offsets, portfolio->offsets, count * sizeof *search->walk_offsets);
        }
        frag_portfolio_keep(portfolio, portfolio->best_placing, height, true);
        *steps -= cost;
    }
}
