/* What a pickle holds: a tree of 8-byte values.
 *
 * References alias: an object is stored once however often it is named, and a container may hold
 * itself. Whoever walks the tree therefore follows the shape that is expected, never whatever is
 * there. */
#ifndef FRAG_PICKLE_PICKLE_TREE_H
#define FRAG_PICKLE_PICKLE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "traces/number_map.h"

/* Means something only together with the frag_pickle that made it. A tag in its low 8 bits and 56
 * bits of content. */
typedef uint64_t frag_pickle_value;

typedef enum frag_pickle_kind {
    FRAG_PICKLE_NONE,
    FRAG_PICKLE_BOOL,
    FRAG_PICKLE_INTEGER,
    FRAG_PICKLE_FLOAT,
    FRAG_PICKLE_STRING,
    FRAG_PICKLE_TUPLE,
    FRAG_PICKLE_LIST,
    FRAG_PICKLE_DICT,
    FRAG_PICKLE_RECORD /* a dictionary that a visitor has taken over */
} frag_pickle_kind;

/* Keys of the dictionaries that are read fast. */
enum { FRAG_PICKLE_KEYS_MAX = 32 };

/* The items of a container lie in parts inside one pool of values: two values of header, the index
 * of the next part and the number of items, then the items. Of records that count up, as those of
 * a trace do, the first is there alone (FRAG_PICKLE_PART_RUN). No part starts at 0. */
typedef struct frag_pickle_object {
    uint32_t first; /* part, 0 none; the record of a FRAG_PICKLE_RECORD */
    uint32_t last;
    uint8_t kind;     /* frag_pickle_kind */
    uint8_t list_use; /* frag_pickle_list_use */
} frag_pickle_object;

/* Lists of the same items are one object where a reader says so. */
typedef enum frag_pickle_list_use {
    FRAG_PICKLE_LIST_OWN,
    FRAG_PICKLE_LIST_KNOWN, /* may be found by its items */
    FRAG_PICKLE_LIST_SHARED /* stands for several of the file; nothing may be added to it */
} frag_pickle_list_use;

/* Parts are numbered in 32 bits: a reader stops before there are more values. */
#define FRAG_PICKLE_POOL_MAX ((size_t)1 << 31)

typedef struct frag_pickle_wide {
    uint64_t bits; /* two's complement */
    bool is_negative;
} frag_pickle_wide;

typedef struct frag_pickle {
    frag_strings strings;
    frag_pickle_object *objects;
    size_t object_count;
    size_t object_capacity;
    frag_pickle_value *pool;
    size_t pool_count;
    size_t pool_capacity;
    frag_pickle_wide *wides; /* integers that are negative or above 2^56 - 1 */
    size_t wide_count;
    size_t wide_capacity;
    double *floats;
    size_t float_count;
    size_t float_capacity;
    frag_number_map lists; /* known ones: the hash of a list to its object */
    /* What was added last, which the next often repeats. */
    bool has_last_pair;
    frag_pickle_value last_pair;
    frag_pickle_value last_pair_items[2];
    bool has_last_string;
    uint32_t last_string;
    uint64_t last_string_bits; /* if it has at most 8 bytes: these, the first the lowest */
    size_t last_string_length;
} frag_pickle;

/* Sees the keys and values of a dictionary (key, value, key, value ...) as it is filled for the
 * first time. true: it has taken what it needs and *record is how it knows the dictionary from now
 * on; nothing else is kept of it. has_last_keys: its keys are those of the one it took last. */
typedef bool (*frag_pickle_visitor)(void *context, const frag_pickle *pickle,
                                    const frag_pickle_value *pairs, size_t pair_count,
                                    bool has_last_keys, uint32_t *record);

/* How far a tree has grown. */
typedef struct frag_pickle_state {
    size_t object_count;
    size_t pool_count;
} frag_pickle_state;

/* The given names get the string ids 0, 1, 2 ... so that a switch can select by key. */
frag_pickle *frag_pickle_create(const char *const *names, uint32_t name_count);
void frag_pickle_destroy(frag_pickle *pickle);

/* ---- making values (the reader's side) */
frag_pickle_value frag_pickle_add_integer(frag_pickle *pickle, uint64_t bits, bool is_negative);
frag_pickle_value frag_pickle_add_float(frag_pickle *pickle, double number);
frag_pickle_value frag_pickle_add_string(frag_pickle *pickle, const char *bytes, size_t length);
frag_pickle_value frag_pickle_add_container(frag_pickle *pickle, frag_pickle_kind kind);
/* A tuple of two integers; one that is like the last is the same: a trace repeats the same pool id
 * in every entry. */
frag_pickle_value frag_pickle_add_pair(frag_pickle *pickle, frag_pickle_value first,
                                       frag_pickle_value second);
frag_pickle_value frag_pickle_none(void);
frag_pickle_value frag_pickle_truth(bool is_true);
void frag_pickle_add_items(frag_pickle *pickle, uint64_t object, const frag_pickle_value *items,
                           size_t count);

/* A list that was made known under the hash, or false: the caller compares its items. */
bool frag_pickle_find_list(const frag_pickle *pickle, uint64_t hash, frag_pickle_value *list);
void frag_pickle_know_list(frag_pickle *pickle, uint64_t hash, frag_pickle_value list);

/* Takes back containers that were added since, which nothing may name any more, and nothing else
 * may have been added to but they. Strings and numbers stay. */
static inline frag_pickle_state frag_pickle_save(const frag_pickle *pickle)
{
    return (frag_pickle_state){pickle->object_count, pickle->pool_count};
}

void frag_pickle_restore(frag_pickle *pickle, const frag_pickle_state *state);

/* ---- values */
const char *frag_pickle_kind_name(frag_pickle_kind kind); /* for people: "a list" */

typedef enum frag_pickle_tag {
    FRAG_PICKLE_TAG_NONE,
    FRAG_PICKLE_TAG_BOOL,      /* 0 or 1 */
    FRAG_PICKLE_TAG_INTEGER,   /* 0 to 2^56 - 1 */
    FRAG_PICKLE_TAG_WIDE,      /* index into wides */
    FRAG_PICKLE_TAG_FLOAT,     /* index into floats */
    FRAG_PICKLE_TAG_STRING,    /* string id */
    FRAG_PICKLE_TAG_CONTAINER, /* index into objects */
    FRAG_PICKLE_TAG_RECORD     /* of a visitor, which took the dictionary before it was an object */
} frag_pickle_tag;

static inline frag_pickle_value frag_pickle_make(frag_pickle_tag tag, uint64_t content)
{
    return content << 8 | tag;
}

/* Is a string of at most 8 bytes the one added last? bits holds its bytes, the first the lowest,
 * and whatever follows them. */
static inline bool frag_pickle_is_last_short(const frag_pickle *pickle, uint64_t bits,
                                             size_t length, frag_pickle_value *value)
{
    if (length != pickle->last_string_length || length - 1 > 7 ||
        bits << (64 - 8 * length) != pickle->last_string_bits << (64 - 8 * length))
        return false;
    *value = frag_pickle_make(FRAG_PICKLE_TAG_STRING, pickle->last_string);
    return true;
}

static inline frag_pickle_tag frag_pickle_tag_of(frag_pickle_value value)
{
    return (frag_pickle_tag)(value & 0xff);
}

static inline uint64_t frag_pickle_content_of(frag_pickle_value value)
{
    return value >> 8;
}

frag_pickle_kind frag_pickle_kind_of(const frag_pickle *pickle, frag_pickle_value value);

/* Each of these is false when the value is of another kind or does not fit. */
bool frag_pickle_wide_unsigned(const frag_pickle *pickle, frag_pickle_value value,
                               uint64_t *number);

static inline bool frag_pickle_unsigned(const frag_pickle *pickle, frag_pickle_value value,
                                        uint64_t *number)
{
    if (frag_pickle_tag_of(value) != FRAG_PICKLE_TAG_INTEGER)
        return frag_pickle_wide_unsigned(pickle, value, number);
    *number = frag_pickle_content_of(value);
    return true;
}

/* Any integer; one above INT64_MAX wraps as it does in C. */
bool frag_pickle_signed(const frag_pickle *pickle, frag_pickle_value value, int64_t *number);
bool frag_pickle_float(const frag_pickle *pickle, frag_pickle_value value,
                       double *number); /* integers too */
bool frag_pickle_bool(const frag_pickle *pickle, frag_pickle_value value, bool *is_true);

static inline bool frag_pickle_string(const frag_pickle *pickle, frag_pickle_value value,
                                      uint32_t *id)
{
    (void)pickle;
    if (frag_pickle_tag_of(value) != FRAG_PICKLE_TAG_STRING)
        return false;
    *id = (uint32_t)frag_pickle_content_of(value);
    return true;
}

/* Lists, tuples and dictionaries: a number of their own, below object_count. Dictionaries that a
 * visitor has taken over may have none. */
static inline bool frag_pickle_object_of(const frag_pickle *pickle, frag_pickle_value value,
                                         uint64_t *object)
{
    (void)pickle;
    if (frag_pickle_tag_of(value) != FRAG_PICKLE_TAG_CONTAINER)
        return false;
    *object = frag_pickle_content_of(value);
    return true;
}

static inline bool frag_pickle_record(const frag_pickle *pickle, frag_pickle_value value,
                                      uint64_t *record)
{
    uint64_t object = 0;
    if (frag_pickle_tag_of(value) == FRAG_PICKLE_TAG_RECORD) {
        *record = frag_pickle_content_of(value);
        return true;
    }
    if (!frag_pickle_object_of(pickle, value, &object) ||
        pickle->objects[object].kind != FRAG_PICKLE_RECORD)
        return false;
    *record = pickle->objects[object].first;
    return true;
}

const char *frag_pickle_text(const frag_pickle *pickle, uint32_t id, size_t *length);

/* The list, tuple or dictionary of a number. */
frag_pickle_value frag_pickle_container(uint64_t object);

/* ---- contents */
typedef struct frag_pickle_walk {
    uint64_t part;
    uint64_t index;
} frag_pickle_walk;

/* Items of a list, tuple or dictionary (where one pair is two items). */
uint64_t frag_pickle_item_count(const frag_pickle *pickle, frag_pickle_value container);
frag_pickle_walk frag_pickle_begin(const frag_pickle *pickle, frag_pickle_value container);

enum { FRAG_PICKLE_PART_HEADER = 2 };
/* Beside the number of items. */
#define FRAG_PICKLE_PART_RUN ((uint64_t)1 << 63)

/* The record that is so many after another. */
static inline frag_pickle_value frag_pickle_record_after(frag_pickle_value record, uint64_t count)
{
    return frag_pickle_make(FRAG_PICKLE_TAG_RECORD, frag_pickle_content_of(record) + count);
}

static inline frag_pickle_value frag_pickle_part_item(const frag_pickle_value *part, uint64_t index)
{
    return (part[1] & FRAG_PICKLE_PART_RUN) == 0
               ? part[FRAG_PICKLE_PART_HEADER + index]
               : frag_pickle_record_after(part[FRAG_PICKLE_PART_HEADER], index);
}

static inline bool frag_pickle_next(const frag_pickle *pickle, frag_pickle_walk *walk,
                                    frag_pickle_value *item)
{
    if (walk->part == 0)
        return false;
    if (walk->index == (pickle->pool[walk->part + 1] & ~FRAG_PICKLE_PART_RUN)) {
        *walk = (frag_pickle_walk){.part = pickle->pool[walk->part]};
        if (walk->part == 0)
            return false;
    }
    *item = frag_pickle_part_item(pickle->pool + walk->part, walk->index++);
    return true;
}

#endif
