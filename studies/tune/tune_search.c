#include "studies/tune/tune_search.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/error.h"
#include "base/memory.h"

/* Most draws in a row that hit points tried before; after that the grid counts as used up. */
#define DRAWS_MAX 1000

typedef struct searching {
    const frag_tune_search_setup *setup;
    frag_tune_found *found;
    size_t capacity;
    uint64_t random;
    bool is_over;
} searching;

static int compare_ratios(double left, double right)
{
    return left < right ? -1 : left > right ? 1 : 0;
}

static int compare_counts(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right ? 1 : 0;
}

int frag_tune_compare(const frag_tune_point *left, const frag_tune_point *right)
{
    const frag_tune_score *a = &left->score;
    const frag_tune_score *b = &right->score;
    int order = compare_counts(a->is_refused, b->is_refused);
    order = order != 0 ? order : compare_counts(a->failed, b->failed);
    order = order != 0 ? order : compare_counts(a->is_given_up, b->is_given_up);
    order = order != 0 ? order : compare_ratios(a->unreached, b->unreached);
    order = order != 0 ? order : compare_ratios(a->size, b->size);
    order = order != 0 ? order : compare_counts(left->changed, right->changed);
    return order != 0 ? order : compare_counts(a->calls, b->calls);
}

static bool is_better(const searching *state, size_t left, size_t right)
{
    const frag_tune_point *points = state->found->points;
    return frag_tune_compare(&points[left], &points[right]) < 0;
}

/* The place of a point among those tried; their count when it was not. */
static size_t find(const searching *state, const frag_tune_point *point)
{
    size_t at = 0;
    while (at < state->found->count &&
           memcmp(state->found->points[at].choices, point->choices, sizeof point->choices) != 0)
        at++;
    return at;
}

static void count_changed(const searching *state, frag_tune_point *point)
{
    point->changed = 0;
    for (uint32_t i = 0; i < state->setup->axis_count; i++)
        point->changed += point->choices[i] != 0 ? 1 : 0;
}

size_t frag_tune_best_within(const frag_tune_found *found, uint32_t changed_max)
{
    size_t best = 0;
    for (size_t i = 1; i < found->count; i++)
        if (found->points[i].changed <= changed_max &&
            frag_tune_compare(&found->points[i], &found->points[best]) < 0)
            best = i;
    return best;
}

/* The largest size with which a point of so many axes changed could still matter, for a search that
 * stands at a point of that score; NULL: it stands nowhere. */
static double size_of_use(const searching *state, uint32_t changed, const frag_tune_score *at)
{
    const frag_tune_found *found = state->found;
    if (at == NULL || at->failed > 0 || at->is_refused)
        return INFINITY;
    const frag_tune_score *as_few = &found->points[frag_tune_best_within(found, changed)].score;
    if (as_few->failed > 0 || as_few->is_refused)
        return INFINITY;
    return at->size > as_few->size ? at->size : as_few->size;
}

/* Tries those that were not tried yet, as far as the tries last. at: as for size_of_use. */
static void try_points(searching *state, const frag_tune_point *points, size_t count,
                       const frag_tune_score *at)
{
    frag_tune_found *found = state->found;
    size_t first = found->count;
    for (size_t i = 0; i < count && found->count < state->setup->tries_max; i++) {
        if (state->is_over || find(state, &points[i]) < found->count)
            continue;
        found->points =
            frag_grow(found->points, &state->capacity, found->count + 1, sizeof *found->points);
        frag_tune_point *point = &found->points[found->count];
        *point = points[i];
        count_changed(state, point);
        /* Of those scored before this batch, which are all below first. */
        size_t count_now = found->count;
        found->count = first;
        point->size_of_use = size_of_use(state, point->changed, at);
        found->count = count_now + 1;
    }
    size_t fresh = found->count - first;
    size_t scored =
        fresh > 0 ? state->setup->score(state->setup->context, &found->points[first], fresh) : 0;
    found->count = first + scored;
    state->is_over = state->is_over || scored < fresh;
    for (size_t i = first; i < found->count; i++)
        if (is_better(state, i, found->best))
            found->best = i;
    state->is_over = state->is_over || found->count >= state->setup->tries_max;
}

/* Of the values of one axis the best; returns the point that has it. */
static size_t step(searching *state, size_t current, uint32_t axis)
{
    uint32_t count = state->setup->value_counts[axis];
    frag_tune_point *values = frag_alloc(count, sizeof *values);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = state->found->points[current];
        values[i].choices[axis] = (uint8_t)i;
    }
    frag_tune_score at_current = state->found->points[current].score;
    try_points(state, values, count, &at_current);
    for (uint32_t i = 0; i < count; i++) {
        size_t at = find(state, &values[i]);
        if (at < state->found->count && is_better(state, at, current))
            current = at;
    }
    frag_free(values);
    return current;
}

static void descend(searching *state, size_t from)
{
    size_t current = from;
    size_t before;
    do {
        before = current;
        for (uint32_t axis = 0; axis < state->setup->axis_count && !state->is_over; axis++)
            current = step(state, current, axis);
    } while (current != before && !state->is_over);
}

static uint64_t draw(searching *state, uint64_t below)
{
    return frag_random_next(&state->random) % below;
}

/* Near: the best with two or three axes drawn anew. Far: half of the axes, from the default. */
static void draw_point(searching *state, bool is_near, frag_tune_point *point)
{
    const frag_tune_search_setup *setup = state->setup;
    memset(point, 0, sizeof *point);
    if (is_near) {
        *point = state->found->points[state->found->best];
        for (uint64_t i = 2 + draw(state, 2); i > 0; i--) {
            uint64_t axis = draw(state, setup->axis_count);
            point->choices[axis] = (uint8_t)draw(state, setup->value_counts[axis]);
        }
        return;
    }
    for (uint32_t axis = 0; axis < setup->axis_count; axis++)
        if (draw(state, 2) == 0)
            point->choices[axis] = (uint8_t)draw(state, setup->value_counts[axis]);
}

static void restart(searching *state)
{
    bool is_near = true;
    while (!state->is_over) {
        frag_tune_point point;
        int draws = 0;
        do
            draw_point(state, is_near, &point);
        while (find(state, &point) < state->found->count && ++draws < DRAWS_MAX);
        if (draws >= DRAWS_MAX)
            return;
        try_points(state, &point, 1, NULL);
        size_t at = find(state, &point);
        if (at < state->found->count)
            descend(state, at);
        is_near = !is_near;
    }
}

/* Starts that were tried, best first; few enough to look for the next best each time. */
static void descend_from_starts(searching *state, size_t count)
{
    bool *is_done = frag_alloc(count, sizeof *is_done);
    for (size_t round = 0; round < count && !state->is_over; round++) {
        size_t next = count;
        for (size_t i = 0; i < count; i++)
            if (!is_done[i] && (next == count || is_better(state, i, next)))
                next = i;
        is_done[next] = true;
        descend(state, next);
    }
    frag_free(is_done);
}

void frag_tune_search(const frag_tune_search_setup *setup, frag_tune_found *found)
{
    searching state = {.setup = setup, .found = found, .random = setup->seed};
    frag_tune_point *first = frag_alloc(setup->start_count + 1, sizeof *first);
    FRAG_ASSERT(setup->axis_count <= FRAG_TUNE_AXES_MAX);
    for (uint32_t i = 0; i < setup->axis_count; i++)
        FRAG_ASSERT(setup->value_counts[i] >= 1 && setup->value_counts[i] <= FRAG_TUNE_VALUES_MAX);
    *found = (frag_tune_found){0};
    for (size_t i = 0; i < setup->start_count; i++)
        first[i + 1] = setup->starts[i];
    try_points(&state, first, setup->start_count + 1, NULL);
    frag_free(first);
    descend_from_starts(&state, found->count);
    if (found->count > 0 && setup->axis_count > 0)
        restart(&state);
}
