/* Memory against what it costs: the settings that nothing tried beats in both. */
#include "cli/search/tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Names that a person reads in one figure. */
#define DRAWN_MAX 12

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
    const candidate *a = left;
    const candidate *b = right;
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

void frag_tune_front_command(const frag_tuned *tuned, const frag_tune_point *const *points,
                             size_t count, frag_text *command)
{
    static const char *const repeated[] = {
        "capacity", "gpu", "used-by-others", "address-rule", "fail-call", "latency", "from"};
    frag_text label = {0};
    frag_text_clear(command);
    frag_text_add(command, "fraglab plot front ");
    frag_text_add_word(command, frag_arguments_operand(tuned->arguments, 0));
    for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++)
        if (frag_arguments_has(tuned->arguments, repeated[i])) {
            frag_text_add(command, " --%s ", repeated[i]);
            frag_text_add_word(command, frag_arguments_value(tuned->arguments, repeated[i]));
        }
    if (tuned->has_bounds)
        frag_text_add(command, " --bounds");
    /* The ends of the front and some between; and the default, which the gain is over. */
    size_t drawn = count < DRAWN_MAX ? count : DRAWN_MAX;
    bool has_default = false;
    for (size_t i = 0; i < drawn; i++) {
        const frag_tune_point *point = points[drawn > 1 ? i * (count - 1) / (drawn - 1) : 0];
        has_default = has_default || point->changed == 0;
        frag_tune_space_label(tuned->space, point, &label);
        frag_text_add(command, " -p ");
        frag_text_add_word(command, label.bytes);
    }
    if (!has_default) {
        frag_tune_space_label(tuned->space, &tuned->found->points[0], &label);
        frag_text_add(command, " -p ");
        frag_text_add_word(command, label.bytes);
    }
    frag_text_destroy(&label);
}
