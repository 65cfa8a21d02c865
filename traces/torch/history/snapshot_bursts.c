#include "traces/torch/history/snapshot_bursts.h"

#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"

#define SMALL_BYTES_MAX FRAG_MIB
#define SMALL_SEGMENT_BYTES (2 * FRAG_MIB)
#define LARGE_SEGMENT_BYTES (20 * FRAG_MIB)

static bool is_release(const frag_snapshot_entry *entry)
{
    return entry->action == FRAG_SNAPSHOT_SEGMENT_FREE ||
           entry->action == FRAG_SNAPSHOT_SEGMENT_UNMAP;
}

static bool is_growth(const frag_snapshot_entry *entry)
{
    return entry->action == FRAG_SNAPSHOT_SEGMENT_ALLOC ||
           entry->action == FRAG_SNAPSHOT_SEGMENT_MAP;
}

bool frag_snapshot_is_late(const frag_snapshot_device *device, uint64_t index)
{
    const frag_snapshot_entry *entry = &device->entries[index];
    if (entry->action != FRAG_SNAPSHOT_FREE_COMPLETED)
        return false;
    const frag_snapshot_entry *before = index > 0 ? entry - 1 : NULL;
    return before == NULL || before->action != FRAG_SNAPSHOT_FREE_REQUESTED ||
           before->address != entry->address || before->is_dropped;
}

void frag_burst_finder_create(frag_burst_finder *finder, const frag_snapshot *snapshot,
                              uint32_t device, const frag_rewound *rewound)
{
    *finder = (frag_burst_finder){.snapshot = snapshot, .device = &snapshot->devices[device]};
    finder->is_emptying = frag_alloc(snapshot->pickle->object_count, 1);
    uint64_t reserved = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < rewound->range_count; i++)
        reserved += rewound->ranges[i].bytes;
    for (size_t i = 0; i < rewound->segment_entry_count; i++) {
        const frag_snapshot_entry *entry = &finder->device->entries[rewound->segment_entries[i]];
        if (reserved > most)
            most = reserved;
        if (entry->is_dropped)
            continue;
        if (is_growth(entry))
            reserved += entry->bytes;
        else if (is_release(entry))
            reserved -= entry->bytes;
    }
    finder->reserved_bytes_max = reserved > most ? reserved : most;
}

void frag_burst_finder_destroy(frag_burst_finder *finder)
{
    frag_free(finder->is_emptying);
    *finder = (frag_burst_finder){0};
}

/* ---- proofs */

/* A frame is a dictionary, or in old C++ stacks a string. */
static bool is_emptying_frame(const frag_burst_finder *finder, frag_pickle_value frame)
{
    const frag_pickle *pickle = finder->snapshot->pickle;
    uint64_t object = 0;
    uint8_t unshared = 0;
    uint8_t *known =
        frag_pickle_object_of(pickle, frame, &object) ? &finder->is_emptying[object] : &unshared;
    if (*known == 0) {
        frag_pickle_value name = frame;
        uint32_t text = FRAG_SNAPSHOT_EMPTY;
        frag_snapshot_get(pickle, frame, FRAG_SNAPSHOT_NAME, &name);
        frag_pickle_string(pickle, name, &text);
        const char *function = frag_pickle_text(pickle, text, NULL);
        bool is_found =
            strstr(function, "empty_cache") != NULL || strstr(function, "emptyCache") != NULL;
        *known = is_found ? 2 : 1;
    }
    return *known == 2;
}

static bool names_empty_cache(const frag_burst_finder *finder, uint32_t frames)
{
    if (frames == 0)
        return false;
    uint8_t *known = &finder->is_emptying[frames - 1];
    if (*known == 0) {
        const frag_pickle *pickle = finder->snapshot->pickle;
        frag_pickle_walk walk = frag_pickle_begin(pickle, frag_pickle_container(frames - 1));
        frag_pickle_value frame = 0;
        bool is_found = false;
        while (!is_found && frag_pickle_next(pickle, &walk, &frame))
            is_found = is_emptying_frame(finder, frame);
        *known = is_found ? 2 : 1;
    }
    return *known == 2;
}

static bool is_small(const frag_snapshot_entry *release)
{
    return release->action == FRAG_SNAPSHOT_SEGMENT_FREE
               ? release->bytes == SMALL_SEGMENT_BYTES
               : release->bytes % LARGE_SEGMENT_BYTES != 0;
}

/* Twenty mebibytes of pages may be those of the small pool, as ten of its mappings, or one of the
 * large pool: the last request that was served there before tells. */
static bool is_known_large(const frag_snapshot_device *device, uint64_t release)
{
    enum { LOOKED_AT_MAX = 4096 };
    const frag_snapshot_entry *pages = &device->entries[release];
    if (pages->action != FRAG_SNAPSHOT_SEGMENT_UNMAP)
        return true;
    for (uint64_t i = release; i-- > 0 && release - i < LOOKED_AT_MAX;) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (entry->action == FRAG_SNAPSHOT_ALLOC && entry->address - pages->address < pages->bytes)
            return entry->bytes > SMALL_BYTES_MAX;
    }
    return false;
}

/* Could released memory have served the request as it lay in the cache, the first free_bytes of
 * it? */
static bool would_have_served(const frag_snapshot *snapshot, const frag_snapshot_entry *release,
                              uint64_t free_bytes, const frag_snapshot_entry *request)
{
    const frag_snapshot_settings *settings = &snapshot->settings;
    uint64_t rounded = frag_snapshot_round(settings, request->bytes);
    bool is_small_request = rounded <= SMALL_BYTES_MAX;
    if (release->pool != 0 || request->pool != 0 ||
        frag_snapshot_stream(snapshot, release) != frag_snapshot_stream(snapshot, request) ||
        is_small_request != is_small(release) || free_bytes < rounded)
        return false;
    /* A small request does not use a large mapping, which 20 MiB of small pages look like. */
    if (is_small_request && release->bytes > SMALL_SEGMENT_BYTES)
        return false;
    if (settings->max_split_bytes == UINT64_MAX)
        return true;
    return rounded < settings->max_split_bytes ? free_bytes < settings->max_split_bytes
                                               : free_bytes < rounded + LARGE_SEGMENT_BYTES;
}

/* How much of a segment's beginning was free before the very synchronisation that led to its
 * release: up to the first block that only this set free. */
static uint64_t idle_front(const frag_snapshot_device *device, uint64_t first, uint64_t release)
{
    const frag_snapshot_entry *segment = &device->entries[release];
    uint64_t bytes = segment->bytes;
    for (uint64_t i = first; i < release; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (entry->action != FRAG_SNAPSHOT_FREE_COMPLETED)
            continue;
        if (entry->address - segment->address < bytes)
            bytes = entry->address - segment->address;
        else if (segment->address - entry->address < entry->bytes) /* reaches into its pages */
            bytes = 0;
    }
    return bytes;
}

/* The program's request that follows a burst: *grown_bytes were taken for it before. */
static const frag_snapshot_entry *request_after(const frag_snapshot_device *device, uint64_t from,
                                                uint64_t *grown_bytes)
{
    *grown_bytes = 0;
    for (uint64_t i = from; i < device->entry_count; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (is_growth(entry))
            *grown_bytes += entry->bytes;
        else
            return entry->action == FRAG_SNAPSHOT_ALLOC || entry->action == FRAG_SNAPSHOT_OOM
                       ? entry
                       : NULL;
    }
    return NULL;
}

/* Most comparisons for one burst, so that a hostile file takes linear time. */
enum { COMPARISONS_MAX = 1 << 16 };

/* May garbage collection have given all of a burst back? It begins above a share of the limit,
 * which is at least what was ever held, and takes large segments of the default pool alone. */
static bool may_be_collected(const frag_burst_finder *finder, const frag_burst *burst,
                             uint64_t reserved_bytes)
{
    double share = finder->snapshot->settings.gc_threshold;
    if (share <= 0 || (double)reserved_bytes <= share * (double)finder->reserved_bytes_max)
        return false;
    for (uint64_t i = burst->segments; i < burst->end; i++) {
        const frag_snapshot_entry *entry = &finder->device->entries[i];
        if (is_release(entry) &&
            (entry->action != FRAG_SNAPSHOT_SEGMENT_FREE || entry->pool != 0 || is_small(entry)))
            return false;
    }
    return true;
}

/* With max_split_size a retry begins with large blocks of the request's stream: with the smallest
 * that would do, else the largest. Is the first segment of a burst another one? */
static bool begins_otherwise(const frag_burst_finder *finder, const frag_burst *burst,
                             const frag_snapshot_entry *request)
{
    const frag_snapshot_entry *entries = finder->device->entries;
    uint64_t max_split = finder->snapshot->settings.max_split_bytes;
    uint64_t rounded = frag_snapshot_round(&finder->snapshot->settings, request->bytes);
    if (max_split == UINT64_MAX || finder->snapshot->settings.gc_threshold > 0 ||
        rounded <= SMALL_BYTES_MAX)
        return false;
    uint64_t wanted = rounded > max_split ? rounded : max_split;
    uint64_t stream = frag_snapshot_stream(finder->snapshot, request);
    const frag_snapshot_entry *expected = NULL;
    for (uint64_t i = burst->segments; i < burst->end; i++) {
        const frag_snapshot_entry *entry = &entries[i];
        if (entry->action == FRAG_SNAPSHOT_SEGMENT_UNMAP)
            return false;
        if (entry->action != FRAG_SNAPSHOT_SEGMENT_FREE || entry->bytes < max_split ||
            frag_snapshot_stream(finder->snapshot, entry) != stream || entry->pool != request->pool)
            continue;
        if (i - burst->first > COMPARISONS_MAX / (burst->end - burst->segments) ||
            idle_front(finder->device, burst->first, i) < entry->bytes)
            return false;
        bool is_better =
            expected == NULL ||
            (expected->bytes < wanted ? entry->bytes > expected->bytes
                                      : entry->bytes >= wanted && entry->bytes < expected->bytes);
        expected = is_better ? entry : expected;
    }
    return expected != NULL && expected->bytes != entries[burst->segments].bytes;
}

/* While a graph is captured a request makes PyTorch give nothing back but what is of its own pool;
 * nor in any private pool before releases whose entries name theirs. */
static bool is_in_capture(const frag_snapshot *snapshot, const frag_snapshot_entry *request)
{
    return request->pool != 0 &&
           (!request->has_pool || frag_snapshot_pool_id(snapshot, request->pool).high != 0);
}

static bool has_other_pools(const frag_burst_finder *finder, const frag_burst *burst, uint32_t pool)
{
    for (uint64_t i = burst->segments; i < burst->end; i++)
        if (is_release(&finder->device->entries[i]) && finder->device->entries[i].pool != pool)
            return true;
    return false;
}

/* The most that a request may have needed when it was first tried: with expandable segments other
 * places are looked at once memory was given back, where fewer pages may be missing. */
static uint64_t most_needed(const frag_burst_finder *finder, const frag_burst *burst,
                            const frag_snapshot_entry *request, uint64_t grown_bytes)
{
    uint64_t rounded = frag_snapshot_round(&finder->snapshot->settings, request->bytes);
    uint64_t page = rounded <= SMALL_BYTES_MAX ? SMALL_SEGMENT_BYTES : LARGE_SEGMENT_BYTES;
    bool has_pages = false;
    for (uint64_t i = burst->segments; i < burst->end; i++)
        has_pages = has_pages || finder->device->entries[i].action == FRAG_SNAPSHOT_SEGMENT_UNMAP;
    uint64_t pages_bytes =
        has_pages && rounded <= FRAG_REQUEST_BYTES_MAX ? (rounded + page - 1) / page * page : 0;
    return pages_bytes > grown_bytes ? pages_bytes : grown_bytes;
}

static bool is_proved_explicit(const frag_burst_finder *finder, const frag_burst *burst,
                               uint64_t reserved_bytes)
{
    const frag_snapshot_device *device = finder->device;
    const frag_snapshot *snapshot = finder->snapshot;
    for (uint64_t i = burst->segments; i < burst->end; i++)
        if (names_empty_cache(finder, device->entries[i].frames))
            return true;
    uint64_t grown_bytes = 0;
    const frag_snapshot_entry *request = request_after(device, burst->end, &grown_bytes);
    if (request == NULL)
        return false;
    if (is_in_capture(snapshot, request) && has_other_pools(finder, burst, request->pool))
        return true;
    /* A retry means that the device or the limit was full. */
    if (request->action == FRAG_SNAPSHOT_ALLOC &&
        reserved_bytes + most_needed(finder, burst, request, grown_bytes) <=
            finder->reserved_bytes_max &&
        !may_be_collected(finder, burst, reserved_bytes))
        return true;
    uint64_t comparisons = 0;
    for (uint64_t i = burst->segments; i < burst->end && comparisons < COMPARISONS_MAX; i++) {
        comparisons += 1 + i - burst->first;
        const frag_snapshot_entry *release = &device->entries[i];
        if (is_release(release) && would_have_served(snapshot, release, release->bytes, request) &&
            would_have_served(snapshot, release, idle_front(device, burst->first, i), request) &&
            (is_small(release) || is_known_large(device, i)))
            return true;
    }
    return begins_otherwise(finder, burst, request);
}

/* With expandable segments a request can be served after a retry without new pages: by what the
 * wait for streams set free. */
static bool is_served_by_wait(const frag_snapshot_device *device, const frag_burst *burst)
{
    const frag_snapshot_entry *request =
        burst->end < device->entry_count ? &device->entries[burst->end] : NULL;
    if (request == NULL || request->action != FRAG_SNAPSHOT_ALLOC ||
        device->entries[burst->end - 1].action != FRAG_SNAPSHOT_SEGMENT_UNMAP)
        return false;
    for (uint64_t i = burst->first; i < burst->segments; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (entry->address - request->address < request->bytes ||
            request->address - entry->address < entry->bytes)
            return true;
    }
    return false;
}

static frag_burst_cause cause_of(const frag_burst_finder *finder, const frag_burst *burst,
                                 uint64_t reserved_bytes)
{
    const frag_snapshot_device *device = finder->device;
    bool is_private = true;
    for (uint64_t i = burst->segments; i < burst->end; i++)
        is_private =
            is_private && (device->entries[i].pool != 0 || !is_release(&device->entries[i]));
    const frag_snapshot_entry *next =
        burst->end < device->entry_count ? &device->entries[burst->end] : NULL;
    bool is_followed = (next != NULL && (is_growth(next) || next->action == FRAG_SNAPSHOT_OOM)) ||
                       is_served_by_wait(device, burst);
    bool is_explicit = !is_followed || is_proved_explicit(finder, burst, reserved_bytes);
    if (is_private)
        return is_explicit ? FRAG_BURST_POOL : FRAG_BURST_RETRY;
    if (is_explicit)
        return FRAG_BURST_EMPTY_CACHE;
    /* Garbage collection keeps below a share of the memory and needs no full device. */
    return finder->snapshot->settings.gc_threshold > 0 ? FRAG_BURST_RETRY : FRAG_BURST_UNKNOWN;
}

/* The end of the late completions that begin at an entry. */
static uint64_t skip_late(const frag_snapshot_device *device, uint64_t index)
{
    while (index < device->entry_count && frag_snapshot_is_late(device, index))
        index++;
    return index;
}

/* PyTorch empties its default pools before its private ones: a default segment behind a private one
 * begins another burst, after a private pool of its own. */
static uint64_t skip_releases(const frag_snapshot_device *device, uint64_t index)
{
    bool is_private = false;
    while (index < device->entry_count && is_release(&device->entries[index])) {
        if (device->entries[index].pool == 0 && is_private)
            break;
        is_private = device->entries[index].pool != 0;
        index++;
    }
    return index;
}

frag_burst frag_burst_at(const frag_burst_finder *finder, uint64_t index, uint64_t reserved_bytes,
                         uint64_t *seen_until)
{
    const frag_snapshot_device *device = finder->device;
    frag_burst burst = {.first = index, .segments = skip_late(device, index)};
    burst.end = skip_releases(device, burst.segments);
    *seen_until = burst.end;
    if (burst.end == burst.segments) {
        burst.end = burst.first;
        return burst;
    }
    /* With max_split_size a retry may release large blocks, then synchronise and release the
     * others. */
    while (finder->snapshot->settings.max_split_bytes != UINT64_MAX) {
        uint64_t late_end = skip_late(device, burst.end);
        uint64_t end = skip_releases(device, late_end);
        if (late_end == burst.end || end == late_end)
            break;
        burst.end = end;
    }
    *seen_until = burst.end;
    burst.cause = cause_of(finder, &burst, reserved_bytes);
    return burst;
}
