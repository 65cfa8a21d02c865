#include "traces/torch/history/snapshot_rewind.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "traces/number_map.h"

#define MIN_BLOCK_BYTES 512u
#define SMALL_SEGMENT_BYTES (2 * FRAG_MIB)
#define UNSPLIT_BYTES_MAX FRAG_MIB

/* Ranges found for addresses of the same bits above the lowest; segments are mostly larger. */
enum { RECENT_COUNT = 256, RECENT_SHIFT = 21 };

typedef struct rewinder {
    frag_snapshot *snapshot;
    frag_snapshot_device *device;
    frag_rewound *rewound;
    frag_held_ranges ranges;
    const frag_held_range *recent[RECENT_COUNT]; /* NULL: none; all are when the ranges change */
    frag_number_map live;                        /* blocks, by address */
    uint32_t newest;                             /* the block that was added last, if it is live */
    frag_findings *findings;
    uint32_t ordinal;
} rewinder;

uint64_t frag_snapshot_round(const frag_snapshot_settings *settings, uint64_t bytes)
{
    if (bytes <= MIN_BLOCK_BYTES)
        return MIN_BLOCK_BYTES;
    uint32_t high = frag_bit_high(bytes);
    uint32_t interval = high <= 20 ? 0 : high - 20 < 15 ? high - 20 : 15;
    uint64_t division = settings->divisions[interval];
    if (division > 1 && frag_is_power_of_two(division) && bytes > MIN_BLOCK_BYTES * division) {
        uint64_t floor = (uint64_t)1 << high;
        uint64_t step = floor / division;
        return step == 0 ? floor * 2 : frag_align_up(bytes, step);
    }
    return frag_align_up(bytes, MIN_BLOCK_BYTES);
}

/* Notes that an entry does not fit what follows it, and drops it. */
static void drop(rewinder *state, uint64_t index, const char *kind, const char *meaning)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    entry->is_dropped = true;
    frag_findings_add(state->findings, kind, meaning, true, state->ordinal, index,
                      "%s of %llu bytes at 0x%llx",
                      frag_pickle_text(state->snapshot->pickle, entry->action, NULL),
                      (unsigned long long)entry->bytes, (unsigned long long)entry->address);
}

/* The block at a place of the live ones, or FRAG_REWOUND_NONE. */
static uint32_t block_at(const rewinder *state, size_t place)
{
    return (uint32_t)(state->live.places[place].value - 1);
}

/* Adds a block whose address was looked for at that place of the live ones. */
static uint32_t add_block(rewinder *state, size_t place, const frag_rewound_block *block)
{
    frag_rewound *rewound = state->rewound;
    if (rewound->block_count == rewound->block_capacity)
        rewound->blocks = frag_grow(rewound->blocks, &rewound->block_capacity,
                                    rewound->block_count + 1, sizeof *rewound->blocks);
    rewound->blocks[rewound->block_count] = *block;
    frag_number_map_add_at(&state->live, place, block->address, rewound->block_count);
    state->newest = (uint32_t)rewound->block_count++;
    return state->newest;
}

/* Room for as many blocks as a history mostly has: one for three entries or less. Arrays that are
 * moved while they grow cost more than memory that is never touched. */
static void reserve_blocks(rewinder *state)
{
    size_t count = (size_t)(state->device->entry_count / 3);
    for (size_t i = 0; i < state->device->segment_count; i++)
        count += state->device->segments[i].block_count;
    state->rewound->block_capacity = count + 16;
    state->rewound->blocks =
        frag_realloc(NULL, state->rewound->block_capacity, sizeof *state->rewound->blocks);
}

static void begin_at_end(rewinder *state)
{
    frag_snapshot *snapshot = state->snapshot;
    frag_rewound *rewound = state->rewound;
    size_t capacity = 0;
    frag_number_map_grow(&state->live);
    for (size_t i = 0; i < state->device->segment_count; i++) {
        const frag_snapshot_segment *segment = &state->device->segments[i];
        frag_held_range range = {
            .address = segment->address,
            .bytes = segment->bytes,
            .stream = segment->stream,
            .pool = segment->pool,
            .is_expandable = segment->is_expandable,
            .is_small = segment->is_small,
        };
        bool is_added = frag_held_ranges_add(&state->ranges, &range);
        FRAG_ASSERT(is_added);
        uint32_t origin =
            frag_snapshot_add_origin(snapshot, (frag_snapshot_origin){.stream = segment->stream,
                                                                      .note = FRAG_SNAPSHOT_EMPTY});
        for (size_t k = 0; k < segment->block_count; k++) {
            const frag_snapshot_block *block = &snapshot->blocks[segment->first_block + k];
            *FRAG_APPEND(rewound->final_frames, rewound->final_count, capacity) = block->frames;
            add_block(state, frag_number_map_find(&state->live, block->address),
                      &(frag_rewound_block){
                          .address = block->address,
                          .requested_bytes = block->requested_bytes,
                          .block_bytes = block->bytes,
                          .pool = segment->pool,
                          .origin = origin & FRAG_SNAPSHOT_ORIGIN_MAX,
                          .is_pending = block->is_pending,
                      });
        }
    }
}

/* ---- undoing one entry */

static void undo_alloc(rewinder *state, uint64_t index)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    size_t place = frag_number_map_find(&state->live, entry->address);
    uint32_t found = block_at(state, place);
    if (found == FRAG_REWOUND_NONE || entry->bytes == 0) {
        drop(state, index, "alloc-of-nothing",
             "an allocation that is neither freed later nor in use at the end; it was left out");
        return;
    }
    frag_rewound_block *block = &state->rewound->blocks[found];
    if (block->is_pending) {
        frag_findings_add(
            state->findings, "free-without-request",
            "a block is given back though no free of it was recorded; it is freed there", true,
            state->ordinal, index, "allocated at 0x%llx", (unsigned long long)entry->address);
        block->is_pending = false;
    }
    if (block->requested_bytes != entry->bytes && block->requested_bytes != 0)
        frag_findings_add(state->findings, "size-differs",
                          "a block has another size when it is freed, or at the end, than when it "
                          "was allocated; the latter counts",
                          true, state->ordinal, index, "%llu bytes at 0x%llx, later %llu",
                          (unsigned long long)entry->bytes, (unsigned long long)entry->address,
                          (unsigned long long)block->requested_bytes);
    block->requested_bytes = entry->bytes;
    block->origin = entry->origin & FRAG_SNAPSHOT_ORIGIN_MAX;
    entry->block = found;
    if (entry->has_pool)
        block->pool = entry->pool;
    else
        entry->pool = block->pool;
    frag_number_map_remove_at(&state->live, place);
    if (found == state->newest)
        state->newest = FRAG_REWOUND_NONE;
}

/* The range that holds an address, or NULL; few are asked for between two changes of them. */
static const frag_held_range *find_range(rewinder *state, uint64_t address)
{
    const frag_held_range **recent = &state->recent[(address >> RECENT_SHIFT) % RECENT_COUNT];
    if (*recent == NULL || address - (*recent)->address >= (*recent)->bytes)
        *recent = frag_held_ranges_find(&state->ranges, address);
    return *recent;
}

/* The end of a block's life: a block that is not in the final state comes up. */
static void undo_release(rewinder *state, uint64_t index, bool is_pending)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    size_t place = frag_number_map_find(&state->live, entry->address);
    if (state->live.places[place].value != 0) {
        drop(state, index, "free-of-used-address",
             "a block is given back, but no allocation comes before the next free at its address; "
             "the earlier one was left out");
        return;
    }
    const frag_held_range *range = find_range(state, entry->address);
    if (range == NULL || entry->bytes == 0 ||
        entry->bytes > range->bytes - (entry->address - range->address)) {
        drop(state, index, "free-outside-segments",
             "a block is given back that lies in no segment held then; it was left out");
        return;
    }
    if (!entry->has_pool)
        entry->pool = range->pool;
    entry->block = add_block(state, place,
                             &(frag_rewound_block){
                                 .address = entry->address,
                                 .requested_bytes = entry->bytes,
                                 .pool = entry->pool,
                                 .origin = entry->origin & FRAG_SNAPSHOT_ORIGIN_MAX,
                                 .is_pending = is_pending,
                             });
}

/* The live block at an address, which was mostly added last. */
static uint32_t find_block(const rewinder *state, uint64_t address)
{
    if (state->newest != FRAG_REWOUND_NONE &&
        state->rewound->blocks[state->newest].address == address)
        return state->newest;
    return block_at(state, frag_number_map_find(&state->live, address));
}

static void undo_request(rewinder *state, uint64_t index)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    uint32_t found = find_block(state, entry->address);
    if (found == FRAG_REWOUND_NONE || !state->rewound->blocks[found].is_pending) {
        drop(state, index, "free-of-nothing",
             "a free that no block goes with: it is not given back later, and not pending at the "
             "end; it was left out");
        return;
    }
    frag_rewound_block *block = &state->rewound->blocks[found];
    block->is_pending = false;
    if (entry->has_pool)
        block->pool = entry->pool;
    else
        entry->pool = block->pool;
    entry->block = found;
}

static void undo_segment_alloc(rewinder *state, uint64_t index)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_held_range *range = frag_held_ranges_find(&state->ranges, entry->address);
    if (range == NULL || range->address != entry->address || range->bytes != entry->bytes ||
        range->is_expandable) {
        drop(state, index, "segment-of-nothing",
             "a segment is taken that is neither given back nor there at the end; it was left out");
        return;
    }
    if (!entry->has_pool)
        entry->pool = range->pool;
    frag_held_ranges_remove(&state->ranges, entry->address);
}

static frag_held_range range_of(const rewinder *state, const frag_snapshot_entry *entry)
{
    return (frag_held_range){
        .address = entry->address,
        .bytes = entry->bytes,
        .stream = frag_snapshot_stream(state->snapshot, entry),
        .pool = entry->pool,
        .is_small = entry->bytes == SMALL_SEGMENT_BYTES,
    };
}

static void undo_segment_free(rewinder *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    frag_held_range range = range_of(state, entry);
    if (entry->bytes == 0 || entry->bytes > FRAG_REQUEST_BYTES_MAX ||
        !frag_held_ranges_add(&state->ranges, &range))
        drop(state, index, "segment-freed-twice",
             "a segment is given back whose place is still held afterwards; it was left out");
}

static void undo_map(rewinder *state, uint64_t index)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    const frag_held_range *range = frag_held_ranges_find(&state->ranges, entry->address);
    if (range != NULL && !entry->has_pool)
        entry->pool = range->pool;
    if (!frag_held_ranges_cut(&state->ranges, entry->address, entry->bytes))
        drop(state, index, "map-of-nothing",
             "memory is mapped that is neither unmapped later nor there at the end; it was left "
             "out");
}

/* Unmapped memory belongs to what it touches; the range it came from may also have gone as a whole.
 */
static void adopt_neighbour(const rewinder *state, frag_held_range *range)
{
    const frag_held_range *left =
        range->address == 0 ? NULL : frag_held_ranges_find(&state->ranges, range->address - 1);
    const frag_held_range *right =
        frag_held_ranges_find(&state->ranges, range->address + range->bytes);
    const frag_held_range *found =
        left != NULL && left->is_expandable && left->stream == range->stream      ? left
        : right != NULL && right->is_expandable && right->stream == range->stream ? right
                                                                                  : NULL;
    if (found != NULL)
        range->pool = found->pool;
}

static void undo_unmap(rewinder *state, uint64_t index)
{
    frag_snapshot_entry *entry = &state->device->entries[index];
    frag_held_range range = range_of(state, entry);
    range.is_expandable = true;
    range.is_small = entry->bytes % (20 * FRAG_MIB) != 0;
    if (!entry->has_pool)
        adopt_neighbour(state, &range);
    entry->pool = range.pool;
    if (entry->bytes == 0 || entry->bytes > FRAG_REQUEST_BYTES_MAX ||
        !frag_held_ranges_map(&state->ranges, &range))
        drop(state, index, "unmapped-twice",
             "memory is unmapped whose place is still held afterwards; it was left out");
}

/* For those who look at segments alone. */
static void list_segment_entry(frag_rewound *rewound, uint64_t index)
{
    *FRAG_APPEND(rewound->segment_entries, rewound->segment_entry_count,
                 rewound->segment_entry_capacity) = (uint32_t)index;
}

static void turn_segment_entries(frag_rewound *rewound)
{
    for (size_t i = 0, k = rewound->segment_entry_count; i + 1 < k; i++) {
        uint32_t other = rewound->segment_entries[--k];
        rewound->segment_entries[k] = rewound->segment_entries[i];
        rewound->segment_entries[i] = other;
    }
}

static void undo(rewinder *state, uint64_t index)
{
    uint32_t action = state->device->entries[index].action;
    if (action >= FRAG_SNAPSHOT_SEGMENT_ALLOC && action <= FRAG_SNAPSHOT_SEGMENT_UNMAP) {
        list_segment_entry(state->rewound, index);
        memset(state->recent, 0, sizeof state->recent);
    }
    switch (action) {
    case FRAG_SNAPSHOT_ALLOC:
        undo_alloc(state, index);
        break;
    case FRAG_SNAPSHOT_FREE_COMPLETED:
        undo_release(state, index, true);
        break;
    case FRAG_SNAPSHOT_FREE_REQUESTED:
        undo_request(state, index);
        break;
    case FRAG_SNAPSHOT_FREE:
        undo_release(state, index, false);
        break;
    case FRAG_SNAPSHOT_SEGMENT_ALLOC:
        undo_segment_alloc(state, index);
        break;
    case FRAG_SNAPSHOT_SEGMENT_FREE:
        undo_segment_free(state, index);
        break;
    case FRAG_SNAPSHOT_SEGMENT_MAP:
        undo_map(state, index);
        break;
    case FRAG_SNAPSHOT_SEGMENT_UNMAP:
        undo_unmap(state, index);
        break;
    default:
        break;
    }
}

/* ---- the state at the start */

typedef struct initial_place {
    uint64_t address;
    uint32_t block;
} initial_place;

static int compare_initial(const void *left, const void *right)
{
    const initial_place *a = left;
    const initial_place *b = right;
    return frag_compare(a->address, b->address);
}

/* A block from before the history of which no size is recorded, since it was freed before the end.
 * Requests are cut from the beginning of a free block. So the first one that is served behind it,
 * while it is in use, begins where it ends. */
typedef struct unsized_block {
    uint64_t address;
    uint64_t limit; /* it ends there at most: where the next block, or the range's last byte, is */
    uint64_t end;   /* 0: not shown */
    uint32_t block;
    bool is_over; /* it is free, or its end is known */
} unsized_block;

typedef struct unsized_blocks {
    unsized_block *items; /* by address */
    size_t count;
} unsized_blocks;

/* The last one that begins below an address, or NULL. */
static unsized_block *find_unsized(const unsized_blocks *unsized, uint64_t address)
{
    size_t low = 0;
    size_t high = unsized->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unsized->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &unsized->items[low - 1] : NULL;
}

static void list_unsized(const rewinder *state, const initial_place *places, size_t count,
                         unsized_blocks *unsized)
{
    const frag_rewound *rewound = state->rewound;
    size_t at = 0;
    *unsized = (unsized_blocks){.items = frag_alloc(count, sizeof *unsized->items)};
    for (size_t i = 0; i < count; i++) {
        const frag_rewound_block *block = &rewound->blocks[places[i].block];
        while (at < rewound->range_count &&
               rewound->ranges[at].address + rewound->ranges[at].bytes <= block->address)
            at++;
        if (block->block_bytes != 0 || block->requested_bytes == 0 || at >= rewound->range_count)
            continue;
        uint64_t limit = rewound->ranges[at].address + rewound->ranges[at].bytes - 1;
        if (i + 1 < count && places[i + 1].address <= limit)
            limit = places[i + 1].address;
        unsized->items[unsized->count++] =
            (unsized_block){.address = block->address, .limit = limit, .block = places[i].block};
    }
}

static void show_ends(const rewinder *state, const unsized_blocks *unsized)
{
    for (uint64_t i = 0; unsized->count > 0 && i < state->device->entry_count; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        if (entry->is_dropped)
            continue;
        if (entry->action == FRAG_SNAPSHOT_ALLOC) {
            unsized_block *found = find_unsized(unsized, entry->address);
            if (found == NULL || found->is_over || entry->address > found->limit)
                continue;
            found->end = entry->address;
            found->is_over = true;
        } else if (entry->action == FRAG_SNAPSHOT_FREE_COMPLETED ||
                   entry->action == FRAG_SNAPSHOT_FREE) {
            unsized_block *found = find_unsized(unsized, entry->address + 1);
            if (found != NULL && found->address == entry->address)
                found->is_over = true;
        }
    }
}

/* Where nothing shows the size, it is guessed: in the large pool a remainder of up to 1 MiB is not
 * split off, so a small gap behind the block is taken for its own. */
static void guess_size(rewinder *state, frag_rewound_block *block, const frag_held_range *range,
                       uint64_t room_bytes)
{
    uint64_t rounded = frag_snapshot_round(&state->snapshot->settings, block->requested_bytes);
    bool is_exact = range->is_small || range->is_expandable;
    if (rounded > room_bytes)
        rounded = room_bytes;
    uint64_t gap = room_bytes - rounded;
    block->block_bytes = !is_exact && gap <= UNSPLIT_BYTES_MAX ? room_bytes : rounded;
    block->is_guessed = !is_exact && gap > 0;
    if (block->is_guessed)
        frag_findings_add(
            state->findings, "block-size-guessed",
            "the size of a block from before the history is not recorded, and no later request "
            "shows it; a gap of up to 1 MiB behind it was taken for a part of it, no larger one",
            false, state->ordinal, 0, "%llu bytes requested at 0x%llx, taken for %llu",
            (unsigned long long)block->requested_bytes, (unsigned long long)block->address,
            (unsigned long long)block->block_bytes);
}

static void set_size(rewinder *state, const unsized_blocks *unsized, frag_rewound_block *block,
                     const frag_held_range *range, uint64_t room_bytes)
{
    const unsized_block *found = find_unsized(unsized, block->address + 1);
    uint64_t shown = found != NULL && found->address == block->address && found->end != 0
                         ? found->end - block->address
                         : 0;
    if (shown >= block->requested_bytes && shown <= room_bytes && shown != 0)
        block->block_bytes = shown;
    else
        guess_size(state, block, range, room_bytes);
}

static void drop_initial(rewinder *state, uint32_t dropped)
{
    frag_rewound *rewound = state->rewound;
    const frag_rewound_block *block = &rewound->blocks[dropped];
    frag_findings_add(state->findings, "initial-block-misplaced",
                      "a block from before the history lies outside every segment or over another "
                      "block; it was left out with its frees",
                      true, state->ordinal, 0, "%llu bytes at 0x%llx",
                      (unsigned long long)block->requested_bytes,
                      (unsigned long long)block->address);
    *FRAG_APPEND(rewound->misplaced, rewound->misplaced_count, rewound->misplaced_capacity) =
        dropped;
}

/* Keeps the blocks that lie in ranges and apart from each other. */
static void place_initial(rewinder *state, const initial_place *places, size_t count,
                          const unsized_blocks *unsized)
{
    frag_rewound *rewound = state->rewound;
    size_t at = 0;
    uint64_t free_from = 0;
    for (size_t i = 0; i < count; i++) {
        frag_rewound_block *block = &rewound->blocks[places[i].block];
        while (at < rewound->range_count &&
               rewound->ranges[at].address + rewound->ranges[at].bytes <= block->address)
            at++;
        const frag_held_range *range = at < rewound->range_count ? &rewound->ranges[at] : NULL;
        if (block->requested_bytes == 0) /* as up to 2.0, without a history */
            block->requested_bytes = block->block_bytes;
        if (range == NULL || block->address < range->address || block->address < free_from ||
            block->requested_bytes > range->bytes - (block->address - range->address)) {
            drop_initial(state, places[i].block);
            continue;
        }
        uint64_t end = range->address + range->bytes;
        if (i + 1 < count && places[i + 1].address < end)
            end = places[i + 1].address;
        if (block->block_bytes == 0)
            set_size(state, unsized, block, range, end - block->address);
        if (block->block_bytes > end - block->address ||
            block->block_bytes < block->requested_bytes) {
            drop_initial(state, places[i].block);
            continue;
        }
        free_from = block->address + block->block_bytes;
        rewound->initial[rewound->initial_count++] = places[i].block;
    }
}

static void take_initial(rewinder *state)
{
    frag_rewound *rewound = state->rewound;
    rewound->ranges = frag_held_ranges_list(&state->ranges);
    rewound->range_count = state->ranges.count;
    rewound->initial = frag_alloc(state->live.count, sizeof *rewound->initial);
    initial_place *places = frag_alloc(state->live.count, sizeof *places);
    size_t count = 0;
    for (size_t i = 0; i < state->live.capacity; i++)
        if (state->live.places[i].value != 0)
            places[count++] =
                (initial_place){.address = state->live.places[i].key, .block = block_at(state, i)};
    qsort(places, count, sizeof *places, compare_initial);
    unsized_blocks unsized;
    list_unsized(state, places, count, &unsized);
    show_ends(state, &unsized);
    place_initial(state, places, count, &unsized);
    frag_free(unsized.items);
    frag_free(places);
}

void frag_snapshot_rewind(frag_snapshot *snapshot, uint32_t device, frag_rewound *rewound,
                          frag_findings *findings)
{
    *rewound = (frag_rewound){0};
    rewinder state = {
        .snapshot = snapshot,
        .device = &snapshot->devices[device],
        .rewound = rewound,
        .newest = FRAG_REWOUND_NONE,
        .findings = findings,
        .ordinal = device,
    };
    reserve_blocks(&state);
    begin_at_end(&state);
    bool is_doubtful = false;
    bool is_pooled = false;
    bool is_failed = false;
    for (uint64_t i = state.device->entry_count; i-- > 0;) {
        const frag_snapshot_entry *entry = &state.device->entries[i];
        undo(&state, i);
        is_doubtful |= entry->is_dropped | (entry->action == FRAG_SNAPSHOT_EMPTY);
        is_pooled |= entry->has_pool;
        is_failed |= entry->action == FRAG_SNAPSHOT_OOM;
    }
    rewound->has_doubtful = is_doubtful;
    rewound->has_pools = is_pooled;
    rewound->has_failed = is_failed;
    turn_segment_entries(rewound);
    take_initial(&state);
    frag_held_ranges_destroy(&state.ranges);
    frag_number_map_destroy(&state.live);
}

void frag_rewound_destroy(frag_rewound *rewound)
{
    frag_free(rewound->blocks);
    frag_free(rewound->final_frames);
    frag_free(rewound->ranges);
    frag_free(rewound->initial);
    frag_free(rewound->misplaced);
    frag_free(rewound->segment_entries);
    *rewound = (frag_rewound){0};
}
