#include "traces/pickle/pickle.h"

#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "traces/pickle/pickle_machine.h"

enum {
    WINDOW_BYTES = 1 << 18,
    TAIL_BYTES = 1 << 12,     /* the end of an input that is moved, so that zeros are behind it */
    OPERATION_BYTES_MAX = 16, /* of an operation without its string */
    STRING_BYTES_MAX = 8 << 20,
    /* An input may make this many objects however short it is, and one more for every so many
       bytes. */
    FREE_ITEMS = 1 << 16,
    BYTES_PER_ITEM = 8,
    STRINGS_MAX = 1 << 28,
    BYTES_PER_NAME = 20, /* about as few as there are in a snapshot */
    /* Real snapshots compress 20 to 60 times, very regular ones more. */
    EXPANSION_MAX = 2000,
    EXPANSION_FREE_BYTES = 16 << 20
};

static uint64_t offset_of(const frag_pickle_machine *reader, const unsigned char *byte)
{
    return reader->window_offset + (uint64_t)(byte - reader->window);
}

/* ---- input */

/* Called once per window: a file that is all containers, or all open ends, is no snapshot and would
 * take many times its own size. */
static bool check_sizes(const frag_pickle_machine *reader, frag_error *error)
{
    uint64_t offset = offset_of(reader, reader->end);
    uint64_t items_max = FREE_ITEMS + (uint64_t)WINDOW_BYTES + offset / BYTES_PER_ITEM;
    if (frag_input_outgrows(reader->input, offset, EXPANSION_FREE_BYTES, EXPANSION_MAX))
        return frag_fail_at(
            error, offset,
            "the compressed file grows to more than %d times its size; no real snapshot does",
            EXPANSION_MAX);
    uint64_t container_count = reader->tree->object_count + reader->entry_count;
    if (container_count > items_max || reader->stack_count > items_max)
        return frag_fail_at(
            error, offset,
            "has more containers or open values than a snapshot of its size can have");
    /* One window more adds fewer values than there are bytes in it, twice over. */
    if (reader->tree->pool_count > FRAG_PICKLE_POOL_MAX || container_count > UINT32_MAX / 2)
        return frag_fail_at(error, offset, "is larger than a snapshot that can be read");
    if (reader->tree->strings.count > STRINGS_MAX)
        return frag_fail_at(error, offset, "has more than %d different strings", STRINGS_MAX);
    return true;
}

/* Makes wanted bytes visible behind at, or all there are, with OPERATION_BYTES_MAX zeros behind
 * those. What comes before the end of the input is read where it is. */
static bool refill(frag_pickle_machine *reader, size_t wanted, frag_error *error)
{
    if (reader->tail != NULL)
        return true;
    size_t used = (size_t)(reader->at - reader->window);
    frag_input_skip(reader->input, used);
    reader->window_offset += used;
    size_t asked = wanted > WINDOW_BYTES ? wanted : WINDOW_BYTES;
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(reader->input, asked, &bytes, &count, error))
        return false;
    if (count >= asked) {
        count = asked;
    } else if (count >= wanted + 2 * TAIL_BYTES) {
        count -= TAIL_BYTES;
    } else {
        reader->tail = frag_alloc(count + OPERATION_BYTES_MAX, 1);
        if (count > 0)
            memcpy(reader->tail, bytes, count);
        bytes = reader->tail;
    }
    reader->window = bytes;
    reader->at = bytes;
    reader->end = bytes + count;
    return check_sizes(reader, error);
}

static bool fail_at_end(const frag_pickle_machine *reader, frag_error *error)
{
    return frag_fail_at(error, offset_of(reader, reader->end),
                        "the file ends before the snapshot does; it was cut off, copy it again");
}

/* ---- operations: each gets what it needs from the stack and checks that it is there */

static inline size_t stack_floor(const frag_pickle_machine *reader)
{
    return reader->mark_count == 0 ? 0 : reader->marks[reader->mark_count - 1];
}

static inline void push(frag_pickle_machine *reader, frag_pickle_value value)
{
    reader->stack[reader->stack_count++] = value;
}

/* The container below the topmost count values, which must lie above the innermost mark. */
static bool find_container(frag_pickle_machine *reader, size_t count, frag_pickle_kind kind,
                           uint64_t *object, const unsigned char *operation, frag_error *error)
{
    if (reader->stack_count < stack_floor(reader) + count + 1)
        return frag_fail_at(error, offset_of(reader, operation),
                            "an operation finds too few values before it; the file is damaged");
    frag_pickle_value value = reader->stack[reader->stack_count - count - 1];
    frag_pickle_kind found = frag_pickle_kind_of(reader->tree, value);
    if (found != kind || !frag_pickle_object_of(reader->tree, value, object))
        return frag_fail_at(error, offset_of(reader, operation),
                            "an operation adds to %s where %s should be; the file is damaged",
                            frag_pickle_kind_name(found), frag_pickle_kind_name(kind));
    return true;
}

/* Adds the topmost count values to a container below them and takes them off the stack. */
static bool add_to_container(frag_pickle_machine *reader, size_t count, frag_pickle_kind kind,
                             const unsigned char *operation, frag_error *error)
{
    uint64_t object = 0;
    if (!find_container(reader, count, kind, &object, operation, error))
        return false;
    const frag_pickle_value *items = reader->stack + reader->stack_count - count;
    reader->stack_count -= count;
    if (reader->tree->objects[object].list_use == FRAG_PICKLE_LIST_SHARED)
        return frag_fail_at(error, offset_of(reader, operation),
                            "adds to a list that was complete in an entry before; expected lists "
                            "that are filled where they begin");
    reader->tree->objects[object].list_use = FRAG_PICKLE_LIST_OWN;
    if (kind == FRAG_PICKLE_DICT) {
        if (count % 2 != 0)
            return frag_fail_at(error, offset_of(reader, operation),
                                "a dictionary has a key without a value; the file is damaged");
        frag_pickle_object *owner = &reader->tree->objects[object];
        uint32_t record = 0;
        if (owner->first == 0 && count > 0 && reader->visitor != NULL &&
            reader->visitor(reader->visitor_context, reader->tree, items, count / 2, false,
                            &record)) {
            owner->kind = FRAG_PICKLE_RECORD;
            owner->first = record;
            reader->has_entry_key = true;
            reader->entry_key = items[0];
            reader->taken_count = 0;
            return true;
        }
    }
    frag_pickle_add_items(reader->tree, object, items, count);
    return true;
}

static bool mark(frag_pickle_machine *reader, const unsigned char *operation, frag_error *error)
{
    if (reader->mark_count == FRAG_PICKLE_MARKS_MAX)
        return frag_fail_at(error, offset_of(reader, operation),
                            "values are nested more than %d deep; a snapshot needs about 6",
                            FRAG_PICKLE_MARKS_MAX);
    reader->marks[reader->mark_count++] = reader->stack_count;
    return true;
}

/* Ends the innermost mark; *count values lie above it. */
static bool unmark(frag_pickle_machine *reader, size_t *count, const unsigned char *operation,
                   frag_error *error)
{
    if (reader->mark_count == 0)
        return frag_fail_at(error, offset_of(reader, operation),
                            "an operation has no beginning (MARK) before it; the file is damaged");
    *count = reader->stack_count - reader->marks[--reader->mark_count];
    return true;
}

static bool add_marked(frag_pickle_machine *reader, frag_pickle_kind kind,
                       const unsigned char *operation, frag_error *error)
{
    size_t count = 0;
    return unmark(reader, &count, operation, error) &&
           add_to_container(reader, count, kind, operation, error);
}

static bool make_tuple(frag_pickle_machine *reader, size_t count, const unsigned char *operation,
                       frag_error *error)
{
    if (reader->stack_count < stack_floor(reader) + count)
        return frag_fail_at(error, offset_of(reader, operation),
                            "a tuple finds too few values before it; the file is damaged");
    const frag_pickle_value *items = reader->stack + reader->stack_count - count;
    reader->stack_count -= count;
    frag_pickle_value tuple = 0;
    if (count == 2 && frag_pickle_tag_of(items[0]) == FRAG_PICKLE_TAG_INTEGER &&
        frag_pickle_tag_of(items[1]) == FRAG_PICKLE_TAG_INTEGER) {
        tuple = frag_pickle_add_pair(reader->tree, items[0], items[1]);
    } else {
        uint64_t object = 0;
        tuple = frag_pickle_add_container(reader->tree, FRAG_PICKLE_TUPLE);
        frag_pickle_object_of(reader->tree, tuple, &object);
        frag_pickle_add_items(reader->tree, object, items, count);
    }
    push(reader, tuple);
    return true;
}

static bool make_marked_tuple(frag_pickle_machine *reader, const unsigned char *operation,
                              frag_error *error)
{
    size_t count = 0;
    return unmark(reader, &count, operation, error) && make_tuple(reader, count, operation, error);
}

/* Names the topmost value. */
static bool memo_put(frag_pickle_machine *reader, uint64_t name, const unsigned char *operation,
                     frag_error *error)
{
    if (reader->stack_count == stack_floor(reader))
        return frag_fail_at(error, offset_of(reader, operation),
                            "a name is given to no value; the file is damaged");
    if (name >= reader->memo_count) {
        if (name > offset_of(reader, operation))
            return frag_fail_at(
                error, offset_of(reader, operation),
                "the %llu. name is given in a file that cannot hold as many; it is damaged",
                (unsigned long long)name);
        if (name >= reader->memo_capacity)
            reader->memo = frag_input_grow(reader->input, reader->memo, &reader->memo_capacity,
                                           (size_t)name + 1, sizeof *reader->memo);
        while (reader->memo_count < name)
            reader->memo[reader->memo_count++] = FRAG_PICKLE_UNNAMED;
        reader->memo_count = (size_t)name + 1;
    } else {
        reader->key_count = 0;
    }
    reader->memo[name] = reader->stack[reader->stack_count - 1];
    return true;
}

static inline bool memo_get(frag_pickle_machine *reader, uint64_t name,
                            const unsigned char *operation, frag_error *error)
{
    if (name >= reader->memo_count || reader->memo[name] == FRAG_PICKLE_UNNAMED)
        return frag_fail_at(
            error, offset_of(reader, operation),
            "refers to value %llu, which has not been named before; the file is damaged",
            (unsigned long long)name);
    push(reader, reader->memo[name]);
    return true;
}

/* length bytes follow at; they become a string. */
static bool read_string(frag_pickle_machine *reader, uint64_t length, uint64_t offset,
                        frag_error *error)
{
    if (length > STRING_BYTES_MAX)
        return frag_fail_at(error, offset,
                            "a string of %llu bytes; the longest in a snapshot have some thousand",
                            (unsigned long long)length);
    if (reader->end - reader->at < (ptrdiff_t)length) {
        if (!refill(reader, (size_t)length + OPERATION_BYTES_MAX, error))
            return false;
        if (reader->end - reader->at < (ptrdiff_t)length)
            return fail_at_end(reader, error);
    }
    push(reader, frag_pickle_add_string(reader->tree, (const char *)reader->at, (size_t)length));
    reader->at += length;
    return true;
}

/* LONG1: a length and that many bytes in two's complement. Unsigned 64-bit numbers need a ninth, 0.
 */
static bool read_long(frag_pickle_machine *reader, const unsigned char *operation,
                      frag_error *error)
{
    unsigned length = *reader->at++;
    if (length > 9 || (length == 9 && reader->at[8] != 0))
        return frag_fail_at(
            error, offset_of(reader, operation),
            "an integer of %u bytes does not fit 64 bits; nothing in a snapshot is as large",
            length);
    unsigned used = length == 9 ? 8 : length;
    uint64_t bits = frag_load_64(reader->at); /* zeros follow the last byte of the input */
    if (used < 8)
        bits &= ((uint64_t)1 << (8 * used)) - 1;
    bool is_negative = length > 0 && length < 9 && (reader->at[length - 1] & 0x80) != 0;
    if (is_negative && used < 8)
        bits |= UINT64_MAX << (8 * used);
    reader->at += length;
    push(reader, frag_pickle_add_integer(reader->tree, bits, is_negative));
    return true;
}

static void read_float(frag_pickle_machine *reader)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++)
        bits = bits << 8 | reader->at[i];
    reader->at += 8;
    double number = 0;
    memcpy(&number, &bits, sizeof number);
    push(reader, frag_pickle_add_float(reader->tree, number));
}

static bool refuse(const frag_pickle_machine *reader, const unsigned char *operation,
                   frag_error *error)
{
    static const struct {
        unsigned char code;
        const char *name;
    } known[] = {
        {'c', "GLOBAL"},         {0x93, "STACK_GLOBAL"},
        {'R', "REDUCE"},         {'b', "BUILD"},
        {'i', "INST"},           {'o', "OBJ"},
        {0x81, "NEWOBJ"},        {0x92, "NEWOBJ_EX"},
        {'P', "PERSID"},         {'Q', "BINPERSID"},
        {0x82, "EXT1"},          {0x83, "EXT2"},
        {0x84, "EXT4"},          {0x80, "PROTO"},
        {0x8b, "LONG4"},         {'B', "BINBYTES"},
        {'C', "SHORT_BINBYTES"}, {'U', "SHORT_BINSTRING"},
        {'T', "BINSTRING"},      {'0', "POP"},
        {'1', "POP_MARK"},       {'2', "DUP"},
        {0x8f, "EMPTY_SET"},
    };
    unsigned code = *operation;
    const char *name = "unknown";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].code == code)
            name = known[i].name;
    return frag_fail_at(
        error, offset_of(reader, operation),
        "pickle operation 0x%02x (%s) is refused; a snapshot never needs it; nothing was executed",
        code, name);
}

/* Operations that a snapshot holds a few times at most. */
static bool run_rare(frag_pickle_machine *reader, const unsigned char *operation, frag_error *error)
{
    uint64_t number = 0;
    switch (*operation) {
    case ')':
        return make_tuple(reader, 0, operation, error);
    case 0x85:
        return make_tuple(reader, 1, operation, error);
    case 0x87:
        return make_tuple(reader, 3, operation, error);
    case 't':
        return make_marked_tuple(reader, operation, error);
    case 's':
        return add_to_container(reader, 2, FRAG_PICKLE_DICT, operation, error);
    case 'a':
        return add_to_container(reader, 1, FRAG_PICKLE_LIST, operation, error);
    case 'X': /* BINUNICODE */
        number = frag_load_32(reader->at);
        reader->at += 4;
        return read_string(reader, number, offset_of(reader, operation), error);
    case 0x8d: /* BINUNICODE8 */
        number = frag_load_64(reader->at);
        reader->at += 8;
        return read_string(reader, number, offset_of(reader, operation), error);
    case 'G':
        read_float(reader);
        return true;
    case 0x95: /* FRAME: its length says nothing that is needed */
        reader->at += 8;
        return true;
    default:
        return refuse(reader, operation, error);
    }
}

/* Runs operations until STOP. Before each there is room for one more value on the stack and for its
 * operands in the window (zeros behind the last byte: then the next round finds at past the end).
 */
static bool run(frag_pickle_machine *reader, frag_error *error)
{
    const unsigned char *at = reader->at; /* the reader's is set where others need it */
    for (;;) {
        if (FRAG_UNLIKELY(reader->end - at < OPERATION_BYTES_MAX)) {
            reader->at = at;
            if (at <= reader->end && !refill(reader, OPERATION_BYTES_MAX, error))
                return false;
            at = reader->at;
            if (at >= reader->end)
                return fail_at_end(reader, error);
        }
        if (FRAG_UNLIKELY(reader->stack_count == reader->stack_capacity))
            reader->stack = frag_grow(reader->stack, &reader->stack_capacity,
                                      reader->stack_count + 1, sizeof *reader->stack);
        const unsigned char *operation = at++;
        bool is_done = true;
        switch (*operation) {
        case 'h': /* BINGET */
            is_done = memo_get(reader, *at++, operation, error);
            break;
        case 'j': /* LONG_BINGET */
            at += 4;
            is_done = memo_get(reader, frag_load_32(operation + 1), operation, error);
            break;
        case 0x94: /* MEMOIZE */
            is_done = memo_put(reader, reader->memo_count, operation, error);
            break;
        case 'q': /* BINPUT */
            is_done = memo_put(reader, *at++, operation, error);
            break;
        case 'r': /* LONG_BINPUT */
            at += 4;
            is_done = memo_put(reader, frag_load_32(operation + 1), operation, error);
            break;
        case '}':
            at = operation;
            if (frag_pickle_machine_entries(reader, &at)) {
                push(reader, frag_pickle_add_container(reader->tree, FRAG_PICKLE_DICT));
                at++;
            }
            break;
        case ']':
            push(reader, frag_pickle_add_container(reader->tree, FRAG_PICKLE_LIST));
            break;
        case '(':
            is_done = mark(reader, operation, error);
            break;
        case 'u':
            is_done = add_marked(reader, FRAG_PICKLE_DICT, operation, error);
            break;
        case 'e':
            is_done = add_marked(reader, FRAG_PICKLE_LIST, operation, error);
            break;
        case 0x86: /* TUPLE2 */
            is_done = make_tuple(reader, 2, operation, error);
            break;
        case 0x8c: /* SHORT_BINUNICODE */
            reader->at = at + 1;
            is_done = read_string(reader, operation[1], offset_of(reader, operation), error);
            at = reader->at;
            break;
        case 'K': /* BININT1 */
            push(reader, frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, *at++));
            break;
        case 'M': /* BININT2 */
            push(reader, frag_pickle_make(FRAG_PICKLE_TAG_INTEGER, frag_load_16(at)));
            at += 2;
            break;
        case 'J': { /* BININT: signed */
            uint64_t bits = frag_load_32(at);
            bool is_negative = bits >> 31 != 0;
            push(reader,
                 frag_pickle_add_integer(reader->tree, is_negative ? bits | UINT64_MAX << 32 : bits,
                                         is_negative));
            at += 4;
            break;
        }
        case 0x8a:
            reader->at = at;
            is_done = read_long(reader, operation, error);
            at = reader->at;
            break;
        case 'N':
            push(reader, frag_pickle_none());
            break;
        case 0x88:
        case 0x89:
            push(reader, frag_pickle_truth(*operation == 0x88));
            break;
        case '.':
            reader->at = at;
            return true;
        default:
            reader->at = at;
            is_done = run_rare(reader, operation, error);
            at = reader->at;
        }
        if (FRAG_UNLIKELY(!is_done))
            return false;
    }
}

static bool read_header(frag_pickle_machine *reader, frag_error *error)
{
    if (!refill(reader, OPERATION_BYTES_MAX, error))
        return false;
    if (reader->end - reader->at < 2 || reader->at[0] != 0x80)
        return frag_fail_at(error, 0, "does not begin like a pickle of protocol 2 to 5 (0x80)");
    unsigned protocol = reader->at[1];
    if (protocol < 2 || protocol > 5)
        return frag_fail_at(error, 1, "is a pickle of protocol %u; 2 to 5 are read", protocol);
    reader->at += 2;
    return true;
}

static bool read_end(frag_pickle_machine *reader, frag_pickle_value *root, frag_error *error)
{
    uint64_t offset = offset_of(reader, reader->at);
    if (reader->mark_count != 0 || reader->stack_count != 1)
        return frag_fail_at(error, offset,
                            "stops with %llu values where one should be; the file is damaged",
                            (unsigned long long)reader->stack_count);
    if (reader->at == reader->end && !refill(reader, 1, error))
        return false;
    if (reader->at != reader->end)
        return frag_fail_at(error, offset,
                            "goes on after the end of the pickle; a snapshot is one pickle alone");
    *root = reader->stack[0];
    return true;
}

bool frag_pickle_read(frag_pickle *pickle, frag_input *input, frag_pickle_visitor visitor,
                      void *context, frag_pickle_value *root, frag_error *error)
{
    frag_pickle_machine *reader = frag_alloc(1, sizeof *reader);
    reader->tree = pickle;
    reader->visitor = visitor;
    reader->visitor_context = context;
    reader->input = input;
    reader->window_offset = frag_input_offset(input);
    reader->memo_capacity = frag_input_visible_bytes(input) / BYTES_PER_NAME + 1;
    reader->memo = frag_realloc(NULL, reader->memo_capacity, sizeof *reader->memo);
    bool is_read =
        read_header(reader, error) && run(reader, error) && read_end(reader, root, error);
    frag_free(reader->stack);
    frag_free(reader->memo);
    frag_free(reader->tail);
    frag_free(reader);
    return is_read;
}
