#include "studies/verify/verify_guess.h"

#include <stdio.h>

#include "base/bytes.h"

const char *const frag_guess_keys[FRAG_GUESS_KEYS] = {
    [FRAG_GUESS_VERSION] = "version",
    [FRAG_GUESS_EXPANDABLE] = "expandable_segments",
    [FRAG_GUESS_LARGE_SEGMENT] = "large_segment_size_mb",
    [FRAG_GUESS_DIVISIONS] = "roundup_power2_divisions",
    [FRAG_GUESS_MAX_SPLIT] = "max_split_size_mb",
    [FRAG_GUESS_SLACK] = "max_non_split_rounding_mb",
};

void frag_guess_set_rounding(frag_guess *tried, const frag_rounding *rounding)
{
    tried->rounding = *rounding;
    frag_rounding_text(rounding, tried->texts[FRAG_GUESS_DIVISIONS]);
}

/* ---- one guess */

/* A share that leaves room for all that was ever held: the one that guides name, else the largest
 * in tenths. */
static double usual_share(double most)
{
    for (int i = 8; i > 0; i--)
        if ((double)i / 10 <= most)
            return (double)i / 10;
    return most;
}

/* What bytes are a share of, so that they are no less. false: it is beyond all memory. */
static bool find_whole(uint64_t bytes, double share, uint64_t *whole)
{
    double exact = (double)bytes / share;
    if (!(exact < (double)FRAG_GUESS_LARGEST))
        return false;
    *whole = (uint64_t)exact;
    *whole += (uint64_t)(share * (double)*whole) < bytes ? 1 : 0;
    return true;
}

/* The share of the capacity that is the limit; 0: not known. */
static double known_share(const frag_guessing *search)
{
    return search->limit_ratio > 0      ? search->limit_ratio
           : search->given.has_fraction ? search->given.memory_fraction
                                        : 0;
}

/* false: there is no limit with such a mark. */
static bool find_threshold(const frag_guessing *search, const frag_guess *tried,
                           frag_guess_limits *found)
{
    uint64_t peak = search->trace->stats.observed_reserved_peak_bytes;
    uint64_t mark = tried->mark_bytes;
    found->threshold = search->given.gc_threshold;
    if (mark == 0 || peak == 0)
        return false;
    if (found->limit_bytes != FRAG_UNLIMITED) {
        double threshold = (double)mark / (double)found->limit_bytes;
        bool is_free = found->threshold <= 0;
        found->threshold = is_free ? threshold : found->threshold;
        return is_free && threshold < 1;
    }
    if (found->threshold <= 0)
        found->threshold = usual_share((double)mark / (double)peak);
    return find_whole(mark, found->threshold, &found->limit_bytes);
}

/* false: no release has such limits. */
bool frag_guess_find_limits(const frag_guessing *search, const frag_guess *tried,
                            frag_guess_limits *found)
{
    double share = known_share(search);
    bool has_capacity = tried->capacity_bytes != FRAG_UNLIMITED;
    *found =
        (frag_guess_limits){search->given.gc_threshold, tried->limit_bytes, tried->capacity_bytes};
    if (share > 0 && has_capacity)
        found->limit_bytes = (uint64_t)(share * (double)tried->capacity_bytes);
    if (tried->mark_bytes != FRAG_UNLIMITED && !find_threshold(search, tried, found))
        return false;
    uint64_t limit = found->limit_bytes;
    if (has_capacity && tried->capacity_bytes > limit)
        return true;
    if (share > 0 && limit != FRAG_UNLIMITED)
        return find_whole(limit, share, &found->capacity_bytes);
    if (limit != FRAG_UNLIMITED || share > 0)
        found->capacity_bytes =
            limit < FRAG_GUESS_CAPACITY || share > 0 ? FRAG_GUESS_CAPACITY : 2 * limit;
    return true;
}

static bool set_ratio(frag_policy_spec *spec, const char *key, double ratio)
{
    char text[64];
    frag_error ignored = {0};
    snprintf(text, sizeof text, "%.17f", ratio);
    return frag_policy_spec_set(spec, key, text, &ignored);
}

/* false: no release has such settings. */
static bool set_guess(const frag_guessing *search, const frag_guess *tried, frag_policy_spec *spec,
                      uint64_t *capacity)
{
    frag_error ignored = {0};
    for (uint32_t i = 0; i < FRAG_GUESS_KEYS; i++)
        if (tried->texts[i][0] != '\0' &&
            !frag_policy_spec_set(spec, frag_guess_keys[i], tried->texts[i], &ignored))
            return false;
    frag_guess_limits found;
    if (!frag_guess_find_limits(search, tried, &found))
        return false;
    *capacity = found.capacity_bytes;
    bool has_threshold = tried->mark_bytes == FRAG_UNLIMITED || search->given.gc_threshold > 0;
    bool has_share = found.limit_bytes == FRAG_UNLIMITED || known_share(search) > 0;
    return (has_threshold || set_ratio(spec, "garbage_collection_threshold", found.threshold)) &&
           (has_share || set_ratio(spec, "per_process_memory_fraction",
                                   (double)found.limit_bytes / (double)found.capacity_bytes));
}

bool frag_guess_replay(const frag_guessing *search, const frag_guess *tried,
                       frag_verify_result *result)
{
    frag_policy_spec spec;
    frag_error ignored = {0};
    uint64_t capacity = 0;
    frag_policy_spec_copy(search->spec, &spec);
    bool ok = set_guess(search, tried, &spec, &capacity) &&
              frag_verify(search->context, search->recording, search->trace, spec.ops, spec.values,
                          capacity, false, result, &ignored);
    frag_policy_spec_destroy(&spec);
    return ok;
}

bool frag_guessing_is_over(const frag_guessing *search)
{
    return search->best_result.is_identical || search->events_left == 0 ||
           frag_is_cancelled(search->context);
}

/* What beginning a replay takes, in events. */
#define START_EVENTS 2000u

bool frag_guess_try(frag_guessing *search, const frag_guess *tried, frag_verify_result *result)
{
    if (frag_guessing_is_over(search) || !frag_guess_replay(search, tried, result))
        return false;
    uint64_t events = search->trace->event_count;
    uint64_t reach = result->is_identical ? FRAG_UNLIMITED : result->first.event;
    uint64_t cost = START_EVENTS + (reach < events ? reach + 1 : events);
    search->events_left -= cost < search->events_left ? cost : search->events_left;
    search->replays++;
    if (reach > search->best_reach) {
        search->best = *tried;
        search->best_reach = reach;
        search->best_result = *result;
    }
    return true;
}
