#include "sim/cli/verify_infer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bits.h"
#include "sim/base/bytes.h"
#include "sim/cli/command.h"

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
    search->inferred->capacity_bytes = capacity;
    search->inferred->limit_bytes = limit;
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

/* The capacity, the limit, or both. */
static bool find_capacity(inference *search)
{
    uint64_t distance = range_distance(search->trace);
    const uint64_t candidates[] = {
        capacity_at_oom(search->trace),
        distance > 0 ? capacity_of_range(search->spec, distance) : 0,
        ROUND_CAPACITY,
    };
    const frag_option_value *threshold = value_of(search->spec, "garbage_collection_threshold");
    const frag_option_value *fraction = value_of(search->spec, "per_process_memory_fraction");
    if (threshold == NULL || fraction == NULL || fraction->is_given)
        return false;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        uint64_t capacity = candidates[i];
        if (capacity == 0)
            continue;
        if (capacity != ROUND_CAPACITY && is_identical(search, capacity, FRAG_UNLIMITED))
            return true;
        if (threshold->ratio > 0 && find_limit(search, capacity, threshold->ratio))
            return true;
    }
    return false;
}

/* ---- settings */

#define TRIALS_MAX 48u
#define ROUNDS_MAX 3u

/* One setting that may have been another. */
typedef struct trial {
    const char *key;
    char value[16];
} trial;

typedef struct trials {
    trial items[TRIALS_MAX];
    uint32_t count;
} trials;

static void add_trial(trials *all, const frag_policy_spec *spec, const char *key, uint64_t value)
{
    const frag_option_value *option = value_of(spec, key);
    if (option == NULL || option->is_given || all->count == TRIALS_MAX)
        return;
    trial *item = &all->items[all->count++];
    item->key = key;
    snprintf(item->value, sizeof item->value, "%" PRIu64, value);
}

/* The minor of "2.9"; without the key what is given. */
static uint32_t minor_of(const frag_recording *recording, const char *key, uint32_t otherwise)
{
    const char *text = frag_recording_get(recording, key);
    if (text == NULL || strncmp(text, "2.", 2) != 0)
        return otherwise;
    return (uint32_t)strtoul(text + 2, NULL, 10);
}

#define MINOR_NEWEST 15u

/* Of the releases that the recording may be of, the newest was tried already. */
static void add_versions(trials *all, const frag_recording *recording, const frag_policy_spec *spec)
{
    const frag_option_value *version = value_of(spec, "version");
    uint32_t least = minor_of(recording, "torch.version_min", 0);
    uint32_t minor = minor_of(recording, "torch.version_max", MINOR_NEWEST);
    if (version == NULL || version->is_given)
        return;
    for (; minor > least && minor <= MINOR_NEWEST && all->count < TRIALS_MAX; minor--) {
        trial *item = &all->items[all->count++];
        item->key = "version";
        snprintf(item->value, sizeof item->value, "2.%" PRIu32, minor - 1);
    }
}

/* Requests of 1 to 10 MiB get segments of one size, so that it is a size that comes again; what is
 * mapped for large requests are multiples of it. */
static void add_segment_sizes(trials *all, const frag_trace *trace, const frag_policy_spec *spec)
{
    uint64_t seen[8] = {0};
    uint32_t counts[8] = {0};
    uint64_t unit = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        uint64_t bytes = trace->events[i].bytes;
        if (trace->events[i].op == FRAG_OP_SEGMENT_MAP && bytes > 2 * FRAG_MIB)
            unit = frag_common_divisor(unit, bytes);
        if (trace->events[i].op != FRAG_OP_SEGMENT_ALLOC || bytes % FRAG_MIB != 0 ||
            bytes <= 10 * FRAG_MIB || bytes == 20 * FRAG_MIB)
            continue;
        uint32_t at = 0;
        while (at < 8 && seen[at] != 0 && seen[at] != bytes)
            at++;
        if (at == 8)
            continue;
        seen[at] = bytes;
        if (++counts[at] == 2)
            add_trial(all, spec, "large_segment_size_mb", bytes / FRAG_MIB);
    }
    if (unit > 10 * FRAG_MIB && unit % FRAG_MIB == 0)
        add_trial(all, spec, "large_segment_size_mb", unit / FRAG_MIB);
}

/* What a recording without settings may have been made with: what guides name. */
static void add_settings(trials *all, const frag_trace *trace, const frag_policy_spec *spec)
{
    static const uint64_t splits[] = {32, 64, 128, 200, 256, 512, 1024};
    static const uint64_t divisions[] = {1, 2, 4, 8, 16, 32};
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++)
        add_trial(all, spec, "max_split_size_mb", splits[i]);
    for (size_t i = 0; i < sizeof divisions / sizeof divisions[0]; i++)
        add_trial(all, spec, "roundup_power2_divisions", divisions[i]);
    add_segment_sizes(all, trace, spec);
}

/* false: the setting cannot be had, in this release or beside the others. */
static bool try_setting(inference *search, const frag_policy_spec *base, const trial *item,
                        uint64_t capacity)
{
    frag_policy_spec spec;
    frag_error ignored = {0};
    frag_policy_spec_copy(base, &spec);
    bool ok = frag_policy_spec_set(&spec, item->key, item->value, &ignored) &&
              frag_verify(search->recording, search->trace, spec.ops, spec.values, capacity, false,
                          search->result, &ignored);
    frag_policy_spec_destroy(&spec);
    return ok;
}

static void take_setting(inference *search, const char *key, const char *value)
{
    char *settings = search->inferred->settings;
    size_t used = strlen(settings);
    snprintf(settings + used, sizeof search->inferred->settings - used, "%s%s=%s",
             used > 0 ? "," : "", key, value);
}

/* Mappings are made for expandable segments alone. */
static void see_expandable(inference *search, frag_policy_spec *spec)
{
    const frag_option_value *option = value_of(spec, "expandable_segments");
    frag_error ignored = {0};
    if (search->trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] == 0 || option->is_given ||
        !frag_policy_spec_set(spec, "expandable_segments", "true", &ignored))
        return;
    take_setting(search, "expandable_segments", "true");
}

/* The settings as they are; and, where the capacity is not known, with one that does. */
static bool is_enough(inference *search, const frag_policy_spec *spec, uint64_t capacity,
                      uint64_t *longest)
{
    inference with_spec = *search;
    frag_error ignored = {0};
    with_spec.spec = spec;
    if (!frag_verify(search->recording, search->trace, spec->ops, spec->values, capacity, false,
                     search->result, &ignored))
        return false;
    *longest = search->result->first.event;
    return search->result->is_identical ||
           (capacity == FRAG_UNLIMITED && find_capacity(&with_spec));
}

/* The one setting more with which the policy goes along with the recording longest; NULL: none is
 * better than what there is. */
static const trial *find_better(inference *search, const frag_policy_spec *base, const trials *all,
                                uint64_t capacity, uint64_t longest)
{
    const trial *best = NULL;
    for (uint32_t i = 0; i < all->count && !frag_is_interrupted(); i++) {
        if (value_of(base, all->items[i].key)->is_given ||
            !try_setting(search, base, &all->items[i], capacity))
            continue;
        if (search->result->is_identical)
            return &all->items[i];
        if (search->result->first.event > longest) {
            longest = search->result->first.event;
            best = &all->items[i];
        }
    }
    return best;
}

/* Setting after setting, from what the policy did without any. */
static bool find_settings(inference *search, uint64_t capacity, const frag_verify_result *before)
{
    trials all = {.count = 0};
    frag_policy_spec spec;
    frag_policy_spec_copy(search->spec, &spec);
    add_versions(&all, search->recording, search->spec);
    if (frag_recording_get(search->recording, "torch.conf") == NULL) {
        add_settings(&all, search->trace, search->spec);
        see_expandable(search, &spec);
    }
    uint64_t longest = before->first.event;
    bool is_found =
        search->inferred->settings[0] != '\0' && is_enough(search, &spec, capacity, &longest);
    for (uint32_t round = 0; round < ROUNDS_MAX && !is_found; round++) {
        const trial *better = find_better(search, &spec, &all, capacity, longest);
        frag_error ignored = {0};
        if (better == NULL || !frag_policy_spec_set(&spec, better->key, better->value, &ignored))
            break;
        take_setting(search, better->key, better->value);
        is_found = is_enough(search, &spec, capacity, &longest);
    }
    frag_policy_spec_destroy(&spec);
    return is_found;
}

bool frag_verify_infer(const frag_recording *recording, const frag_trace *trace,
                       const frag_policy_spec *spec, uint64_t capacity_bytes,
                       frag_verify_result *result, frag_inferred *inferred)
{
    *inferred = (frag_inferred){.capacity_bytes = FRAG_UNLIMITED, .limit_bytes = FRAG_UNLIMITED};
    inference search = {recording, trace, spec, result, inferred};
    frag_verify_result before = *result;
    if ((capacity_bytes == FRAG_UNLIMITED && find_capacity(&search)) ||
        (strcmp(spec->ops->name, "pytorch") == 0 &&
         find_settings(&search, capacity_bytes, &before)))
        return true;
    *result = before;
    *inferred = (frag_inferred){.capacity_bytes = FRAG_UNLIMITED, .limit_bytes = FRAG_UNLIMITED};
    return false;
}
