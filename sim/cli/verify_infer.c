#include "sim/cli/verify_infer.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/bits.h"
#include "sim/base/bytes.h"

/* A capacity for limits that are known in bytes; powers of two keep the share exact. */
#define ROUND_CAPACITY ((uint64_t)1 << 40)
#define PAGE FRAG_DEVICE_PAGE_BYTES

typedef struct inference {
    const frag_recording *recording;
    const frag_trace *trace;
    const frag_policy_spec *spec;
    frag_verify_result *result;
    frag_inferred *inferred;
} inference;

static const frag_option_value *value_of(const frag_policy_spec *spec, const char *key)
{
    for (uint32_t i = 0; i < spec->value_count; i++)
        if (strcmp(spec->ops->options[i].key, key) == 0)
            return &spec->values[i];
    return NULL;
}

/* One trial. The limit becomes a share of the capacity, as in the API. */
static bool is_identical(inference *search, uint64_t capacity, uint64_t limit)
{
    frag_policy_spec spec;
    frag_policy_spec_copy(search->spec, &spec);
    frag_error ignored = {0};
    bool ok = true;
    if (limit != FRAG_UNLIMITED) {
        char share[64];
        snprintf(share, sizeof share, "%.17f", (double)limit / (double)capacity);
        ok = frag_policy_spec_set(&spec, "per_process_memory_fraction", share, &ignored);
    }
    frag_verify_result result;
    ok = ok && frag_verify(search->recording, search->trace, spec.ops, spec.values, capacity, false,
                           &result, &ignored);
    frag_policy_spec_destroy(&spec);
    if (ok)
        *search->result = result;
    if (!ok || !result.is_identical)
        return false;
    *search->inferred = (frag_inferred){capacity, limit};
    return true;
}

/* An OOM tells the capacity: what was held in whole pages, and what was free. */
static uint64_t capacity_at_oom(const frag_trace *trace)
{
    uint64_t held = 0;
    for (uint64_t i = 0; i < trace->event_count && trace->addresses != NULL; i++) {
        const frag_event *event = &trace->events[i];
        uint64_t pages = frag_align_up(event->bytes, PAGE);
        if (event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP)
            held += pages;
        else if (event->op == FRAG_OP_SEGMENT_FREE || event->op == FRAG_OP_SEGMENT_UNMAP)
            held -= pages < held ? pages : held;
        else if (event->op == FRAG_OP_OOM)
            return held + trace->addresses[i];
    }
    return 0;
}

/* The distance of the nearest two reserved ranges: a driver places reservations side by side, and
 * their size is a share of the capacity. 0: there is only one. */
static uint64_t range_distance(const frag_trace *trace)
{
    frag_seen_ranges ranges = {.count = 0};
    uint64_t least = UINT64_MAX;
    for (uint64_t i = 0; i < trace->event_count && trace->addresses != NULL; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_SEGMENT_MAP &&
            !frag_seen_ranges_extend(&ranges, trace->addresses[i], event->bytes))
            frag_seen_ranges_add(&ranges, trace->addresses[i], event->bytes);
    }
    for (uint32_t i = 0; i < ranges.count; i++)
        for (uint32_t j = 0; j < ranges.count; j++)
            if (ranges.base[j] > ranges.base[i] && ranges.base[j] - ranges.base[i] < least)
                least = ranges.base[j] - ranges.base[i];
    return least == UINT64_MAX ? 0 : least;
}

/* The capacity whose share a range of that size is. */
static uint64_t capacity_of_range(const frag_policy_spec *spec, uint64_t distance)
{
    const frag_option_value *reserve = value_of(spec, "expandable_segments_reserve");
    double share = 0;
    if (reserve != NULL && reserve->text[0] != '\0' &&
        frag_ratio_parse(reserve->text, 0, 64, &share, NULL) && share > 0)
        return (uint64_t)((double)distance / share);
    return distance / 9 * 8;
}

#define SAMPLES 64u

/* Looks where the policy goes along with the recording longest, ever closer. Garbage collection
 * begins when a share of the limit is held, so the limit lies between the peak and the peak by that
 * share. */
static bool find_limit(inference *search, uint64_t capacity, double threshold)
{
    uint64_t low = search->trace->stats.observed_reserved_peak_bytes;
    uint64_t high = (uint64_t)((double)low / threshold) + PAGE;
    while (high - low > SAMPLES) {
        uint64_t step = (high - low) / SAMPLES;
        uint64_t longest = 0;
        uint64_t best = low;
        for (uint32_t i = 0; i <= SAMPLES; i++) {
            uint64_t limit = low + step * i;
            if (is_identical(search, capacity > limit ? capacity : limit, limit))
                return true;
            if (search->result->first.event > longest) {
                longest = search->result->first.event;
                best = limit;
            }
        }
        low = best > low + step ? best - step : low;
        high = best + step;
    }
    return false;
}

bool frag_verify_infer(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *spec, frag_verify_result *result,
                       frag_inferred *inferred)
{
    inference search = {recording, trace, spec, result, inferred};
    frag_verify_result before = *result;
    uint64_t distance = range_distance(trace);
    const uint64_t candidates[] = {
        capacity_at_oom(trace),
        distance > 0 ? capacity_of_range(spec, distance) : 0,
        ROUND_CAPACITY,
    };
    const frag_option_value *threshold = value_of(spec, "garbage_collection_threshold");
    const frag_option_value *fraction = value_of(spec, "per_process_memory_fraction");
    if (threshold == NULL || fraction == NULL || fraction->is_given)
        return false;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        uint64_t capacity = candidates[i];
        if (capacity == 0)
            continue;
        if (capacity != ROUND_CAPACITY && is_identical(&search, capacity, FRAG_UNLIMITED))
            return true;
        if (threshold->ratio > 0 && find_limit(&search, capacity, threshold->ratio))
            return true;
    }
    *result = before;
    return false;
}
