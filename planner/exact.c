#include "planner/exact.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "planner/keyed.h"

#define NONE UINT32_MAX

/* A bound as it was before a step, to be taken back. */
typedef struct change {
    uint32_t index;
    uint64_t bytes;
} change;

typedef struct changes {
    change *items;
    size_t count;
    size_t capacity;
} changes;

typedef struct candidate {
    uint64_t offset;
    uint32_t buffer;
} candidate;

struct frag_exact {
    const frag_sections *sections;
    uint64_t capacity;       /* no buffer ends above this */
    uint64_t floor_capacity; /* the same in whole steps, for sums of spans */
    uint64_t steps;
    const char *letters;
    /* by buffer */
    uint64_t *span; /* size in whole steps */
    uint64_t *area;
    uint32_t *twin; /* an earlier buffer of the same lifetime, size and alignment; or NONE */
    uint32_t *near; /* those live together with buffer b: near[near_first[b] ..] */
    size_t *near_first;
    uint64_t *least; /* least offset free above the placed buffers */
    bool *is_placed;
    uint32_t *place; /* in the order of its part: the first is preferred */
    uint64_t *found; /* offset in the packing that is being made */
    /* by section */
    uint64_t *floor;   /* nothing will be placed below */
    uint64_t *total;   /* spans of buffers to be placed */
    uint32_t *crossed; /* buffers to be placed that live here and in the section before */
    uint32_t *in;      /* buffers of section s: in[in_first[s] ..] */
    size_t *in_first;
    uint32_t *witness; /* a buffer that can lie at the floor, while it is to be placed */
    /* of the levels of the search */
    changes least_changes;
    changes floor_changes;
    uint32_t *numbers; /* a stack */
    size_t number_count;
    candidate *candidates; /* a stack */
    size_t candidate_count;
    frag_keyed *keyed;
};

/* ---- creating */

static bool are_near(const frag_sections *sections, uint32_t a, uint32_t b)
{
    return sections->lower[a] < sections->upper[b] && sections->lower[b] < sections->upper[a];
}

static bool are_twins(const frag_sections *sections, uint32_t a, uint32_t b)
{
    return sections->lower[a] == sections->lower[b] && sections->upper[a] == sections->upper[b] &&
           sections->buffers[a].size == sections->buffers[b].size &&
           sections->buffers[a].alignment == sections->buffers[b].alignment;
}

static void find_near(frag_exact *exact)
{
    const frag_sections *sections = exact->sections;
    uint32_t count = sections->buffer_count;
    size_t capacity = 0;
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        exact->near_first[i] = used;
        exact->twin[i] = NONE;
        exact->near = frag_grow(exact->near, &capacity, used + count, sizeof *exact->near);
        for (uint32_t j = 0; j < count; j++) {
            if (j == i || !are_near(sections, i, j))
                continue;
            exact->near[used++] = j;
            if (j < i && are_twins(sections, i, j))
                exact->twin[i] = j;
        }
    }
    exact->near_first[count] = used;
}

static void find_in(frag_exact *exact)
{
    const frag_sections *sections = exact->sections;
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        for (uint32_t s = sections->lower[i]; s < sections->upper[i]; s++) {
            exact->total[s] += exact->span[i];
            exact->in_first[s + 1]++;
            exact->crossed[s] += s > sections->lower[i] ? 1 : 0;
        }
    for (uint32_t s = 0; s < sections->count; s++)
        exact->in_first[s + 1] += exact->in_first[s];
    exact->in = frag_alloc(exact->in_first[sections->count], sizeof *exact->in);
    size_t *next = frag_alloc(sections->count, sizeof *next);
    for (uint32_t i = 0; i < sections->buffer_count; i++)
        for (uint32_t s = sections->lower[i]; s < sections->upper[i]; s++)
            exact->in[exact->in_first[s] + next[s]++] = i;
    frag_free(next);
    for (uint32_t s = 0; s < sections->count; s++)
        exact->witness[s] = exact->in[exact->in_first[s]];
}

frag_exact *frag_exact_create(const frag_sections *sections)
{
    size_t count = sections->buffer_count;
    if (count == 0 || count > FRAG_EXACT_BUFFERS_MAX)
        return NULL;
    frag_exact *exact = frag_alloc(1, sizeof *exact);
    exact->sections = sections;
    exact->span = frag_alloc(count, sizeof *exact->span);
    exact->area = frag_alloc(count, sizeof *exact->area);
    exact->least = frag_alloc(count, sizeof *exact->least);
    exact->found = frag_alloc(count, sizeof *exact->found);
    exact->twin = frag_alloc(count, sizeof *exact->twin);
    exact->place = frag_alloc(count, sizeof *exact->place);
    exact->is_placed = frag_alloc(count, sizeof *exact->is_placed);
    exact->near_first = frag_alloc(count + 1, sizeof *exact->near_first);
    exact->floor = frag_alloc(sections->count, sizeof *exact->floor);
    exact->total = frag_alloc(sections->count, sizeof *exact->total);
    exact->crossed = frag_alloc(sections->count, sizeof *exact->crossed);
    exact->witness = frag_alloc(sections->count, sizeof *exact->witness);
    exact->in_first = frag_alloc((size_t)sections->count + 1, sizeof *exact->in_first);
    /* Each level has one list, shorter than that of the level above, and where the search falls
     * apart two more. */
    exact->numbers = frag_alloc(3 * count * (count + 1), sizeof *exact->numbers);
    exact->candidates = frag_alloc(count * (count + 1), sizeof *exact->candidates);
    exact->keyed = frag_alloc(count, sizeof *exact->keyed);
    for (uint32_t i = 0; i < count; i++) {
        const frag_buffer *at = &sections->buffers[i];
        exact->span[i] = frag_round_up(at->size, sections->step_bytes);
        if (!frag_multiply(at->size, at->upper - at->lower, &exact->area[i]))
            exact->area[i] = UINT64_MAX;
    }
    find_near(exact);
    find_in(exact);
    return exact;
}

void frag_exact_destroy(frag_exact *exact)
{
    if (exact == NULL)
        return;
    void *const parts[] = {
        exact->span,
        exact->area,
        exact->least,
        exact->found,
        exact->twin,
        exact->place,
        exact->near,
        exact->near_first,
        exact->is_placed,
        exact->floor,
        exact->total,
        exact->crossed,
        exact->witness,
        exact->in,
        exact->numbers,
        exact->in_first,
        exact->keyed,
        exact->candidates,
        exact->least_changes.items,
        exact->floor_changes.items,
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        frag_free(parts[i]);
    frag_free(exact);
}

/* ---- one step */

static void note(changes *kept, uint32_t index, uint64_t bytes)
{
    if (kept->count == kept->capacity)
        kept->items = frag_grow(kept->items, &kept->capacity, kept->count + 1, sizeof *kept->items);
    kept->items[kept->count++] = (change){index, bytes};
}

/* Raises the floor of a section to the least offset of any buffer to be placed there. false: what
 * is to be placed above it no longer fits. */
static bool raise_floor(frag_exact *exact, uint32_t section)
{
    uint32_t witness = exact->witness[section];
    uint64_t floor = exact->floor[section];
    if ((!exact->is_placed[witness] && exact->least[witness] <= floor) ||
        exact->total[section] == 0)
        return true;
    uint64_t least = UINT64_MAX;
    for (size_t i = exact->in_first[section]; i < exact->in_first[section + 1]; i++) {
        uint32_t other = exact->in[i];
        if (exact->is_placed[other] || exact->least[other] >= least)
            continue;
        least = exact->least[other];
        exact->witness[section] = other;
        if (least <= floor)
            return true;
    }
    note(&exact->floor_changes, section, floor);
    exact->floor[section] = least;
    return least + exact->total[section] <= exact->floor_capacity;
}

/* Places a buffer and pushes up what lives beside it. *is_topmost: nothing is left that does.
 * false: a bound is broken; take_back is due all the same. */
static bool place(frag_exact *exact, uint32_t at, bool *is_topmost)
{
    const frag_sections *sections = exact->sections;
    uint64_t top = exact->least[at] + exact->span[at];
    uint32_t lower = sections->lower[at];
    uint32_t upper = sections->upper[at];
    bool ok = true;
    exact->is_placed[at] = true;
    *is_topmost = true;
    for (uint32_t s = lower; s < upper; s++) {
        note(&exact->floor_changes, s, exact->floor[s]);
        exact->floor[s] = top;
        exact->total[s] -= exact->span[at];
        ok = ok && top + exact->total[s] <= exact->floor_capacity;
    }
    for (size_t i = exact->near_first[at]; i < exact->near_first[at + 1]; i++) {
        uint32_t other = exact->near[i];
        if (exact->is_placed[other])
            continue;
        *is_topmost = false;
        if (exact->least[other] >= top)
            continue;
        note(&exact->least_changes, other, exact->least[other]);
        uint64_t alignment = sections->buffers[other].alignment;
        exact->least[other] = alignment == 1 ? top : frag_round_up(top, alignment);
        ok = ok && exact->least[other] + sections->buffers[other].size <= exact->capacity;
        lower = sections->lower[other] < lower ? sections->lower[other] : lower;
        upper = sections->upper[other] > upper ? sections->upper[other] : upper;
    }
    for (uint32_t s = lower; ok && s < upper; s++)
        ok = raise_floor(exact, s);
    return ok;
}

static void take_back(frag_exact *exact, uint32_t at, size_t least_count, size_t floor_count)
{
    while (exact->floor_changes.count > floor_count) {
        const change *last = &exact->floor_changes.items[--exact->floor_changes.count];
        exact->floor[last->index] = last->bytes;
    }
    while (exact->least_changes.count > least_count) {
        const change *last = &exact->least_changes.items[--exact->least_changes.count];
        exact->least[last->index] = last->bytes;
    }
    for (uint32_t s = exact->sections->lower[at]; s < exact->sections->upper[at]; s++)
        exact->total[s] += exact->span[at];
    exact->is_placed[at] = false;
}

/* ---- the search */

/* What is left to do between two sections, none of whose buffers lives outside. */
typedef struct part {
    uint32_t lower;
    uint32_t upper;
    const uint32_t *list; /* some placed by now; in order of place */
    uint32_t count;
} part;

/* Where the search stands in the canonical order: what is placed next comes after this. */
typedef struct mark {
    uint64_t offset;
    uint32_t place;
} mark;

static bool is_passed(const frag_exact *exact, uint32_t buffer, mark last)
{
    uint64_t offset = exact->least[buffer];
    return offset < last.offset || (offset == last.offset && exact->place[buffer] < last.place);
}

/* Nothing will lie below the offset any more: which sections have too much left for that? */
static bool find_overfull(const frag_exact *exact, const part *now, uint64_t offset,
                          uint32_t *lower, uint32_t *upper)
{
    uint64_t room = exact->floor_capacity > offset ? exact->floor_capacity - offset : 0;
    bool is_found = false;
    for (uint32_t s = now->lower; s < now->upper; s++) {
        if (exact->total[s] <= room)
            continue;
        *lower = is_found ? *lower : s;
        *upper = s + 1;
        is_found = true;
    }
    return is_found;
}

/* A buffer that was passed over must in the end rest on one that is still to be placed, and that
 * one must begin below where the buffer would end now: else it could be pushed down, and the
 * packing is found elsewhere. */
static bool can_be_covered(const frag_exact *exact, uint32_t buffer, mark last)
{
    uint64_t end = exact->least[buffer] + exact->sections->buffers[buffer].size;
    if (last.offset >= end)
        return false;
    for (size_t i = exact->near_first[buffer]; i < exact->near_first[buffer + 1]; i++) {
        uint32_t other = exact->near[i];
        if (!exact->is_placed[other] && exact->least[other] < end)
            return true;
    }
    return false;
}

/* What can come next, in the order in which it is tried. Left out: what was passed over; offsets at
 * or above the end that some buffer could have now, which then could be pushed down below; all but
 * the first of twins. */
static uint32_t list_candidates(const frag_exact *exact, const part *rest, mark last,
                                candidate *candidates)
{
    uint64_t lowest_end = UINT64_MAX;
    for (uint32_t i = 0; i < rest->count; i++) {
        uint32_t at = rest->list[i];
        uint64_t end = exact->least[at] + exact->sections->buffers[at].size;
        lowest_end = end < lowest_end ? end : lowest_end;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < rest->count; i++) {
        uint32_t at = rest->list[i];
        uint64_t offset = exact->least[at];
        if (is_passed(exact, at, last)) {
            if (!can_be_covered(exact, at, last))
                return 0;
            continue;
        }
        if (offset >= lowest_end || (exact->twin[at] != NONE && !exact->is_placed[exact->twin[at]]))
            continue;
        uint32_t to = count++;
        for (; to > 0 && candidates[to - 1].offset > offset; to--)
            candidates[to] = candidates[to - 1];
        candidates[to] = (candidate){offset, at};
    }
    return count;
}

/* Sorts a part by the letters and numbers its places: what is fullest depends on what is left. */
static void order_part(frag_exact *exact, uint32_t *list, uint32_t count)
{
    const frag_sections *sections = exact->sections;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = list[i];
        uint64_t fullest = 0;
        for (uint32_t s = sections->lower[at]; s < sections->upper[at]; s++)
            fullest = exact->total[s] > fullest ? exact->total[s] : fullest;
        uint64_t width = sections->buffers[at].upper - sections->buffers[at].lower;
        exact->keyed[i].buffer = at;
        for (int k = 0; k < FRAG_KEY_COUNT; k++)
            exact->keyed[i].keys[k] = exact->letters[k] == 'T'   ? fullest
                                      : exact->letters[k] == 'A' ? exact->area[at]
                                                                 : width;
    }
    frag_keyed_sort(exact->keyed, count);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = exact->keyed[i].buffer;
        exact->place[list[i]] = i;
    }
}

static frag_exact_answer search_part(frag_exact *exact, const part *now, mark last);

/* What is left has fallen apart at the sections that nothing crosses: one piece after the other. A
 * piece that has no packing cannot be helped by another packing of the pieces before it. */
static frag_exact_answer search_pieces(frag_exact *exact, const part *now, uint64_t offset)
{
    size_t number_count = exact->number_count;
    uint32_t *places = exact->numbers + number_count;
    uint32_t *list = places + now->count;
    exact->number_count += 2 * (size_t)now->count;
    for (uint32_t i = 0; i < now->count; i++)
        places[i] = exact->place[now->list[i]];
    frag_exact_answer answer = FRAG_EXACT_FOUND;
    uint32_t start = now->lower;
    for (uint32_t s = now->lower + 1; answer == FRAG_EXACT_FOUND && s <= now->upper; s++) {
        if (s < now->upper && exact->crossed[s] > 0)
            continue;
        part piece = {start, s, list, 0};
        for (uint32_t i = 0; i < now->count; i++) {
            uint32_t other = now->list[i];
            if (!exact->is_placed[other] && exact->sections->lower[other] >= start &&
                exact->sections->lower[other] < s)
                list[piece.count++] = other;
        }
        if (piece.count > 0) {
            order_part(exact, list, piece.count);
            answer = search_part(exact, &piece, (mark){offset, 0});
        }
        start = s;
    }
    for (uint32_t i = 0; i < now->count; i++)
        exact->place[now->list[i]] = places[i];
    exact->number_count = number_count;
    return answer;
}

/* After a buffer was placed. */
static frag_exact_answer search_rest(frag_exact *exact, const part *now, uint32_t at)
{
    uint32_t lower = exact->sections->lower[at];
    uint32_t upper = exact->sections->upper[at];
    bool is_apart = false;
    for (uint32_t s = lower + 1; s < upper; s++)
        is_apart = --exact->crossed[s] == 0 || is_apart;
    frag_exact_answer answer =
        is_apart ? search_pieces(exact, now, exact->found[at])
                 : search_part(exact, now, (mark){exact->found[at], exact->place[at]});
    for (uint32_t s = lower + 1; s < upper; s++)
        exact->crossed[s]++;
    return answer;
}

static frag_exact_answer search_part(frag_exact *exact, const part *now, mark last)
{
    const frag_sections *sections = exact->sections;
    size_t number_count = exact->number_count;
    size_t candidate_count = exact->candidate_count;
    uint32_t *list = exact->numbers + number_count;
    candidate *candidates = exact->candidates + candidate_count;
    part rest = {now->lower, now->upper, list, 0};
    for (uint32_t i = 0; i < now->count; i++)
        if (!exact->is_placed[now->list[i]])
            list[rest.count++] = now->list[i];
    if (rest.count == 0)
        return FRAG_EXACT_FOUND;
    uint32_t count = list_candidates(exact, &rest, last, candidates);
    exact->number_count += rest.count;
    exact->candidate_count += count;
    frag_exact_answer answer = FRAG_EXACT_NONE;
    bool is_overfull = false;
    uint32_t overfull_lower = 0;
    uint32_t overfull_upper = 0;
    for (uint32_t i = 0; i < count && answer == FRAG_EXACT_NONE; i++) {
        uint32_t at = candidates[i].buffer;
        uint64_t offset = candidates[i].offset;
        if (i == 0 || offset != candidates[i - 1].offset)
            is_overfull = find_overfull(exact, &rest, offset, &overfull_lower, &overfull_upper);
        /* Sections without this buffer would have to take all that is left to them above it. */
        if (is_overfull &&
            (overfull_lower < sections->lower[at] || overfull_upper > sections->upper[at]))
            continue;
        if (exact->steps == 0) {
            answer = FRAG_EXACT_EXHAUSTED;
            break;
        }
        exact->steps--;
        size_t least_count = exact->least_changes.count;
        size_t floor_count = exact->floor_changes.count;
        bool is_topmost = false;
        if (place(exact, at, &is_topmost)) {
            exact->found[at] = offset;
            answer = search_rest(exact, &rest, at);
        }
        take_back(exact, at, least_count, floor_count);
        /* With nothing left beside it, it can lie nowhere else. */
        if (is_topmost)
            break;
    }
    exact->number_count = number_count;
    exact->candidate_count = candidate_count;
    return answer;
}

frag_exact_answer frag_exact_search(frag_exact *exact, uint64_t capacity, const char *letters,
                                    uint64_t *steps, uint64_t *offsets)
{
    const frag_sections *sections = exact->sections;
    FRAG_ASSERT(strlen(letters) == FRAG_KEY_COUNT && capacity >> 63 == 0);
    exact->capacity = capacity;
    exact->floor_capacity = frag_round_up(capacity, sections->step_bytes);
    exact->letters = letters;
    exact->steps = *steps;
    for (uint32_t s = 0; s < sections->count; s++)
        if (exact->total[s] > exact->floor_capacity)
            return FRAG_EXACT_NONE;
    for (uint32_t i = 0; i < sections->buffer_count; i++) {
        if (sections->buffers[i].size > capacity)
            return FRAG_EXACT_NONE;
        exact->numbers[i] = i;
    }
    order_part(exact, exact->numbers, sections->buffer_count);
    exact->number_count = sections->buffer_count;
    part whole = {0, sections->count, exact->numbers, sections->buffer_count};
    frag_exact_answer answer = search_part(exact, &whole, (mark){0, 0});
    FRAG_ASSERT(exact->number_count == sections->buffer_count && exact->candidate_count == 0);
    *steps = exact->steps;
    if (answer == FRAG_EXACT_FOUND)
        memcpy(offsets, exact->found, sections->buffer_count * sizeof *offsets);
    return answer;
}
