/* Would a run with other settings have been the same?
 *
 * Settings act through comparisons: a size is below max_split_size or not, reserved bytes are over
 * the memory limit or not. A run notes between which values each limit could have lain without one
 * of its comparisons coming out another way. While all come out the same way, the next decision is
 * the same, and so is all that follows from it; this goes for several settings that differ at the
 * same time, since what is compared depends on the decisions before and on no setting. */
#include "allocators/pytorch/pytorch_met.h"
#include "allocators/pytorch/pytorch_options.h"

#include <string.h>

#include "allocators/pytorch/pytorch_state.h"

#include "base/bytes.h"
#include "sim/policy_engine.h"

_Static_assert(sizeof(frag_pytorch_settings) <= sizeof(frag_policy_terms), "settings fit");

bool frag_pytorch_terms(const frag_option_value *values, const char *recorded_version,
                        frag_policy_terms *terms)
{
    frag_pytorch_settings settings;
    if (!frag_pytorch_settings_create(&settings, values, recorded_version, NULL))
        return false;
    *terms = (frag_policy_terms){{0}};
    memcpy(terms, &settings, sizeof settings);
    return true;
}

void frag_pytorch_tell_met(const frag_policy *policy, frag_policy_met *met)
{
    *met = (frag_policy_met){{0}};
    memcpy(met, &policy->met, sizeof policy->met);
}

/* What is equal to the limit is on its far side, if is_reached, or else on its near one. */
static frag_pytorch_interval between(uint64_t near_max, uint64_t far_min, bool is_reached)
{
    frag_pytorch_interval all = {near_max, far_min};
    if (is_reached)
        all.least++;
    else if (far_min != FRAG_UNLIMITED)
        all.most--;
    return all;
}

static frag_pytorch_met met_of(const frag_policy_met *met)
{
    frag_pytorch_met own;
    memcpy(&own, met, sizeof own);
    return own;
}

frag_pytorch_interval frag_pytorch_met_mark(const frag_policy_met *met)
{
    frag_pytorch_met own = met_of(met);
    return between(own.below_mark_max, own.over_mark_min, false);
}

frag_pytorch_interval frag_pytorch_met_limit(const frag_policy_met *met)
{
    frag_pytorch_met own = met_of(met);
    return between(own.within_limit_max, own.over_limit_min, false);
}

frag_pytorch_interval frag_pytorch_met_split(const frag_policy_met *met)
{
    frag_pytorch_met own = met_of(met);
    return between(own.below_split_max, own.over_split_min, true);
}

frag_pytorch_interval frag_pytorch_met_slack(const frag_policy_met *met)
{
    frag_pytorch_met own = met_of(met);
    return between(own.within_slack_max, own.over_slack_min, true);
}

static bool is_same(double left, double right)
{
    return !(left < right) && !(left > right);
}

/* As the policy sets it when it is created. false: it cannot. */
static bool find_limit(const frag_pytorch_settings *settings, uint64_t capacity, uint64_t *limit)
{
    *limit = FRAG_UNLIMITED;
    if (!settings->has_fraction)
        return true;
    if (capacity == FRAG_UNLIMITED)
        return false;
    *limit = frag_pytorch_share_bytes(settings, settings->memory_fraction, capacity);
    return true;
}

/* What no run notes anything of. */
static bool has_same_ways(const frag_pytorch_settings *a, const frag_pytorch_settings *b)
{
    bool is_reserve_same =
        a->reserve_bytes == b->reserve_bytes && is_same(a->reserve_ratio, b->reserve_ratio);
    return a->version == b->version && a->tie == b->tie && a->is_expandable == b->is_expandable &&
           a->reuses_at_end == b->reuses_at_end && a->throws_on_oom == b->throws_on_oom &&
           (!a->throws_on_oom || is_same(a->key_fraction, b->key_fraction)) &&
           (!a->is_expandable || is_reserve_same);
}

static bool has_same_divisions(const frag_pytorch_settings *a, const frag_pytorch_settings *b)
{
    return a->has_divisions == b->has_divisions &&
           (!a->has_divisions || memcmp(a->divisions, b->divisions, sizeof a->divisions) == 0);
}

static bool rounds_the_same(const frag_policy_pair *pair, const frag_pytorch_settings *a,
                            const frag_pytorch_settings *b)
{
    if (has_same_divisions(a, b))
        return true;
    for (size_t i = 0; i < pair->size_count; i++)
        if (frag_pytorch_round(a, pair->sizes[i]) != frag_pytorch_round(b, pair->sizes[i]))
            return false;
    return true;
}

/* The size of large segments matters to requests of 1 to 10 MiB, and to the pages of expandable
 * segments. */
static bool has_same_segments(const frag_policy_pair *pair, const frag_pytorch_settings *a,
                              const frag_pytorch_settings *b)
{
    if (a->large_segment_bytes == b->large_segment_bytes)
        return true;
    if (a->is_expandable)
        return false;
    for (size_t i = 0; i < pair->size_count; i++) {
        uint64_t rounded = frag_pytorch_round(a, pair->sizes[i]);
        if (rounded > FRAG_PYTORCH_SMALL_MAX && rounded < FRAG_PYTORCH_LARGE_MIN)
            return false;
    }
    return true;
}

static bool has_same_limit(const frag_pytorch_met *met, uint64_t a, uint64_t b)
{
    /* A message says how much is allowed. */
    if (a == b || met->has_failed)
        return a == b;
    return met->within_limit_max <= b && met->over_limit_min > b;
}

/* Above every segment no block is oversize, and no request that is served; one that is not served
 * finds nothing to release either. Ranges that grow can be larger than any segment. */
static bool is_above_all(const frag_pytorch_settings *settings, const frag_pytorch_met *met)
{
    return !settings->is_expandable && settings->max_split_bytes > met->segment_max;
}

static bool splits_the_same(const frag_pytorch_settings *a, const frag_pytorch_settings *b,
                            const frag_pytorch_met *met)
{
    if (is_above_all(a, met) && is_above_all(b, met))
        return true;
    bool is_limit_same = a->max_split_bytes == b->max_split_bytes;
    /* Without a limit nothing was compared. */
    if (!is_limit_same &&
        (a->max_split_bytes == FRAG_UNLIMITED || b->max_split_bytes <= met->below_split_max ||
         b->max_split_bytes > met->over_split_min))
        return false;
    return a->non_split_rounding_bytes == b->non_split_rounding_bytes ||
           (met->within_slack_max < b->non_split_rounding_bytes &&
            met->over_slack_min >= b->non_split_rounding_bytes);
}

static uint64_t collection_mark(const frag_pytorch_settings *settings, uint64_t limit)
{
    return limit != FRAG_UNLIMITED && settings->gc_threshold > 0
               ? (uint64_t)(settings->gc_threshold * (double)limit)
               : FRAG_UNLIMITED;
}

/* Where nothing is collected nothing was compared with the mark. */
static bool collects_the_same(const frag_pytorch_met *met, uint64_t mark, uint64_t other)
{
    if (mark == FRAG_UNLIMITED || other == FRAG_UNLIMITED)
        return met->over_mark_min == FRAG_UNLIMITED && met->asked_max <= other;
    return met->below_mark_max <= other && met->over_mark_min > other;
}

bool frag_pytorch_repeats(const frag_policy_pair *pair)
{
    frag_pytorch_settings run;
    frag_pytorch_settings other;
    frag_pytorch_met met;
    uint64_t limit = 0;
    uint64_t other_limit = 0;
    memcpy(&run, pair->terms, sizeof run);
    memcpy(&other, pair->other, sizeof other);
    memcpy(&met, pair->met, sizeof met);
    const frag_pytorch_settings *a = &run;
    const frag_pytorch_settings *b = &other;
    if (met.has_changed || !has_same_ways(a, b) || !find_limit(a, pair->capacity_bytes, &limit) ||
        !find_limit(b, pair->capacity_bytes, &other_limit) ||
        !has_same_limit(&met, limit, other_limit) || !splits_the_same(a, b, &met))
        return false;
    uint64_t mark = collection_mark(a, limit);
    uint64_t other_mark = collection_mark(b, other_limit);
    if (mark != other_mark && !collects_the_same(&met, mark, other_mark))
        return false;
    return met.has_failed ? has_same_divisions(a, b) && has_same_segments(pair, a, b)
                          : rounds_the_same(pair, a, b) && has_same_segments(pair, a, b);
}
