#include "studies/leaks/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/trace/demand.h"
#include "studies/explain/explain_purpose.h"
#include "studies/leaks/leak_series.h"
#include "studies/usual_policies.h"

enum {
    TIMES_MAX = 240,  /* that are looked at: several steps together where there are more */
    SCALAR_BYTES = 64 /* a loss, a metric */
};

const char *frag_leak_kind_name(frag_leak_kind kind)
{
    static const char *const names[] = {FRAG_LEAK_KINDS(FRAG_SECOND_OF_3)};
    return names[kind];
}

const char *frag_leak_kind_title(frag_leak_kind kind)
{
    static const char *const titles[] = {FRAG_LEAK_KINDS(FRAG_THIRD_OF_3)};
    return titles[kind];
}

/* ---- the lowest points: of each group, and of all together as one group more */

typedef struct lows {
    const frag_trace *trace;
    frag_leaks *leaks;
    size_t times;
    size_t steps_each; /* steps of one time */
    size_t groups;     /* with that of all together, the last */
    uint64_t *bytes;   /* by group, then time */
    uint64_t *blocks;
    uint64_t *live_bytes;
    uint64_t *live_blocks;
    uint64_t *low_bytes;
    uint64_t *low_blocks;
} lows;

static void change_one(lows *at, size_t group, const frag_demand_change *change)
{
    at->live_bytes[group] += change->is_free ? 0 - change->bytes : change->bytes;
    at->live_blocks[group] += change->is_free ? (uint64_t)-1 : 1;
    if (at->live_bytes[group] < at->low_bytes[group])
        at->low_bytes[group] = at->live_bytes[group];
    if (at->live_blocks[group] < at->low_blocks[group])
        at->low_blocks[group] = at->live_blocks[group];
}

static void end_time(lows *at, size_t time)
{
    for (size_t i = 0; i < at->groups; i++) {
        at->bytes[i * at->times + time] = at->low_bytes[i];
        at->blocks[i * at->times + time] = at->low_blocks[i];
        at->low_bytes[i] = at->live_bytes[i];
        at->low_blocks[i] = at->live_blocks[i];
    }
}

static void follow(lows *at)
{
    const frag_steps *steps = &at->leaks->steps;
    frag_demand demand;
    frag_demand_change change;
    uint64_t end = steps->begin[at->times * at->steps_each];
    size_t time = 0;
    frag_demand_begin(&demand, at->trace);
    for (uint64_t i = 0; i < end; i++) {
        if (i == steps->begin[0]) {
            memcpy(at->low_bytes, at->live_bytes, at->groups * sizeof *at->low_bytes);
            memcpy(at->low_blocks, at->live_blocks, at->groups * sizeof *at->low_blocks);
        }
        if (i == steps->begin[(time + 1) * at->steps_each])
            end_time(at, time++);
        if (frag_demand_step(&demand, i, &change)) {
            change_one(at, frag_use_group(&at->leaks->groups, change.alloc_event), &change);
            change_one(at, at->groups - 1, &change);
        }
    }
    end_time(at, time);
    frag_demand_end(&demand);
}

static void measure(lows *at, const frag_trace *trace, frag_leaks *leaks)
{
    size_t steps = leaks->steps.count;
    size_t each = (steps + TIMES_MAX - 1) / TIMES_MAX;
    *at = (lows){.trace = trace,
                 .leaks = leaks,
                 .steps_each = each,
                 .times = steps / each,
                 .groups = leaks->groups.count + 1};
    at->bytes = frag_alloc(at->groups * at->times, sizeof *at->bytes);
    at->blocks = frag_alloc(at->groups * at->times, sizeof *at->blocks);
    at->live_bytes = frag_alloc(at->groups, sizeof *at->live_bytes);
    at->live_blocks = frag_alloc(at->groups, sizeof *at->live_blocks);
    at->low_bytes = frag_alloc(at->groups, sizeof *at->low_bytes);
    at->low_blocks = frag_alloc(at->groups, sizeof *at->low_blocks);
    follow(at);
}

static void forget(lows *at)
{
    frag_free(at->bytes);
    frag_free(at->blocks);
    frag_free(at->live_bytes);
    frag_free(at->live_blocks);
    frag_free(at->low_bytes);
    frag_free(at->low_blocks);
}

/* ---- what they say */

static double per_step(const uint64_t *values, const lows *at, size_t start)
{
    size_t last = at->times - 1;
    return ((double)values[last] - (double)values[start]) /
           (double)((last - start) * at->steps_each);
}

static frag_leak_kind kind_of(const frag_recording *recording, const frag_leak *leak)
{
    frag_purpose purpose = leak->name != NULL ? frag_purpose_of_site(recording, leak->name->site)
                                              : FRAG_PURPOSE_UNKNOWN;
    double block = leak->blocks_per_step > 0 ? leak->bytes_per_step / leak->blocks_per_step : 0;
    if (leak->blocks_per_step <= 0)
        return FRAG_LEAK_GROWING;
    if (purpose == FRAG_PURPOSE_OPTIMIZER)
        return FRAG_LEAK_OPTIMIZER;
    if (purpose == FRAG_PURPOSE_ACTIVATIONS && block > SCALAR_BYTES)
        return FRAG_LEAK_GRAPH;
    return block <= SCALAR_BYTES ? FRAG_LEAK_SCALAR : FRAG_LEAK_KEPT;
}

/* What the values, one at each time, tell of a leak; kind and blocks are the caller's. */
static frag_leak make_leak(const lows *at, const uint64_t *values,
                           const frag_leak_judgement *judged)
{
    return (frag_leak){
        .first_step = judged->first * at->steps_each,
        .start_bytes = values[judged->start],
        .end_bytes = values[at->times - 1],
        .bytes_per_step = per_step(values, at, judged->start),
        .rising_ratio = judged->rising_ratio,
        .is_sure = judged->is_even && at->leaks->steps.by != FRAG_STEPS_BY_PARTS,
    };
}

static void judge_group(const frag_recording *recording, const lows *at, size_t group)
{
    frag_leaks *leaks = at->leaks;
    const uint64_t *bytes = &at->bytes[group * at->times];
    bool is_all = group + 1 == at->groups;
    frag_leak_judgement judged = frag_leak_judge(bytes, at->times);
    if (judged.shape == FRAG_SHAPE_LEAK) {
        frag_leak leak = make_leak(at, bytes, &judged);
        leak.name = is_all ? NULL : &leaks->groups.names[group];
        leak.blocks_per_step = per_step(&at->blocks[group * at->times], at, judged.start);
        leak.kind = kind_of(recording, &leak);
        leaks->leaks[leaks->count++] = leak;
    } else if (judged.shape != FRAG_SHAPE_FLAT && !is_all) {
        leaks->lookalikes[leaks->lookalike_count++] = (frag_leak_lookalike){
            .name = &leaks->groups.names[group],
            .levels_off = judged.shape == FRAG_SHAPE_LEVELS_OFF,
            .step = judged.last_rise * at->steps_each,
            .bytes = bytes[at->times - 1] - bytes[judged.start],
        };
    }
}

static double known_per_step(const frag_leaks *leaks)
{
    double sum = 0;
    for (size_t i = 0; i < leaks->count; i++)
        sum += leaks->leaks[i].bytes_per_step;
    return sum;
}

/* Groups whose own lowest points do not rise, but all together do: blocks of changing sizes. */
static void judge_all(const frag_recording *recording, const lows *at)
{
    frag_leaks *leaks = at->leaks;
    double known = known_per_step(leaks);
    size_t before = leaks->count;
    judge_group(recording, at, at->groups - 1);
    if (leaks->count > before && known * 2 > leaks->leaks[before].bytes_per_step)
        leaks->count = before;
}

static int compare_leaks(const void *left, const void *right)
{
    const frag_leak *a = left, *b = right;
    if (a->bytes_per_step != b->bytes_per_step)
        return a->bytes_per_step > b->bytes_per_step ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

static int compare_lookalikes(const void *left, const void *right)
{
    const frag_leak_lookalike *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

/* ---- the allocator */

typedef struct reserved_walk {
    const lows *at;
    uint64_t *waste; /* by time: most that is reserved less most that is allocated */
    uint64_t allocated;
    uint64_t reserved;
    size_t time;
} reserved_walk;

static void observe(void *context, const frag_replay *replay, uint64_t event,
                    const frag_level *level)
{
    reserved_walk *walk = context;
    const lows *at = walk->at;
    (void)replay;
    if (event < at->leaks->steps.begin[0] || walk->time == at->times)
        return;
    if (event >= at->leaks->steps.begin[(walk->time + 1) * at->steps_each]) {
        walk->waste[walk->time++] = walk->reserved - walk->allocated;
        walk->allocated = walk->reserved = 0;
    }
    walk->allocated =
        level->allocated_bytes > walk->allocated ? level->allocated_bytes : walk->allocated;
    walk->reserved =
        level->reserved_bytes > walk->reserved ? level->reserved_bytes : walk->reserved;
}

/* A replay without a limit: does what is reserved rise faster than what is kept? */
static bool judge_reserved(const frag_run_setup *setup, const frag_context *context, const lows *at,
                           frag_error *error)
{
    frag_leaks *leaks = at->leaks;
    frag_device_spec unlimited = *setup->device;
    unlimited.capacity_bytes = FRAG_UNLIMITED;
    frag_run_setup free_setup = *setup;
    free_setup.device = &unlimited;
    frag_run_result result = {0};
    reserved_walk walk = {.at = at, .waste = frag_alloc(at->times, sizeof *walk.waste)};
    frag_run_options run = {.context = context,
                            .is_layout_skipped = true,
                            .observer = observe,
                            .observer_context = &walk};
    bool ok = frag_run(&free_setup, &run, &result, error);
    if (ok && walk.time < at->times)
        walk.waste[walk.time] = walk.reserved - walk.allocated;
    leaks->peak_reserved_bytes = result.replay.peak.reserved_bytes;
    frag_leak_judgement judged = frag_leak_judge(walk.waste, at->times);
    frag_leak leak = make_leak(at, walk.waste, &judged);
    leak.kind = FRAG_LEAK_FRAGMENTATION;
    if (ok && judged.shape == FRAG_SHAPE_LEAK && leak.bytes_per_step > known_per_step(leaks))
        leaks->leaks[leaks->count++] = leak;
    frag_free(walk.waste);
    return ok;
}

static bool judge_allocator(const frag_leaks_options *options, const frag_recording *recording,
                            const lows *at, frag_error *error)
{
    frag_policy_spec resolved = {0};
    if (!frag_usual_policy_resolve(options->context, options->spec, recording, &resolved, error))
        return frag_error_in(error, recording->name);
    const frag_run_setup setup = {recording, at->trace, resolved.ops, resolved.values,
                                  options->device};
    frag_leaks *leaks = at->leaks;
    bool ok = judge_reserved(&setup, options->context, at, error);
    if (ok && leaks->count > 0 && options->device->capacity_bytes != FRAG_UNLIMITED) {
        const frag_leak_rate rate = {known_per_step(leaks), leaks->peak_reserved_bytes};
        leaks->has_forecast = true;
        ok = frag_leaks_forecast(&setup, options->context, &leaks->steps, &rate, &leaks->forecast,
                                 error);
    }
    frag_policy_spec_destroy(&resolved);
    return ok;
}

/* ---- */

bool frag_leaks_find(const frag_leaks_options *options, const frag_recording *recording,
                     const frag_trace *trace, frag_leaks *leaks, frag_error *error)
{
    lows at;
    bool has_stacks = frag_use_has_stacks(recording, trace);
    *leaks = (frag_leaks){.is_by_size = !has_stacks};
    frag_use_groups_create(recording, trace, has_stacks ? FRAG_USES_BY_SITE : FRAG_USES_BY_SIZE,
                           &leaks->groups);
    if (!frag_steps_find(recording, trace, &leaks->groups, options->mark, &leaks->steps, error))
        return frag_error_in(error, recording->name);
    measure(&at, trace, leaks);
    leaks->leaks = frag_alloc(at.groups + 1, sizeof *leaks->leaks);
    leaks->lookalikes = frag_alloc(at.groups, sizeof *leaks->lookalikes);
    for (size_t i = 0; i + 1 < at.groups; i++)
        judge_group(recording, &at, i);
    judge_all(recording, &at);
    bool ok = judge_allocator(options, recording, &at, error);
    forget(&at);
    qsort(leaks->leaks, leaks->count, sizeof *leaks->leaks, compare_leaks);
    qsort(leaks->lookalikes, leaks->lookalike_count, sizeof *leaks->lookalikes, compare_lookalikes);
    return ok && !frag_is_cancelled(options->context);
}

void frag_leaks_destroy(frag_leaks *leaks)
{
    frag_use_groups_destroy(&leaks->groups);
    frag_steps_destroy(&leaks->steps);
    frag_free(leaks->leaks);
    frag_free(leaks->lookalikes);
    *leaks = (frag_leaks){.count = 0};
}
