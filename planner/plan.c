#include "planner/plan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "planner/exact.h"
#include "planner/local_search.h"
#include "planner/placement.h"
#include "planner/portfolio.h"

/* No single search takes more, so that a plan can be stopped in between. */
#define SEARCH_STEPS_MAX 200000u

/* In the order in which they take turns. */
static const char *const search_letters[] = {"WAT", "TAW", "TWA"};
#define LETTERS_COUNT (sizeof search_letters / sizeof search_letters[0])

/* A stretch of time that shares no buffer with the rest. */
typedef struct piece {
    frag_buffer *buffers;    /* NULL: all of them */
    const uint32_t *members; /* their numbers in the whole */
    frag_sections sections;
    frag_portfolio *portfolio;
    frag_exact *exact; /* NULL: too large for it, or not needed yet */
    uint64_t bound;    /* proved: no packing of it is lower */
} piece;

typedef struct plan_budget {
    const frag_plan_options *options;
    uint64_t steps; /* left */
} plan_budget;

static bool is_stopped(const plan_budget *now)
{
    return now->steps == 0 ||
           (now->options->is_stopped != NULL && now->options->is_stopped(now->options->context));
}

/* The least height at or above `height` that a packing can have: some buffer is on top, and its
 * offset is a multiple of the step. */
static uint64_t next_height(const frag_sections *sections, uint64_t height)
{
    uint64_t step = sections->step_bytes;
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        uint64_t size = sections->buffers[i].size;
        uint64_t end = height <= size ? size : size + (height - size + step - 1) / step * step;
        next = end < next ? end : next;
    }
    return next;
}

/* One search under a capacity. A packing goes to the portfolio, a proof to the bound. */
static frag_exact_answer search_under(plan_budget *now, piece *of, uint64_t capacity,
                                      const char *letters, uint64_t steps)
{
    steps = steps < now->steps ? steps : now->steps;
    uint64_t left = steps;
    frag_exact_answer answer =
        frag_exact_search(of->exact, capacity, letters, &left, of->portfolio->offsets);
    now->steps -= steps - left;
    if (answer == FRAG_EXACT_NONE) {
        of->bound = next_height(&of->sections, capacity + 1);
    } else if (answer == FRAG_EXACT_FOUND) {
        uint64_t height = 0;
        for (uint32_t i = 0; i < of->sections.buffer_count; i++) {
            uint64_t end = of->portfolio->offsets[i] + of->sections.buffers[i].size;
            height = end > height ? end : height;
        }
        frag_portfolio_keep(of->portfolio, of->portfolio->best_placing, height, false);
    }
    return answer;
}

/* The exact search at several capacities between the goal and the best height: the goal may be
 * reached at once; what lies higher is more likely to be found. */
static void search_ladder(plan_budget *now, piece *of, uint64_t goal, uint64_t steps)
{
    static const uint64_t rungs[] = {0, 8, 4, 2, 1}; /* of the gap: none, an eighth, ... */
    bool is_aimed = now->options->capacity_bytes != FRAG_UNLIMITED;
    for (size_t r = 0; r < (is_aimed ? 1 : sizeof rungs / sizeof rungs[0]); r++)
        for (size_t i = 0; i < LETTERS_COUNT && !is_stopped(now); i++) {
            uint64_t height = of->portfolio->best_height;
            uint64_t low = of->bound > goal ? of->bound : goal;
            if (height <= low || of->bound > now->options->capacity_bytes)
                return;
            uint64_t capacity = rungs[r] == 0 ? low : low + (height - low) / rungs[r];
            capacity = capacity < height ? capacity : height - 1;
            frag_exact_answer answer = search_under(now, of, capacity, search_letters[i], steps);
            /* The goal or the gap has changed: from the start. */
            if (answer == FRAG_EXACT_NONE) {
                r = 0;
                i = (size_t)-1;
            } else if (answer == FRAG_EXACT_FOUND) {
                return;
            }
        }
}

/* Brings a piece down to the goal, or proves that it cannot come there. */
static void improve(plan_budget *now, piece *of, uint64_t goal)
{
    of->exact = frag_exact_create(&of->sections);
    frag_local_search *local = frag_local_search_create(of->portfolio);
    uint64_t steps = 2 * (uint64_t)of->sections.buffer_count;
    while (!is_stopped(now) && of->portfolio->best_height > goal &&
           of->portfolio->best_height > of->bound && of->bound <= now->options->capacity_bytes) {
        uint64_t before = now->steps;
        if (of->exact != NULL)
            search_ladder(now, of, goal, steps);
        uint64_t share = 2 * steps < now->steps ? 2 * steps : now->steps;
        uint64_t left = share;
        uint64_t low = of->bound > goal ? of->bound : goal;
        frag_local_search_run(local, low, &left);
        now->steps -= share - left;
        steps = 2 * steps < SEARCH_STEPS_MAX || of->exact == NULL ? 2 * steps : SEARCH_STEPS_MAX;
        /* What is left does not suffice for anything. */
        if (before == now->steps)
            now->steps = 0;
    }
    frag_local_search_destroy(local);
    frag_exact_destroy(of->exact);
    of->exact = NULL;
}

/* all: the sections of all buffers, which a piece that has them all takes over. */
static bool open_piece(piece *of, frag_sections *all, const uint32_t *members,
                       const frag_component *component, frag_error *error)
{
    *of = (piece){.members = members + component->first, .bound = component->load_bytes};
    if (component->count == all->buffer_count) {
        of->sections = *all;
        *all = (frag_sections){0};
    } else {
        of->buffers = frag_alloc(component->count, sizeof *of->buffers);
        for (uint32_t i = 0; i < component->count; i++)
            of->buffers[i] = all->buffers[of->members[i]];
        if (!frag_sections_create(&of->sections, of->buffers, component->count, error))
            return false;
    }
    of->portfolio = frag_portfolio_create(&of->sections);
    of->bound = next_height(&of->sections, of->bound);
    return true;
}

static void close_piece(piece *of)
{
    frag_portfolio_destroy(of->portfolio);
    frag_sections_destroy(&of->sections);
    frag_free(of->buffers);
}

/* The heights and bounds of all pieces together. */
static void sum_up(const piece *pieces, uint32_t count, frag_plan *plan)
{
    plan->height_bytes = 0;
    plan->bound_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const piece *of = &pieces[i];
        uint64_t height = of->portfolio->best_height;
        plan->height_bytes = height > plan->height_bytes ? height : plan->height_bytes;
        plan->bound_bytes = of->bound > plan->bound_bytes ? of->bound : plan->bound_bytes;
    }
}

/* What a piece has to come down to: the capacity, or what all of them are above anyway. */
static uint64_t find_goal(const plan_budget *now, const piece *pieces, uint32_t count)
{
    if (now->options->capacity_bytes != FRAG_UNLIMITED)
        return now->options->capacity_bytes;
    uint64_t goal = 0;
    for (uint32_t i = 0; i < count; i++)
        goal = pieces[i].bound > goal ? pieces[i].bound : goal;
    return goal;
}

static void answer(const plan_budget *now, frag_plan *plan)
{
    uint64_t capacity = now->options->capacity_bytes;
    if (plan->bound_bytes > capacity)
        plan->answer = FRAG_PLAN_INFEASIBLE;
    else if (plan->height_bytes > capacity)
        plan->answer = FRAG_PLAN_EXHAUSTED;
    else if (plan->height_bytes == plan->bound_bytes)
        plan->answer = FRAG_PLAN_OPTIMAL;
    else
        plan->answer = FRAG_PLAN_FOUND;
}

static void search_pieces(plan_budget *now, piece *pieces, uint32_t count, frag_plan *plan)
{
    uint64_t goal = find_goal(now, pieces, count);
    for (uint32_t i = 0; i < count; i++)
        frag_portfolio_run(pieces[i].portfolio, goal, &now->steps);
    for (uint32_t i = 0; i < count; i++) {
        goal = find_goal(now, pieces, count);
        if (pieces[i].portfolio->best_height > goal)
            improve(now, &pieces[i], goal);
    }
    sum_up(pieces, count, plan);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t b = 0; b < pieces[i].sections.buffer_count; b++)
            plan->offsets[pieces[i].members[b]] = pieces[i].portfolio->best_offsets[b];
}

bool frag_plan_make(const frag_buffer *buffers, uint32_t count, const frag_plan_options *options,
                    frag_plan *plan, frag_error *error)
{
    *plan = (frag_plan){0};
    frag_sections sections;
    if (!frag_sections_create(&sections, buffers, count, error)) {
        frag_sections_destroy(&sections);
        return false;
    }
    plan_budget now = {options, options->steps};
    uint32_t *members = NULL;
    frag_component *components = frag_components_find(&sections, &members, &plan->component_count);
    plan->load_bytes = sections.load_bytes;
    plan->offsets = frag_alloc(count, sizeof *plan->offsets);
    piece *pieces = frag_alloc(plan->component_count, sizeof *pieces);
    bool ok = true;
    uint32_t opened = 0;
    while (ok && opened < plan->component_count)
        ok = open_piece(&pieces[opened], &sections, members, &components[opened], error) &&
             ++opened > 0;
    FRAG_ASSERT(ok);
    search_pieces(&now, pieces, plan->component_count, plan);
    plan->steps = options->steps - now.steps;
    for (uint32_t i = 0; i < plan->component_count; i++)
        close_piece(&pieces[i]);
    frag_free(pieces);
    frag_free(components);
    frag_free(members);
    frag_sections_destroy(&sections);
    answer(&now, plan);
    uint64_t height = 0;
    FRAG_ASSERT(
        frag_placement_check(buffers, plan->offsets, count, FRAG_UNLIMITED, &height, error) &&
        height == plan->height_bytes);
    return true;
}

void frag_plan_destroy(frag_plan *plan)
{
    frag_free(plan->offsets);
    *plan = (frag_plan){0};
}

const char *frag_plan_answer_name(frag_plan_answer answer)
{
    static const char *const names[] = {
        [FRAG_PLAN_OPTIMAL] = "optimal",
        [FRAG_PLAN_FOUND] = "found",
        [FRAG_PLAN_INFEASIBLE] = "infeasible",
        [FRAG_PLAN_EXHAUSTED] = "exhausted",
    };
    return names[answer];
}
