#include "plots/parts/plot_names.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define LINE_HEIGHT 13.0
/* What stays free around a name. */
#define CLEARANCE 2.0

/* What each covered thing costs, in pixels of distance that one would rather go. */
#define COST_NAME 600.0
#define COST_POINT 400.0
#define COST_LINE 120.0
#define COST_APART 12.0    /* a name that needs a line */
#define COST_MISTAKEN 40.0 /* a name without a line that is nearer to another point */
/* What the line to a name costs where it crosses a point, and another line. */
#define COST_POINT_CROSSED 200.0
#define COST_LINE_CROSSED 60.0
#define COST_OUTSIDE 5000.0

/* Places without a line; then rings of places with one. */
#define NEAR_COUNT 8u
#define ANGLES 32u
#define RINGS 16u
#define PLACE_COUNT (NEAR_COUNT + ANGLES * RINGS)

#define ROUNDS_MAX 8
#define NEIGHBOURS 5u
#define PASSES_MAX 4
/* Comparisons of a name with a point and a name: what would take seconds ends early. */
#define COMPARISONS_MAX 8000000u

typedef struct box {
    double left, right, low, high;
} box;

static bool is_continued(char byte) /* of a letter in UTF-8 */
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static double letter_width(char byte)
{
    static const struct {
        const char *letters;
        double width;
    } kinds[] = {
        {"ijl'|", 2.7},
        {"ft .,:;/![]I\\", 3.4},
        {"r-()`\"*", 4.3},
        {"ckJsvxyz", 6.0},
        {"abdeghnopqu_0123456789L?#$", 6.7},
        {"mMWG%@OQ", 11.0},
    };
    double letter = 8.7;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strchr(kinds[i].letters, byte) != NULL)
            letter = kinds[i].width;
    return is_continued(byte) ? 0 : 1.05 * letter;
}

double frag_plot_text_width(const char *text)
{
    double width = 0;
    for (const char *at = text; *at != '\0'; at++)
        width += letter_width(*at);
    return width;
}

char *frag_plot_text_within(const char *text, double width)
{
    static const char gap[] = "…";
    size_t end = strlen(text);
    if (frag_plot_text_width(text) <= width)
        return frag_copy_text(text);
    double room = width - frag_plot_text_width(gap);
    size_t head = 0;
    for (double left = 0.4 * room; (left -= letter_width(text[head])) >= 0; head++)
        room -= letter_width(text[head]);
    size_t tail = end;
    while (tail > head && (room -= letter_width(text[tail - 1])) >= 0)
        tail--;
    while (is_continued(text[tail]))
        tail++;
    frag_text shown = {0};
    frag_text_add(&shown, "%.*s%s%s", (int)head, text, gap, text + tail);
    return shown.bytes;
}

static bool overlaps(const box *a, const box *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high && b->low < a->high;
}

/* Of the name where it stands now. */
static box box_of(const frag_tag *tag)
{
    double x = tag->name_x;
    double left = tag->side > 0 ? x : tag->side < 0 ? x - tag->width : x - tag->width / 2;
    return (box){left - CLEARANCE, left + tag->width + CLEARANCE,
                 tag->name_y - LINE_HEIGHT / 2 - CLEARANCE / 2,
                 tag->name_y + LINE_HEIGHT / 2 + CLEARANCE / 2};
}

static box mark_of(const frag_tag *tag)
{
    return (box){tag->x - tag->radius, tag->x + tag->radius, tag->y - tag->radius,
                 tag->y + tag->radius};
}

frag_tag_line frag_tag_leader(const frag_tag *tag)
{
    return (frag_tag_line){tag->x, tag->y, tag->name_x - FRAG_TAG_GAP * tag->side, tag->name_y};
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

/* On which side of the line, and how far out, times its length. */
static double side_of(const frag_tag_line *line, double x, double y)
{
    return (line->to_x - line->from_x) * (y - line->from_y) -
           (line->to_y - line->from_y) * (x - line->from_x);
}

/* Lines that lie on each other, too. */
static bool cross(const frag_tag_line *a, const frag_tag_line *b)
{
    box around = {fmin(b->from_x, b->to_x), fmax(b->from_x, b->to_x), fmin(b->from_y, b->to_y),
                  fmax(b->from_y, b->to_y)};
    return side_of(a, b->from_x, b->from_y) * side_of(a, b->to_x, b->to_y) <= 0 &&
           side_of(b, a->from_x, a->from_y) * side_of(b, a->to_x, a->to_y) <= 0 &&
           crosses(a, &around);
}

/* The line of a tag, as far as it shows beyond the mark: lines from one point do not cross. */
static frag_tag_line shown_leader(const frag_tag *tag)
{
    frag_tag_line line = frag_tag_leader(tag);
    double across = line.to_x - line.from_x;
    double up = line.to_y - line.from_y;
    double part = fmin(0.9, (tag->radius + 1) / hypot(across, up));
    line.from_x += part * across;
    line.from_y += part * up;
    return line;
}

static double distance_to(const box *name, double x, double y)
{
    double across = fmax(0, fmax(name->left - x, x - name->right));
    double up = fmax(0, fmax(name->low - y, y - name->high));
    return hypot(across, up);
}

/* Puts the name at the n-th place: beside the point first, then on rings around it. Returns how far
 * that is; it grows with n, but for those beside the point. */
static double put(frag_tag *tag, size_t n)
{
    double side = tag->radius + 4;
    double up = tag->radius + 8;
    const struct {
        double x, y;
        int side;
    } near[NEAR_COUNT] = {{side, 0, 1}, {-side, 0, -1}, {0, up, 0},   {0, -up, 0},
                          {3, up, 1},   {3, -up, 1},    {-3, up, -1}, {-3, -up, -1}};
    double x = 0;
    double y = 0;
    tag->is_apart = n >= NEAR_COUNT;
    if (!tag->is_apart) {
        x = near[n].x;
        y = near[n].y;
        tag->side = near[n].side;
    } else {
        double distance = 16.0 + 8.0 * (double)((n - NEAR_COUNT) / ANGLES);
        double angle = 6.283185307179586 * (double)((n - NEAR_COUNT) % ANGLES) / ANGLES;
        x = distance * cos(angle);
        y = distance * sin(angle);
        tag->side = x > -1e-9 ? 1 : -1;
    }
    tag->name_x = tag->x + x + (tag->is_apart ? FRAG_TAG_GAP * tag->side : 0);
    tag->name_y = tag->y + y;
    double distance = hypot(x, y) + (tag->is_apart ? COST_APART : 0);
    return tag->is_important ? 2 * distance : distance;
}

/* A tag's name where it stands, or would. */
typedef struct name {
    box covered;
    frag_tag_line leader;
    bool is_apart;
    bool is_placed;
    size_t place;
    double distance; /* see put */
} name;

typedef struct tag_layout {
    frag_tag *tags;
    name *names;
    size_t count;
    const frag_tag_field *field;
    size_t comparisons;
} tag_layout;

static bool is_outside(const frag_tag_field *field, const box *covered)
{
    return covered->left < 0 || covered->right > field->width || covered->low < 0 ||
           covered->high > field->height;
}

/* What the name covers of the field. */
static double cost_in_field(const frag_tag_field *field, const name *at)
{
    const box *covered = &at->covered;
    double cost = is_outside(field, covered) ? COST_OUTSIDE : 0;
    for (size_t i = 0; i < field->line_count; i++) {
        cost += crosses(&field->lines[i], covered) ? COST_LINE : 0;
        cost += at->is_apart && cross(&field->lines[i], &at->leader) ? COST_LINE_CROSSED : 0;
    }
    return cost;
}

/* What the name of a tag and its line cover of the mark of another. */
static double cost_at_mark(const frag_tag *tag, const name *at, const frag_tag *other)
{
    box mark = mark_of(other);
    double cost = overlaps(&at->covered, &mark) ? COST_POINT : 0;
    if (hypot(other->x - tag->x, other->y - tag->y) <= other->radius)
        return cost;
    if (at->is_apart)
        return cost + (crosses(&at->leader, &mark) ? COST_POINT_CROSSED : 0);
    bool is_mistaken = distance_to(&at->covered, other->x, other->y) <
                       distance_to(&at->covered, tag->x, tag->y) + 2 * CLEARANCE;
    return cost + (is_mistaken ? COST_MISTAKEN : 0);
}

/* What two names and their lines cover of each other. */
static double cost_between(const name *a, const name *b)
{
    double cost = overlaps(&a->covered, &b->covered) ? COST_NAME : 0;
    cost += a->is_apart && crosses(&a->leader, &b->covered) ? COST_POINT : 0;
    cost += b->is_apart && crosses(&b->leader, &a->covered) ? COST_POINT : 0;
    cost += a->is_apart && b->is_apart && cross(&a->leader, &b->leader) ? COST_LINE_CROSSED : 0;
    return cost;
}

/* What a name and its line cover, but for other names. Over most: no matter by how much. */
static double cost_alone(const tag_layout *state, const frag_tag *tag, const name *at, double most)
{
    box mark = mark_of(tag);
    double cost = cost_in_field(state->field, at);
    cost += overlaps(&at->covered, &mark) ? COST_POINT : 0;
    for (size_t i = 0; i < state->count && cost < most; i++)
        if (&state->tags[i] != tag)
            cost += cost_at_mark(tag, at, &state->tags[i]);
    return cost;
}

/* Of the name of a tag, with the names that are placed of the first so many tags. */
static double cost_with(const tag_layout *state, size_t index, const name *at, size_t count,
                        double most)
{
    double cost = 0;
    for (size_t i = 0; i < count && cost < most; i++)
        if (i != index && state->names[i].is_placed)
            cost += cost_between(at, &state->names[i]);
    return cost;
}

static double cost_of_all(const tag_layout *state)
{
    double cost = 0;
    for (size_t i = 0; i < state->count; i++) {
        const name *at = &state->names[i];
        cost += at->distance + cost_alone(state, &state->tags[i], at, HUGE_VAL) +
                cost_with(state, i, at, i, HUGE_VAL);
    }
    return cost;
}

static name name_at(frag_tag *tag, size_t place)
{
    double distance = put(tag, place);
    return (name){.covered = box_of(tag),
                  .leader = shown_leader(tag),
                  .is_apart = tag->is_apart,
                  .is_placed = true,
                  .place = place,
                  .distance = distance};
}

/* Returns whether the name has moved. */
static bool place_name(tag_layout *state, size_t index)
{
    frag_tag *tag = &state->tags[index];
    name before = state->names[index];
    name best = before;
    double least = HUGE_VAL;
    for (size_t place = 0; place < PLACE_COUNT; place++) {
        name at = name_at(tag, place);
        state->comparisons += state->count;
        double cost = at.distance;
        if (place >= NEAR_COUNT && cost >= least)
            break;
        cost += cost_alone(state, tag, &at, least - cost);
        if (cost < least)
            cost += cost_with(state, index, &at, state->count, least - cost);
        if (cost >= least)
            continue;
        least = cost;
        best = at;
    }
    state->names[index] = best;
    return !before.is_placed || before.place != best.place;
}

/* Places these names in turn, and anew now that those after them stand, until none moves. */
static void settle(tag_layout *state, const size_t *turns, size_t count)
{
    bool has_moved = true;
    for (int round = 0; has_moved && round < ROUNDS_MAX; round++) {
        if (round > 0 && state->comparisons > COMPARISONS_MAX)
            break;
        has_moved = false;
        for (size_t i = 0; i < count; i++)
            has_moved = place_name(state, turns[i]) || has_moved;
    }
}

static void settle_all(tag_layout *state)
{
    size_t *turns = frag_alloc(state->count, sizeof *turns);
    size_t count = 0;
    for (size_t i = 0; i < 2 * state->count; i++)
        if (state->tags[i % state->count].is_important == (i < state->count))
            turns[count++] = i % state->count;
    settle(state, turns, count);
    frag_free(turns);
}

/* The nearest tag that stands. count: there is none. */
static size_t nearest_placed(const tag_layout *state, const frag_tag *tag)
{
    size_t nearest = state->count;
    double least = HUGE_VAL;
    for (size_t i = 0; i < state->count; i++) {
        double distance = hypot(state->tags[i].x - tag->x, state->tags[i].y - tag->y);
        if (!state->names[i].is_placed || distance >= least)
            continue;
        least = distance;
        nearest = i;
    }
    return nearest;
}

/* Takes a name and those around it away, and lets this one choose first. */
static void choose_first(tag_layout *state, size_t index)
{
    size_t turns[1 + NEIGHBOURS];
    size_t count = 0;
    for (size_t next = index; next < state->count && count < 1 + NEIGHBOURS; count++) {
        state->names[next].is_placed = false;
        turns[count] = next;
        next = nearest_placed(state, &state->tags[index]);
    }
    settle(state, turns, count);
}

/* A settled state cannot get better by one name; by several it may. */
static void improve(tag_layout *state)
{
    size_t bytes = state->count * sizeof(name);
    name *before = frag_alloc(state->count, sizeof(name));
    double least = cost_of_all(state);
    bool is_better = true;
    for (int pass = 0; is_better && pass < PASSES_MAX; pass++) {
        is_better = false;
        for (size_t i = 0; i < state->count && state->comparisons < COMPARISONS_MAX; i++) {
            memcpy(before, state->names, bytes);
            choose_first(state, i);
            double cost = cost_of_all(state);
            if (cost < least - 1e-6) {
                least = cost;
                is_better = true;
            } else {
                memcpy(state->names, before, bytes);
            }
        }
    }
    frag_free(before);
}

static bool is_covering(const tag_layout *state, size_t index)
{
    const box *covered = &state->names[index].covered;
    if (is_outside(state->field, covered))
        return true;
    for (size_t i = 0; i < state->count; i++) {
        box mark = mark_of(&state->tags[i]);
        if (overlaps(covered, &mark) || (i != index && state->names[i].is_placed &&
                                         overlaps(covered, &state->names[i].covered)))
            return true;
    }
    return false;
}

/* From the last on, so that the first stay. */
static void leave_out(const tag_layout *state)
{
    for (size_t i = state->count; i-- > 0;) {
        frag_tag *tag = &state->tags[i];
        tag->is_left_out = !tag->is_important && is_covering(state, i);
        state->names[i].is_placed = !tag->is_left_out;
    }
}

void frag_plot_place_names(frag_tag *tags, size_t count, const frag_tag_field *field)
{
    tag_layout state = {tags, frag_alloc(count, sizeof(name)), count, field, 0};
    settle_all(&state);
    improve(&state);
    leave_out(&state);
    for (size_t i = 0; i < count; i++)
        put(&tags[i], state.names[i].place);
    frag_free(state.names);
}
