/* Entries of a trace are nearly all of a pickle, and nearly all alike: a dictionary whose keys were
 * spelled out before, of numbers, strings, pairs and lists of such as were named before. Such a
 * dictionary is read in one loop that needs neither a stack nor an object for it: each key and what
 * its value begins with are compared with those of the entry before, and what does not stand as
 * expected is read operation by operation. */
#include <string.h>

#include "base/bits.h"
#include "base/digest.h"
#include "base/memory.h"
#include "traces/pickle/pickle_machine.h"

enum {
    ITEMS_MAX = 512,
    STEP_BYTES = 32, /* a key with its value, strings and lists aside, takes and looks at less */
    DICTIONARY_BYTES = STEP_BYTES * (FRAG_PICKLE_KEYS_MAX + 2), /* visible before each key */
    MISSES_KEPT = 8, /* ANY_NUMBER, ANY_NAME: learnt anew when so many values were of other kinds */
    MARKS_HERE = 2,  /* open at the same time: of the pairs and of a list */
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

/* ---- lists: call stacks, which entries spell out again and again as names of the same frames */

static inline bool get_named(const entry_reader *reader, uint64_t name, frag_pickle_value *value)
{
    if (name >= reader->memo_count || reader->memo[name] == FRAG_PICKLE_UNNAMED)
        return false;
    *value = reader->memo[name];
    return true;
}

/* Names from MARK to APPENDS, if there is nothing else and all of it is visible; at is behind it.
 */
static bool skip_names(entry_reader *reader, size_t *count)
{
    const unsigned char *at = reader->at + 1;
    const unsigned char *last = reader->end - DICTIONARY_BYTES;
    *count = 0;
    for (; at <= last && *count <= ITEMS_MAX; ++*count) {
        if (*at == 'j') {
            at += 5;
        } else if (*at == 'h') {
            at += 2;
        } else {
            reader->at = at + 1;
            return *at == 'e';
        }
    }
    return false;
}

/* The next of the names that skip_names has passed. */
static inline uint64_t next_name(const unsigned char **at)
{
    const unsigned char *operation = *at;
    bool is_long = *operation == 'j';
    *at += is_long ? 5 : 2;
    return is_long ? frag_load_32(operation + 1) : operation[1];
}

/* Are the items of a list those that are named from at on? */
static bool has_items(const entry_reader *reader, frag_pickle_value list, const unsigned char *at,
                      size_t count)
{
    const frag_pickle *tree = reader->tree;
    frag_pickle_walk walk = frag_pickle_begin(tree, list);
    if (walk.part == 0)
        return count == 0;
    const frag_pickle_value *part = tree->pool + walk.part;
    if (part[0] != 0 || part[1] != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t name = next_name(&at);
        if (name >= reader->memo_count || reader->memo[name] != part[FRAG_PICKLE_PART_HEADER + i])
            return false;
    }
    return true;
}

static bool add_list(entry_reader *reader, const unsigned char *at, size_t count,
                     frag_pickle_value *list)
{
    frag_pickle_value items[ITEMS_MAX + 1];
    for (size_t i = 0; i < count; i++)
        if (!get_named(reader, next_name(&at), &items[i]))
            return false;
    *list = frag_pickle_add_container(reader->tree, FRAG_PICKLE_LIST);
    frag_pickle_add_items(reader->tree, frag_pickle_content_of(*list), items, count);
    return true;
}

/* A list of values that were named before. Lists with the same items become one: what is kept of a
 * stack that comes a million times is kept once, and it is not taken apart to see that. */
static bool read_list(entry_reader *reader, frag_pickle_value *value)
{
    reader->at++;
    size_t name = reader->memo_count;
    size_t count = 0;
    /* Until it is whole nothing in it may name the list itself. */
    if (!give_name(reader, FRAG_PICKLE_UNNAMED))
        return false;
    const unsigned char *start = reader->at;
    if (*start == '(' && !skip_names(reader, &count))
        return false;
    uint64_t hash = frag_hash_bytes(start, (size_t)(reader->at - start));
    if (frag_pickle_find_list(reader->tree, hash, value) &&
        has_items(reader, *value, start + 1, count)) {
        reader->tree->objects[frag_pickle_content_of(*value)].list_use = FRAG_PICKLE_LIST_SHARED;
    } else {
        if (!add_list(reader, start + 1, count, value))
            return false;
        frag_pickle_know_list(reader->tree, hash, *value);
    }
    if (reader->memo_count > name)
        reader->memo[name] = *value;
    return true;
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

/* ---- values that stand as those of the entry before */

static inline uint64_t mask_of(size_t bytes)
{
    return UINT64_MAX >> (64 - 8 * bytes);
}

/* Bytes of the operand of a short number or of what gets a named value; 0 of another operation. */
static inline unsigned operand_bytes(unsigned operation)
{
    static const uint8_t bytes[256] = {['K'] = 1, ['M'] = 2, ['J'] = 4, ['h'] = 1, ['j'] = 4};
    return bytes[operation];
}

static inline bool is_get(unsigned operation)
{
    return operation == 'h' || operation == 'j';
}

static void expect_nothing(frag_pickle_key *key)
{
    key->form = FRAG_PICKLE_FORM_OTHER;
    key->head_mask = 0;
    key->head_bits = 1;
}

/* Expects an operation of head_bytes, which came behind the key at start, again. */
static void expect(frag_pickle_key *key, const unsigned char *start, frag_pickle_form form,
                   size_t head_bytes, size_t operand_length)
{
    key->form = form;
    key->operand_at = key->length + head_bytes;
    key->total_length = key->operand_at + operand_length;
    key->head_mask = mask_of(key->operand_at);
    key->head_bits = frag_load_64(start) & key->head_mask;
    key->operand_mask = mask_of(operand_length);
    key->check_mask = 0;
    key->check_bits = 0;
    key->base = frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, 0);
    key->names_given = 0;
}

static void expect_number(frag_pickle_key *key, const unsigned char *start, size_t head_bytes,
                          size_t operand_length)
{
    expect(key, start, FRAG_PICKLE_FORM_NUMBER, head_bytes, operand_length);
    if (head_bytes == 2 || operand_length == 4)
        key->check_mask = (uint64_t)1 << (8 * operand_length - 1);
}

/* Is MEMOIZE the last operation of a string or a pair? A name may end with the same byte. */
static bool ends_with_memoize(const unsigned char *start, size_t length)
{
    return start[length - 1] == 0x94 &&
           (start[0] == 0x8c ? length == 3 + (size_t)start[1] : start[length - 2] == 0x86);
}

/* Keeps the form of a value that was read; length is that of the key and the value from start.
 * What was ever of another length is not expected to be of one. */
static void learn_form(frag_pickle_key *key, const unsigned char *start, size_t length,
                       frag_pickle_value value, size_t names_given)
{
    const unsigned char *value_start = start + key->length;
    size_t value_length = length - key->length;
    unsigned operation = *value_start;
    bool has_varied = key->miss_count > 0;
    expect_nothing(key);
    if (is_get(operation)) {
        expect(key, start, has_varied ? FRAG_PICKLE_FORM_ANY_NAME : FRAG_PICKLE_FORM_NAMED, 1,
               value_length - 1);
    } else if (operand_bytes(operation) != 0 && value_length == 1 + operand_bytes(operation)) {
        expect_number(key, start, 1, value_length - 1);
        key->form = has_varied ? FRAG_PICKLE_FORM_ANY_NUMBER : FRAG_PICKLE_FORM_NUMBER;
    } else if (operation == 0x8a && value_length == 2 + (size_t)value_start[1]) {
        expect_number(key, start, 2, value_start[1]);
    } else if (value_length <= 8 && operation != ']' &&
               (names_given == 0 || ends_with_memoize(value_start, value_length))) {
        expect(key, start, FRAG_PICKLE_FORM_SAME, 0, value_length);
        key->check_mask = key->operand_mask;
        key->check_bits = frag_load_64(value_start) & key->check_mask;
        key->operand_mask = 0;
        key->base = value;
        key->names_given = (uint32_t)names_given;
    }
}

/* ANY_NUMBER and ANY_NAME. No processor guesses the length, so that it decides no branch. */
static inline bool read_varied(entry_reader *reader, const frag_pickle_key *key, uint64_t head,
                               frag_pickle_value *value)
{
    const unsigned char *start = reader->at + key->length;
    unsigned bytes = operand_bytes(*start);
    if ((head & key->mask) != key->bits || bytes == 0 ||
        is_get(*start) != (key->form == FRAG_PICKLE_FORM_ANY_NAME))
        return false;
    uint64_t operand = frag_load_64(start + 1) & mask_of(bytes);
    if (key->form == FRAG_PICKLE_FORM_ANY_NAME) {
        if (!get_named(reader, operand, value))
            return false;
    } else {
        if (operand >> 31 != 0)
            return false;
        *value = frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, operand);
    }
    reader->at = start + 1 + bytes;
    return true;
}

/* A key and its value, which begin with the bytes of head, if they are as expected; else nothing
 * has changed. */
static inline bool read_expected(entry_reader *reader, const frag_pickle_key *key, uint64_t head,
                                 frag_pickle_value *value)
{
    if (key->form >= FRAG_PICKLE_FORM_ANY_NUMBER)
        return read_varied(reader, key, head, value);
    uint64_t operand = frag_load_64(reader->at + key->operand_at);
    if ((head & key->head_mask) != key->head_bits || (operand & key->check_mask) != key->check_bits)
        return false;
    operand &= key->operand_mask;
    if (key->form != FRAG_PICKLE_FORM_NAMED) {
        *value = key->base | operand << 8;
        reader->memo[reader->memo_count] = *value;
        reader->memo_count += key->names_given;
    } else if (!get_named(reader, operand, value)) {
        return false;
    }
    reader->at += key->total_length;
    return true;
}

/* A key that is not spelled like that of the entry before. */
static bool read_new_key(entry_reader *reader, frag_pickle_key *key)
{
    const unsigned char *start = reader->at;
    *key = (frag_pickle_key){0};
    if (!read_named(reader, &key->value))
        return false;
    key->length = (size_t)(reader->at - start);
    key->mask = mask_of(key->length);
    key->bits = frag_load_64(start) & key->mask;
    return true;
}

/* A key and its value operation by operation. */
static FRAG_NOINLINE bool read_pair(entry_reader *reader, frag_pickle_machine *machine,
                                    size_t count)
{
    if (count == FRAG_PICKLE_KEYS_MAX)
        return false;
    const unsigned char *start = reader->at;
    frag_pickle_key *key = &machine->keys[count];
    if (count < machine->key_count && (frag_load_64(start) & key->mask) == key->bits) {
        reader->at += key->length;
        key->miss_count++;
    } else {
        if (!read_new_key(reader, key) || (count == 0 && key->value != machine->entry_key))
            return false;
        machine->pairs[2 * count] = key->value;
        machine->key_count = count + 1;
        machine->taken_count = 0;
        expect_nothing(key + 1);
    }
    size_t names_before = reader->memo_count;
    frag_pickle_value *value = &machine->pairs[2 * count + 1];
    if (!read_value(reader, value))
        return false;
    if (key->form < FRAG_PICKLE_FORM_ANY_NUMBER || key->miss_count % MISSES_KEPT == 0)
        learn_form(key, start, (size_t)(reader->at - start), *value,
                   reader->memo_count - names_before);
    return true;
}

/* Keys and values from behind MARK to behind SETITEMS. */
static bool read_pairs(entry_reader *reader, frag_pickle_machine *machine, size_t *pair_count)
{
    entry_reader fast = *reader; /* which no call is given, so that it stays in registers */
    size_t count = 0;
    if (machine->key_count == 0)
        expect_nothing(&machine->keys[0]);
    for (;; count++) {
        uint64_t head = frag_load_64(fast.at);
        if (read_expected(&fast, &machine->keys[count], head, &machine->pairs[2 * count + 1]))
            continue;
        if ((head & 0xff) == 'u')
            break;
        *reader = fast;
        if (!read_pair(reader, machine, count))
            return false;
        fast = *reader;
    }
    *reader = fast;
    reader->at++;
    *pair_count = count;
    return count > 0;
}

static void make_room(frag_pickle_machine *machine)
{
    if (FRAG_UNLIKELY(machine->memo_capacity < machine->memo_count + NAMES_MAX))
        machine->memo = frag_input_grow(machine->input, machine->memo, &machine->memo_capacity,
                                        machine->memo_count + NAMES_MAX, sizeof *machine->memo);
    if (FRAG_UNLIKELY(machine->stack_count == machine->stack_capacity))
        machine->stack = frag_grow(machine->stack, &machine->stack_capacity,
                                   machine->stack_count + 1, sizeof *machine->stack);
}

/* One dictionary; false: nothing has changed. */
static bool read_entry(frag_pickle_machine *machine, const unsigned char **at)
{
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
        !read_pairs(&reader, machine, &pair_count)) {
        frag_pickle_restore(machine->tree, &before);
        machine->key_count = 0;
        return false;
    }
    /* A visitor may remember containers it has seen, so these stay where they are. */
    if (!machine->visitor(machine->visitor_context, machine->tree, machine->pairs, pair_count,
                          pair_count == machine->taken_count, &record))
        return false;
    machine->taken_count = pair_count;
    frag_pickle_value entry = frag_pickle_make(FRAG_PICKLE_TAG_RECORD, record);
    if ((*at)[1] != '(')
        machine->memo[machine->memo_count] = entry;
    machine->memo_count = reader.memo_count;
    machine->stack[machine->stack_count++] = entry;
    machine->entry_count++;
    *at = reader.at;
    return true;
}

bool frag_pickle_machine_entries(frag_pickle_machine *machine, const unsigned char **at)
{
    const unsigned char *start = *at;
    if (!machine->has_entry_key || machine->mark_count + MARKS_HERE > FRAG_PICKLE_MARKS_MAX)
        return true;
    while (machine->end - *at >= DICTIONARY_BYTES) {
        if (**at != '}')
            return false;
        make_room(machine);
        if (!read_entry(machine, at))
            return true;
    }
    return *at == start;
}
