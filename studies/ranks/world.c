#include "studies/ranks/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

static int compare_ranks(const void *left, const void *right)
{
    const frag_world_rank *a = left, *b = right;
    return frag_compare(a->number, b->number);
}

static bool check_numbers(const frag_world *world, frag_error *error)
{
    for (size_t i = 1; i < world->count; i++) {
        const frag_world_rank *a = &world->ranks[i - 1], *b = &world->ranks[i];
        if (a->number == b->number)
            return frag_fail(error, FRAG_E_USAGE,
                             "%.200s and %.200s are both rank %" PRIu32
                             "; expected one recording of each rank",
                             a->name, b->name, a->number);
    }
    return true;
}

static void find_alike(frag_world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        const frag_world_rank *rank = &world->ranks[i];
        size_t first = 0;
        while (first < i &&
               (strcmp(world->ranks[first].requests_digest, rank->requests_digest) != 0 ||
                strcmp(world->ranks[first].policy, rank->policy) != 0))
            first++;
        world->alike[i] = first;
    }
}

/* ---- out of memory */

static double replayed_share(const frag_world_rank *rank)
{
    const frag_replay_result *replay = &rank->run.replay;
    return (double)(replay->requests - replay->failed_requests) / (double)rank->request_count;
}

static bool is_before(const frag_world *world, size_t a, size_t b)
{
    const frag_world_rank *one = &world->ranks[a], *other = &world->ranks[b];
    if (world->is_oom_by_step && one->oom_step != other->oom_step)
        return one->oom_step < other->oom_step;
    return replayed_share(one) < replayed_share(other);
}

bool frag_world_steps_compare(const frag_world_rank *a, const frag_world_rank *b)
{
    if (a->step_count == 0 || b->step_count == 0)
        return false;
    uint64_t fewer = a->step_count < b->step_count ? a->step_count : b->step_count;
    uint64_t more = a->step_count < b->step_count ? b->step_count : a->step_count;
    if (a->steps_by == b->steps_by && strcmp(a->steps_name, b->steps_name) == 0 &&
        a->steps_by == FRAG_STEPS_BY_MARKS)
        return true;
    return more - fewer <= 1 + fewer / 10;
}

static void find_first_oom(frag_world *world)
{
    const frag_world_rank *first = NULL;
    world->is_oom_by_step = true;
    for (size_t i = 0; i < world->count; i++) {
        const frag_world_rank *rank = &world->ranks[i];
        if (!rank->run.replay.oom.has_happened)
            continue;
        first = first == NULL ? rank : first;
        world->oom_count++;
        world->is_oom_by_step = world->is_oom_by_step && frag_world_steps_compare(first, rank);
    }
    bool is_found = false;
    for (size_t i = 0; i < world->count; i++) {
        if (!world->ranks[i].run.replay.oom.has_happened ||
            (is_found && !is_before(world, i, world->first_oom)))
            continue;
        world->first_oom = i;
        is_found = true;
    }
}

/* ---- stages */

static uint64_t figure_of(const frag_world_rank *rank, size_t figure)
{
    const frag_level *peak = &rank->run.replay.peak;
    const uint64_t values[FRAG_WORLD_FIGURES] = {rank->requested_bytes, peak->allocated_bytes,
                                                 peak->reserved_bytes};
    return values[figure];
}

double frag_world_imbalance(const frag_world_figure *figure)
{
    return figure->mean > 0 ? (double)figure->most / figure->mean - 1 : 0;
}

static void measure_stage(const frag_world *world, frag_world_stage *stage)
{
    static const char *const names[FRAG_WORLD_FIGURES][2] = {
        {"requested_bytes", "requested"},
        {"peak.allocated_bytes", "peak allocated"},
        {"peak.reserved_bytes", "peak reserved"}};
    for (size_t f = 0; f < FRAG_WORLD_FIGURES; f++) {
        frag_world_figure *figure = &stage->figures[f];
        *figure =
            (frag_world_figure){.name = names[f][0], .title = names[f][1], .least = FRAG_UNLIMITED};
        for (size_t i = 0; i < stage->count; i++) {
            uint64_t value = figure_of(&world->ranks[stage->ranks[i]], f);
            if (value < figure->least) {
                figure->least = value;
                figure->least_rank = stage->ranks[i];
            }
            if (value > figure->most || i == 0) {
                figure->most = value;
                figure->most_rank = stage->ranks[i];
            }
            figure->mean += (double)value / (double)stage->count;
        }
    }
    const frag_world_rank *least = &world->ranks[stage->figures[0].least_rank];
    const frag_world_rank *most = &world->ranks[stage->figures[0].most_rank];
    if (least->is_by_size == most->is_by_size)
        stage->change_count = frag_site_uses_compare(&least->uses, &most->uses, &stage->changes);
}

static void begin_stages(frag_world *world, size_t count)
{
    world->stages = frag_alloc(count, sizeof *world->stages);
    for (size_t s = 0; s < count; s++)
        world->stages[s].ranks = frag_alloc(world->count, sizeof *world->stages[s].ranks);
    world->stage_count = count;
}

/* The last stage is that of all ranks that are in none. */
static bool fill_stages(frag_world *world, const frag_rank_list *lists, frag_error *error)
{
    size_t named = world->stage_count - 1;
    for (size_t i = 0; i < world->count; i++) {
        size_t place = named;
        for (size_t s = 0; s < named; s++) {
            if (!frag_rank_list_has(&lists[s], world->ranks[i].number))
                continue;
            if (place != named)
                return frag_fail(error, FRAG_E_USAGE, "rank %" PRIu32 " is in two stages",
                                 world->ranks[i].number);
            place = s;
        }
        frag_world_stage *stage = &world->stages[place];
        stage->ranks[stage->count++] = i;
    }
    return true;
}

static bool has_rank(const frag_world *world, uint64_t number)
{
    for (size_t i = 0; i < world->count; i++)
        if (world->ranks[i].number == number)
            return true;
    return false;
}

static bool check_stages(const frag_world *world, const frag_rank_list *lists, size_t count,
                         frag_error *error)
{
    for (size_t s = 0; s < count; s++)
        for (size_t r = 0; r < lists[s].count; r++)
            for (uint64_t number = lists[s].ranges[r][0]; number <= lists[s].ranges[r][1]; number++)
                if (!has_rank(world, number))
                    return frag_fail(error, FRAG_E_USAGE,
                                     "there is no rank %" PRIu64 " to be in a stage; the ranks are "
                                     "%" PRIu32 " to %" PRIu32,
                                     number, world->ranks[0].number,
                                     world->ranks[world->count - 1].number);
    return true;
}

bool frag_world_make(frag_world_rank *ranks, size_t count, const frag_rank_list *stages,
                     size_t stage_count, frag_world *world, frag_error *error)
{
    qsort(ranks, count, sizeof *ranks, compare_ranks);
    *world = (frag_world){
        .ranks = ranks, .count = count, .alike = frag_alloc(count, sizeof *world->alike)};
    if (!check_numbers(world, error) || !check_stages(world, stages, stage_count, error))
        return false;
    find_alike(world);
    find_first_oom(world);
    begin_stages(world, stage_count + 1);
    if (!fill_stages(world, stages, error))
        return false;
    if (world->stages[stage_count].count == 0)
        frag_free(world->stages[--world->stage_count].ranks);
    for (size_t s = 0; s < world->stage_count; s++)
        measure_stage(world, &world->stages[s]);
    return true;
}

void frag_world_destroy(frag_world *world)
{
    for (size_t s = 0; s < world->stage_count; s++) {
        frag_free(world->stages[s].ranks);
        frag_free(world->stages[s].changes);
    }
    frag_free(world->stages);
    frag_free(world->alike);
    *world = (frag_world){0};
}

bool frag_world_is_uneven(const frag_world *world, const frag_threshold *allowed)
{
    for (size_t s = 0; s < world->stage_count; s++)
        for (size_t f = 0; f < FRAG_WORLD_FIGURES; f++) {
            const frag_world_figure *figure = &world->stages[s].figures[f];
            if (frag_threshold_is_exceeded(allowed, figure->least, figure->most))
                return true;
        }
    return false;
}

void frag_world_add_alike(frag_text *text, const frag_world *world, size_t first)
{
    const char *comma = "";
    for (size_t i = first; i < world->count; i++) {
        if (world->alike[i] != first)
            continue;
        size_t last = i;
        while (last + 1 < world->count && world->alike[last + 1] == first &&
               world->ranks[last + 1].number == world->ranks[last].number + 1)
            last++;
        frag_text_add(text, "%s%" PRIu32, comma, world->ranks[i].number);
        if (last > i)
            frag_text_add(text, "-%" PRIu32, world->ranks[last].number);
        comma = ",";
        i = last;
    }
}
