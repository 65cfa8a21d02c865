/* Reads the history entries of a torch snapshot, one dictionary each, into an array. */
#include "traces/torch/history/snapshot_parse.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

bool frag_snapshot_pool_of(frag_snapshot *snapshot, const frag_pickle *pickle,
                           frag_pickle_value value, uint32_t *pool)
{
    if (value == snapshot->last_pool_value && value != 0) {
        *pool = snapshot->last_pool;
        return true;
    }
    frag_pickle_walk walk = frag_pickle_begin(pickle, value);
    frag_pickle_value items[2] = {0};
    frag_pickle_value excess = 0;
    uint64_t id[2] = {0};
    for (int i = 0; i < 2; i++)
        if (!frag_pickle_next(pickle, &walk, &items[i]) ||
            !frag_pickle_unsigned(pickle, items[i], &id[i]))
            return false;
    if (frag_pickle_next(pickle, &walk, &excess))
        return false;
    snapshot->last_pool = frag_strings_add(&snapshot->pools, (const char *)id, sizeof id);
    /* Only a tuple stays what it is. */
    if (frag_pickle_kind_of(pickle, value) == FRAG_PICKLE_TUPLE)
        snapshot->last_pool_value = value;
    *pool = snapshot->last_pool;
    return true;
}

/* What an entry must have; bits of the keys seen. */
#define KEY_BIT(name) ((uint64_t)1 << FRAG_SNAPSHOT_##name)

static uint32_t action_of(const frag_pickle *pickle, frag_pickle_value value)
{
    uint32_t name = 0;
    if (!frag_pickle_string(pickle, value, &name) || name < FRAG_SNAPSHOT_ALLOC ||
        name > FRAG_SNAPSHOT_OOM)
        return FRAG_SNAPSHOT_EMPTY;
    return name;
}

/* Numbers of an entry. Streams are handles of 64 bits, which some writers sign. */
static bool read_number(const frag_pickle *pickle, frag_pickle_value value, uint64_t *number)
{
    return frag_pickle_unsigned(pickle, value, number) && *number <= FRAG_SNAPSHOT_ADDRESS_MAX;
}

static bool read_stream(const frag_pickle *pickle, frag_pickle_value value, uint64_t *number)
{
    int64_t handle = 0;
    if (frag_pickle_tag_of(value) == FRAG_PICKLE_TAG_INTEGER) {
        *number = frag_pickle_content_of(value);
        return true;
    }
    if (!frag_pickle_signed(pickle, value, &handle))
        return false;
    *number = (uint64_t)handle;
    return true;
}

static uint32_t read_frames(const frag_pickle *pickle, frag_pickle_value value)
{
    uint64_t object = 0;
    if (!frag_pickle_object_of(pickle, value, &object) || object >= UINT32_MAX ||
        pickle->objects[object].kind != FRAG_PICKLE_LIST)
        return 0;
    return (uint32_t)object + 1;
}

static uint64_t read_time(const frag_pickle *pickle, frag_pickle_value value)
{
    uint64_t time_us = 0;
    if (!frag_pickle_unsigned(pickle, value, &time_us) || time_us > FRAG_SNAPSHOT_TIME_US_MAX)
        return 0; /* a clock that was set wrong harms nobody */
    return time_us;
}

/* A note of the program counts; without one, that of the compiler. */
static uint32_t read_note(const frag_pickle *pickle, frag_pickle_value value, uint32_t unsaid)
{
    uint32_t text = unsaid;
    return frag_pickle_string(pickle, value, &text) && text != unsaid ? text : FRAG_SNAPSHOT_EMPTY;
}

static void set_action(frag_snapshot_entry *entry, uint32_t action)
{
    entry->action = action & 31;
}

static void set_time(frag_snapshot_entry *entry, uint64_t time_us)
{
    entry->time_us = time_us & (((uint64_t)1 << 55) - 1);
}

/* NULL, or what is wrong with the entry. */
static const char *read_entry(frag_snapshot *snapshot, const frag_pickle *pickle,
                              const frag_pickle_value *pairs, size_t pair_count,
                              frag_snapshot_entry *entry, uint64_t *keys)
{
    frag_snapshot_origin origin = {.note = FRAG_SNAPSHOT_EMPTY};
    *entry = (frag_snapshot_entry){0};
    uint32_t name = 0;
    uint32_t text = 0;
    *keys = 0;
    for (size_t i = 0; i < pair_count; i++) {
        frag_pickle_value value = pairs[2 * i + 1];
        if (!frag_pickle_string(pickle, pairs[2 * i], &name) || name > FRAG_SNAPSHOT_DEVICE_FREE)
            continue;
        *keys |= (uint64_t)1 << name;
        switch (name) {
        case FRAG_SNAPSHOT_ACTION:
            if (frag_pickle_kind_of(pickle, value) != FRAG_PICKLE_STRING)
                return "'action' is not a string";
            set_action(entry, action_of(pickle, value));
            break;
        case FRAG_SNAPSHOT_ADDR:
        case FRAG_SNAPSHOT_DEVICE_FREE:
            if (!read_number(pickle, value, &entry->address))
                return "'addr' or 'device_free' is not an integer of 0 to 2^62";
            break;
        case FRAG_SNAPSHOT_SIZE:
            if (!read_number(pickle, value, &entry->bytes))
                return "'size' is not an integer of 0 to 2^62";
            break;
        case FRAG_SNAPSHOT_STREAM:
            if (!read_stream(pickle, value, &origin.stream))
                return "'stream' is not an integer";
            break;
        case FRAG_SNAPSHOT_TIME_US:
            set_time(entry, read_time(pickle, value));
            break;
        case FRAG_SNAPSHOT_FRAMES:
            if (read_frames(pickle, value) != 0)
                entry->frames = read_frames(pickle, value);
            break;
        case FRAG_SNAPSHOT_CPP_FRAMES:
            if (entry->frames == 0)
                entry->frames = read_frames(pickle, value);
            break;
        case FRAG_SNAPSHOT_FORWARD_FRAMES:
            origin.forward = read_frames(pickle, value);
            break;
        case FRAG_SNAPSHOT_USER_METADATA:
            text = read_note(pickle, value, FRAG_SNAPSHOT_EMPTY);
            if (text != FRAG_SNAPSHOT_EMPTY)
                origin.note = text;
            break;
        case FRAG_SNAPSHOT_COMPILE_CONTEXT:
            if (origin.note == FRAG_SNAPSHOT_EMPTY)
                origin.note = read_note(pickle, value, FRAG_SNAPSHOT_NOT_AVAILABLE);
            break;
        case FRAG_SNAPSHOT_POOL_ID:
            if (!frag_snapshot_pool_of(snapshot, pickle, value, &entry->pool))
                return "'pool_id' is not a pair of integers";
            entry->has_pool = true;
            break;
        default:
            break;
        }
    }
    if ((*keys & KEY_BIT(ACTION)) == 0)
        return "has no 'action'";
    if ((*keys & KEY_BIT(SIZE)) == 0 && entry->action != FRAG_SNAPSHOT_EMPTY)
        return "has no 'size'";
    if ((*keys & (KEY_BIT(ADDR) | KEY_BIT(DEVICE_FREE))) == 0 &&
        entry->action != FRAG_SNAPSHOT_EMPTY)
        return "has neither 'addr' nor 'device_free'";
    entry->origin = frag_snapshot_add_origin(snapshot, origin);
    return NULL;
}

/* ---- entries that have the keys of the one before */

/* Keeps where the keys stand, if all are there that an entry must have, and none comes twice, so
 * that their order does not matter. */
static void learn_shape(frag_snapshot_shape *shape, const frag_pickle *pickle,
                        const frag_pickle_value *pairs, size_t pair_count)
{
    *shape = (frag_snapshot_shape){0};
    if (pair_count > FRAG_PICKLE_KEYS_MAX)
        return;
    for (size_t i = 0; i < pair_count; i++) {
        uint32_t name = 0;
        shape->keys[i] = pairs[2 * i];
        if (!frag_pickle_string(pickle, pairs[2 * i], &name) || name >= FRAG_SNAPSHOT_ENTRY_NAMES)
            continue;
        if ((shape->names >> name & 1) != 0)
            return;
        shape->names |= (uint64_t)1 << name;
        shape->place[name] = (uint8_t)(2 * i + 1);
    }
    uint64_t addresses = shape->names & (KEY_BIT(ADDR) | KEY_BIT(DEVICE_FREE));
    uint64_t numbers = KEY_BIT(STREAM) | KEY_BIT(TIME_US);
    if (!frag_is_power_of_two(addresses) || (shape->names & KEY_BIT(SIZE)) == 0)
        return;
    shape->key_count = pair_count;
    shape->address_place =
        shape->place[addresses == KEY_BIT(ADDR) ? FRAG_SNAPSHOT_ADDR : FRAG_SNAPSHOT_DEVICE_FREE];
    shape->has_all_numbers = (shape->names & numbers) == numbers;
}

static inline bool has_key(const frag_snapshot_shape *shape, uint32_t name)
{
    return (shape->names >> name & 1) != 0;
}

static inline bool is_plain(frag_pickle_value value)
{
    return frag_pickle_tag_of(value) == FRAG_PICKLE_TAG_INTEGER;
}

/* Address, size, stream and time, which are mostly all there, and numbers of below 2^56. */
static inline bool read_plain_numbers(const frag_snapshot_shape *shape,
                                      const frag_pickle_value *pairs, frag_snapshot_entry *entry,
                                      uint64_t *handle)
{
    const uint8_t *place = shape->place;
    if (!shape->has_all_numbers)
        return false;
    frag_pickle_value address = pairs[shape->address_place];
    frag_pickle_value bytes = pairs[place[FRAG_SNAPSHOT_SIZE]];
    frag_pickle_value stream = pairs[place[FRAG_SNAPSHOT_STREAM]];
    frag_pickle_value time = pairs[place[FRAG_SNAPSHOT_TIME_US]];
    if (!is_plain(address) || !is_plain(bytes) || !is_plain(stream) || !is_plain(time))
        return false;
    uint64_t time_us = frag_pickle_content_of(time);
    *entry = (frag_snapshot_entry){
        .address = frag_pickle_content_of(address),
        .bytes = frag_pickle_content_of(bytes),
    };
    set_time(entry, time_us > FRAG_SNAPSHOT_TIME_US_MAX ? 0 : time_us);
    *handle = frag_pickle_content_of(stream);
    return true;
}

static bool read_numbers(const frag_snapshot_shape *shape, const frag_pickle *pickle,
                         const frag_pickle_value *pairs, frag_snapshot_entry *entry,
                         uint64_t *handle)
{
    const uint8_t *place = shape->place;
    *entry = (frag_snapshot_entry){0};
    if (!read_number(pickle, pairs[shape->address_place], &entry->address) ||
        !read_number(pickle, pairs[place[FRAG_SNAPSHOT_SIZE]], &entry->bytes))
        return false;
    if (has_key(shape, FRAG_SNAPSHOT_STREAM) &&
        !read_stream(pickle, pairs[place[FRAG_SNAPSHOT_STREAM]], handle))
        return false;
    if (has_key(shape, FRAG_SNAPSHOT_TIME_US))
        set_time(entry, read_time(pickle, pairs[place[FRAG_SNAPSHOT_TIME_US]]));
    return true;
}

/* false: it has other keys, or something is wrong with it. */
static bool read_alike(frag_snapshot *snapshot, const frag_pickle *pickle,
                       const frag_pickle_value *pairs, size_t pair_count, bool has_last_keys,
                       frag_snapshot_entry *entry)
{
    const frag_snapshot_shape *shape = &snapshot->shape;
    const uint8_t *place = shape->place;
    if (pair_count != shape->key_count)
        return false;
    for (size_t i = 0; i < pair_count && !has_last_keys; i++)
        if (pairs[2 * i] != shape->keys[i])
            return false;
    uint32_t action = action_of(pickle, pairs[place[FRAG_SNAPSHOT_ACTION]]);
    frag_snapshot_origin origin = {.note = FRAG_SNAPSHOT_EMPTY};
    if (action == FRAG_SNAPSHOT_EMPTY ||
        (!read_plain_numbers(shape, pairs, entry, &origin.stream) &&
         !read_numbers(shape, pickle, pairs, entry, &origin.stream)))
        return false;
    set_action(entry, action);
    if (has_key(shape, FRAG_SNAPSHOT_FRAMES))
        entry->frames = read_frames(pickle, pairs[place[FRAG_SNAPSHOT_FRAMES]]);
    if (has_key(shape, FRAG_SNAPSHOT_CPP_FRAMES) && entry->frames == 0)
        entry->frames = read_frames(pickle, pairs[place[FRAG_SNAPSHOT_CPP_FRAMES]]);
    if (has_key(shape, FRAG_SNAPSHOT_FORWARD_FRAMES))
        origin.forward = read_frames(pickle, pairs[place[FRAG_SNAPSHOT_FORWARD_FRAMES]]);
    if (has_key(shape, FRAG_SNAPSHOT_USER_METADATA))
        origin.note =
            read_note(pickle, pairs[place[FRAG_SNAPSHOT_USER_METADATA]], FRAG_SNAPSHOT_EMPTY);
    if (has_key(shape, FRAG_SNAPSHOT_COMPILE_CONTEXT) && origin.note == FRAG_SNAPSHOT_EMPTY)
        origin.note = read_note(pickle, pairs[place[FRAG_SNAPSHOT_COMPILE_CONTEXT]],
                                FRAG_SNAPSHOT_NOT_AVAILABLE);
    entry->origin = frag_snapshot_add_origin(snapshot, origin);
    if (has_key(shape, FRAG_SNAPSHOT_POOL_ID)) {
        entry->has_pool = true;
        return frag_snapshot_pool_of(snapshot, pickle, pairs[place[FRAG_SNAPSHOT_POOL_ID]],
                                     &entry->pool);
    }
    return true;
}

/* The place of one more entry, which is not counted yet. */
static frag_snapshot_entry *next_entry(frag_snapshot *snapshot)
{
    if (snapshot->entry_count == snapshot->entry_capacity)
        snapshot->entries =
            frag_input_grow(snapshot->input, snapshot->entries, &snapshot->entry_capacity,
                            snapshot->entry_count + 1, sizeof *snapshot->entries);
    return &snapshot->entries[snapshot->entry_count];
}

bool frag_snapshot_visit(void *context, const frag_pickle *pickle, const frag_pickle_value *pairs,
                         size_t pair_count, bool has_last_keys, uint32_t *record)
{
    frag_snapshot *snapshot = context;
    frag_snapshot_entry *entry = next_entry(snapshot);
    *record = (uint32_t)snapshot->entry_count;
    if (read_alike(snapshot, pickle, pairs, pair_count, has_last_keys, entry)) {
        snapshot->entry_count++;
        return true;
    }
    bool has_action = false;
    for (size_t i = 0; i < pair_count && !has_action; i++) {
        uint32_t name = 0;
        has_action =
            frag_pickle_string(pickle, pairs[2 * i], &name) && name == FRAG_SNAPSHOT_ACTION;
    }
    uint64_t keys = 0;
    if (!has_action || read_entry(snapshot, pickle, pairs, pair_count, entry, &keys) != NULL)
        return false;
    learn_shape(&snapshot->shape, pickle, pairs, pair_count);
    snapshot->entry_keys |= keys;
    snapshot->entry_count++;
    return true;
}

bool frag_snapshot_entry_of(frag_snapshot *snapshot, frag_pickle_value value, uint64_t *record,
                            frag_error *error)
{
    const frag_pickle *pickle = snapshot->pickle;
    if (frag_pickle_record(pickle, value, record))
        return true;
    frag_pickle_kind kind = frag_pickle_kind_of(pickle, value);
    if (kind != FRAG_PICKLE_DICT)
        return frag_fail(error, FRAG_E_INPUT, "is %s; expected a dictionary",
                         frag_pickle_kind_name(kind));
    size_t count = (size_t)frag_pickle_item_count(pickle, value);
    frag_pickle_value *pairs = frag_alloc(count, sizeof *pairs);
    frag_pickle_walk walk = frag_pickle_begin(pickle, value);
    for (size_t i = 0; i < count; i++)
        frag_pickle_next(pickle, &walk, &pairs[i]);
    uint64_t keys = 0;
    frag_snapshot_entry *entry = next_entry(snapshot);
    const char *problem = read_entry(snapshot, pickle, pairs, count / 2, entry, &keys);
    frag_free(pairs);
    if (problem != NULL)
        return frag_fail(error, FRAG_E_INPUT, "%s", problem);
    snapshot->entry_keys |= keys;
    *record = snapshot->entry_count++;
    return true;
}
