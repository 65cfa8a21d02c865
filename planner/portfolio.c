#include "planner/portfolio.h"

#include <string.h>

#include "base/memory.h"
#include "planner/greedy.h"
#include "planner/stacked.h"

/* Those that win most often come first. Letters: planner/greedy.h. */
static const struct {
    const char *letters;
    frag_placing placing;
} entries[] = {
    {"TAW", FRAG_PLACING_SKYLINE},   {"TWA", FRAG_PLACING_SKYLINE},
    {"WAT", FRAG_PLACING_SKYLINE},   {"AWT", FRAG_PLACING_SKYLINE},
    {"ZW", FRAG_PLACING_FIRST_FIT},  {"OA", FRAG_PLACING_SKYLINE},
    {"WAT", FRAG_PLACING_BEST_FIT},  {"ZW", FRAG_PLACING_SKYLINE},
    {"ZW", FRAG_PLACING_BEST_FIT},   {"OA", FRAG_PLACING_BEST_FIT},
    {"l", FRAG_PLACING_FIRST_FIT},   {"AWT", FRAG_PLACING_FIRST_FIT},
    {"WAT", FRAG_PLACING_FIRST_FIT}, {"TAW", FRAG_PLACING_BEST_FIT},
    {"l", FRAG_PLACING_BEST_FIT},    {"TAW", FRAG_PLACING_FIRST_FIT},
};

frag_portfolio *frag_portfolio_create(const frag_sections *sections)
{
    size_t count = (size_t)sections->buffer_count + 1;
    frag_portfolio *portfolio = frag_alloc(1, sizeof *portfolio);
    portfolio->sections = sections;
    portfolio->order = frag_alloc(count, sizeof *portfolio->order);
    portfolio->offsets = frag_alloc(count, sizeof *portfolio->offsets);
    portfolio->best_order = frag_alloc(count, sizeof *portfolio->best_order);
    portfolio->best_offsets = frag_alloc(count, sizeof *portfolio->best_offsets);
    portfolio->best_height = UINT64_MAX;
    return portfolio;
}

void frag_portfolio_destroy(frag_portfolio *portfolio)
{
    if (portfolio == NULL)
        return;
    frag_gap_tree_destroy(portfolio->tree);
    frag_skyline_destroy(portfolio->skyline);
    frag_free(portfolio->order);
    frag_free(portfolio->offsets);
    frag_free(portfolio->best_order);
    frag_free(portfolio->best_offsets);
    frag_free(portfolio);
}

/* As measured with a hundred thousand buffers. */
#define GAP_STEPS 4u

uint64_t frag_portfolio_steps(const frag_portfolio *portfolio, frag_placing placing)
{
    return (uint64_t)portfolio->sections->buffer_count *
           (placing == FRAG_PLACING_SKYLINE ? 1 : GAP_STEPS);
}

uint64_t frag_portfolio_place(frag_portfolio *portfolio, frag_placing placing)
{
    const frag_sections *sections = portfolio->sections;
    if (placing == FRAG_PLACING_SKYLINE) {
        if (portfolio->skyline == NULL)
            portfolio->skyline = frag_skyline_create(sections);
        return frag_skyline_place(portfolio->skyline, portfolio->order, sections->buffer_count,
                                  portfolio->offsets);
    }
    if (portfolio->tree == NULL)
        portfolio->tree = frag_gap_tree_create(sections->count);
    return frag_greedy_place(sections, portfolio->order, sections->buffer_count,
                             placing == FRAG_PLACING_FIRST_FIT ? FRAG_GAP_FIRST : FRAG_GAP_BEST,
                             portfolio->tree, portfolio->offsets);
}

void frag_portfolio_keep(frag_portfolio *portfolio, frag_placing placing, uint64_t height,
                         bool keeps_equal)
{
    if (height > portfolio->best_height || (height == portfolio->best_height && !keeps_equal))
        return;
    size_t count = portfolio->sections->buffer_count;
    memcpy(portfolio->best_order, portfolio->order, count * sizeof *portfolio->order);
    memcpy(portfolio->best_offsets, portfolio->offsets, count * sizeof *portfolio->offsets);
    portfolio->best_height = height;
    portfolio->best_placing = placing;
}

/* With fewer buffers a skyline takes moments too, and comes lower under a goal that is high. */
#define STACKED_COUNT_MIN 65536u

/* A stacked packing that comes down to the goal will do, and takes a fraction of the time. */
static bool stack(frag_portfolio *portfolio, uint64_t goal)
{
    uint64_t height = 0;
    bool is_low = frag_stacked_place(portfolio->sections, goal, portfolio->order,
                                     portfolio->offsets, &height);
    if (is_low)
        frag_portfolio_keep(portfolio, FRAG_PLACING_SKYLINE, height, false);
    return is_low;
}

void frag_portfolio_run(frag_portfolio *portfolio, uint64_t goal, uint64_t *steps)
{
    uint32_t count = portfolio->sections->buffer_count;
    if (count >= STACKED_COUNT_MIN && count > *steps && stack(portfolio, goal)) {
        *steps = 0;
        return;
    }
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        uint64_t cost = frag_portfolio_steps(portfolio, entries[i].placing);
        if (i > 0 && (portfolio->best_height <= goal || *steps < cost))
            return;
        for (uint32_t at = 0; at < count; at++)
            portfolio->order[at] = at;
        frag_greedy_sort(portfolio->sections, entries[i].letters, portfolio->order, count);
        uint64_t height = frag_portfolio_place(portfolio, entries[i].placing);
        frag_portfolio_keep(portfolio, entries[i].placing, height, false);
        *steps -= *steps < cost ? *steps : cost;
    }
}
