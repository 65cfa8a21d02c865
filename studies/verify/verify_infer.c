#include "studies/verify/verify_infer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "studies/verify/verify_evidence.h"
#include "studies/verify/verify_scan.h"
#include "studies/verify/verify_supposed.h"

/* ---- the search */

/* Are settings that are not given known to be the defaults? */
static bool knows_settings(const frag_guessing *search)
{
    const frag_option_value *conf = frag_policy_spec_value(search->spec, "conf");
    return frag_recording_get(search->recording, "torch.conf") != NULL ||
           (conf != NULL && conf->is_given);
}

static void see_what_is_free(frag_guessing *search, uint64_t capacity)
{
    bool is_known = knows_settings(search);
    for (uint32_t i = 0; i < FRAG_GUESS_KEYS; i++) {
        const frag_option_value *option = frag_policy_spec_value(search->spec, frag_guess_keys[i]);
        search->is_free[i] =
            option != NULL && !option->is_given && (i == FRAG_GUESS_VERSION || !is_known);
    }
    const frag_option_value *threshold =
        frag_policy_spec_value(search->spec, "garbage_collection_threshold");
    bool is_threshold_known =
        is_known || (threshold != NULL && threshold->is_given) || search->given.gc_threshold > 0;
    bool is_limit_known =
        capacity != FRAG_UNLIMITED && (search->given.has_fraction || search->limit_ratio > 0);
    search->is_limit_free = search->trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] > 0 &&
                            search->trace->stats.op_counts[FRAG_OP_LIMIT] == 0 && !is_limit_known;
    search->is_capacity_free =
        capacity == FRAG_UNLIMITED && search->trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] > 0;
    search->is_mark_free =
        is_threshold_known ? search->given.gc_threshold > 0 && !is_limit_known : true;
}

/* What needs no trying. */
static frag_guess first_guess(const frag_guessing *search, uint64_t capacity)
{
    frag_guess first = {
        .mark_bytes = FRAG_UNLIMITED, .limit_bytes = FRAG_UNLIMITED, .capacity_bytes = capacity};
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX];
    if (search->is_free[FRAG_GUESS_EXPANDABLE] &&
        search->trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] > 0)
        snprintf(first.texts[FRAG_GUESS_EXPANDABLE], sizeof first.texts[0], "true");
    if (search->is_free[FRAG_GUESS_LARGE_SEGMENT] &&
        frag_evidence_segment_sizes(search->trace, sizes) == 1)
        snprintf(first.texts[FRAG_GUESS_LARGE_SEGMENT], sizeof first.texts[0], "%" PRIu64,
                 sizes[0]);
    if (search->is_free[FRAG_GUESS_DIVISIONS]) {
        frag_rounding rounding;
        frag_rounding_read(search->trace, &rounding);
        frag_guess_set_rounding(&first, &rounding);
        if (frag_rounding_is_old(&rounding) && search->is_free[FRAG_GUESS_VERSION])
            snprintf(first.texts[FRAG_GUESS_VERSION], sizeof first.texts[0], "2.3");
    }
    return first;
}

/* From a guess on, setting after setting, each the one with which the policy goes along longest;
 * what was taken before may change again. */
static void climb(frag_guessing *search, const frag_guess *from)
{
    enum { ROUNDS_MAX = 8 };
    frag_guess best = search->best;
    uint64_t best_reach = search->best_reach;
    frag_verify_result result;
    search->best_reach = 0;
    frag_guess_try(search, from, &result);
    for (uint32_t round = 0; round < ROUNDS_MAX && !frag_guessing_is_over(search); round++) {
        frag_guess base = search->best;
        uint64_t reach = search->best_reach;
        frag_guess_scan(search, &base);
        if (search->best_reach == reach)
            break;
    }
    if (search->best_reach <= best_reach) {
        search->best = best;
        search->best_reach = best_reach;
    }
}

/* Which single divisions do the same? */
static void compare_divisions(frag_guessing *search, frag_inferred *inferred)
{
    const char *own = search->best.texts[FRAG_GUESS_DIVISIONS];
    size_t used = 0;
    uint32_t count = 0;
    if (own[0] == '\0' || own[0] == '[')
        return;
    for (uint32_t way = FRAG_ROUNDING_NONE; way < FRAG_ROUNDING_WAYS; way++) {
        frag_guess other = search->best;
        frag_verify_result result;
        snprintf(other.texts[FRAG_GUESS_DIVISIONS], sizeof other.texts[0], "%u", 1u << (way - 1));
        if (!frag_guess_replay(search, &other, &result) || !result.is_identical)
            continue;
        used += (size_t)snprintf(inferred->divisions + used, sizeof inferred->divisions - used,
                                 "%s%u", used > 0 ? ", " : "", 1u << (way - 1));
        count++;
    }
    if (count < 2)
        inferred->divisions[0] = '\0';
}

/* Leaves out what is not needed. */
static void simplify(frag_guessing *search, uint64_t capacity)
{
    frag_verify_result result;
    for (uint32_t i = 0; i < FRAG_GUESS_KEYS + 3; i++) {
        frag_guess less = search->best;
        if (i == FRAG_GUESS_KEYS)
            less.mark_bytes = FRAG_UNLIMITED;
        else if (i == FRAG_GUESS_KEYS + 1)
            less.limit_bytes = FRAG_UNLIMITED;
        else if (i == FRAG_GUESS_KEYS + 2)
            less.capacity_bytes = capacity;
        else
            less.texts[i][0] = '\0';
        if (memcmp(&less, &search->best, sizeof less) != 0 &&
            frag_guess_replay(search, &less, &result) && result.is_identical) {
            search->best = less;
            search->best_result = result;
        }
    }
}

/* ---- reporting */

/* What an interval is of. */
typedef enum quantity { MARK, LIMIT, SPLIT, SLACK } quantity;

static frag_pytorch_interval interval_of(quantity what, const frag_policy_met *met)
{
    return what == MARK    ? frag_pytorch_met_mark(met)
           : what == LIMIT ? frag_pytorch_met_limit(met)
           : what == SPLIT ? frag_pytorch_met_split(met)
                           : frag_pytorch_met_slack(met);
}

/* A guess with the nearest value outside of the interval; false: there is none. */
static bool step_out(const frag_guessing *search, const frag_pytorch_interval *all, quantity what,
                     bool is_up, frag_guess *next)
{
    uint64_t half = search->unit > 1 ? search->unit / 2 : 1;
    uint64_t most = FRAG_GUESS_CAPACITY;
    if (is_up ? all->most >= most : all->least <= half)
        return false;
    if (what == MARK)
        next->mark_bytes = is_up ? all->most + half : all->least - half;
    else if (what == LIMIT)
        next->limit_bytes = is_up ? all->most + 1 : all->least - 1;
    else
        snprintf(next->texts[what == SPLIT ? FRAG_GUESS_MAX_SPLIT : FRAG_GUESS_SLACK],
                 sizeof next->texts[0], "%" PRIu64,
                 is_up ? all->most / FRAG_MIB + 1 : (all->least - 1) / FRAG_MIB);
    return true;
}

/* The values on both sides that change comparisons, but nothing that shows. */
static frag_pytorch_interval widen(const frag_guessing *search, quantity what)
{
    enum { STEPS_MAX = 256 };
    if (!search->best_result.is_identical)
        return (frag_pytorch_interval){FRAG_UNLIMITED, FRAG_UNLIMITED};
    frag_pytorch_interval all = interval_of(what, &search->best_result.met);
    for (int side = 0; side < 2; side++) {
        frag_verify_result result;
        frag_guess next = search->best;
        for (int i = 0; i < STEPS_MAX && step_out(search, &all, what, side == 1, &next) &&
                        frag_guess_replay(search, &next, &result) && result.is_identical;
             i++) {
            frag_pytorch_interval beside = interval_of(what, &result.met);
            all.least = beside.least < all.least ? beside.least : all.least;
            all.most = beside.most > all.most ? beside.most : all.most;
        }
    }
    return all;
}

static void add_setting(frag_inferred *inferred, const char *key, const char *value)
{
    size_t used = strlen(inferred->settings);
    snprintf(inferred->settings + used, sizeof inferred->settings - used, "%s%s=%s",
             used > 0 ? "," : "", key, value);
}

static uint64_t divided(uint64_t bytes, double threshold)
{
    double whole = (double)bytes / threshold;
    return whole < (double)FRAG_GUESS_LARGEST ? (uint64_t)whole : FRAG_UNLIMITED;
}

/* With a known threshold the mark tells the limit; without one, itself alone. */
static void tell_limits(const frag_guessing *search, const frag_guess_limits *found,
                        frag_inferred *inferred)
{
    frag_pytorch_interval limit = frag_pytorch_met_limit(&search->best_result.met);
    if (!search->best_result.is_identical)
        return;
    if (search->best.mark_bytes == FRAG_UNLIMITED) {
        inferred->limit = widen(search, LIMIT);
    } else if (search->given.gc_threshold <= 0) {
        inferred->mark = widen(search, MARK);
    } else {
        frag_pytorch_interval mark = widen(search, MARK);
        uint64_t least = divided(mark.least, found->threshold);
        least += least != FRAG_UNLIMITED ? 1 : 0;
        uint64_t most = divided(mark.most, found->threshold);
        inferred->limit.least = least > limit.least ? least : limit.least;
        inferred->limit.most = most < limit.most ? most : limit.most;
    }
}

static void tell(const frag_guessing *search, uint64_t capacity, frag_inferred *inferred)
{
    const frag_guess *best = &search->best;
    for (uint32_t i = 0; i < FRAG_GUESS_KEYS; i++)
        if (best->texts[i][0] != '\0')
            add_setting(inferred, frag_guess_keys[i], best->texts[i]);
    if (best->texts[FRAG_GUESS_MAX_SPLIT][0] != '\0')
        inferred->split = widen(search, SPLIT);
    if (best->texts[FRAG_GUESS_SLACK][0] != '\0')
        inferred->slack = widen(search, SLACK);
    if (capacity == FRAG_UNLIMITED)
        inferred->capacity_bytes = best->capacity_bytes;
    frag_guess_limits found;
    bool has_mark = best->mark_bytes != FRAG_UNLIMITED;
    if ((!has_mark && best->limit_bytes == FRAG_UNLIMITED) ||
        !frag_guess_find_limits(search, best, &found))
        return;
    inferred->capacity_bytes = found.capacity_bytes;
    if (search->trace->stats.op_counts[FRAG_OP_LIMIT] < 2) {
        inferred->limit_bytes = found.limit_bytes;
        tell_limits(search, &found, inferred);
    }
    if (has_mark && search->given.gc_threshold <= 0) {
        char text[32];
        snprintf(text, sizeof text, "%.6g", found.threshold);
        add_setting(inferred, "garbage_collection_threshold", text);
    }
}

static void tell_tried(const frag_guessing *search, frag_inferred *inferred)
{
    size_t used = 0;
    for (uint32_t i = 0; i < FRAG_GUESS_KEYS; i++)
        if (search->is_free[i])
            used += (size_t)snprintf(inferred->tried + used, sizeof inferred->tried - used, "%s%s",
                                     used > 0 ? ", " : "", frag_guess_keys[i]);
    if (search->is_mark_free)
        snprintf(inferred->tried + used, sizeof inferred->tried - used, "%s%s",
                 used > 0 ? ", " : "",
                 search->given.gc_threshold > 0 ? "memory limit" : "garbage_collection_threshold");
    if (search->is_capacity_free)
        snprintf(inferred->tried + strlen(inferred->tried),
                 sizeof inferred->tried - strlen(inferred->tried), "%scapacity",
                 inferred->tried[0] != '\0' ? ", " : "");
    inferred->replays = inferred->tried[0] != '\0' ? search->replays : 0;
    inferred->event = search->best_reach;
}

uint64_t frag_verify_capacity(const frag_recording *recording, const frag_policy_spec *spec,
                              uint64_t capacity_bytes)
{
    const char *hint = frag_recording_get(recording, "torch.version_hint");
    frag_pytorch_settings settings;
    if (capacity_bytes != FRAG_UNLIMITED ||
        !frag_pytorch_settings_of(&settings, spec->ops, spec->values, hint))
        return capacity_bytes;
    return settings.has_fraction ? FRAG_GUESS_CAPACITY : FRAG_UNLIMITED;
}

void frag_inferred_create(frag_inferred *inferred)
{
    const frag_pytorch_interval none = {FRAG_UNLIMITED, FRAG_UNLIMITED};
    *inferred = (frag_inferred){.capacity_bytes = FRAG_UNLIMITED,
                                .limit_bytes = FRAG_UNLIMITED,
                                .limit = none,
                                .mark = none,
                                .split = none,
                                .slack = none};
}

/* Enough for all settings together where a recording is short, and for the likely ones where it is
 * long, within seconds. */
#define EVENTS_LEAST ((uint64_t)15000000)
#define REPLAYS_LEAST 16u

static uint64_t events_to_replay(const frag_trace *trace)
{
    uint64_t events = trace->event_count * REPLAYS_LEAST;
    return events > EVENTS_LEAST ? events : EVENTS_LEAST;
}

/* Climbs from what the recording shows, then from what was given. */
static void search_trace(frag_guessing *search, uint64_t capacity)
{
    frag_guess plain = {
        .mark_bytes = FRAG_UNLIMITED, .limit_bytes = FRAG_UNLIMITED, .capacity_bytes = capacity};
    frag_guess seen = first_guess(search, capacity);
    climb(search, &seen);
    if (memcmp(&plain, &seen, sizeof plain) != 0)
        climb(search, &plain);
}

static void conclude(frag_guessing *search, uint64_t capacity, frag_inferred *inferred)
{
    if (search->best_result.is_identical) {
        simplify(search, capacity);
        compare_divisions(search, inferred);
    }
    tell(search, capacity, inferred);
}

/* The same where calls of empty_cache are left out. */
static bool search_without(frag_guessing *search, uint64_t capacity, bool is_large_only,
                           frag_inferred *inferred)
{
    const frag_trace *trace = search->trace;
    frag_trace copy;
    uint64_t count = frag_supposed_leave_out(trace, is_large_only, &copy);
    if (count > 0) {
        search->trace = &copy;
        search->events_left += events_to_replay(trace);
        search_trace(search, capacity);
    }
    bool is_found = search->best_result.is_identical;
    if (is_found) {
        frag_inferred_create(inferred);
        inferred->left_out_calls = count;
        conclude(search, capacity, inferred);
    }
    search->trace = trace;
    frag_supposed_destroy(&copy);
    return is_found;
}

bool frag_verify_infer(const frag_context *context, const frag_recording *recording,
                       const frag_trace *trace, const frag_policy_spec *spec,
                       uint64_t capacity_bytes, frag_verify_result *result, frag_inferred *inferred)
{
    const char *hint = frag_recording_get(recording, "torch.version_hint");
    frag_guessing search = {
        .context = context, .recording = recording, .trace = trace, .spec = spec};
    frag_inferred_create(inferred);
    if (!frag_pytorch_settings_of(&search.given, spec->ops, spec->values, hint))
        return false;
    search.unit = frag_evidence_unit(trace);
    search.limit_ratio = frag_evidence_limit_ratio(trace);
    search.events_left = events_to_replay(trace);
    search.best = (frag_guess){.mark_bytes = FRAG_UNLIMITED,
                               .limit_bytes = FRAG_UNLIMITED,
                               .capacity_bytes = capacity_bytes};
    search.best_reach = result->first.event;
    search.best_result = *result;
    see_what_is_free(&search, capacity_bytes);
    search_trace(&search, capacity_bytes);
    bool is_found = search.best_result.is_identical;
    if (is_found || search.best_reach > result->first.event)
        conclude(&search, capacity_bytes, inferred);
    for (int i = 0; i < 2 && !is_found && !knows_settings(&search); i++)
        is_found = search_without(&search, capacity_bytes, i == 0, inferred);
    tell_tried(&search, inferred);
    if (!is_found)
        return false;
    *result = search.best_result;
    return true;
}
