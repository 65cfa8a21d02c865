/* Entries of a trace are nearly all of a pickle, and nearly all alike: a dictionary whose keys were
 * spelled out before, of numbers, strings, pairs and lists of such as were named before. Such a
 * dictionary is read in one loop that looks at every operation once and needs neither a stack nor
 * an object for it. */
#include <string.h>

#include "sim/base/bits.h"
#include "sim/base/memory.h"
#include "traces/pickle_machine.h"

enum {
    ITEMS_MAX = 512,
    STEP_BYTES = 32, /* a key with its value, strings and lists aside, takes and looks at less */
    DICTIONARY_BYTES = STEP_BYTES * (FRAG_PICKLE_KEYS_MAX + 2), /* visible before each key */
    MARKS_HERE = 2,                      /* open at the same time: of the pairs and of a list */
    NAMES_MAX = FRAG_PICKLE_KEYS_MAX + 1 /* that a dictionary and its values are given */
};

/* A dictionary while it is read. The tree and the names it gives are taken back when it turns out
 * not to be a plain one. */
typedef struct entry_reader {
    const unsigned char *at;
    const unsigned char *end;
    frag_pickle *tree;
    frag_pickle_value *memo;
    size_t memo_count;
} entry_reader;

/* A value that was named before: BINGET or LONG_BINGET. */
static inline bool read_named(entry_reader *reader, frag_pickle_value *value)
{
    size_t name = reader->at[1];
    if (*reader->at == 'j') {
        name = (size_t)frag_load_32(reader->at + 1);
        reader->at += 5;
    } else if (*reader->at == 'h') {
        reader->at += 2;
    } else {
        return false;
    }
    if (name >= reader->memo_count)
        return false;
    *value = reader->memo[name];
    return *value != FRAG_PICKLE_UNNAMED;
}

/* Names a value if it is to be named; false: with a name that is not the next. */
static inline bool give_name(entry_reader *reader, frag_pickle_value value)
{
    uint64_t name = reader->memo_count;
    if (*reader->at == 0x94) {
        reader->at += 1;
    } else if (*reader->at == 'q') {
        name = reader->at[1];
        reader->at += 2;
    } else if (*reader->at == 'r') {
        name = frag_load_32(reader->at + 1);
        reader->at += 5;
    } else {
        return true;
    }
    if (name != reader->memo_count)
        return false;
    reader->memo[reader->memo_count++] = value;
    return true;
}

static inline bool is_number(const entry_reader *reader)
{
    unsigned operation = *reader->at;
    return operation == 0x8a || operation == 'K' || operation == 'M' || operation == 'J';
}

/* The operand of LONG1, of 1 to 7 bytes. */
static inline bool read_long(entry_reader *reader, unsigned bytes, frag_pickle_value *value)
{
    unsigned unused = 64 - 8 * bytes;
    uint64_t bits = frag_load_64(reader->at + 2) << unused;
    reader->at += 2 + bytes;
    *value = frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, bits >> unused);
    return bits >> 63 == 0;
}

/* A number of 0 to 2^56 - 1. Each kind steps on by a constant, so that the processor, which mostly
 * guesses the kind, begins with what follows before it has seen it. Addresses have 6 bytes,
 * times 7.
 */
static inline bool read_number(entry_reader *reader, frag_pickle_value *value)
{
    unsigned operation = *reader->at;
    unsigned length = reader->at[1];
    if (operation == 0x8a && length == 6)
        return read_long(reader, 6, value);
    if (operation == 0x8a && length == 7)
        return read_long(reader, 7, value);
    if (operation == 0x8a)
        return length - 1 < 7 && read_long(reader, length, value);
    uint64_t number = length;
    if (operation == 'K') {
        reader->at += 2;
    } else if (operation == 'M') {
        number = frag_load_16(reader->at + 1);
        reader->at += 3;
    } else {
        number = frag_load_32(reader->at + 1);
        reader->at += 5;
        if (number >> 31 != 0)
            return false;
    }
    *value = frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, number);
    return true;
}

/* A number, or a pair of them, which may be named; numbers are not. */
static inline bool read_numbers(entry_reader *reader, frag_pickle_value *value)
{
    frag_pickle_value second = 0;
    if (!read_number(reader, value))
        return false;
    unsigned next = *reader->at;
    if (next == 'h' || next == 'j' || !is_number(reader))
        return true;
    if (!read_number(reader, &second) || *reader->at != 0x86)
        return false;
    reader->at++;
    *value = frag_pickle_add_pair(reader->tree, *value, second);
    return give_name(reader, *value);
}

static inline bool read_text(entry_reader *reader, frag_pickle_value *value)
{
    size_t length = reader->at[1];
    if ((size_t)(reader->end - reader->at) < length + DICTIONARY_BYTES)
        return false;
    if (!frag_pickle_is_last_short(reader->tree, frag_load_64(reader->at + 2), length, value))
        *value = frag_pickle_add_string(reader->tree, (const char *)reader->at + 2, length);
    reader->at += 2 + length;
    return true;
}

/* Values that were named before, up to APPENDS. */
static bool read_items(entry_reader *reader, frag_pickle_value list)
{
    frag_pickle_value items[ITEMS_MAX];
    size_t count = 0;
    reader->at++;
    while (reader->end - reader->at >= DICTIONARY_BYTES && count < ITEMS_MAX) {
        if (*reader->at == 'e') {
            uint64_t object = 0;
            reader->at++;
            frag_pickle_object_of(reader->tree, list, &object);
            frag_pickle_add_items(reader->tree, object, items, count);
            return true;
        }
        if (!read_named(reader, &items[count++]))
            return false;
    }
    return false;
}

static bool read_list(entry_reader *reader, frag_pickle_value *value)
{
    reader->at++;
    *value = frag_pickle_add_container(reader->tree, FRAG_PICKLE_LIST);
    if (!give_name(reader, *value))
        return false;
    return *reader->at != '(' || read_items(reader, *value);
}

static bool read_rare_value(entry_reader *reader, frag_pickle_value *value)
{
    switch (*reader->at) {
    case ']':
        return read_list(reader, value);
    case 'N':
        *value = frag_pickle_none();
        break;
    case 0x88:
    case 0x89:
        *value = frag_pickle_truth(*reader->at == 0x88);
        break;
    default:
        return false;
    }
    reader->at++;
    return true;
}

static inline bool read_value(entry_reader *reader, frag_pickle_value *value)
{
    unsigned operation = *reader->at;
    if (operation == 'h' || operation == 'j')
        return read_named(reader, value);
    if (is_number(reader))
        return read_numbers(reader, value);
    if (operation == 0x8c)
        return read_text(reader, value) && give_name(reader, *value);
    return read_rare_value(reader, value);
}

/* A key that is not spelled like that of the entry before. */
static bool read_new_key(entry_reader *reader, frag_pickle_key *key)
{
    const unsigned char *start = reader->at;
    if (!read_named(reader, &key->value))
        return false;
    key->length = (size_t)(reader->at - start);
    key->mask = UINT64_MAX >> (64 - 8 * key->length);
    key->bits = frag_load_64(start) & key->mask;
    return true;
}

/* Keys and values from behind MARK to behind SETITEMS. */
static bool read_pairs(entry_reader *reader, frag_pickle_machine *machine, frag_pickle_value *pairs,
                       size_t *pair_count)
{
    frag_pickle_key *keys = machine->keys;
    size_t count = 0;
    for (;; count++) {
        uint64_t bits = frag_load_64(reader->at);
        if ((bits & 0xff) == 'u')
            break;
        if (count == FRAG_PICKLE_KEYS_MAX)
            return false;
        frag_pickle_key *key = &keys[count];
        if (count < machine->key_count && (bits & key->mask) == key->bits) {
            reader->at += key->length;
        } else {
            if (!read_new_key(reader, key) || (count == 0 && key->value != machine->entry_key))
                return false;
            machine->key_count = count + 1;
            machine->taken_count = 0;
        }
        pairs[2 * count] = key->value;
        if (!read_value(reader, &pairs[2 * count + 1]))
            return false;
    }
    reader->at++;
    *pair_count = count;
    return count > 0;
}

bool frag_pickle_machine_entry(frag_pickle_machine *machine, const unsigned char **at,
                               frag_pickle_value *entry)
{
    if (!machine->has_entry_key || machine->end - *at < DICTIONARY_BYTES ||
        machine->mark_count + MARKS_HERE > FRAG_PICKLE_MARKS_MAX)
        return false;
    if (machine->memo_capacity < machine->memo_count + NAMES_MAX)
        machine->memo = frag_grow(machine->memo, &machine->memo_capacity,
                                  machine->memo_count + NAMES_MAX, sizeof *machine->memo);
    frag_pickle_value pairs[2 * FRAG_PICKLE_KEYS_MAX];
    size_t pair_count = 0;
    uint32_t record = 0;
    frag_pickle_state before = frag_pickle_save(machine->tree);
    entry_reader reader = {
        .at = *at + 1,
        .end = machine->end,
        .tree = machine->tree,
        .memo = machine->memo,
        .memo_count = machine->memo_count,
    };
    /* Until its record is known nothing in it may name the dictionary itself. */
    if (!give_name(&reader, FRAG_PICKLE_UNNAMED) || *reader.at++ != '(' ||
        !read_pairs(&reader, machine, pairs, &pair_count)) {
        frag_pickle_restore(machine->tree, &before);
        machine->key_count = 0;
        return false;
    }
    /* A visitor may remember containers it has seen, so these stay where they are. */
    if (!machine->visitor(machine->visitor_context, machine->tree, pairs, pair_count,
                          pair_count == machine->taken_count, &record))
        return false;
    machine->taken_count = pair_count;
    *entry = frag_pickle_make(FRAG_PICKLE_TAG_RECORD, record);
    if ((*at)[1] != '(')
        machine->memo[machine->memo_count] = *entry;
    machine->memo_count = reader.memo_count;
    machine->entry_count++;
    *at = reader.at;
    return true;
}
