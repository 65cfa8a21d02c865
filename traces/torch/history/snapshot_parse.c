#include "traces/torch/history/snapshot_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "traces/format_look.h"
#include "traces/pickle/json_tree.h"
#include "traces/pickle/pickle.h"

static const char *const names[FRAG_SNAPSHOT_NAME_COUNT] = {FRAG_SNAPSHOT_NAMES(FRAG_SECOND_OF_2)};

enum { BYTES_PER_ENTRY = 60 }; /* about as few as there are */

/* A container may be named many times in a pickle; a segment, block or trace is there once.
 * Refusing the second use keeps a small file from standing for an endless list. */
typedef struct parser {
    frag_snapshot *snapshot;
    const frag_pickle *pickle;
    uint8_t *is_claimed; /* by object */
    frag_error *error;
} parser;

/* Puts the place in the snapshot before what was found there. */
static bool fail_in(frag_error *error, const char *list, uint64_t index)
{
    char sentence[sizeof error->sentence];
    memcpy(sentence, error->sentence, sizeof sentence);
    return frag_fail(error, FRAG_E_INPUT, "%s[%llu] %.*s", list, (unsigned long long)index, 400,
                     sentence);
}

static bool claim(const parser *state, frag_pickle_value value, frag_pickle_kind kind,
                  const char *what)
{
    frag_pickle_kind found = frag_pickle_kind_of(state->pickle, value);
    uint64_t object = 0;
    if (found != kind || !frag_pickle_object_of(state->pickle, value, &object))
        return frag_fail(state->error, FRAG_E_INPUT, "%sis %s; expected %s", what,
                         frag_pickle_kind_name(found), frag_pickle_kind_name(kind));
    if (state->is_claimed[object] != 0 && state->pickle->objects[object].first != 0)
        return frag_fail(state->error, FRAG_E_INPUT, "%sappears twice in the file; expected once",
                         what);
    state->is_claimed[object] = 1;
    return true;
}

bool frag_snapshot_get(const frag_pickle *pickle, frag_pickle_value dict, uint32_t name,
                       frag_pickle_value *value)
{
    if (frag_pickle_kind_of(pickle, dict) != FRAG_PICKLE_DICT)
        return false;
    frag_pickle_walk walk = frag_pickle_begin(pickle, dict);
    frag_pickle_value key = 0;
    uint32_t id = 0;
    bool is_found = false;
    frag_pickle_value item = 0;
    while (frag_pickle_next(pickle, &walk, &key) && frag_pickle_next(pickle, &walk, &item))
        if (frag_pickle_string(pickle, key, &id) && id == name) {
            *value = item;
            is_found = true;
        }
    return is_found;
}

/* The values of a dictionary that are looked at by name, of equal keys the last. */
typedef struct named_values {
    uint64_t known; /* bit i: there is one with name i */
    frag_pickle_value values[FRAG_SNAPSHOT_NAME_COUNT];
} named_values;

_Static_assert(FRAG_SNAPSHOT_NAME_COUNT <= 64, "names are bits of a word");

static void name_values(const frag_pickle *pickle, frag_pickle_value dict, named_values *named)
{
    named->known = 0;
    if (frag_pickle_kind_of(pickle, dict) != FRAG_PICKLE_DICT)
        return;
    frag_pickle_walk walk = frag_pickle_begin(pickle, dict);
    frag_pickle_value key = 0;
    frag_pickle_value item = 0;
    uint32_t name = 0;
    while (frag_pickle_next(pickle, &walk, &key) && frag_pickle_next(pickle, &walk, &item))
        if (frag_pickle_string(pickle, key, &name) && name < FRAG_SNAPSHOT_NAME_COUNT) {
            named->known |= (uint64_t)1 << name;
            named->values[name] = item;
        }
}

static bool get_value(const named_values *named, uint32_t name, frag_pickle_value *value)
{
    if ((named->known >> name & 1) == 0)
        return false;
    *value = named->values[name];
    return true;
}

/* A number that must be there, 0 to max. */
static bool get_number(const parser *state, const named_values *named, uint32_t name, uint64_t max,
                       uint64_t *number)
{
    frag_pickle_value value = 0;
    if (!get_value(named, name, &value))
        return frag_fail(state->error, FRAG_E_INPUT, "has no '%s'", names[name]);
    if (!frag_pickle_unsigned(state->pickle, value, number) || *number > max)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "has a '%s' that is not an integer of 0 to %llu", names[name],
                         (unsigned long long)max);
    return true;
}

static uint32_t get_name(const parser *state, const named_values *named, uint32_t name)
{
    frag_pickle_value value = 0;
    uint32_t text = FRAG_SNAPSHOT_EMPTY;
    if (get_value(named, name, &value))
        frag_pickle_string(state->pickle, value, &text);
    return text;
}

static uint32_t get_frames(const parser *state, const named_values *named)
{
    frag_pickle_value value = 0;
    uint64_t object = 0;
    if (!get_value(named, FRAG_SNAPSHOT_FRAMES, &value) ||
        frag_pickle_kind_of(state->pickle, value) != FRAG_PICKLE_LIST ||
        !frag_pickle_object_of(state->pickle, value, &object) || object >= UINT32_MAX)
        return 0;
    return (uint32_t)object + 1;
}

/* ---- segments and blocks */

/* Up to 2.0 the live allocation of a block is the first of its history. */
static bool read_history(const parser *state, const named_values *named, frag_snapshot_block *block)
{
    frag_pickle_value history = 0;
    frag_pickle_value first = 0;
    if (!get_value(named, FRAG_SNAPSHOT_HISTORY, &history))
        return true;
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, history);
    if (!block->is_active || !frag_pickle_next(state->pickle, &walk, &first))
        return true;
    named_values entry;
    name_values(state->pickle, first, &entry);
    block->frames = get_frames(state, &entry);
    return get_number(state, &entry, FRAG_SNAPSHOT_REAL_SIZE, FRAG_SNAPSHOT_ADDRESS_MAX,
                      &block->requested_bytes);
}

static bool read_state(const parser *state, const named_values *named, frag_snapshot_block *block)
{
    uint32_t name = get_name(state, named, FRAG_SNAPSHOT_STATE);
    block->is_pending =
        name == FRAG_SNAPSHOT_ACTIVE_PENDING_FREE || name == FRAG_SNAPSHOT_ACTIVE_AWAITING_FREE;
    block->is_active = name == FRAG_SNAPSHOT_ACTIVE_ALLOCATED || block->is_pending;
    if (!block->is_active && name != FRAG_SNAPSHOT_INACTIVE)
        return frag_fail(
            state->error, FRAG_E_INPUT,
            "has no known 'state'; expected active_allocated, active_pending_free or inactive");
    return true;
}

static bool read_block(const parser *state, frag_pickle_value dict, uint64_t address,
                       frag_snapshot_block *block)
{
    *block = (frag_snapshot_block){.address = address};
    frag_pickle_value unused = 0;
    state->snapshot->has_blocks = true;
    if (!claim(state, dict, FRAG_PICKLE_DICT, ""))
        return false;
    named_values named;
    name_values(state->pickle, dict, &named);
    if (!get_number(state, &named, FRAG_SNAPSHOT_SIZE, FRAG_SNAPSHOT_ADDRESS_MAX, &block->bytes) ||
        !read_state(state, &named, block))
        return false;
    if (get_value(&named, FRAG_SNAPSHOT_ADDRESS, &unused)) {
        state->snapshot->has_block_addresses = true;
        if (!get_number(state, &named, FRAG_SNAPSHOT_ADDRESS, FRAG_SNAPSHOT_ADDRESS_MAX,
                        &block->address))
            return false;
        if (block->address != address)
            return frag_fail(state->error, FRAG_E_INPUT,
                             "begins at 0x%llx; expected 0x%llx, the end of the block before it",
                             (unsigned long long)block->address, (unsigned long long)address);
    }
    block->frames = get_frames(state, &named);
    /* Of a free block it is left over from an earlier use. */
    if (block->is_active && get_value(&named, FRAG_SNAPSHOT_REQUESTED_SIZE, &unused))
        return get_number(state, &named, FRAG_SNAPSHOT_REQUESTED_SIZE, FRAG_SNAPSHOT_ADDRESS_MAX,
                          &block->requested_bytes);
    return read_history(state, &named, block);
}

static bool read_blocks(const parser *state, frag_pickle_value list, frag_snapshot_segment *segment)
{
    frag_snapshot *snapshot = state->snapshot;
    segment->first_block = snapshot->block_count;
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, list);
    frag_pickle_value item = 0;
    uint64_t address = segment->address;
    uint64_t end = segment->address + segment->bytes;
    while (frag_pickle_next(state->pickle, &walk, &item)) {
        frag_snapshot_block block;
        uint64_t index = segment->block_count++;
        if (!read_block(state, item, address, &block))
            return fail_in(state->error, "blocks", index);
        if (block.bytes == 0 || block.bytes > end - address) {
            frag_fail(state->error, FRAG_E_INPUT,
                      "has %llu bytes; expected 1 to the %llu that are left of its segment",
                      (unsigned long long)block.bytes, (unsigned long long)(end - address));
            return fail_in(state->error, "blocks", index);
        }
        address += block.bytes;
        if (!block.is_active)
            continue;
        *FRAG_APPEND(snapshot->blocks, snapshot->block_count, snapshot->block_capacity) = block;
    }
    segment->block_count = snapshot->block_count - segment->first_block;
    if (address != end)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "has blocks of %llu bytes in all; expected its total_size, %llu",
                         (unsigned long long)(address - segment->address),
                         (unsigned long long)segment->bytes);
    return true;
}

static bool read_segment(const parser *state, frag_pickle_value dict,
                         frag_snapshot_segment *segment)
{
    frag_snapshot *snapshot = state->snapshot;
    *segment = (frag_snapshot_segment){0};
    uint64_t device = 0;
    frag_pickle_value value = 0;
    int64_t stream = 0;
    if (!claim(state, dict, FRAG_PICKLE_DICT, ""))
        return false;
    named_values named;
    name_values(state->pickle, dict, &named);
    if (!get_number(state, &named, FRAG_SNAPSHOT_DEVICE, FRAG_SNAPSHOT_DEVICE_MAX, &device) ||
        !get_number(state, &named, FRAG_SNAPSHOT_ADDRESS, FRAG_SNAPSHOT_ADDRESS_MAX,
                    &segment->address) ||
        !get_number(state, &named, FRAG_SNAPSHOT_TOTAL_SIZE, FRAG_REQUEST_BYTES_MAX,
                    &segment->bytes))
        return false;
    if (segment->bytes == 0)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "has total_size 0; expected the bytes it holds");
    segment->device = (uint32_t)device;
    if (get_value(&named, FRAG_SNAPSHOT_STREAM, &value)) {
        if (!frag_pickle_signed(state->pickle, value, &stream))
            return frag_fail(state->error, FRAG_E_INPUT, "has a 'stream' that is not an integer");
        segment->stream = (uint64_t)stream;
    }
    if (get_value(&named, FRAG_SNAPSHOT_SEGMENT_POOL_ID, &value) &&
        !frag_snapshot_pool_of(snapshot, state->pickle, value, &segment->pool))
        return frag_fail(state->error, FRAG_E_INPUT,
                         "has a 'segment_pool_id' that is not a pair of integers");
    if (get_value(&named, FRAG_SNAPSHOT_IS_EXPANDABLE, &value)) {
        snapshot->has_expandable_key = true;
        if (!frag_pickle_bool(state->pickle, value, &segment->is_expandable))
            return frag_fail(state->error, FRAG_E_INPUT,
                             "has an 'is_expandable' that is not a bool");
    }
    segment->is_small = get_name(state, &named, FRAG_SNAPSHOT_SEGMENT_TYPE) == FRAG_SNAPSHOT_SMALL;
    if (!get_value(&named, FRAG_SNAPSHOT_BLOCKS, &value))
        return frag_fail(state->error, FRAG_E_INPUT, "has no 'blocks'");
    return claim(state, value, FRAG_PICKLE_LIST, "has 'blocks' that ") &&
           read_blocks(state, value, segment);
}

static int compare_segments(const void *left, const void *right)
{
    const frag_snapshot_segment *a = left;
    const frag_snapshot_segment *b = right;
    return frag_compare_then(frag_compare(a->device, b->device),
                             frag_compare(a->address, b->address));
}

static bool read_segments(const parser *state, frag_pickle_value list)
{
    frag_snapshot *snapshot = state->snapshot;
    if (!claim(state, list, FRAG_PICKLE_LIST, "'segments' "))
        return false;
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, list);
    frag_pickle_value item = 0;
    while (frag_pickle_next(state->pickle, &walk, &item)) {
        frag_snapshot_segment segment;
        if (!read_segment(state, item, &segment))
            return fail_in(state->error, "segments", snapshot->segment_count);
        *FRAG_APPEND(snapshot->segments, snapshot->segment_count, snapshot->segment_capacity) =
            segment;
    }
    if (snapshot->segment_count > 1)
        qsort(snapshot->segments, snapshot->segment_count, sizeof *snapshot->segments,
              compare_segments);
    for (size_t i = 1; i < snapshot->segment_count; i++) {
        const frag_snapshot_segment *before = &snapshot->segments[i - 1];
        const frag_snapshot_segment *after = &snapshot->segments[i];
        if (before->device == after->device && after->address - before->address < before->bytes)
            return frag_fail(state->error, FRAG_E_INPUT,
                             "two segments of device %u overlap at 0x%llx; the file is damaged",
                             after->device, (unsigned long long)after->address);
    }
    return true;
}

/* ---- traces */

static void grow_devices(frag_snapshot *snapshot, uint32_t count)
{
    if (count <= snapshot->device_count)
        return;
    snapshot->devices = frag_realloc(snapshot->devices, count, sizeof *snapshot->devices);
    memset(snapshot->devices + snapshot->device_count, 0,
           (count - snapshot->device_count) * sizeof *snapshot->devices);
    snapshot->device_count = count;
}

typedef struct trace_place {
    uint64_t first;
    uint64_t *records;
    uint64_t count;
} trace_place;

/* As many as there are entries, which may still become more. */
static void grow_used(frag_snapshot *snapshot)
{
    size_t old = snapshot->is_used_capacity;
    snapshot->is_used =
        frag_grow(snapshot->is_used, &snapshot->is_used_capacity, snapshot->entry_count, 1);
    memset(snapshot->is_used + old, 0, snapshot->is_used_capacity - old);
}

/* Marks the record of an entry as part of a trace. */
static bool use_entry(const parser *state, frag_pickle_value item, uint64_t index, uint32_t device,
                      uint64_t *record)
{
    frag_snapshot *snapshot = state->snapshot;
    if (!frag_pickle_record(state->pickle, item, record) &&
        (!claim(state, item, FRAG_PICKLE_DICT, "") ||
         !frag_snapshot_entry_of(snapshot, item, record, state->error))) {
        fail_in(state->error, "entry ", index);
        return fail_in(state->error, "device_traces", device);
    }
    if (*record >= snapshot->is_used_capacity)
        grow_used(snapshot);
    if (snapshot->is_used[*record] != 0)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "device_traces[%u] names the entry [%llu] twice; the file is damaged",
                         device, (unsigned long long)index);
    snapshot->is_used[*record] = 1;
    return true;
}

/* Finds the records of a trace's entries. They were made in the order of the file, so that the
 * trace is normally a slice of all records, and needs no list of them. */
static bool read_trace(const parser *state, frag_pickle_value list, uint32_t device,
                       trace_place *place)
{
    place->count = frag_pickle_item_count(state->pickle, list);
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, list);
    frag_pickle_value item = 0;
    for (uint64_t i = 0; frag_pickle_next(state->pickle, &walk, &item); i++) {
        uint64_t record = 0;
        if (!use_entry(state, item, i, device, &record))
            return false;
        if (i == 0)
            place->first = record;
        if (place->records == NULL && record != place->first + i) {
            place->records = frag_alloc((size_t)place->count, sizeof *place->records);
            for (uint64_t k = 0; k < i; k++)
                place->records[k] = place->first + k;
        }
        if (place->records != NULL)
            place->records[i] = record;
    }
    return true;
}

/* The arrays of the devices are cut out once no record can be added any more. */
static void place_trace(frag_snapshot *snapshot, frag_snapshot_device *device,
                        const trace_place *place)
{
    device->entry_count = device->recorded_count = place->count;
    if (place->count == 0)
        return;
    device->is_own = place->records != NULL;
    if (!device->is_own) {
        device->entries = snapshot->entries + place->first;
        return;
    }
    device->entries = frag_alloc((size_t)place->count, sizeof *device->entries);
    for (uint64_t i = 0; i < place->count; i++)
        device->entries[i] = snapshot->entries[place->records[i]];
}

static bool read_traces(const parser *state, frag_pickle_value list)
{
    if (!claim(state, list, FRAG_PICKLE_LIST, "'device_traces' "))
        return false;
    uint64_t count = frag_pickle_item_count(state->pickle, list);
    if (count > FRAG_SNAPSHOT_DEVICE_MAX + 1)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "'device_traces' has %llu devices; expected at most %u",
                         (unsigned long long)count, FRAG_SNAPSHOT_DEVICE_MAX + 1);
    grow_devices(state->snapshot, (uint32_t)count);
    trace_place *places = frag_alloc(count, sizeof *places);
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, list);
    frag_pickle_value item = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && frag_pickle_next(state->pickle, &walk, &item); i++) {
        ok = claim(state, item, FRAG_PICKLE_LIST, "") || fail_in(state->error, "device_traces", i);
        ok = ok && read_trace(state, item, i, &places[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (ok)
            place_trace(state->snapshot, &state->snapshot->devices[i], &places[i]);
        frag_free(places[i].records);
    }
    frag_free(places);
    return ok;
}

/* ---- annotations and settings: what is odd in them is left out, since nothing depends on it */

static int compare_marks(const void *left, const void *right)
{
    const frag_snapshot_mark *a = left;
    const frag_snapshot_mark *b = right;
    if (a->device != b->device)
        return frag_compare(a->device, b->device);
    if (a->time_us != b->time_us)
        return frag_compare(a->time_us, b->time_us);
    /* Of one array: keeps the order of the file, which qsort alone does not. */
    return frag_compare(a->order, b->order);
}

static void read_annotations(const parser *state, frag_pickle_value list)
{
    frag_snapshot *snapshot = state->snapshot;
    if (frag_pickle_kind_of(state->pickle, list) != FRAG_PICKLE_LIST)
        return;
    frag_error ignored = {0};
    parser quiet = *state;
    quiet.error = &ignored;
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, list);
    frag_pickle_value item = 0;
    while (frag_pickle_next(state->pickle, &walk, &item)) {
        frag_snapshot_mark mark = {.name = FRAG_SNAPSHOT_EMPTY, .order = snapshot->mark_count};
        uint64_t device = 0;
        named_values named;
        name_values(state->pickle, item, &named);
        if (!claim(&quiet, item, FRAG_PICKLE_DICT, "") ||
            !get_number(&quiet, &named, FRAG_SNAPSHOT_DEVICE, FRAG_SNAPSHOT_DEVICE_MAX, &device) ||
            !get_number(&quiet, &named, FRAG_SNAPSHOT_TIME_US, FRAG_SNAPSHOT_TIME_US_MAX,
                        &mark.time_us))
            continue;
        mark.device = (uint32_t)device;
        mark.name = get_name(&quiet, &named, FRAG_SNAPSHOT_NAME);
        uint32_t stage = get_name(&quiet, &named, FRAG_SNAPSHOT_STAGE);
        mark.flags = stage == FRAG_SNAPSHOT_START ? FRAG_EVENT_BEGIN
                     : stage == FRAG_SNAPSHOT_END ? FRAG_EVENT_END
                                                  : 0;
        *FRAG_APPEND(snapshot->marks, snapshot->mark_count, snapshot->mark_capacity) = mark;
    }
    if (snapshot->mark_count > 1)
        qsort(snapshot->marks, snapshot->mark_count, sizeof *snapshot->marks, compare_marks);
}

/* Divisions of the sizes from so many MiB on. */
static void read_divisions(const parser *state, frag_pickle_value dict, uint64_t divisions[16])
{
    static const char *const starts[16] = {"1",    "2",    "4",     "8",    "16",   "32",
                                           "64",   "128",  "256",   "512",  "1024", "2048",
                                           "4096", "8192", "16384", "32768"};
    if (frag_pickle_kind_of(state->pickle, dict) != FRAG_PICKLE_DICT)
        return;
    frag_pickle_walk walk = frag_pickle_begin(state->pickle, dict);
    frag_pickle_value key = 0;
    frag_pickle_value value = 0;
    while (frag_pickle_next(state->pickle, &walk, &key) &&
           frag_pickle_next(state->pickle, &walk, &value)) {
        uint32_t text = 0;
        uint64_t number = 0;
        if (!frag_pickle_string(state->pickle, key, &text) ||
            !frag_pickle_unsigned(state->pickle, value, &number))
            continue;
        for (unsigned i = 0; i < 16; i++)
            if (number <= UINT32_MAX &&
                strcmp(starts[i], frag_pickle_text(state->pickle, text, NULL)) == 0)
                divisions[i] = number;
    }
}

static void read_settings(const parser *state, frag_pickle_value dict)
{
    frag_snapshot *snapshot = state->snapshot;
    frag_snapshot_settings *settings = &snapshot->settings;
    frag_pickle_value value = 0;
    if (frag_pickle_kind_of(state->pickle, dict) != FRAG_PICKLE_DICT)
        return;
    snapshot->has_settings = true;
    snapshot->settings_dict = dict;
    uint64_t number = 0;
    if (frag_snapshot_get(state->pickle, dict, FRAG_SNAPSHOT_MAX_SPLIT_SIZE, &value) &&
        frag_pickle_unsigned(state->pickle, value, &number) && number > 0)
        settings->max_split_bytes = number;
    double ratio = 0;
    if (frag_snapshot_get(state->pickle, dict, FRAG_SNAPSHOT_GC_THRESHOLD, &value) &&
        frag_pickle_float(state->pickle, value, &ratio) && ratio > 0 && ratio <= 1)
        settings->gc_threshold = ratio;
    if (frag_snapshot_get(state->pickle, dict, FRAG_SNAPSHOT_ROUNDUP, &value))
        read_divisions(state, value, settings->divisions);
}

/* One list of entries, or one list per device. */
static uint64_t count_host_entries(const parser *state, frag_pickle_value traces)
{
    const frag_pickle *pickle = state->pickle;
    frag_error ignored = {0};
    parser quiet = *state;
    quiet.error = &ignored;
    uint64_t count = 0;
    frag_pickle_walk walk = frag_pickle_begin(pickle, traces);
    frag_pickle_value item = 0;
    for (unsigned i = 0; i <= FRAG_SNAPSHOT_DEVICE_MAX && frag_pickle_next(pickle, &walk, &item);
         i++) {
        if (frag_pickle_kind_of(pickle, item) != FRAG_PICKLE_LIST)
            return frag_pickle_item_count(pickle, traces);
        if (claim(&quiet, item, FRAG_PICKLE_LIST, ""))
            count += frag_pickle_item_count(pickle, item);
    }
    return count;
}

static void share_out(frag_snapshot *snapshot)
{
    if (snapshot->segment_count > 0)
        grow_devices(snapshot, snapshot->segments[snapshot->segment_count - 1].device + 1);
    for (size_t i = 0; i < snapshot->segment_count; i++) {
        frag_snapshot_device *device = &snapshot->devices[snapshot->segments[i].device];
        if (device->segment_count++ == 0)
            device->segments = &snapshot->segments[i];
    }
    for (size_t i = 0; i < snapshot->mark_count; i++) {
        if (snapshot->marks[i].device >= snapshot->device_count)
            break;
        frag_snapshot_device *device = &snapshot->devices[snapshot->marks[i].device];
        if (device->mark_count++ == 0)
            device->marks = &snapshot->marks[i];
    }
}

/* ---- where it is */

static bool is_snapshot(const frag_pickle *pickle, frag_pickle_value dict)
{
    frag_pickle_value value = 0;
    return frag_snapshot_get(pickle, dict, FRAG_SNAPSHOT_SEGMENTS, &value) &&
           frag_snapshot_get(pickle, dict, FRAG_SNAPSHOT_DEVICE_TRACES, &value);
}

/* Programs also save a snapshot as a part of something larger: {"step": 7, "snapshot": {...}}.
 * Every object is looked at once, however often it is named. */
static bool find_snapshot(const parser *state, frag_pickle_value *root)
{
    const frag_pickle *pickle = state->pickle;
    frag_pickle_kind kind = frag_pickle_kind_of(pickle, *root);
    uint64_t count = 0;
    if (is_snapshot(pickle, *root))
        return true;
    for (uint64_t object = 0; object < pickle->object_count; object++)
        if (is_snapshot(pickle, frag_pickle_container(object))) {
            *root = frag_pickle_container(object);
            count++;
        }
    if (count == 1)
        return true;
    if (count > 1)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "holds %llu snapshots; expected one, save each to a file of its own",
                         (unsigned long long)count);
    if (kind != FRAG_PICKLE_DICT)
        return frag_fail(state->error, FRAG_E_INPUT,
                         "holds %s; expected the dictionary of torch.cuda.memory._snapshot (the "
                         "list of memory_snapshot() has no history)",
                         frag_pickle_kind_name(kind));
    return frag_fail(state->error, FRAG_E_INPUT,
                     "has no 'segments' or no 'device_traces'; expected the dictionary of "
                     "torch.cuda.memory._snapshot");
}

static bool read_root(const parser *state, frag_pickle_value root)
{
    frag_snapshot *snapshot = state->snapshot;
    frag_pickle_value segments = 0;
    frag_pickle_value traces = 0;
    frag_pickle_value value = 0;
    if (!find_snapshot(state, &root))
        return false;
    frag_snapshot_get(state->pickle, root, FRAG_SNAPSHOT_SEGMENTS, &segments);
    frag_snapshot_get(state->pickle, root, FRAG_SNAPSHOT_DEVICE_TRACES, &traces);
    if (!read_segments(state, segments) || !read_traces(state, traces))
        return false;
    if (frag_snapshot_get(state->pickle, root, FRAG_SNAPSHOT_ALLOCATOR_SETTINGS, &value))
        read_settings(state, value);
    if (frag_snapshot_get(state->pickle, root, FRAG_SNAPSHOT_EXTERNAL_ANNOTATIONS, &value)) {
        snapshot->has_annotations = true;
        read_annotations(state, value);
    }
    if (frag_snapshot_get(state->pickle, root, FRAG_SNAPSHOT_HOST_SEGMENTS, &value)) {
        snapshot->has_host = true;
        snapshot->host_segment_count = frag_pickle_item_count(state->pickle, value);
    }
    if (frag_snapshot_get(state->pickle, root, FRAG_SNAPSHOT_HOST_TRACES, &value)) {
        snapshot->has_host = true;
        snapshot->host_entry_count = count_host_entries(state, value);
    }
    share_out(snapshot);
    return true;
}

/* The same values in one of two syntaxes, distinguished by the first byte: 0x80 begins no text. */
static bool read_values(frag_snapshot *snapshot, frag_input *input, frag_pickle_value *root,
                        frag_error *error)
{
    const frag_json_tree_options options = {
        .visitor = frag_snapshot_visit,
        .context = snapshot,
        .shared_keys = (uint64_t)1 << FRAG_SNAPSHOT_FRAMES |
                       (uint64_t)1 << FRAG_SNAPSHOT_CPP_FRAMES |
                       (uint64_t)1 << FRAG_SNAPSHOT_FORWARD_FRAMES,
    };
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, 1, &bytes, &count, error))
        return false;
    bool is_text = count > 0 && (bytes[0] == '{' || bytes[0] == '[' || bytes[0] == ' ' ||
                                 bytes[0] == '\n' || bytes[0] == '\r' || bytes[0] == '\t');
    return is_text ? frag_json_tree_read(snapshot->pickle, input, &options, root, error)
                   : frag_pickle_read(snapshot->pickle, input, frag_snapshot_visit, snapshot, root,
                                      error);
}

bool frag_snapshot_json_is_like(const unsigned char *bytes, size_t count)
{
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    static const char *const marks[] = {"\"device_traces\"",   "\"segment_type\"",
                                        "\"segment_pool_id\"", "\"active_allocated\"",
                                        "\"free_requested\"",  "\"free_completed\""};
    if (!frag_look_begins(bytes, seen, "{["))
        return false;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (frag_look_contains(bytes, seen, marks[i]))
            return true;
    return false;
}

bool frag_snapshot_parse(frag_input *input, frag_snapshot *snapshot, frag_error *error)
{
    *snapshot = (frag_snapshot){.input = input, .settings = {.max_split_bytes = UINT64_MAX}};
    uint64_t default_pool[2] = {0, 0};
    frag_strings_add(&snapshot->pools, (const char *)default_pool, sizeof default_pool);
    snapshot->pickle = frag_pickle_create(names, FRAG_SNAPSHOT_NAME_COUNT);
    snapshot->settings_dict = frag_pickle_none();
    /* Arrays that are moved while they grow cost more than memory that is never touched. */
    snapshot->entry_capacity = frag_input_visible_bytes(input) / BYTES_PER_ENTRY + 1;
    snapshot->entries = frag_memory_large(snapshot->entry_capacity * sizeof *snapshot->entries);
    frag_pickle_value root = 0;
    bool ok = read_values(snapshot, input, &root, error);
    if (ok) {
        parser state = {.snapshot = snapshot, .pickle = snapshot->pickle, .error = error};
        state.is_claimed = frag_alloc(snapshot->pickle->object_count, sizeof *state.is_claimed);
        ok = read_root(&state, root);
        frag_free(state.is_claimed);
        frag_free(snapshot->is_used);
        snapshot->is_used = NULL;
    }
    if (!ok)
        frag_snapshot_destroy(snapshot);
    return ok;
}

void frag_snapshot_destroy(frag_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].is_own)
            frag_free(snapshot->devices[i].entries);
    frag_pickle_destroy(snapshot->pickle);
    frag_strings_destroy(&snapshot->pools);
    frag_strings_destroy(&snapshot->origins);
    frag_free(snapshot->entries);
    frag_free(snapshot->segments);
    frag_free(snapshot->blocks);
    frag_free(snapshot->marks);
    frag_free(snapshot->devices);
    *snapshot = (frag_snapshot){0};
}

frag_pool_id frag_snapshot_pool_id(const frag_snapshot *snapshot, uint32_t pool)
{
    frag_pool_id id = {0};
    uint64_t pair[2];
    memcpy(pair, frag_strings_get(&snapshot->pools, pool), sizeof pair);
    id.high = pair[0];
    id.low = pair[1];
    return id;
}

uint32_t frag_snapshot_add_origin(frag_snapshot *snapshot, frag_snapshot_origin origin)
{
    const frag_snapshot_origin *last = &snapshot->last_origin;
    if (snapshot->origins.count > 0 && origin.stream == last->stream &&
        origin.forward == last->forward && origin.note == last->note)
        return snapshot->last_origin_id;
    snapshot->last_origin = origin;
    snapshot->last_origin_id =
        frag_strings_add(&snapshot->origins, (const char *)&origin, sizeof origin);
    return snapshot->last_origin_id;
}

frag_snapshot_origin frag_snapshot_get_origin(const frag_snapshot *snapshot, uint32_t origin)
{
    frag_snapshot_origin found;
    memcpy(&found, frag_strings_get(&snapshot->origins, origin), sizeof found);
    return found;
}
