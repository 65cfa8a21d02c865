#include "studies/ranks/world_json.h"

#include "base/json.h"
#include "base/memory.h"

static void add_step(frag_json *item, const char *path, const frag_world_rank *rank, uint64_t step)
{
    if (rank->step_count > 0)
        frag_json_number(item, path, step);
    else
        frag_json_null(item, path);
}

static void add_rank(frag_json *json, const frag_world *world, size_t index)
{
    const frag_world_rank *rank = &world->ranks[index];
    const frag_replay_result *replay = &rank->run.replay;
    frag_json *item = frag_json_add(json, "ranks");
    frag_json_number(item, "rank", rank->number);
    frag_json_text(item, "name", rank->name);
    frag_json_text(item, "digest", rank->digest);
    frag_json_number(item, "device", rank->device);
    frag_json_text(item, "policy", rank->policy);
    frag_json_number(item, "requests", rank->request_count);
    frag_json_text(item, "requests_digest", rank->requests_digest);
    frag_json_number(item, "alike_with", world->ranks[world->alike[index]].number);
    add_step(item, "steps", rank, rank->step_count);
    frag_json_number(item, "requested_bytes", rank->requested_bytes);
    frag_json_number(item, "peak.allocated_bytes", replay->peak.allocated_bytes);
    frag_json_number(item, "peak.reserved_bytes", replay->peak.reserved_bytes);
    frag_json_number(item, "peak_event", rank->peak_event);
    add_step(item, "peak_step", rank, rank->peak_step);
    frag_json_number(item, "device_calls", frag_run_memory_calls(&rank->run));
    if (rank->needed_bytes > 0)
        frag_json_number(item, "needed_bytes", rank->needed_bytes);
    if (replay->oom.has_happened) {
        frag_json_number(item, "oom.event", replay->oom.event);
        frag_json_number(item, "oom.requested_bytes", replay->oom.requested_bytes);
        add_step(item, "oom.step", rank, rank->oom_step);
    } else {
        frag_json_null(item, "oom");
    }
}

static void add_figure(frag_json *item, const frag_world *world, const frag_world_figure *figure)
{
    frag_json *at = frag_json_object(item, figure->name);
    frag_json_number(at, "least", figure->least);
    frag_json_number(at, "least_rank", world->ranks[figure->least_rank].number);
    frag_json_ratio(at, "mean", figure->mean);
    frag_json_number(at, "most", figure->most);
    frag_json_number(at, "most_rank", world->ranks[figure->most_rank].number);
    frag_json_ratio(at, "imbalance_ratio", frag_world_imbalance(figure));
}

static void add_site(frag_json *stage, const frag_site_change *site)
{
    frag_json *item = frag_json_add(stage, "sites");
    frag_json_text(item, "name", site->caller);
    if (site->inner[0] != '\0')
        frag_json_text(item, "inner", site->inner);
    frag_json_number(item, "least_rank_bytes", site->before.live_bytes);
    frag_json_number(item, "most_rank_bytes", site->after.live_bytes);
    frag_json_number(item, "least_rank_blocks", site->before.live_count);
    frag_json_number(item, "most_rank_blocks", site->after.live_count);
}

/* Those that differ, the most first. */
static void add_sites(frag_json *item, const frag_world *world, const frag_world_stage *stage)
{
    const frag_world_rank *least = &world->ranks[stage->figures[0].least_rank];
    const frag_world_rank *most = &world->ranks[stage->figures[0].most_rank];
    frag_site_change *pairs = NULL;
    size_t count = frag_site_uses_pair(&least->uses, &most->uses, &pairs);
    frag_json_array(item, "sites");
    frag_site_changes_sort(pairs, count);
    for (size_t i = 0; i < count && least->is_by_size == most->is_by_size; i++)
        if (pairs[i].before.live_bytes != pairs[i].after.live_bytes)
            add_site(item, &pairs[i]);
    frag_free(pairs);
}

static void add_stage(frag_json *json, const frag_world *world, const frag_world_stage *stage)
{
    frag_json *item = frag_json_add(json, "stages");
    frag_json_array(item, "ranks");
    for (size_t i = 0; i < stage->count; i++)
        frag_json_append_number(item, "ranks", world->ranks[stage->ranks[i]].number);
    for (size_t f = 0; f < FRAG_WORLD_FIGURES; f++)
        add_figure(item, world, &stage->figures[f]);
    add_sites(item, world, stage);
}

static void add_try(frag_json *json, const frag_world *world, const char *label, size_t index)
{
    frag_world_try one = frag_world_try_of(world, index);
    if (one.run_count == 0)
        return;
    frag_json *item = frag_json_add(json, "tried");
    frag_json_text(item, "policy", label);
    frag_json_number(item, "failed_ranks", one.failed_count);
    frag_json_number(item, "rank", world->ranks[one.rank].number);
    frag_json_number(item, "peak_reserved_bytes", one.reserved_bytes);
    frag_json_number(item, "device_calls", one.device_calls);
}

void frag_world_print_json(FILE *stream, const frag_world *world, const frag_policy_list *tried,
                           uint64_t capacity_bytes)
{
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "kind", "ranks");
    frag_json_array(json, "ranks");
    for (size_t i = 0; i < world->count; i++)
        add_rank(json, world, i);
    frag_json_array(json, "stages");
    for (size_t s = 0; s < world->stage_count; s++)
        add_stage(json, world, &world->stages[s]);
    if (world->oom_count > 0)
        frag_json_number(json, "first_oom_rank", world->ranks[world->first_oom].number);
    else
        frag_json_null(json, "first_oom_rank");
    if (tried != NULL) {
        size_t best = frag_world_best_try(world, tried->count);
        frag_json_number(json, "capacity_bytes", capacity_bytes);
        frag_json_array(json, "tried");
        for (size_t i = 0; i < tried->count; i++)
            add_try(json, world, tried->specs[i].text, i);
        frag_json_text(json, "best_policy", best < tried->count ? tried->specs[best].text : NULL);
    }
    frag_json_write(json, stream, false);
}
