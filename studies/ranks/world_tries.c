/* One policy for all ranks: what came of each that was tried. */
#include "base/memory.h"
#include "studies/explain/explain_trace.h"
#include "studies/ranks/world.h"

frag_world_try frag_world_try_of(const frag_world *world, size_t index)
{
    frag_world_try sum = {0};
    for (size_t i = 0; i < world->count; i++) {
        const frag_rank_try *one = &world->ranks[i].tries[index];
        bool is_failed = !one->is_run || one->is_oom;
        if (is_failed ? sum.failed_count == 0
                      : sum.failed_count == 0 && one->reserved_bytes > sum.reserved_bytes)
            sum.rank = i;
        sum.run_count += one->is_run;
        sum.failed_count += is_failed;
        sum.device_calls += one->device_calls;
        if (one->reserved_bytes > sum.reserved_bytes)
            sum.reserved_bytes = one->reserved_bytes;
    }
    return sum;
}

size_t frag_world_best_try(const frag_world *world, size_t count)
{
    size_t best = count;
    frag_world_try least = {0};
    for (size_t i = 0; i < count; i++) {
        frag_world_try one = frag_world_try_of(world, i);
        if (one.failed_count > 0 || (best < count && (one.reserved_bytes > least.reserved_bytes ||
                                                      (one.reserved_bytes == least.reserved_bytes &&
                                                       one.device_calls >= least.device_calls))))
            continue;
        best = i;
        least = one;
    }
    return best;
}

bool frag_world_list_tries(const frag_policy_list *own, frag_policy_list *list, frag_error *error)
{
    const char *conf = NULL;
    bool ok = true;
    for (size_t i = 0; ok && (conf = frag_explain_setting(i)) != NULL; i++) {
        frag_text text = {0};
        frag_text_add(&text, "pytorch%s%s", *conf != '\0' ? ":" : "", conf);
        ok = frag_policy_specs_parse(text.bytes, &list->specs, &list->count, error);
        frag_text_destroy(&text);
    }
    for (size_t i = 0; ok && own != NULL && i < own->count; i++)
        ok = frag_policy_specs_parse(own->specs[i].text, &list->specs, &list->count, error);
    return ok;
}

uint64_t frag_world_recorded_capacity(const frag_world_rank *ranks, size_t count)
{
    uint64_t least = FRAG_UNLIMITED;
    for (size_t i = 0; i < count; i++)
        if (ranks[i].recorded_capacity < least)
            least = ranks[i].recorded_capacity;
    return least;
}
