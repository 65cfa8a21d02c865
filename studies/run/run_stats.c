#include "studies/run/run_stats.h"

#include "sim/policy_engine.h"

static void add_stat(void *context, const char *name, int64_t value)
{
    frag_stats_add(context, name, value);
}

static void look_at_stats(void *context, const frag_replay *replay,
                          const frag_replay_result *result)
{
    frag_row_stats *stats = context;
    if (result->events == 0) /* there is no event after which they were taken */
        return;
    frag_replay_stats(replay, add_stat, &stats->values);
    stats->event = result->events - 1;
}

bool frag_run_stats_check(const frag_run_stats *wanted, const frag_trace *trace, frag_error *error)
{
    const frag_run_point *point = &wanted->point;
    if (wanted->text == NULL || point->kind != FRAG_RUN_POINT_EVENT ||
        point->event < trace->event_count)
        return true;
    frag_replay_result none = {0};
    frag_replay_options unused;
    return frag_run_point_find(point, trace, &none, &unused, error);
}

bool frag_run_stats_take(const frag_run_stats *wanted, const frag_run_setup *setup,
                         const frag_run_options *run, const frag_run_result *first,
                         frag_error *problem, frag_row_stats *stats, frag_error *error)
{
    frag_replay_options replay = {
        .is_oom_skipped = run->is_oom_skipped, .keeps_stats = true, .context = run->context};
    if (wanted->text == NULL)
        return true;
    stats->event = FRAG_UNLIMITED;
    stats->point = wanted->text;
    stats->problem = problem->sentence;
    if (frag_policy_engine_of(setup->ops)->statistics == NULL ||
        !frag_run_point_find(&wanted->point, setup->trace, &first->replay, &replay, problem))
        return true;
    return frag_run_look_planned(setup, run->plan, NULL, &replay, look_at_stats, stats, error) &&
           !frag_is_cancelled(run->context);
}
