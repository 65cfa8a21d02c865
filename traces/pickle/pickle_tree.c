#include "traces/pickle/pickle_tree.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"

frag_pickle *frag_pickle_create(const char *const *names, uint32_t name_count)
{
    frag_pickle *pickle = frag_alloc(1, sizeof *pickle);
    for (uint32_t i = 0; i < name_count; i++) {
        uint32_t id = frag_strings_add(&pickle->strings, names[i], strlen(names[i]));
        FRAG_ASSERT(id == i);
    }
    pickle->pool = frag_grow(NULL, &pickle->pool_capacity, 1, sizeof *pickle->pool);
    pickle->pool_count = 1; /* no part starts at 0 */
    return pickle;
}

void frag_pickle_destroy(frag_pickle *pickle)
{
    if (pickle == NULL)
        return;
    frag_strings_destroy(&pickle->strings);
    frag_free(pickle->objects);
    frag_free(pickle->pool);
    frag_free(pickle->wides);
    frag_free(pickle->floats);
    frag_number_map_destroy(&pickle->lists);
    frag_free(pickle);
}

frag_pickle_value frag_pickle_add_integer(frag_pickle *pickle, uint64_t bits, bool is_negative)
{
    if (!is_negative && bits >> 56 == 0)
        return frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, bits);
    pickle->wides = frag_grow(pickle->wides, &pickle->wide_capacity, pickle->wide_count + 1,
                              sizeof *pickle->wides);
    pickle->wides[pickle->wide_count] =
        (frag_pickle_wide){.bits = bits, .is_negative = is_negative};
    return frag_pickle_make(FRAG_PICKLE_TAG_WIDE, pickle->wide_count++);
}

frag_pickle_value frag_pickle_add_float(frag_pickle *pickle, double number)
{
    pickle->floats = frag_grow(pickle->floats, &pickle->float_capacity, pickle->float_count + 1,
                               sizeof *pickle->floats);
    pickle->floats[pickle->float_count] = number;
    return frag_pickle_make(FRAG_PICKLE_TAG_FLOAT, pickle->float_count++);
}

/* Short strings come in runs: every entry may spell out the same "N/A". */
frag_pickle_value frag_pickle_add_string(frag_pickle *pickle, const char *bytes, size_t length)
{
    if (!pickle->has_last_string ||
        frag_strings_length(&pickle->strings, pickle->last_string) != length ||
        memcmp(frag_strings_get(&pickle->strings, pickle->last_string), bytes, length) != 0) {
        pickle->last_string = frag_strings_add(&pickle->strings, bytes, length);
        pickle->has_last_string = true;
        pickle->last_string_length = length;
        pickle->last_string_bits = 0;
        for (size_t i = 0; i < length && i < 8; i++)
            pickle->last_string_bits |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    }
    return frag_pickle_make(FRAG_PICKLE_TAG_STRING, pickle->last_string);
}

frag_pickle_value frag_pickle_none(void)
{
    return frag_pickle_make(FRAG_PICKLE_TAG_NONE, 0);
}

frag_pickle_value frag_pickle_truth(bool is_true)
{
    return frag_pickle_make(FRAG_PICKLE_TAG_BOOL, is_true);
}

frag_pickle_value frag_pickle_add_container(frag_pickle *pickle, frag_pickle_kind kind)
{
    if (pickle->object_count == pickle->object_capacity)
        pickle->objects = frag_grow(pickle->objects, &pickle->object_capacity,
                                    pickle->object_count + 1, sizeof *pickle->objects);
    pickle->objects[pickle->object_count] = (frag_pickle_object){.kind = (uint8_t)kind};
    return frag_pickle_make(FRAG_PICKLE_TAG_CONTAINER, pickle->object_count++);
}

/* Do items count up as records, from *first on? */
static bool is_run(const frag_pickle *pickle, const frag_pickle_value *items, size_t count,
                   uint64_t *first)
{
    uint64_t record = 0;
    if (!frag_pickle_record(pickle, items[0], first))
        return false;
    for (size_t i = 1; i < count; i++)
        if (!frag_pickle_record(pickle, items[i], &record) || record != *first + i)
            return false;
    return true;
}

/* Records that go on where a run, the last part of a container, ends are added by counting them. */
static bool lengthen_run(frag_pickle *pickle, uint32_t last, frag_pickle_value first, size_t count)
{
    frag_pickle_value *part = pickle->pool + last;
    if (last == 0 || (part[1] & FRAG_PICKLE_PART_RUN) == 0 ||
        frag_pickle_part_item(part, part[1] & ~FRAG_PICKLE_PART_RUN) != first)
        return false;
    part[1] += count;
    return true;
}

void frag_pickle_add_items(frag_pickle *pickle, uint64_t object, const frag_pickle_value *items,
                           size_t count)
{
    if (count == 0)
        return;
    frag_pickle_object *owner = &pickle->objects[object];
    uint64_t record = 0;
    uint64_t run = is_run(pickle, items, count, &record) ? FRAG_PICKLE_PART_RUN : 0;
    frag_pickle_value first = frag_pickle_make(FRAG_PICKLE_TAG_RECORD, record);
    if (run != 0 && lengthen_run(pickle, owner->last, first, count))
        return;
    size_t stored = run != 0 ? 1 : count;
    size_t wanted = pickle->pool_count + FRAG_PICKLE_PART_HEADER + stored;
    if (wanted > pickle->pool_capacity)
        pickle->pool =
            frag_grow(pickle->pool, &pickle->pool_capacity, wanted, sizeof *pickle->pool);
    frag_pickle_value *pool = pickle->pool;
    if (owner->last != 0 && run == 0 &&
        owner->last + FRAG_PICKLE_PART_HEADER + pool[owner->last + 1] == pickle->pool_count) {
        pool[owner->last + 1] += count;
    } else {
        uint32_t part = (uint32_t)pickle->pool_count;
        if (owner->last == 0)
            owner->first = part;
        else
            pool[owner->last] = part;
        owner->last = part;
        pool[part] = 0;
        pool[part + 1] = count | run;
        pickle->pool_count += FRAG_PICKLE_PART_HEADER;
    }
    memcpy(pool + pickle->pool_count, run != 0 ? &first : items, stored * sizeof *items);
    pickle->pool_count += stored;
}

frag_pickle_value frag_pickle_add_pair(frag_pickle *pickle, frag_pickle_value first,
                                       frag_pickle_value second)
{
    const frag_pickle_value items[2] = {first, second};
    if (pickle->has_last_pair && first == pickle->last_pair_items[0] &&
        second == pickle->last_pair_items[1])
        return pickle->last_pair;
    pickle->last_pair = frag_pickle_add_container(pickle, FRAG_PICKLE_TUPLE);
    frag_pickle_add_items(pickle, frag_pickle_content_of(pickle->last_pair), items, 2);
    memcpy(pickle->last_pair_items, items, sizeof items);
    pickle->has_last_pair = true;
    return pickle->last_pair;
}

/* Objects that were taken back, and whatever has their numbers now, are not known. */
bool frag_pickle_find_list(const frag_pickle *pickle, uint64_t hash, frag_pickle_value *list)
{
    uint64_t object = 0;
    if (!frag_number_map_get(&pickle->lists, hash, &object) || object >= pickle->object_count ||
        pickle->objects[object].list_use == FRAG_PICKLE_LIST_OWN)
        return false;
    *list = frag_pickle_container(object);
    return true;
}

void frag_pickle_know_list(frag_pickle *pickle, uint64_t hash, frag_pickle_value list)
{
    uint64_t object = frag_pickle_content_of(list);
    pickle->objects[object].list_use = FRAG_PICKLE_LIST_KNOWN;
    frag_number_map_set(&pickle->lists, hash, object);
}

void frag_pickle_restore(frag_pickle *pickle, const frag_pickle_state *state)
{
    pickle->object_count = state->object_count;
    pickle->pool_count = state->pool_count;
    if (pickle->has_last_pair && frag_pickle_content_of(pickle->last_pair) >= state->object_count)
        pickle->has_last_pair = false;
}

frag_pickle_kind frag_pickle_kind_of(const frag_pickle *pickle, frag_pickle_value value)
{
    switch (frag_pickle_tag_of(value)) {
    case FRAG_PICKLE_TAG_BOOL:
        return FRAG_PICKLE_BOOL;
    case FRAG_PICKLE_TAG_INTEGER:
    case FRAG_PICKLE_TAG_WIDE:
        return FRAG_PICKLE_INTEGER;
    case FRAG_PICKLE_TAG_FLOAT:
        return FRAG_PICKLE_FLOAT;
    case FRAG_PICKLE_TAG_STRING:
        return FRAG_PICKLE_STRING;
    case FRAG_PICKLE_TAG_CONTAINER:
        return (frag_pickle_kind)pickle->objects[frag_pickle_content_of(value)].kind;
    case FRAG_PICKLE_TAG_RECORD:
        return FRAG_PICKLE_RECORD;
    case FRAG_PICKLE_TAG_NONE:
    default:
        return FRAG_PICKLE_NONE;
    }
}

const char *frag_pickle_kind_name(frag_pickle_kind kind)
{
    static const char *const names[] = {
        [FRAG_PICKLE_NONE] = "None",
        [FRAG_PICKLE_BOOL] = "a truth value",
        [FRAG_PICKLE_INTEGER] = "an integer",
        [FRAG_PICKLE_FLOAT] = "a decimal number",
        [FRAG_PICKLE_STRING] = "a string",
        [FRAG_PICKLE_TUPLE] = "a tuple",
        [FRAG_PICKLE_LIST] = "a list",
        [FRAG_PICKLE_DICT] = "a dictionary",
        [FRAG_PICKLE_RECORD] = "a trace entry",
    };
    return names[kind];
}

bool frag_pickle_wide_unsigned(const frag_pickle *pickle, frag_pickle_value value, uint64_t *number)
{
    if (frag_pickle_tag_of(value) != FRAG_PICKLE_TAG_WIDE ||
        pickle->wides[frag_pickle_content_of(value)].is_negative)
        return false;
    *number = pickle->wides[frag_pickle_content_of(value)].bits;
    return true;
}

bool frag_pickle_signed(const frag_pickle *pickle, frag_pickle_value value, int64_t *number)
{
    uint64_t bits = frag_pickle_content_of(value);
    if (frag_pickle_tag_of(value) == FRAG_PICKLE_TAG_WIDE)
        bits = pickle->wides[frag_pickle_content_of(value)].bits;
    else if (frag_pickle_tag_of(value) != FRAG_PICKLE_TAG_INTEGER)
        return false;
    memcpy(number, &bits, sizeof *number);
    return true;
}

bool frag_pickle_float(const frag_pickle *pickle, frag_pickle_value value, double *number)
{
    int64_t integer = 0;
    if (frag_pickle_tag_of(value) == FRAG_PICKLE_TAG_FLOAT)
        *number = pickle->floats[frag_pickle_content_of(value)];
    else if (frag_pickle_signed(pickle, value, &integer))
        *number = (double)integer;
    else
        return false;
    return true;
}

bool frag_pickle_bool(const frag_pickle *pickle, frag_pickle_value value, bool *is_true)
{
    (void)pickle;
    if (frag_pickle_tag_of(value) != FRAG_PICKLE_TAG_BOOL)
        return false;
    *is_true = frag_pickle_content_of(value) != 0;
    return true;
}

frag_pickle_value frag_pickle_container(uint64_t object)
{
    return frag_pickle_make(FRAG_PICKLE_TAG_CONTAINER, object);
}

const char *frag_pickle_text(const frag_pickle *pickle, uint32_t id, size_t *length)
{
    if (length != NULL)
        *length = frag_strings_length(&pickle->strings, id);
    return frag_strings_get(&pickle->strings, id);
}

frag_pickle_walk frag_pickle_begin(const frag_pickle *pickle, frag_pickle_value container)
{
    if (frag_pickle_tag_of(container) != FRAG_PICKLE_TAG_CONTAINER ||
        pickle->objects[frag_pickle_content_of(container)].kind == FRAG_PICKLE_RECORD)
        return (frag_pickle_walk){0};
    return (frag_pickle_walk){.part = pickle->objects[frag_pickle_content_of(container)].first};
}

uint64_t frag_pickle_item_count(const frag_pickle *pickle, frag_pickle_value container)
{
    uint64_t count = 0;
    for (uint64_t part = frag_pickle_begin(pickle, container).part; part != 0;
         part = pickle->pool[part])
        count += pickle->pool[part + 1] & ~FRAG_PICKLE_PART_RUN;
    return count;
}
