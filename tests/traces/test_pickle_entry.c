/* Entries are read in one loop where they are plain, else operation by operation. Both must say the
 * same: each case is read once behind an entry, which makes it a candidate, and once behind a
 * dictionary that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "traces/pickle/pickle.h"

/* What was seen of a file: the pairs that the visitor took, the names given, the error. */
typedef struct pickle_reading {
    frag_text text;
    frag_text keys; /* of the last that was taken */
    uint32_t records;
    uint32_t repeats; /* how often the visitor was told that keys are those of the last */
    bool is_read;
    bool was_read_at_once; /* the case */
} pickle_reading;

static void tell_value(frag_text *text, const frag_pickle *pickle, frag_pickle_value value,
                       int depth)
{
    int64_t number = 0;
    uint32_t id = 0;
    frag_text_add(text, " %s", frag_pickle_kind_name(frag_pickle_kind_of(pickle, value)));
    if (frag_pickle_signed(pickle, value, &number))
        frag_text_add(text, " %lld", (long long)number);
    if (frag_pickle_string(pickle, value, &id))
        frag_text_add(text, " '%s'", frag_pickle_text(pickle, id, NULL));
    frag_pickle_walk walk = frag_pickle_begin(pickle, value);
    frag_pickle_value item = 0;
    while (depth > 0 && frag_pickle_next(pickle, &walk, &item))
        tell_value(text, pickle, item, depth - 1);
    frag_text_add(text, ";");
}

/* Takes what begins with the key "first", but for one value that it does not like. */
static bool take(void *context, const frag_pickle *pickle, const frag_pickle_value *pairs,
                 size_t pair_count, bool has_last_keys, uint32_t *record)
{
    pickle_reading *seen = context;
    frag_text keys = {0};
    for (size_t i = 0; i < pair_count; i++)
        tell_value(&keys, pickle, pairs[2 * i], 0);
    if (has_last_keys)
        assert_string_equal(keys.bytes, seen->keys.bytes);
    seen->repeats += has_last_keys ? 1 : 0;

    uint32_t id = 1;
    int64_t number = 0;
    if (!frag_pickle_string(pickle, pairs[0], &id) || id != 0 ||
        (frag_pickle_signed(pickle, pairs[1], &number) && number == 13)) {
        frag_text_destroy(&keys);
        return false;
    }
    *record = seen->records++;
    frag_text_destroy(&seen->keys);
    seen->keys = keys;
    if (number == 12) /* the entry before the case */
        return true;
    frag_text_clear(&seen->text);
    for (size_t i = 0; i < 2 * pair_count; i++)
        tell_value(&seen->text, pickle, pairs[i], 2);
    return true;
}

/* A tuple of "first" (name 0), "second" (1), a list (2) of two dictionaries (3 and 4), the second
 * of them the case, and what follows the list. */
static pickle_reading read_case(const char *bytes, size_t count, const char *follows,
                                size_t follows_count, bool is_behind_entry)
{
    static const char *const names[] = {"first", "second"};
    static const char start[] = "\x80\x04(\x8c\x05"
                                "first\x94\x8c\x06second\x94]\x94(}\x94(h";
    static const char end[] = "e";
    unsigned char file[4096] = {0};
    size_t used = 0;
    memcpy(file, start, sizeof start - 1);
    used += sizeof start - 1;
    file[used++] = is_behind_entry ? 0 : 1;
    memcpy(file + used, "K\x0cu}\x94(", 6);
    used += 6;
    memcpy(file + used, bytes, count);
    used += count;
    memcpy(file + used, end, sizeof end - 1);
    used += sizeof end - 1;
    memcpy(file + used, follows, follows_count);
    used += follows_count;
    /* What is near the end of a file is not read at once. */
    memcpy(file + used, "X\xb8\x0b\0\0", 5);
    memset(file + used + 5, '.', 3000);
    memcpy(file + used + 3005, "t.", 2);
    used += 3007;

    pickle_reading seen = {0};
    frag_error error = {0};
    frag_pickle_value root = 0;
    frag_pickle *pickle = frag_pickle_create(names, 2);
    frag_input *input = frag_input_from_memory(file, used, "memory");
    frag_text_add(&seen.text, "nothing");
    seen.is_read = frag_pickle_read(pickle, input, take, &seen, &root, &error);
    frag_input_close(input);
    frag_text_add(&seen.text, " | %s at %llu", error.sentence,
                  (unsigned long long)(error.has_offset ? error.offset : 0));
    if (seen.is_read) {
        frag_pickle_walk walk = frag_pickle_begin(pickle, root);
        frag_pickle_value item = 0;
        for (int i = 0; frag_pickle_next(pickle, &walk, &item); i++)
            if (i != 2)
                tell_value(&seen.text, pickle, item, 0);
        /* A dictionary that is read at once never is an object. */
        uint32_t objects = 0;
        for (size_t i = 0; i < pickle->object_count; i++)
            objects += pickle->objects[i].kind == FRAG_PICKLE_RECORD ? 1 : 0;
        seen.was_read_at_once = objects < seen.records;
    }
    frag_pickle_destroy(pickle);
    frag_text_destroy(&seen.keys);
    return seen;
}

static void compare(const char *bytes, size_t count, const char *follows, size_t follows_count,
                    bool is_plain, unsigned line)
{
    pickle_reading one = read_case(bytes, count, follows, follows_count, true);
    pickle_reading other = read_case(bytes, count, follows, follows_count, false);
    if (strcmp(one.text.bytes, other.text.bytes) != 0 || one.is_read != other.is_read)
        fail_msg("line %u: behind an entry '%s', else '%s'", line, one.text.bytes,
                 other.text.bytes);
    if (one.was_read_at_once != is_plain || other.was_read_at_once)
        fail_msg("line %u: is%s read at once", line, one.was_read_at_once ? "" : " not");
    frag_text_destroy(&one.text);
    frag_text_destroy(&other.text);
}

#define BYTES(literal) literal, sizeof(literal) - 1
#define PLAIN(literal) compare(BYTES(literal), "", 0, true, __LINE__)
#define OTHER(literal) compare(BYTES(literal), "", 0, false, __LINE__)
/* And the names after it are what they are to be: one more value, by its name. */
#define PLAIN_THEN(literal, follows) compare(BYTES(literal), BYTES(follows), true, __LINE__)
#define OTHER_THEN(literal, follows) compare(BYTES(literal), BYTES(follows), false, __LINE__)

static void plain_entries_are_read_at_once(void **state)
{
    (void)state;
    PLAIN("h\0K\x07u");
    PLAIN("h\0M\x34\x12h\x01K\xffu");
    PLAIN("h\0J\xff\xff\xff\x7fu");
    PLAIN("h\0\x8a\x01\x7fu");
    PLAIN("h\0\x8a\x06\0\0\0\0\0\x20u");
    PLAIN("h\0\x8a\x07\xff\xff\xff\xff\xff\xff\x7fu");
    PLAIN("j\0\0\0\0Nh\x01\x88u");
    PLAIN("h\0\x89h\x01j\x01\0\0\0u");
    PLAIN("h\0h\x02u"); /* the list that holds it */
    PLAIN("h\0K\1K\2\x86u");
    PLAIN("h\0K\1K\2\x86h\x01K\1K\2\x86u");
    PLAIN("h\0]u");
    PLAIN("h\0](eh\x01]u");
    PLAIN("h\0](h\0h\1h\2j\1\0\0\0eu");
    PLAIN("h\0\x8c\3N/Ah\x01\x8c\3N/Au");
    PLAIN("h\0\x8c\0h\x01\x8c\x09ninebytesu");
}

static void names_stay_in_step(void **state)
{
    (void)state;
    OTHER_THEN("h\0K\x07\x94u", "h\5"); /* Python names no numbers */
    PLAIN_THEN("h\0\x8c\3N/A\x94h\x01\x8c\2no\x94u", "h\5h\6");
    PLAIN_THEN("h\0\x8c\3N/Aq\5h\x01\x8c\2nor\6\0\0\0u", "h\5h\6");
    PLAIN_THEN("h\0K\1K\2\x86\x94u", "h\5");
    PLAIN_THEN("h\0]\x94(h\0eu", "h\5");
    PLAIN_THEN("h\0]\x94h\x01h\5u", "h\5"); /* named inside */
    OTHER_THEN("h\0K\x07q\x09u", "h\x09");
    OTHER_THEN("h\0K\x07q\1u", "h\1"); /* given anew */
    OTHER_THEN("h\0\x8c\2no\x94h\x01Gabcdefghu", "h\5");
    PLAIN_THEN("h\0]\x94(h\0eh\x01K\1K\2\x86u", "h\5");
    OTHER_THEN("h\0K\1u", "h\5"); /* was never given, so that nothing is read */
}

static void others_are_read_operation_by_operation(void **state)
{
    (void)state;
    OTHER("u");
    OTHER("h\1K\7u");   /* begins with another key */
    OTHER("h\0K\x0du"); /* the visitor does not want it */
    OTHER("h\0u");
    OTHER("h\0K\1h\1u");
    OTHER("h\0J\xff\xff\xff\xffu");
    OTHER("h\0\x8a\0u");
    OTHER("h\0\x8a\1\xffu");
    OTHER("h\0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fu");
    OTHER("h\0\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0u");
    OTHER("h\0\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\0\0u");
    OTHER("h\0h\4u"); /* itself */
    OTHER("h\0h\5u");
    OTHER("h\0h\xffu");
    OTHER("h\0j\xff\xff\xff\xffu");
    OTHER("h\0](K\1eu");
    OTHER("h\0](h\0tu");
    OTHER("h\0](h\160eu");
    OTHER("h\0]K\1au");
    OTHER("h\0K\1\x85u");
    OTHER("h\0K\1K\2K\3\x87u");
    OTHER("h\0K\1K\2u");
    OTHER("h\0}u");
    OTHER("h\0GABCDEFGHu");
    OTHER("\x8c\5firstK\1u");
    OTHER("h\0cos\nsystem\nu");
    OTHER("h\0K\1s");
}

static void what_an_entry_cannot_hold_is_refused_after_it(void **state)
{
    (void)state;
    pickle_reading seen = read_case(BYTES("h\0K\1u(h\0K\2u"), "", 0, true);
    assert_false(seen.is_read);
    assert_non_null(strstr(seen.text.bytes, "adds to a trace entry where a dictionary"));
    frag_text_destroy(&seen.text);
}

static void the_visitor_hears_when_keys_repeat(void **state)
{
    (void)state;
    pickle_reading seen = read_case(BYTES("h\0K\1u}\x94(h\0K\2u}\x94(h\0K\2u}\x94(h\0K\3h\1K\4u"
                                          "}\x94(h\0K\3u}\x94(h\0K\x0du}\x94(h\0K\3u"),
                                    "", 0, true);
    assert_true(seen.is_read);
    assert_int_equal(seen.records, 7);
    assert_int_equal(seen.repeats, 4); /* the one that it refused among them */
    frag_text_destroy(&seen.text);
}

/* ---- lists that come again */

enum { LISTS_MAX = 8 };

/* The second value of each entry, as an object and as text. */
typedef struct list_values {
    frag_pickle_value values[LISTS_MAX];
    size_t count;
} list_values;

static bool take_list(void *context, const frag_pickle *pickle, const frag_pickle_value *pairs,
                      size_t pair_count, bool has_last_keys, uint32_t *record)
{
    list_values *seen = context;
    uint32_t id = 1;
    (void)has_last_keys;
    if (!frag_pickle_string(pickle, pairs[0], &id) || id != 0 || seen->count == LISTS_MAX)
        return false;
    seen->values[seen->count] = pairs[2 * pair_count - 1];
    *record = (uint32_t)seen->count++;
    return true;
}

/* A list (name 0) of an entry (1) of "first" (2), the entries, and what they leave in the list. */
static bool read_lists(const char *bytes, size_t count, list_values *seen, frag_pickle **pickle,
                       frag_error *error)
{
    static const char *const names[] = {"first"};
    static const char start[] = "\x80\x04]\x94(}\x94(\x8c\5first\x94K\1u";
    static unsigned char file[8192];
    frag_pickle_value root = 0;
    size_t used = sizeof start - 1 + count;
    memcpy(file, start, sizeof start - 1);
    memcpy(file + sizeof start - 1, bytes, count);
    /* Entries are read at once where much of the file follows them. */
    for (size_t i = 0; i < 2000; i++)
        file[used++] = 'N';
    memcpy(file + used, "e.", 2);
    *pickle = frag_pickle_create(names, 1);
    *seen = (list_values){.count = 0};
    frag_input *input = frag_input_from_memory(file, used + 2, "memory");
    bool is_read = frag_pickle_read(*pickle, input, take_list, seen, &root, error);
    frag_input_close(input);
    return is_read;
}

static void lists_of_the_same_items_are_one(void **state)
{
    (void)state;
    list_values seen;
    frag_pickle *pickle = NULL;
    frag_error error = {0};
    /* Names 3 and 4 are the first of them and its list, 5 and 6 the second ... */
    assert_true(read_lists(BYTES("}\x94(h\2]\x94(h\2h\1eu}\x94(h\2]\x94(h\2h\1eu"
                                 "}\x94(h\2]\x94(h\1h\2eu}\x94(h\2]\x94(h\2eu}\x94(h\2]\x94u"
                                 "}\x94(h\2]\x94(h\2j\1\0\0\0euh\6h\4"),
                           &seen, &pickle, &error));
    assert_int_equal(seen.count, 7);
    assert_true(seen.values[1] == seen.values[2]);
    assert_int_equal(frag_pickle_item_count(pickle, seen.values[1]), 2);
    assert_true(seen.values[3] != seen.values[1]);
    assert_int_equal(frag_pickle_item_count(pickle, seen.values[4]), 1);
    assert_int_equal(frag_pickle_item_count(pickle, seen.values[5]), 0);
    assert_int_equal(frag_pickle_item_count(pickle, seen.values[6]), 2);
    frag_pickle_destroy(pickle);
}

/* A name may come to stand for another value: the same bytes are not the same list then. */
static void lists_of_other_items_are_not_one(void **state)
{
    (void)state;
    list_values seen;
    frag_pickle *pickle = NULL;
    frag_error error = {0};
    assert_true(read_lists(BYTES("}\x94(h\2]\x94(h\2h\1eu}\x94(h\2]\x94(h\2h\1eu"
                                 "Nq\1}\x94(h\2]\x94(h\2h\1eu}\x94(h\2]\x94(h\2h\1eu"),
                           &seen, &pickle, &error));
    assert_int_equal(seen.count, 5);
    assert_true(seen.values[1] == seen.values[2]);
    frag_pickle_walk walk = frag_pickle_begin(pickle, seen.values[4]);
    frag_pickle_value item = 0;
    assert_true(frag_pickle_next(pickle, &walk, &item));
    assert_true(frag_pickle_next(pickle, &walk, &item));
    assert_int_equal(frag_pickle_kind_of(pickle, item), FRAG_PICKLE_NONE);
    frag_pickle_destroy(pickle);
}

/* To a list that is alone more may be added; it is then no longer what it was found by. */
static void only_a_list_that_is_alone_is_added_to(void **state)
{
    (void)state;
    list_values seen;
    frag_pickle *pickle = NULL;
    frag_error error = {0};
    assert_true(read_lists(BYTES("}\x94(h\2]\x94(h\2eu}\x94(h\2]\x94(h\1euh\4(h\1e"
                                 "}\x94(h\2]\x94(h\2eu}\x94(h\2]\x94(h\2h\1eu"),
                           &seen, &pickle, &error));
    assert_int_equal(frag_pickle_item_count(pickle, seen.values[1]), 2);
    assert_int_equal(frag_pickle_item_count(pickle, seen.values[3]), 1);
    assert_true(seen.values[4] != seen.values[1]);
    frag_pickle_destroy(pickle);
    assert_false(read_lists(BYTES("}\x94(h\2]\x94(h\2eu}\x94(h\2]\x94(h\2euh\4(h\1e"), &seen,
                            &pickle, &error));
    assert_non_null(strstr(error.sentence, "adds to a list that was complete"));
    frag_pickle_destroy(pickle);
}

/* ---- entries whose values change their kind, by lot, and what must be read of them */

enum { LOT_ENTRIES = 60, LOT_ROUNDS = 300, LOT_KEYS = 4 };

typedef struct writer {
    unsigned char bytes[16384];
    size_t used;
    frag_text text; /* what is to be read */
    uint32_t names; /* given so far */
    uint32_t named; /* the last of them that is a string's */
    const char *string;
    uint32_t put; /* the last that BINPUT gave */
    uint32_t random;
    uint32_t kinds[LOT_KEYS]; /* of the last values */
} writer;

static uint32_t draw(writer *made, uint32_t below)
{
    made->random = made->random * 1664525u + 1013904223u;
    return (made->random >> 8) % below;
}

static void put(writer *made, const char *bytes, size_t count)
{
    assert_true(made->used + count <= sizeof made->bytes);
    memcpy(made->bytes + made->used, bytes, count);
    made->used += count;
}

static void put_number(writer *made, char operation, uint64_t number, unsigned count)
{
    put(made, &operation, 1);
    for (unsigned i = 0; i < count; i++)
        put(made, &(char){(char)(number >> (8 * i) & 0xff)}, 1);
}

/* Names a value in one of the ways there are, or not at all. */
static bool put_name(writer *made)
{
    uint32_t way = draw(made, 8);
    if (way == 0)
        return false;
    if (way == 3) { /* as the last with BINPUT, which is not asked for by that name any more */
        put_number(made, 'q', made->put, 1);
        made->string = made->named == made->put ? "second" : made->string;
        made->named = made->named == made->put ? 1 : made->named;
        return false;
    }
    if (way == 1 && made->names < 256) {
        made->put = made->names;
        put_number(made, 'q', made->names, 1);
    } else if (way == 2) {
        put_number(made, 'r', made->names, 4);
    } else {
        put(made, "\x94", 1);
    }
    made->names++;
    return true;
}

/* Two's complement of count bytes; 9 for one that would be negative in 8. */
static void put_long(writer *made)
{
    unsigned count = 1 + draw(made, 9);
    unsigned used = count < 8 ? count : 8;
    uint64_t number = (uint64_t)draw(made, 1 << 24) << 40 | (uint64_t)draw(made, 1 << 24) << 16;
    number |= draw(made, 1 << 16);
    int64_t read = 0;
    memcpy(&read, &number, sizeof read);
    for (unsigned unused = 64 - 8 * used; unused > 0; unused -= 8)
        read /= 256;
    memcpy(&number, &read, sizeof number);
    put(made, "\x8a", 1);
    put_number(made, (char)count, number, used);
    if (count == 9)
        put(made, "", 1);
    frag_text_add(&made->text, " an integer %lld;", (long long)read);
}

static void put_pair(writer *made)
{
    uint32_t low = draw(made, 2);
    put_number(made, 'K', low, 1);
    put_number(made, 'K', 7, 1);
    put(made, "\x86", 1);
    put_name(made);
    frag_text_add(&made->text, " a tuple an integer %u; an integer 7;;", low);
}

static void put_list(writer *made)
{
    put(made, "]", 1);
    put_name(made);
    bool is_empty = draw(made, 2) == 0;
    frag_text_add(&made->text,
                  is_empty ? " a list;" : " a list a string 'second'; a string 'first';;");
    if (!is_empty)
        put(made, "(h\1h\0e", 6);
}

static void put_string(writer *made)
{
    static const char *const strings[] = {"a", "N/A", "N/B", "fivebytes", "\x94", "", "12\x94"};
    const char *string = strings[draw(made, 7)];
    put(made, "\x8c", 1);
    put(made, &(char){(char)strlen(string)}, 1);
    put(made, string, strlen(string));
    if (put_name(made)) {
        made->named = made->names - 1;
        made->string = string;
    }
    frag_text_add(&made->text, " a string '%s';", string);
}

static void put_value(writer *made, uint32_t kind)
{
    static const unsigned counts[] = {1, 2, 4};
    uint32_t number = draw(made, 256);
    switch (kind) {
    case 0:
    case 1:
    case 2:
        number = kind == 0 ? number : kind == 1 ? number << 8 : number << 24;
        put_number(made, "KMJ"[kind], number, counts[kind]);
        frag_text_add(&made->text, " an integer %d;", (int32_t)number);
        return;
    case 3:
        put_long(made);
        return;
    case 4:
    case 5:
        number = draw(made, 2) == 0 ? 1 : made->named;
        put_number(made, kind == 4 && number < 256 ? 'h' : 'j', number,
                   kind == 4 && number < 256 ? 1 : 4);
        frag_text_add(&made->text, " a string '%s';", number == 1 ? "second" : made->string);
        return;
    case 6:
        put_pair(made);
        return;
    case 7:
        put_list(made);
        return;
    case 8:
        put(made, "N", 1);
        frag_text_add(&made->text, " None;");
        return;
    default:
        put_string(made);
    }
}

/* An entry of the keys "first", "second" ..., now and then without the last one. */
static void put_entry(writer *made)
{
    put(made, "}", 1);
    put_name(made);
    put(made, "(", 1);
    uint32_t count = draw(made, 16) == 0 ? LOT_KEYS - 1 : LOT_KEYS;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = i % 2;
        put_number(made, i == 2 ? 'j' : 'h', key, i == 2 ? 4 : 1);
        frag_text_add(&made->text, " a string '%s';", key == 0 ? "first" : "second");
        if (draw(made, 4) == 0)
            made->kinds[i] = draw(made, 10);
        put_value(made, made->kinds[i]);
    }
    put(made, "u", 1);
    frag_text_add(&made->text, "\n");
}

static bool collect(void *context, const frag_pickle *pickle, const frag_pickle_value *pairs,
                    size_t pair_count, bool has_last_keys, uint32_t *record)
{
    (void)has_last_keys;
    pickle_reading *seen = context;
    for (size_t i = 0; i < 2 * pair_count; i++)
        tell_value(&seen->text, pickle, pairs[i], 1);
    frag_text_add(&seen->text, "\n");
    *record = seen->records++;
    return true;
}

static void values_are_read_whatever_the_entry_before_had(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second"};
    static writer made;
    for (uint32_t round = 0; round < LOT_ROUNDS; round++) {
        made = (writer){.random = round, .names = 3, .put = 2, .string = "first"};
        put(&made, "\x80\x04(\x8c\5first\x94\x8c\6second\x94]\x94(", 23);
        for (uint32_t i = 0; i < LOT_ENTRIES; i++)
            put_entry(&made);
        put(&made, "eX\xb8\x0b\0\0", 6);
        memset(made.bytes + made.used, '.', 3000);
        made.used += 3000;
        put(&made, "t.", 2);
        pickle_reading seen = {0};
        frag_error error = {0};
        frag_pickle_value root = 0;
        frag_pickle *pickle = frag_pickle_create(names, 2);
        frag_input *input = frag_input_from_memory(made.bytes, made.used, "memory");
        if (!frag_pickle_read(pickle, input, collect, &seen, &root, &error))
            fail_msg("round %u: %s", round, error.sentence);
        frag_input_close(input);
        frag_pickle_destroy(pickle);
        assert_int_equal(seen.records, LOT_ENTRIES);
        assert_string_equal(seen.text.bytes, made.text.bytes);
        frag_text_destroy(&seen.text);
        frag_text_destroy(&made.text);
    }
}

/* The entries before have the same keys, and the value that is read first is left behind where the
 * next name will be. */
static void a_value_has_a_name_that_was_given(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second"};
    static const char start[] = "\x80\x04(\x8c\x05"
                                "first\x94\x8c\x06second\x94]\x94(}\x94("
                                "h\0K\x01h\1h\2u}\x94(h\0K\x02h\1h\2u}\x94(h\0K\x03h\1h";
    for (unsigned name = 0; name < 8; name++) {
        unsigned char file[4096] = {0};
        size_t used = sizeof start - 1;
        memcpy(file, start, used);
        file[used++] = (unsigned char)name;
        memcpy(file + used, "ueX\xb8\x0b\0\0", 7);
        memset(file + used + 7, '.', 3000);
        memcpy(file + used + 3007, "t.", 2);
        pickle_reading seen = {0};
        frag_error error = {0};
        frag_pickle_value root = 0;
        frag_pickle *pickle = frag_pickle_create(names, 2);
        frag_input *input = frag_input_from_memory(file, used + 3009, "memory");
        bool is_read = frag_pickle_read(pickle, input, collect, &seen, &root, &error);
        if (is_read != (name < 6))
            fail_msg("name %u: %s", name, is_read ? "is taken" : error.sentence);
        frag_input_close(input);
        frag_pickle_destroy(pickle);
        frag_text_destroy(&seen.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_entries_are_read_at_once),
        cmocka_unit_test(names_stay_in_step),
        cmocka_unit_test(others_are_read_operation_by_operation),
        cmocka_unit_test(the_visitor_hears_when_keys_repeat),
        cmocka_unit_test(what_an_entry_cannot_hold_is_refused_after_it),
        cmocka_unit_test(lists_of_the_same_items_are_one),
        cmocka_unit_test(lists_of_other_items_are_not_one),
        cmocka_unit_test(only_a_list_that_is_alone_is_added_to),
        cmocka_unit_test(a_value_has_a_name_that_was_given),
        cmocka_unit_test(values_are_read_whatever_the_entry_before_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
