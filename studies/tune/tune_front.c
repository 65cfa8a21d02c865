#include "studies/tune/tune_front.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct candidate {
    const frag_tune_point *point;
    size_t place;
    double cost;
} candidate;

static int compare_doubles(double left, double right)
{
    return left < right ? -1 : left > right ? 1 : 0;
}

/* Of equal points the one with the fewest options, then the first tried, comes first. */
static int compare_candidates(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    int order = compare_doubles(a->point->score.size, b->point->score.size);
    order = order != 0 ? order : compare_doubles(a->cost, b->cost);
    order =
        order != 0 ? order : compare_doubles((double)a->point->changed, (double)b->point->changed);
    return order != 0 ? order : compare_doubles((double)a->place, (double)b->place);
}

size_t frag_tune_front(const frag_tune_found *found, bool is_by_time,
                       const frag_tune_point ***points)
{
    candidate *all = frag_alloc(found->count, sizeof *all);
    size_t count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++) {
        const frag_tune_score *score = &found->points[i].score;
        if (score->is_refused || score->failed > 0 || score->is_given_up)
            continue;
        all[count++] = (candidate){.point = &found->points[i],
                                   .place = i,
                                   .cost = is_by_time ? score->time_ns : (double)score->calls};
    }
    qsort(all, count, sizeof *all, compare_candidates);
    *points = frag_alloc(count, sizeof **points);
    double least = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || all[i].cost < least) {
            least = all[i].cost;
            (*points)[kept++] = all[i].point;
        }
    frag_free(all);
    return kept;
}
