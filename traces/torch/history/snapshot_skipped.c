#include "traces/torch/history/snapshot_skipped.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/radix.h"
#include "traces/number_map.h"
#include "traces/torch/history/snapshot_ranges.h"

#define MIN_BLOCK_BYTES 512u
#define SEGMENT_ALIGNMENT (2 * FRAG_MIB)

/* An entry that is to stand before another one. */
typedef struct insertion {
    uint64_t before;
    uint64_t order; /* of those before the same entry */
    frag_snapshot_entry entry;
} insertion;

typedef struct restorer {
    frag_snapshot *snapshot;
    frag_snapshot_device *device;
    uint32_t kinds; /* that no device has */
    uint32_t found; /* of these, those that are known to be missing */
    insertion *insertions;
    size_t count;
    size_t capacity;
} restorer;

static bool is_kind(const frag_snapshot_entry *entry, uint32_t action)
{
    return entry->action == action;
}

static bool is_free(const frag_snapshot_entry *entry)
{
    return entry->action == FRAG_SNAPSHOT_FREE || entry->action == FRAG_SNAPSHOT_FREE_REQUESTED ||
           entry->action == FRAG_SNAPSHOT_FREE_COMPLETED;
}

static uint64_t block_bytes(uint64_t requested_bytes)
{
    uint64_t bytes = requested_bytes == 0 ? 1 : requested_bytes;
    return frag_align_up(bytes, MIN_BLOCK_BYTES);
}

/* ---- insertions */

static void insert(restorer *state, uint64_t before, uint32_t action, const frag_held_range *range,
                   uint64_t bytes)
{
    const frag_snapshot_device *device = state->device;
    const frag_snapshot_entry *beside = &device->entries[before > 0 ? before - 1 : 0];
    state->insertions =
        frag_grow(state->insertions, &state->capacity, state->count + 1, sizeof *state->insertions);
    state->insertions[state->count] = (insertion){
        .before = before,
        .order = state->count,
        .entry = {.address = range->address,
                  .bytes = bytes,
                  .time_us = beside->time_us,
                  .action = action & 31,
                  .origin = frag_snapshot_add_origin(
                      state->snapshot,
                      (frag_snapshot_origin){.stream = range->stream, .note = FRAG_SNAPSHOT_EMPTY}),
                  .pool = range->pool,
                  .has_pool = beside->has_pool,
                  .is_inferred = true},
    };
    state->count++;
}

static int compare_insertions(const void *left, const void *right)
{
    const insertion *a = left;
    const insertion *b = right;
    return frag_compare_then(frag_compare(a->before, b->before), frag_compare(a->order, b->order));
}

/* The history with what was put in. */
static void apply(restorer *state, uint32_t kind)
{
    frag_snapshot_device *device = state->device;
    if (state->count == 0)
        return;
    qsort(state->insertions, state->count, sizeof *state->insertions, compare_insertions);
    frag_snapshot_entry *entries =
        frag_alloc((size_t)device->entry_count + state->count, sizeof *entries);
    uint64_t count = 0;
    size_t next = 0;
    for (uint64_t i = 0; i <= device->entry_count; i++) {
        for (; next < state->count && state->insertions[next].before == i; next++)
            entries[count++] = state->insertions[next].entry;
        if (i < device->entry_count)
            entries[count++] = device->entries[i];
    }
    if (device->is_own)
        frag_free(device->entries);
    device->entries = entries;
    device->entry_count = count;
    device->is_own = true;
    state->found |= kind;
    state->count = 0;
}

/* ---- segments */

static frag_held_range range_of(const restorer *state, const frag_snapshot_entry *entry)
{
    return (frag_held_range){.address = entry->address,
                             .bytes = entry->bytes,
                             .stream = frag_snapshot_stream(state->snapshot, entry),
                             .pool = entry->pool};
}

static bool is_final_segment(const frag_snapshot_device *device, uint64_t address, uint64_t bytes)
{
    size_t low = 0;
    size_t high = device->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (device->segments[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < device->segment_count && device->segments[low].address == address &&
           device->segments[low].bytes == bytes;
}

/* Takes out all ranges that share bytes with one, and puts in an entry for each. */
static void end_overlapping(restorer *state, frag_held_ranges *ranges, uint64_t address,
                            uint64_t bytes, uint64_t before, uint32_t action)
{
    frag_held_range *found = NULL;
    while ((found = frag_held_ranges_overlap(ranges, address, bytes)) != NULL) {
        insert(state, before, action, found, found->bytes);
        frag_held_ranges_remove(ranges, found->address);
    }
}

/* A segment that was taken and is not there at the end was given back: before its place is taken
 * again, else last. */
static void restore_segment_frees(restorer *state)
{
    const frag_snapshot_device *device = state->device;
    frag_held_ranges ranges = {0};
    for (uint64_t i = 0; i < device->entry_count; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (!is_kind(entry, FRAG_SNAPSHOT_SEGMENT_ALLOC) || entry->bytes == 0)
            continue;
        end_overlapping(state, &ranges, entry->address, entry->bytes, i,
                        FRAG_SNAPSHOT_SEGMENT_FREE);
        frag_held_range range = range_of(state, entry);
        frag_held_ranges_add(&ranges, &range);
    }
    frag_held_range *left = frag_held_ranges_list(&ranges);
    for (size_t i = 0; i < ranges.count; i++)
        if (!is_final_segment(device, left[i].address, left[i].bytes))
            insert(state, device->entry_count, FRAG_SNAPSHOT_SEGMENT_FREE, &left[i], left[i].bytes);
    frag_free(left);
    frag_held_ranges_destroy(&ranges);
    apply(state, FRAG_SKIPPED_SEGMENT_FREE);
}

static void add_final_segments(const restorer *state, frag_held_ranges *ranges)
{
    for (size_t i = 0; i < state->device->segment_count; i++) {
        const frag_snapshot_segment *segment = &state->device->segments[i];
        frag_held_range range = {.address = segment->address,
                                 .bytes = segment->bytes,
                                 .stream = segment->stream,
                                 .pool = segment->pool,
                                 .is_expandable = segment->is_expandable,
                                 .site = UINT32_MAX};
        frag_held_ranges_add(ranges, &range);
    }
}

/* Does the history begin with blocks in use: with one that is freed, or there at the end, but never
 * allocated? */
static bool begins_in_use(const restorer *state)
{
    const frag_snapshot_device *device = state->device;
    frag_number_map allocated = {0};
    uint64_t ignored = 0;
    bool is_late = false;
    for (uint64_t i = 0; i < device->entry_count && !is_late; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (is_kind(entry, FRAG_SNAPSHOT_ALLOC))
            frag_number_map_set(&allocated, entry->address, i);
        else
            is_late = is_free(entry) && !frag_number_map_get(&allocated, entry->address, &ignored);
    }
    for (size_t i = 0; i < device->segment_count && !is_late; i++)
        for (size_t k = 0; k < device->segments[i].block_count && !is_late; k++) {
            size_t block = device->segments[i].first_block + k;
            is_late =
                !frag_number_map_get(&allocated, state->snapshot->blocks[block].address, &ignored);
        }
    frag_number_map_destroy(&allocated);
    return is_late;
}

/* In a history that begins with nothing in use, of a release that has skip_actions, segments of
 * which no entry speaks were taken for the request that uses them first, at their beginning. */
static void take_at_first_use(restorer *state, const frag_held_ranges *ranges)
{
    const frag_snapshot_device *device = state->device;
    bool has_skipping = (state->snapshot->entry_keys >> FRAG_SNAPSHOT_USER_METADATA & 1) != 0;
    if (!has_skipping || (state->kinds & FRAG_SKIPPED_ALLOC) != 0 || begins_in_use(state))
        return;
    frag_held_range *left = frag_held_ranges_list(ranges);
    for (size_t i = 0; i < ranges->count; i++)
        if (left[i].site != UINT32_MAX && !left[i].is_expandable &&
            is_kind(&device->entries[left[i].site], FRAG_SNAPSHOT_ALLOC) &&
            device->entries[left[i].site].address == left[i].address)
            insert(state, left[i].site, FRAG_SNAPSHOT_SEGMENT_ALLOC, &left[i], left[i].bytes);
    frag_free(left);
}

/* A segment in whose place another one was given back was taken after that: directly before it is
 * used for the first time. Its site holds that entry. */
static void restore_segment_allocs(restorer *state)
{
    const frag_snapshot_device *device = state->device;
    frag_held_ranges ranges = {0};
    add_final_segments(state, &ranges);
    for (uint64_t i = device->entry_count; i-- > 0;) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (is_free(entry) || is_kind(entry, FRAG_SNAPSHOT_ALLOC)) {
            frag_held_range *touched = frag_held_ranges_find(&ranges, entry->address);
            if (touched != NULL)
                touched->site = (uint32_t)i;
        }
        if (!is_kind(entry, FRAG_SNAPSHOT_SEGMENT_FREE) || entry->bytes == 0)
            continue;
        frag_held_range *found = NULL;
        while ((found = frag_held_ranges_overlap(&ranges, entry->address, entry->bytes)) != NULL) {
            uint64_t before = found->site == UINT32_MAX ? i + 1 : found->site;
            insert(state, before, FRAG_SNAPSHOT_SEGMENT_ALLOC, found, found->bytes);
            frag_held_ranges_remove(&ranges, found->address);
        }
        frag_held_range range = range_of(state, entry);
        range.site = UINT32_MAX;
        frag_held_ranges_add(&ranges, &range);
    }
    take_at_first_use(state, &ranges);
    frag_held_ranges_destroy(&ranges);
    apply(state, FRAG_SKIPPED_SEGMENT_ALLOC);
}

/* Segments that are nowhere recorded, since they were there before the history or were taken and
 * given back without entries: where blocks lie in no other, of the size that holds them. */

/* Adds what of a range is in no other. */
static void add_uncovered(frag_held_ranges *ranges, frag_held_range range)
{
    uint64_t end = range.address + range.bytes;
    while (range.address < end) {
        const frag_held_range *found =
            frag_held_ranges_overlap(ranges, range.address, end - range.address);
        uint64_t until = found == NULL ? end : found->address;
        uint64_t next = found == NULL ? end : found->address + found->bytes;
        range.bytes = until > range.address ? until - range.address : 0;
        if (range.bytes > 0)
            frag_held_ranges_add(ranges, &range);
        range.address = next;
    }
}

static void add_known_segments(const restorer *state, frag_held_ranges *ranges)
{
    add_final_segments(state, ranges);
    for (uint64_t i = 0; i < state->device->entry_count; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        if (entry->action < FRAG_SNAPSHOT_SEGMENT_ALLOC ||
            entry->action > FRAG_SNAPSHOT_SEGMENT_UNMAP || entry->bytes == 0)
            continue;
        add_uncovered(ranges, range_of(state, entry));
    }
}

static frag_held_range stray_range(const restorer *state, const frag_radix_item *stray)
{
    frag_held_range range = range_of(state, &state->device->entries[stray->value]);
    range.bytes = block_bytes(range.bytes);
    return range;
}

/* The addresses of blocks in no segment and their entries, by address, then in their order. The
 * caller frees. */
static frag_radix_item *list_strays(const restorer *state, const frag_held_ranges *known,
                                    size_t *count)
{
    frag_radix_item *strays = NULL;
    size_t capacity = 0;
    *count = 0;
    for (uint64_t i = 0; i < state->device->entry_count; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        uint64_t bytes = block_bytes(entry->bytes);
        if ((!is_free(entry) && !is_kind(entry, FRAG_SNAPSHOT_ALLOC)) || entry->address == 0 ||
            entry->bytes > FRAG_REQUEST_BYTES_MAX ||
            frag_held_ranges_overlap(known, entry->address, bytes) != NULL)
            continue;
        strays = frag_grow(strays, &capacity, *count + 1, sizeof *strays);
        strays[(*count)++] = (frag_radix_item){entry->address, i};
    }
    frag_radix_item *scratch = frag_alloc(*count, sizeof *scratch);
    frag_radix_sort(strays, scratch, *count);
    frag_free(scratch);
    return strays;
}

static void restore_strays(restorer *state)
{
    frag_held_ranges known = {0};
    size_t count = 0;
    add_known_segments(state, &known);
    frag_radix_item *strays = list_strays(state, &known, &count);
    for (size_t i = 0; i < count;) {
        frag_held_range segment = stray_range(state, &strays[i]);
        uint64_t end = segment.address + segment.bytes;
        segment.address -= segment.address % SEGMENT_ALIGNMENT;
        for (i++; i < count && strays[i].key < frag_align_up(end, SEGMENT_ALIGNMENT); i++) {
            frag_held_range next = stray_range(state, &strays[i]);
            if (next.stream != segment.stream)
                break;
            if (next.address + next.bytes > end)
                end = next.address + next.bytes;
        }
        segment.bytes = frag_align_up(end, SEGMENT_ALIGNMENT) - segment.address;
        if (frag_held_ranges_add(&known, &segment))
            insert(state, state->device->entry_count, FRAG_SNAPSHOT_SEGMENT_FREE, &segment,
                   segment.bytes);
    }
    frag_free(strays);
    frag_held_ranges_destroy(&known);
    apply(state, FRAG_SKIPPED_SEGMENT_FREE);
}

/* ---- blocks */

/* Blocks at the end, by address. pending_only: those that wait for a stream; else all in use. */
static void add_final_blocks(const restorer *state, bool pending_only, frag_held_ranges *ranges)
{
    for (size_t i = 0; i < state->device->segment_count; i++) {
        const frag_snapshot_segment *segment = &state->device->segments[i];
        for (size_t k = 0; k < segment->block_count; k++) {
            const frag_snapshot_block *block = &state->snapshot->blocks[segment->first_block + k];
            frag_held_range range = {
                .address = block->address,
                .bytes = block->bytes == 0 ? block_bytes(block->requested_bytes) : block->bytes,
                .stream = segment->stream,
                .pool = segment->pool,
                .is_expandable = block->is_pending,
                .site = (uint32_t)(segment->first_block + k),
            };
            if (block->is_pending || !pending_only)
                frag_held_ranges_add(ranges, &range);
        }
    }
}

/* With one of the two entries of a free, the other is taken to be there too; what waits at the end
 * was only asked to be freed. */
static void merge_frees(restorer *state, uint32_t recorded, uint32_t kind)
{
    frag_snapshot_device *device = state->device;
    frag_held_ranges waiting = {0};
    add_final_blocks(state, true, &waiting);
    for (uint64_t i = device->entry_count; i-- > 0;) {
        frag_snapshot_entry *entry = &device->entries[i];
        const frag_held_range *found = is_free(entry) || is_kind(entry, FRAG_SNAPSHOT_ALLOC)
                                           ? frag_held_ranges_find(&waiting, entry->address)
                                           : NULL;
        if (found != NULL && found->address == entry->address) {
            frag_held_ranges_remove(&waiting, entry->address);
            if (recorded == FRAG_SNAPSHOT_FREE_REQUESTED)
                continue;
        }
        if (is_kind(entry, recorded))
            entry->action = FRAG_SNAPSHOT_FREE;
    }
    frag_held_ranges_destroy(&waiting);
    apply(state, kind);
    state->found |= kind;
}

/* What waits for a stream at the end was asked to be freed at some time before. */
static void restore_requests(restorer *state)
{
    frag_held_ranges waiting = {0};
    add_final_blocks(state, true, &waiting);
    frag_held_range *blocks = frag_held_ranges_list(&waiting);
    for (size_t i = 0; i < waiting.count; i++) {
        const frag_snapshot_block *block = &state->snapshot->blocks[blocks[i].site];
        insert(state, state->device->entry_count, FRAG_SNAPSHOT_FREE_REQUESTED, &blocks[i],
               block->requested_bytes == 0 ? block->bytes : block->requested_bytes);
    }
    frag_free(blocks);
    frag_held_ranges_destroy(&waiting);
    apply(state, FRAG_SKIPPED_FREE_REQUESTED);
}

/* The block of an allocation: PyTorch's, or, in a snapshot of another allocator, the smaller one
 * that lies there at the end. */
static uint64_t allocated_bytes(const frag_held_ranges *final, const frag_snapshot_entry *entry)
{
    uint64_t bytes = block_bytes(entry->bytes);
    const frag_held_range *kept = frag_held_ranges_find(final, entry->address);
    bool is_smaller = kept != NULL && kept->address == entry->address && kept->bytes < bytes &&
                      kept->bytes >= entry->bytes;
    return is_smaller ? kept->bytes : bytes;
}

static void add_live(const restorer *state, const frag_held_ranges *final, frag_held_ranges *live,
                     const frag_snapshot_entry *entry, uint64_t index)
{
    frag_held_range range = range_of(state, entry);
    range.bytes = allocated_bytes(final, entry);
    range.site = (uint32_t)index;
    if (entry->bytes <= FRAG_REQUEST_BYTES_MAX)
        frag_held_ranges_add(live, &range);
}

/* Neither entry of a free: a block was freed before its memory is used again or given back, or at
 * the end when it is not there. */
static void free_overlapping(restorer *state, frag_held_ranges *live, uint64_t address,
                             uint64_t bytes, uint64_t before)
{
    frag_held_range *found = NULL;
    while ((found = frag_held_ranges_overlap(live, address, bytes)) != NULL) {
        insert(state, before, FRAG_SNAPSHOT_FREE, found, state->device->entries[found->site].bytes);
        frag_held_ranges_remove(live, found->address);
    }
}

static void restore_frees(restorer *state)
{
    const frag_snapshot_device *device = state->device;
    frag_held_ranges live = {0};
    frag_held_ranges final = {0};
    add_final_blocks(state, false, &final);
    for (uint64_t i = 0; i < device->entry_count; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        bool is_alloc = is_kind(entry, FRAG_SNAPSHOT_ALLOC);
        bool is_gone = is_kind(entry, FRAG_SNAPSHOT_SEGMENT_FREE) ||
                       is_kind(entry, FRAG_SNAPSHOT_SEGMENT_UNMAP);
        if (is_alloc || is_gone)
            free_overlapping(state, &live, entry->address,
                             is_alloc ? allocated_bytes(&final, entry) : entry->bytes, i);
        if (is_alloc)
            add_live(state, &final, &live, entry, i);
    }
    frag_held_range *left = frag_held_ranges_list(&live);
    for (size_t i = 0; i < live.count; i++) {
        const frag_held_range *kept = frag_held_ranges_find(&final, left[i].address);
        uint64_t bytes = device->entries[left[i].site].bytes;
        if (kept == NULL || kept->address != left[i].address)
            insert(state, device->entry_count, FRAG_SNAPSHOT_FREE, &left[i], bytes);
    }
    frag_free(left);
    frag_held_ranges_destroy(&live);
    frag_held_ranges_destroy(&final);
    apply(state, FRAG_SKIPPED_FREE_REQUESTED | FRAG_SKIPPED_FREE_COMPLETED);
}

/* No allocs: what is in the way of an earlier block, or in memory that was not there yet, was
 * allocated directly after that. */
static void restore_allocs(restorer *state)
{
    const frag_snapshot_device *device = state->device;
    frag_held_ranges live = {0};
    add_final_blocks(state, false, &live);
    frag_held_range *final = frag_held_ranges_list(&live);
    for (size_t i = 0; i < live.count; i++) {
        const frag_snapshot_block *block = &state->snapshot->blocks[final[i].site];
        frag_held_range *range = frag_held_ranges_find(&live, final[i].address);
        range->is_expandable = false;
        range->site = 0;
        if (block->requested_bytes != 0 && block->requested_bytes <= range->bytes)
            range->bytes = block->requested_bytes; /* as frees have it, and the request */
    }
    frag_free(final);
    for (uint64_t i = device->entry_count; i-- > 0;) {
        const frag_snapshot_entry *entry = &device->entries[i];
        bool is_release =
            is_kind(entry, FRAG_SNAPSHOT_FREE) || is_kind(entry, FRAG_SNAPSHOT_FREE_COMPLETED);
        bool is_new = is_kind(entry, FRAG_SNAPSHOT_SEGMENT_ALLOC) ||
                      is_kind(entry, FRAG_SNAPSHOT_SEGMENT_MAP);
        if ((is_release || is_new) && entry->bytes > 0)
            end_overlapping(state, &live, entry->address,
                            is_release ? block_bytes(entry->bytes) : entry->bytes, i + 1,
                            FRAG_SNAPSHOT_ALLOC);
        frag_held_range range = range_of(state, entry);
        if (is_release && entry->bytes > 0 && entry->bytes <= FRAG_REQUEST_BYTES_MAX)
            frag_held_ranges_add(&live, &range);
    }
    frag_held_ranges_destroy(&live);
    apply(state, FRAG_SKIPPED_ALLOC);
}

/* ---- all of it */

static uint32_t absent_kinds(const frag_snapshot *snapshot)
{
    uint32_t actions = 0;
    for (uint32_t d = 0; d < snapshot->device_count; d++)
        for (uint64_t i = 0; i < snapshot->devices[d].entry_count; i++)
            actions |= (uint32_t)1 << (snapshot->devices[d].entries[i].action & 31);
    static const struct {
        uint32_t action;
        uint32_t kind;
    } kinds[] = {{FRAG_SNAPSHOT_FREE_REQUESTED, FRAG_SKIPPED_FREE_REQUESTED},
                 {FRAG_SNAPSHOT_FREE_COMPLETED, FRAG_SKIPPED_FREE_COMPLETED},
                 {FRAG_SNAPSHOT_ALLOC, FRAG_SKIPPED_ALLOC},
                 {FRAG_SNAPSHOT_SEGMENT_ALLOC, FRAG_SKIPPED_SEGMENT_ALLOC},
                 {FRAG_SNAPSHOT_SEGMENT_FREE, FRAG_SKIPPED_SEGMENT_FREE}};
    uint32_t absent = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        absent |= (actions >> (kinds[i].action & 31) & 1) == 0 ? kinds[i].kind : 0;
    /* Of old recordings, "free" is both entries of a free. */
    if ((actions >> (FRAG_SNAPSHOT_FREE & 31) & 1) != 0)
        absent &= ~(uint32_t)(FRAG_SKIPPED_FREE_REQUESTED | FRAG_SKIPPED_FREE_COMPLETED);
    return absent;
}

/* A short history may complete frees that were requested before it. */
static bool lacks_requests(const restorer *state)
{
    const frag_snapshot_device *device = state->device;
    frag_number_map allocated = {0};
    uint64_t completed = 0;
    uint64_t ignored = 0;
    bool is_proved = false;
    for (uint64_t i = 0; i < device->entry_count && !is_proved; i++) {
        const frag_snapshot_entry *entry = &device->entries[i];
        if (is_kind(entry, FRAG_SNAPSHOT_ALLOC))
            frag_number_map_set(&allocated, entry->address, i);
        else if (is_kind(entry, FRAG_SNAPSHOT_FREE_COMPLETED))
            is_proved = frag_number_map_get(&allocated, entry->address, &ignored) ||
                        ((state->kinds & FRAG_SKIPPED_ALLOC) != 0 && ++completed > 1);
    }
    frag_number_map_destroy(&allocated);
    return is_proved;
}

static void restore_device(restorer *state)
{
    const uint32_t frees = FRAG_SKIPPED_FREE_REQUESTED | FRAG_SKIPPED_FREE_COMPLETED;
    if (state->device->entry_count < 2) /* "state" keeps one entry, of any kind */
        return;
    if ((state->kinds & FRAG_SKIPPED_SEGMENT_FREE) != 0) {
        restore_segment_frees(state);
        restore_strays(state);
    }
    if ((state->kinds & FRAG_SKIPPED_SEGMENT_ALLOC) != 0)
        restore_segment_allocs(state);
    if ((state->kinds & frees) == FRAG_SKIPPED_FREE_REQUESTED && lacks_requests(state))
        merge_frees(state, FRAG_SNAPSHOT_FREE_COMPLETED, FRAG_SKIPPED_FREE_REQUESTED);
    else if ((state->kinds & frees) == FRAG_SKIPPED_FREE_COMPLETED)
        merge_frees(state, FRAG_SNAPSHOT_FREE_REQUESTED, FRAG_SKIPPED_FREE_COMPLETED);
    if ((state->kinds & FRAG_SKIPPED_ALLOC) != 0)
        restore_allocs(state);
    else if ((state->kinds & frees) == frees)
        restore_frees(state);
    if ((state->kinds & FRAG_SKIPPED_FREE_REQUESTED) != 0 &&
        (state->found & (frees | FRAG_SKIPPED_ALLOC)) != 0)
        restore_requests(state);
}

static void report(const restorer *state, frag_builder *builder, frag_findings *findings)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } names[] = {{FRAG_SKIPPED_ALLOC, "alloc"},
                 {FRAG_SKIPPED_FREE_REQUESTED, "free_requested"},
                 {FRAG_SKIPPED_FREE_COMPLETED, "free_completed"},
                 {FRAG_SKIPPED_SEGMENT_ALLOC, "segment_alloc"},
                 {FRAG_SKIPPED_SEGMENT_FREE, "segment_free"}};
    frag_text text = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((state->found & names[i].kind) != 0)
            frag_text_add(&text, "%s%s", text.length > 0 ? "," : "", names[i].name);
    frag_builder_metadata(builder, "torch.skipped_actions", text.bytes);
    frag_findings_add(findings, "actions-skipped",
                      "kinds of entries are missing (skip_actions); what they must have said was "
                      "inferred, at a time that is a guess",
                      false, 0, 0, "no %s", text.bytes);
    frag_text_destroy(&text);
}

uint32_t frag_snapshot_restore(frag_snapshot *snapshot, frag_builder *builder,
                               frag_findings *findings)
{
    restorer state = {.snapshot = snapshot, .kinds = absent_kinds(snapshot)};
    for (uint32_t i = 0; state.kinds != 0 && i < snapshot->device_count; i++) {
        state.device = &snapshot->devices[i];
        restore_device(&state);
    }
    if (state.found != 0)
        report(&state, builder, findings);
    frag_free(state.insertions);
    return state.found;
}
