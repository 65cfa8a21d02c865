#include "sim/cli/plot_names.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/memory.h"

/* Of the font the figure is drawn with, near enough. */
#define CHARACTER_WIDTH 6.7
#define LINE_HEIGHT 14.0
#define POINT_SIDE 3.5

/* What each covered thing costs, in pixels of distance that one would rather go. */
#define COST_NAME 400.0
#define COST_POINT 120.0
#define COST_LINE 30.0
#define COST_OUTSIDE 2000.0

#define ANGLES 24u
#define RINGS 12u

typedef struct box {
    double left, right, low, high;
} box;

typedef struct place {
    double x, y; /* of the name, from its point */
    int side;
} place;

static bool overlaps(const box *a, const box *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high && b->low < a->high;
}

static box box_of(const frag_tag *tag, const place *at)
{
    double width = CHARACTER_WIDTH * (double)tag->characters;
    double x = tag->x + at->x;
    double y = tag->y + at->y;
    double left = at->side > 0 ? x : at->side < 0 ? x - width : x - width / 2;
    return (box){left, left + width, y - LINE_HEIGHT / 2, y + LINE_HEIGHT / 2};
}

/* Does the line cross the box? It is cut to the box on one axis after the other. */
static bool crosses(const frag_tag_line *line, const box *covered)
{
    double from = 0;
    double to = 1;
    const double start[2] = {line->from_x, line->from_y};
    const double way[2] = {line->to_x - line->from_x, line->to_y - line->from_y};
    const double low[2] = {covered->left, covered->low};
    const double high[2] = {covered->right, covered->high};
    for (int i = 0; i < 2; i++) {
        if (fabs(way[i]) < 1e-9) {
            if (start[i] < low[i] || start[i] > high[i])
                return false;
            continue;
        }
        double a = (low[i] - start[i]) / way[i];
        double b = (high[i] - start[i]) / way[i];
        from = fmax(from, fmin(a, b));
        to = fmin(to, fmax(a, b));
    }
    return from <= to;
}

/* The n-th place to try: beside the point first, then on rings around it. */
static place place_at(size_t n)
{
    static const place near[] = {{8, 0, 1},  {-8, 0, -1}, {0, 12, 0},   {0, -12, 0},
                                 {5, 11, 1}, {5, -11, 1}, {-5, 11, -1}, {-5, -11, -1}};
    const size_t near_count = sizeof near / sizeof *near;
    if (n < near_count)
        return near[n];
    n -= near_count;
    double distance = 24.0 + 13.0 * (double)(n / ANGLES);
    double angle = 6.283185307179586 * (double)(n % ANGLES) / ANGLES;
    double x = distance * cos(angle);
    return (place){x, distance * sin(angle), x > 4 ? 1 : x < -4 ? -1 : 0};
}

#define PLACE_COUNT (8u + ANGLES * RINGS)

typedef struct placing {
    const frag_tag *tags;
    size_t count;
    const frag_tag_field *field;
    box *names; /* placed so far */
    frag_tag_line *leaders;
    size_t name_count;
} placing;

static double cost_of(const placing *state, const frag_tag *tag, const place *at)
{
    const frag_tag_field *field = state->field;
    box name = box_of(tag, at);
    frag_tag_line leader = {tag->x, tag->y, tag->x + at->x, tag->y + at->y};
    double cost = hypot(at->x, at->y);
    if (name.left < 2 || name.right > field->width || name.low < 2 || name.high > field->height)
        cost += COST_OUTSIDE;
    for (size_t i = 0; i < state->count; i++) {
        const frag_tag *other = &state->tags[i];
        box point = {other->x - POINT_SIDE, other->x + POINT_SIDE, other->y - POINT_SIDE,
                     other->y + POINT_SIDE};
        cost += overlaps(&name, &point) ? COST_POINT : 0;
    }
    for (size_t i = 0; i < field->line_count; i++)
        cost += crosses(&field->lines[i], &name) ? COST_LINE : 0;
    for (size_t i = 0; i < state->name_count; i++) {
        cost += overlaps(&name, &state->names[i]) ? COST_NAME : 0;
        cost += crosses(&leader, &state->names[i]) ? COST_POINT : 0;
        cost += crosses(&state->leaders[i], &name) ? COST_POINT : 0;
    }
    return cost;
}

void frag_plot_place_names(frag_tag *tags, size_t count, const frag_tag_field *field)
{
    placing state = {.tags = tags, .count = count, .field = field};
    state.names = frag_alloc(count, sizeof *state.names);
    state.leaders = frag_alloc(count, sizeof *state.leaders);
    for (size_t turn = 0; turn < 2 * count; turn++) {
        frag_tag *tag = &tags[turn % count];
        if (tag->is_important != (turn < count))
            continue;
        place best = place_at(0);
        double least = HUGE_VAL;
        for (size_t n = 0; n < PLACE_COUNT; n++) {
            place at = place_at(n);
            double cost = cost_of(&state, tag, &at);
            if (cost >= least)
                continue;
            least = cost;
            best = at;
        }
        tag->name_x = tag->x + best.x;
        tag->name_y = tag->y + best.y;
        tag->side = best.side;
        tag->is_apart = hypot(best.x, best.y) > 20;
        state.names[state.name_count] = box_of(tag, &best);
        state.leaders[state.name_count++] =
            (frag_tag_line){tag->x, tag->y, tag->name_x, tag->name_y};
    }
    free(state.names);
    free(state.leaders);
}
