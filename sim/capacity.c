/* The least capacity that survives.
 *
 * A run depends on the capacity only through which device calls fail. A run at capacity C has calls
 * that succeeded, needing at most N bytes in all, and calls that were refused, needing at least R:
 * every capacity in [N, R) gives the very same run. So from a failing C the next capacity that can
 * behave differently is R, and the search visits each behaviour once. A limit that is a share of
 * the capacity fits in: each of its decisions notes the capacity that it would take. A policy that
 * asks for the capacity itself may change with every page; then the step is one page. Success need
 * not be monotone, because a policy that was refused once may lay everything out differently
 * afterwards. */
#include "base/bits.h"
#include "base/bytes.h"
#include "sim/capacity_runs.h"
#include "sim/policy_engine.h"
#include "sim/run.h"

typedef struct capacity_search {
    frag_run_setup setup;
    frag_device_spec spec; /* of its device */
    frag_capacity_runs *runs;
    uint64_t page_bytes;
    const frag_context *context;
    const frag_repeats *repeats;
    bool is_least_enough;
    bool is_border_enough;
    uint64_t border_events; /* these two are of frag_find_border_capacity */
    uint64_t border_parts;
    uint64_t enough_requests; /* served with no limit */
    bool is_ample_read;       /* the policy asked for the capacity of a device without end */
    uint64_t give_up_bytes;
    frag_capacity_result *result;
} capacity_search;

/* No later one is below least. */
static bool try_capacity(capacity_search *search, uint64_t capacity, uint64_t least,
                         frag_run_result *run, frag_error *error)
{
    search->result->runs++;
    return frag_capacity_runs_try(search->runs, capacity, least, run, error);
}

/* The least capacity above this one that may behave differently. */
static uint64_t next_capacity(const capacity_search *search, uint64_t capacity,
                              const frag_run_result *run)
{
    uint64_t step = capacity + search->page_bytes;
    if (run->is_capacity_read || run->refused_need_min_bytes == FRAG_UNLIMITED)
        return step;
    uint64_t next = frag_round_up(run->refused_need_min_bytes, search->page_bytes);
    return next > step ? next : step;
}

/* Where every page may change the run: so many pages above the answer are tried whatever an
 * unlimited device was asked to hold, and so many at most. */
enum { STEPS_MIN = 256, STEPS_MAX = 4096 };

/* Above this, capacities are not tried. What an unlimited device was asked to hold is enough, but
 * not for a policy that makes something else of a smaller capacity. */
static uint64_t last_capacity(const capacity_search *search)
{
    const frag_capacity_result *result = search->result;
    if (!result->is_capacity_read)
        return result->enough_bytes;
    uint64_t least = result->capacity_bytes + STEPS_MIN * search->page_bytes;
    uint64_t most = result->capacity_bytes + STEPS_MAX * search->page_bytes;
    uint64_t last = result->enough_bytes > least ? result->enough_bytes : least;
    return last < most ? last : most;
}

/* No policy does with less. */
static uint64_t first_capacity(const capacity_search *search)
{
    uint64_t least =
        frag_trace_bound_bytes(search->setup.trace) + search->spec.used_by_others_bytes;
    return frag_round_up(least > 0 ? least : 1, search->page_bytes);
}

/* From a capacity up to the one that survives, and no further. */
static bool search_least(capacity_search *search, uint64_t capacity, frag_error *error)
{
    frag_capacity_result *result = search->result;
    frag_run_result run;
    while (capacity <= search->give_up_bytes) {
        if (!try_capacity(search, capacity, capacity, &run, error))
            return false;
        if (run.replay.is_interrupted)
            return true;
        if (!run.replay.oom.has_happened) {
            result->is_found = true;
            result->capacity_bytes = capacity;
            return true;
        }
        capacity = next_capacity(search, capacity, &run);
    }
    result->is_given_up = true;
    return true;
}

/* The least capacity that gives the same run as this one, which survived. */
static uint64_t least_alike(const capacity_search *search, uint64_t capacity,
                            const frag_run_result *run)
{
    return run->is_capacity_read ? capacity
                                 : frag_round_up(run->need_max_bytes, search->page_bytes);
}

/* What the whole trace needs, if that is as much more than its bound as the run that failed had
 * needed more than was requested. */
static uint64_t guess_need(const capacity_search *search, uint64_t capacity,
                           const frag_run_result *run)
{
    const frag_oom *oom = &run->replay.oom;
    uint64_t asked = oom->level.requested_bytes + oom->requested_bytes;
    double share = (double)capacity / (double)(asked + search->spec.used_by_others_bytes + 1);
    double need = (double)first_capacity(search) * share;
    uint64_t enough = search->result->enough_bytes;
    return need < (double)enough ? frag_round_up((uint64_t)need, search->page_bytes) : enough;
}

/* So many runs one page after another are no longer than border_events. */
static uint64_t count_from_below(const capacity_search *search)
{
    uint64_t events = search->setup.trace->event_count;
    uint64_t each = events > search->enough_requests ? events : search->enough_requests;
    return search->border_events / (each + 1);
}

/* Between one that survives and one below which none does, as far as runs say: upward by guesses
 * from those that failed, each at least twice as far as before, until one survives; then by halves.
 */
static bool search_border(capacity_search *search, frag_error *error)
{
    frag_capacity_result *result = search->result;
    uint64_t page = search->page_bytes;
    uint64_t low = first_capacity(search);
    uint64_t high = result->enough_bytes;
    uint64_t from_below = count_from_below(search);
    uint64_t apart = frag_round_up(low / search->border_parts, page);
    uint64_t rise = apart;
    uint64_t guess = low;
    for (uint64_t i = 0; low < high && (i < from_below || high - low >= apart); i++) {
        frag_run_result run;
        uint64_t middle = low + (high - low) / page / 2 * page;
        if (i < from_below)
            middle = low;
        else if (!result->is_found && guess < middle)
            middle = guess;
        if (!try_capacity(search, middle, low, &run, error))
            return false;
        if (run.replay.is_interrupted)
            return true;
        result->is_capacity_read = result->is_capacity_read || run.is_capacity_read;
        if (run.replay.oom.has_happened) {
            low = next_capacity(search, middle, &run);
            rise *= 2;
            guess = guess_need(search, middle, &run);
            guess = guess > low + rise ? guess : low + rise;
        } else {
            high = least_alike(search, middle, &run);
            result->is_found = true;
        }
    }
    result->capacity_bytes = high;
    result->is_found = result->is_found || frag_capacity_runs_are_shared(search->runs);
    /* Where a range ends with the device, what was enough without end may not be. */
    search->give_up_bytes = FRAG_CAPACITY_PLENTY;
    return result->is_found || search_least(search, low < high ? high : low, error);
}

static bool search_capacity(capacity_search *search, frag_error *error)
{
    frag_capacity_result *result = search->result;
    frag_run_result run;
    if (search->give_up_bytes != FRAG_UNLIMITED)
        return search_least(search, first_capacity(search), error);
    result->runs++;
    if (!frag_capacity_runs_enough(search->runs, &run, error))
        return false;
    result->peak = run.replay.peak;
    search->enough_requests = run.replay.requests;
    result->is_capacity_read = search->is_ample_read = run.is_capacity_read;
    if (run.replay.oom.has_happened || run.replay.is_interrupted)
        return true; /* fails with any capacity: a limit of the policy, not of the device */
    /* The most an unlimited device was asked to hold. */
    result->enough_bytes = frag_round_up(run.need_max_bytes, search->page_bytes);
    if (search->is_border_enough)
        return search_border(search, error);
    if (search->is_least_enough) {
        search->give_up_bytes = FRAG_CAPACITY_PLENTY;
        return search_least(search, first_capacity(search), error);
    }
    uint64_t capacity = first_capacity(search);
    while (!result->is_found || capacity <= last_capacity(search)) {
        if (!try_capacity(search, capacity, capacity, &run, error))
            return false;
        if (run.replay.is_interrupted)
            return true;
        bool fails = run.replay.oom.has_happened;
        if (!fails && !result->is_found) {
            result->is_found = true;
            result->capacity_bytes = capacity;
        } else if (fails && result->is_found) {
            result->is_monotone = false;
            result->failing_above_bytes = capacity;
        }
        result->is_capacity_read = result->is_capacity_read || run.is_capacity_read;
        capacity = next_capacity(search, capacity, &run);
        if (fails && result->is_found &&
            capacity - search->page_bytes > result->failing_above_bytes)
            result->failing_above_bytes = capacity - search->page_bytes;
    }
    if (!result->is_found || result->capacity_bytes <= search->page_bytes)
        return true;
    result->runs++;
    if (!frag_capacity_runs_alone(search->runs, result->capacity_bytes - search->page_bytes, &run,
                                  error))
        return false;
    result->below = run.replay.oom;
    result->has_below = run.replay.oom.has_happened;
    return true;
}

static bool find(capacity_search *search, frag_capacity_result *result, frag_error *error)
{
    search->setup.device = &search->spec;
    frag_policy_plan *plan = NULL; /* the same at every capacity */
    *result = (frag_capacity_result){.is_monotone = true};
    if (!frag_replay_plan(&search->setup, NULL, &plan, error))
        return false;
    search->page_bytes = frag_device_page(&search->spec, search->setup.trace);
    search->result = result;
    frag_arena_spare *spare = frag_arena_spare_create();
    frag_run_options options = {.is_layout_skipped = true,
                                .plan = plan,
                                .spare = spare,
                                .context = search->context,
                                .repeats = search->repeats};
    search->runs = frag_capacity_runs_create(&search->setup, &options);
    bool ok = search_capacity(search, error);
    if (search->is_ample_read) /* what such a device was asked to hold says nothing of others */
        result->enough_bytes = 0;
    frag_capacity_runs_destroy(search->runs);
    frag_arena_spare_destroy(spare);
    frag_policy_plan_destroy(search->setup.ops, plan);
    return ok;
}

bool frag_find_capacity(const frag_run_setup *setup, const frag_repeats *repeats,
                        const frag_context *context, frag_capacity_result *result,
                        frag_error *error)
{
    capacity_search search = {.setup = *setup,
                              .spec = *setup->device,
                              .repeats = repeats,
                              .context = context,
                              .give_up_bytes = FRAG_UNLIMITED};
    return find(&search, result, error);
}

bool frag_find_least_capacity(const frag_run_setup *setup, const frag_repeats *repeats,
                              uint64_t give_up_bytes, const frag_context *context,
                              frag_capacity_result *result, frag_error *error)
{
    capacity_search search = {.setup = *setup,
                              .spec = *setup->device,
                              .repeats = repeats,
                              .context = context,
                              .is_least_enough = true,
                              .give_up_bytes = give_up_bytes};
    return find(&search, result, error);
}

bool frag_find_border_capacity(const frag_run_setup *setup, uint64_t events, uint64_t parts,
                               const frag_context *context, frag_capacity_result *result,
                               frag_error *error)
{
    capacity_search search = {.setup = *setup,
                              .spec = *setup->device,
                              .context = context,
                              .is_border_enough = true,
                              .border_events = events,
                              .border_parts = parts,
                              .give_up_bytes = FRAG_UNLIMITED};
    return find(&search, result, error);
}
