/* Tests of pickle.c: reading pickles, hostile ones included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "traces/pickle/pickle.h"

static frag_pickle_value root;
static frag_error error;

/* The tree of some bytes, or NULL with error filled. */
static frag_pickle *read_bytes(const void *bytes, size_t count)
{
    static const char *const names[] = {"first", "second"};
    frag_pickle *pickle = frag_pickle_create(names, 2);
    frag_input *input = frag_input_from_memory(bytes, count, "memory");
    error = (frag_error){0};
    bool is_read = frag_pickle_read(pickle, input, NULL, NULL, &root, &error);
    frag_input_close(input);
    if (is_read)
        return pickle;
    assert_int_equal(error.code, FRAG_E_INPUT);
    frag_pickle_destroy(pickle);
    return NULL;
}

#define READ(literal) read_bytes(literal, sizeof(literal) - 1)

static void expect_integer(const void *bytes, size_t count, int64_t expected)
{
    frag_pickle *pickle = read_bytes(bytes, count);
    assert_non_null(pickle);
    int64_t number = 0;
    uint64_t positive = 0;
    double ratio = 0;
    assert_int_equal(frag_pickle_kind_of(pickle, root), FRAG_PICKLE_INTEGER);
    assert_true(frag_pickle_signed(pickle, root, &number));
    assert_true(number == expected);
    assert_true(frag_pickle_float(pickle, root, &ratio));
    assert_int_equal(frag_pickle_unsigned(pickle, root, &positive), expected >= 0);
    frag_pickle_destroy(pickle);
}

#define EXPECT_INTEGER(literal, expected) expect_integer(literal, sizeof(literal) - 1, expected)

static void reads_integers_of_every_length(void **state)
{
    (void)state;
    EXPECT_INTEGER("\x80\x04K\xff.", 255);
    EXPECT_INTEGER("\x80\x04M\x34\x12.", 0x1234);
    EXPECT_INTEGER("\x80\x04J\xff\xff\xff\x7f.", INT32_MAX);
    EXPECT_INTEGER("\x80\x04J\xff\xff\xff\xff.", -1);
    EXPECT_INTEGER("\x80\x04\x8a\x00.", 0);
    EXPECT_INTEGER("\x80\x04\x8a\x01\xff.", -1);
    EXPECT_INTEGER("\x80\x04\x8a\x02\x00\x80.", -32768);
    EXPECT_INTEGER("\x80\x04\x8a\x06\x00\x00\x00\x00\x00\x20.", 0x200000000000);
    EXPECT_INTEGER("\x80\x04\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", INT64_MAX);
    EXPECT_INTEGER("\x80\x04\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", INT64_MIN);
}

static void reads_unsigned_integers_of_nine_bytes(void **state)
{
    (void)state;
    frag_pickle *pickle = READ("\x80\x04\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.");
    uint64_t number = 0;
    assert_non_null(pickle);
    assert_true(frag_pickle_unsigned(pickle, root, &number));
    assert_true(number == UINT64_MAX);
    frag_pickle_destroy(pickle);
    assert_null(READ("\x80\x04\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x01."));
    assert_null(READ("\x80\x04\x8a\x0a\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01."));
}

static void reads_floats_truths_and_strings(void **state)
{
    (void)state;
    frag_pickle *pickle =
        READ("\x80\x02(G\x3f\xe0\x00\x00\x00\x00\x00\x00\x88\x89NX\x05\x00\x00\x00"
             "first\x8c\x03new\x8d\x03\x00\x00\x00\x00\x00\x00\x00newt.");
    assert_non_null(pickle);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value items[8];
    size_t count = 0;
    while (frag_pickle_next(pickle, &walk, &items[count]))
        count++;
    assert_int_equal(count, 7);
    assert_int_equal(frag_pickle_item_count(pickle, root), 7);
    double ratio = 0;
    bool is_true = false;
    uint32_t id = 9;
    uint32_t same = 9;
    assert_true(frag_pickle_float(pickle, items[0], &ratio) && ratio == 0.5);
    assert_true(frag_pickle_bool(pickle, items[1], &is_true) && is_true);
    assert_true(frag_pickle_bool(pickle, items[2], &is_true) && !is_true);
    assert_int_equal(frag_pickle_kind_of(pickle, items[3]), FRAG_PICKLE_NONE);
    assert_true(frag_pickle_string(pickle, items[4], &id) && id == 0);
    assert_true(frag_pickle_string(pickle, items[5], &id) &&
                frag_pickle_string(pickle, items[6], &same));
    assert_int_equal(id, same);
    assert_string_equal(frag_pickle_text(pickle, id, NULL), "new");
    assert_false(frag_pickle_string(pickle, items[0], &id));
    frag_pickle_destroy(pickle);
}

/* A list that is named, by all kinds of names, while and after it is filled. */
static void aliases_what_is_named(void **state)
{
    (void)state;
    static const char *const files[] = {"\x80\x04]\x94(h\x00K\x07"
                                        "e.",
                                        "\x80\x02]q\x01(h\x01K\x07"
                                        "e.",
                                        "\x80\x02]r\x02\x00\x00\x00(j\x02\x00\x00\x00K\x07"
                                        "e."};
    static const size_t counts[] = {11, 12, 18};
    for (size_t i = 0; i < 3; i++) {
        frag_pickle *pickle = read_bytes(files[i], counts[i]);
        assert_non_null(pickle);
        frag_pickle_walk walk = frag_pickle_begin(pickle, root);
        frag_pickle_value item = 0;
        assert_true(frag_pickle_next(pickle, &walk, &item));
        assert_true(item == root);
        assert_int_equal(pickle->object_count, 1);
        frag_pickle_destroy(pickle);
    }
}

static void joins_batches_of_one_container(void **state)
{
    (void)state;
    frag_pickle *pickle = READ("\x80\x04](K\x00K\x01"
                               "e]a(K\x02K\x03"
                               "eK\x04"
                               "a(e.");
    assert_non_null(pickle);
    assert_int_equal(frag_pickle_item_count(pickle, root), 6);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value item = 0;
    uint64_t number = 0;
    for (uint64_t i = 0; i < 6; i++) {
        assert_true(frag_pickle_next(pickle, &walk, &item));
        if (i == 2)
            assert_int_equal(frag_pickle_kind_of(pickle, item), FRAG_PICKLE_LIST);
        else
            assert_true(frag_pickle_unsigned(pickle, item, &number) &&
                        number == (i < 2 ? i : i - 1));
    }
    assert_false(frag_pickle_next(pickle, &walk, &item));
    assert_false(frag_pickle_next(pickle, &walk, &item));
    frag_pickle_destroy(pickle);
}

static bool take_first(void *context, const frag_pickle *pickle, const frag_pickle_value *pairs,
                       size_t pair_count, bool has_last_keys, uint32_t *record)
{
    (void)has_last_keys;
    uint32_t *count = context;
    uint32_t name = 9;
    if (pair_count != 1 || !frag_pickle_string(pickle, pairs[0], &name) || name != 0)
        return false;
    *record = 40 + (*count)++;
    return true;
}

static void hands_dictionaries_to_the_visitor(void **state)
{
    (void)state;
    static const char *const names[] = {"first"};
    static const char bytes[] = "\x80\x04](}(\x8c\x05"
                                "firstK\x01u}(\x8c\x05otherK\x01u}\x8c\x05"
                                "firstK\x02se.";
    frag_pickle *pickle = frag_pickle_create(names, 1);
    frag_input *input = frag_input_from_memory(bytes, sizeof bytes - 1, "memory");
    uint32_t count = 0;
    error = (frag_error){0};
    assert_true(frag_pickle_read(pickle, input, take_first, &count, &root, &error));
    frag_input_close(input);
    assert_int_equal(count, 2);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value item = 0;
    uint64_t record = 0;
    assert_true(frag_pickle_next(pickle, &walk, &item) &&
                frag_pickle_record(pickle, item, &record));
    assert_int_equal(record, 40);
    assert_int_equal(frag_pickle_kind_of(pickle, item), FRAG_PICKLE_RECORD);
    assert_true(frag_pickle_next(pickle, &walk, &item) &&
                !frag_pickle_record(pickle, item, &record));
    assert_true(frag_pickle_next(pickle, &walk, &item) &&
                frag_pickle_record(pickle, item, &record));
    assert_int_equal(record, 41);
    frag_pickle_destroy(pickle);
}

static void executes_nothing(void **state)
{
    (void)state;
    assert_null(READ("\x80\x04"
                     "cos\nsystem\n(X\x02\x00\x00\x00lstR."));
    assert_non_null(strstr(error.sentence, "0x63 (GLOBAL) is refused"));
    assert_non_null(strstr(error.sentence, "nothing was executed"));
    assert_true(error.has_offset);
    assert_int_equal(error.offset, 2);
    static const unsigned char refused[] = {'R',  'b',  'i',  'o',  'P',  'Q',  0x81, 0x92, 0x93,
                                            0x82, 0x83, 0x84, '0',  '1',  '2',  'I',  'L',  'S',
                                            'V',  'U',  'T',  'B',  'C',  0x8b, 0x8e, 0x8f, 0x90,
                                            0x91, 0x96, 0x97, 0x98, 0x80, 0x00, 0xff};
    for (size_t i = 0; i < sizeof refused; i++) {
        unsigned char bytes[] = {0x80, 4, ']', refused[i], '.'};
        assert_null(read_bytes(bytes, sizeof bytes));
        assert_non_null(strstr(error.sentence, "is refused"));
        assert_int_equal(error.offset, 3);
    }
}

/* A file has fewer names than bytes: the name that an operation gives may be as large as its place
 * in the file, which is 4 here. Names that were left out, and the one behind the last, are
 * nobody's.
 */
static void names_reach_as_far_as_the_file(void **state)
{
    (void)state;
    EXPECT_INTEGER("\x80\x04K\x07q\x04.", 7);
    assert_null(READ("\x80\x04K\x07q\x05."));
    assert_non_null(strstr(error.sentence, "cannot hold as many"));
    assert_null(READ("\x80\x04K\x07q\x03h\x02."));
    assert_non_null(strstr(error.sentence, "value 2, which has not been named"));
    assert_null(READ("\x80\x04K\x07q\x00h\x01."));
    assert_non_null(strstr(error.sentence, "value 1, which has not been named"));
}

/* 7 and 8 get one name in turn, which then is that of 8. */
static void a_name_may_be_given_again(void **state)
{
    (void)state;
    static const int64_t expected[] = {7, 8, 8};
    frag_pickle *pickle = READ("\x80\x04K\x07q\x00K\x08q\x00h\x00\x87.");
    assert_non_null(pickle);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    for (int i = 0; i < 3; i++) {
        frag_pickle_value item = 0;
        int64_t number = 0;
        assert_true(frag_pickle_next(pickle, &walk, &item));
        assert_true(frag_pickle_signed(pickle, item, &number));
        assert_int_equal(number, expected[i]);
    }
    frag_pickle_destroy(pickle);
}

static void rejects_what_does_not_fit_together(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        const char *part;
    } cases[] = {
        {"\x80\x04K\x01K\x02.", "2 values"},
        {"\x80\x04K\x01"
         "e.",
         "no beginning"},
        {"\x80\x04(K\x01"
         "e.",
         "too few values"},
        {"\x80\x04}(K\x01"
         "e.",
         "adds to a dictionary where a list should be"},
        {"\x80\x04](K\x01K\x02u.", "adds to a list where a dictionary should be"},
        {"\x80\x04K\x05K\x01"
         "a.",
         "adds to an integer where a list"},
        {"\x80\x04}(K\x01u.", "a key without a value"},
        {"\x80\x04h\x01.", "has not been named"},
        {"\x80\x04\x94.", "to no value"},
        {"\x80\x04K\x01\x86.", "too few values"},
        {"\x80\x04](.", "stops with"},
        {"\x80\x04]r\xff\xff\xff\x7f.", "cannot hold as many"},
        {"\x80\x04X\xff\xff\xff\x7f.", "a string of 2147483647 bytes"},
        {"\x80\x04\x8c\x09short.", "ends before"},
        {"\x80\x01].", "protocol 1"},
        {"\x80\x06].", "protocol 6"},
        {"(lp0\n.", "does not begin"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(read_bytes(cases[i].bytes, strlen(cases[i].bytes)));
        if (strstr(error.sentence, cases[i].part) == NULL)
            fail_msg("case %u: '%s' does not say '%s'", (unsigned)i, error.sentence, cases[i].part);
    }
    assert_null(READ("\x80\x04].]"));
    assert_non_null(strstr(error.sentence, "goes on"));
}

static void bounds_nesting_and_open_values(void **state)
{
    (void)state;
    size_t count = (size_t)4 << 20;
    unsigned char *bytes = frag_alloc(count, 1);
    memset(bytes, '(', count);
    bytes[0] = 0x80;
    bytes[1] = 4;
    assert_null(read_bytes(bytes, count));
    assert_non_null(strstr(error.sentence, "nested"));
    memset(bytes + 2, ']', count - 2);
    assert_null(read_bytes(bytes, count));
    assert_non_null(strstr(error.sentence, "more containers"));
    memset(bytes + 2, 'N', count - 2);
    assert_null(read_bytes(bytes, count));
    assert_non_null(strstr(error.sentence, "open values"));
    free(bytes);
}

static frag_pickle_value record(uint64_t number)
{
    return frag_pickle_make(FRAG_PICKLE_TAG_RECORD, number);
}

/* Records that count up take no place each, whatever else is in the list, and come back in order.
 */
static void records_that_count_up_are_counted(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {4, 5, 6, 8, 9, 9, 2, 1};
    frag_pickle *pickle = frag_pickle_create(NULL, 0);
    frag_pickle_value list = frag_pickle_add_container(pickle, FRAG_PICKLE_LIST);
    frag_pickle_value taken = frag_pickle_add_container(pickle, FRAG_PICKLE_RECORD);
    uint64_t object = frag_pickle_content_of(list);
    pickle->objects[frag_pickle_content_of(taken)].first = 3;
    frag_pickle_value items[1000];
    for (uint64_t batch = 0; batch < 50; batch++) {
        for (uint64_t i = 0; i < 1000; i++)
            items[i] = record(3 + batch * 1000 + i);
        if (batch == 0)
            items[0] = taken;
        frag_pickle_add_items(pickle, object, items, 1000);
    }
    assert_true(pickle->pool_count < 10);
    for (size_t i = 0; i < 8; i++) {
        items[0] = record(numbers[i]);
        frag_pickle_add_items(pickle, object, items, 1);
    }
    items[0] = record(2);
    items[1] = frag_pickle_none();
    items[2] = record(3);
    frag_pickle_add_items(pickle, object, items, 3);
    assert_int_equal(frag_pickle_item_count(pickle, list), 50011);
    frag_pickle_walk walk = frag_pickle_begin(pickle, list);
    frag_pickle_value item = 0;
    uint64_t number = 0;
    for (uint64_t i = 0; i < 50008; i++) {
        assert_true(frag_pickle_next(pickle, &walk, &item));
        assert_true(frag_pickle_record(pickle, item, &number));
        assert_int_equal(number, i < 50000 ? 3 + i : numbers[i - 50000]);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(frag_pickle_next(pickle, &walk, &item));
        assert_true(item == items[i]);
    }
    assert_false(frag_pickle_next(pickle, &walk, &item));
    frag_pickle_destroy(pickle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_integers_of_every_length),
        cmocka_unit_test(reads_unsigned_integers_of_nine_bytes),
        cmocka_unit_test(reads_floats_truths_and_strings),
        cmocka_unit_test(aliases_what_is_named),
        cmocka_unit_test(joins_batches_of_one_container),
        cmocka_unit_test(records_that_count_up_are_counted),
        cmocka_unit_test(hands_dictionaries_to_the_visitor),
        cmocka_unit_test(executes_nothing),
        cmocka_unit_test(names_reach_as_far_as_the_file),
        cmocka_unit_test(a_name_may_be_given_again),
        cmocka_unit_test(rejects_what_does_not_fit_together),
        cmocka_unit_test(bounds_nesting_and_open_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
