/* Tests of pickle_write.c: pickles written and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "traces/pickle/pickle.h"
#include "traces/pickle/pickle_write.h"

static char *bytes;
static size_t byte_count;
static frag_pickle_value root;

static frag_pickle_writer begin(void)
{
    frag_pickle_writer writer;
    FILE *stream = open_memstream(&bytes, &byte_count);
    assert_non_null(stream);
    frag_pickle_writer_begin(&writer, stream);
    return writer;
}

/* Ends the pickle and reads it back. */
static frag_pickle *end(frag_pickle_writer *writer)
{
    frag_pickle *pickle = frag_pickle_create(NULL, 0);
    frag_error error = {0};
    frag_pickle_writer_end(writer);
    assert_int_equal(fclose(writer->stream), 0);
    frag_input *input = frag_input_from_memory(bytes, byte_count, "memory");
    if (!frag_pickle_read(pickle, input, NULL, NULL, &root, &error))
        fail_msg("%s", error.sentence);
    frag_input_close(input);
    free(bytes);
    return pickle;
}

static void integers_come_back_whatever_their_size(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {
        0,          255,        256,          65535,        65536,     INT32_MAX,  2147483648u,
        4294967295, 4294967296, 549755813887, 549755813888, INT64_MAX, 1ull << 63, UINT64_MAX};
    size_t count = sizeof numbers / sizeof numbers[0];
    frag_pickle_writer writer = begin();
    frag_pickle_list_begin(&writer);
    for (size_t i = 0; i < count; i++) {
        frag_pickle_list_item(&writer);
        frag_pickle_put_unsigned(&writer, numbers[i]);
    }
    frag_pickle_list_end(&writer);
    frag_pickle *pickle = end(&writer);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value item = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        assert_true(frag_pickle_next(pickle, &walk, &item));
        assert_true(frag_pickle_unsigned(pickle, item, &number));
        assert_true(number == numbers[i]);
    }
    assert_false(frag_pickle_next(pickle, &walk, &item));
    frag_pickle_destroy(pickle);
}

static void negative_integers_keep_their_sign(void **state)
{
    (void)state;
    static const int64_t numbers[] = {-1,         INT32_MIN, INT32_MIN - (int64_t)1, INT64_MIN, 7,
                                      5000000000, INT64_MAX};
    static const long bytes_of[] = {5, 5, 10, 10, 2, 7, 10}; /* with the code before */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t number = 0;
        frag_pickle_writer writer = begin();
        long before = ftell(writer.stream);
        frag_pickle_put_signed(&writer, numbers[i]);
        assert_int_equal(ftell(writer.stream) - before, bytes_of[i]);
        frag_pickle *pickle = end(&writer);
        assert_true(frag_pickle_signed(pickle, root, &number));
        assert_true(number == numbers[i]);
        frag_pickle_destroy(pickle);
    }
}

static void dicts_hold_truths_fractions_and_pairs(void **state)
{
    (void)state;
    frag_pickle_writer writer = begin();
    frag_pickle_dict_begin(&writer);
    frag_pickle_put_text(&writer, "yes");
    frag_pickle_put_bool(&writer, true);
    frag_pickle_put_text(&writer, "share");
    frag_pickle_put_float(&writer, 0.1);
    frag_pickle_put_text(&writer, "pair");
    frag_pickle_put_pair(&writer, 3, UINT64_MAX);
    frag_pickle_dict_end(&writer);
    frag_pickle *pickle = end(&writer);
    assert_int_equal(frag_pickle_kind_of(pickle, root), FRAG_PICKLE_DICT);
    assert_int_equal(frag_pickle_item_count(pickle, root), 6);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value item = 0;
    bool is_true = false;
    double share = 0;
    frag_pickle_next(pickle, &walk, &item);
    frag_pickle_next(pickle, &walk, &item);
    assert_true(frag_pickle_bool(pickle, item, &is_true) && is_true);
    frag_pickle_next(pickle, &walk, &item);
    frag_pickle_next(pickle, &walk, &item);
    assert_true(frag_pickle_float(pickle, item, &share) && share == 0.1);
    frag_pickle_next(pickle, &walk, &item);
    frag_pickle_next(pickle, &walk, &item);
    assert_int_equal(frag_pickle_kind_of(pickle, item), FRAG_PICKLE_TUPLE);
    assert_int_equal(frag_pickle_item_count(pickle, item), 2);
    frag_pickle_destroy(pickle);
}

/* Lists longer than one batch, and more memo numbers than one byte holds. */
static void long_lists_come_back_whole(void **state)
{
    (void)state;
    enum { COUNT = 2500 };
    frag_pickle_writer writer = begin();
    frag_pickle_list_begin(&writer);
    for (unsigned i = 0; i < COUNT; i++) {
        char text[16];
        snprintf(text, sizeof text, "name %u", i % 1250);
        frag_pickle_list_item(&writer);
        frag_pickle_put_text(&writer, text);
    }
    frag_pickle_list_end(&writer);
    frag_pickle *pickle = end(&writer);
    assert_int_equal(frag_pickle_item_count(pickle, root), COUNT);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value item = 0;
    for (unsigned i = 0; frag_pickle_next(pickle, &walk, &item); i++) {
        char text[16];
        uint32_t id = 0;
        snprintf(text, sizeof text, "name %u", i % 1250);
        assert_true(frag_pickle_string(pickle, item, &id));
        assert_string_equal(frag_pickle_text(pickle, id, NULL), text);
    }
    frag_pickle_destroy(pickle);
}

/* One byte says how long a text of up to 255 bytes is, four how long a longer one. */
static void texts_of_any_length_come_back(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        long bytes;
    } cases[] = {{1, 3}, {255, 257}, {256, 261}, {70000, 70005}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = frag_alloc(cases[i].length + 1, 1);
        memset(text, 'x', cases[i].length);
        frag_pickle_writer writer = begin();
        long before = ftell(writer.stream);
        frag_pickle_put_text(&writer, text);
        assert_in_range(ftell(writer.stream) - before, cases[i].bytes, cases[i].bytes + 1);
        frag_pickle *pickle = end(&writer);
        uint32_t id = 0;
        assert_true(frag_pickle_string(pickle, root, &id));
        assert_string_equal(frag_pickle_text(pickle, id, NULL), text);
        frag_pickle_destroy(pickle);
        frag_free(text);
    }
}

/* The viewer in the browser takes the items of a batch as arguments of one call. */
static void long_lists_are_written_in_batches_of_a_thousand(void **state)
{
    (void)state;
    frag_pickle_writer writer = begin();
    frag_pickle_list_begin(&writer);
    for (unsigned i = 0; i < 2500; i++) {
        frag_pickle_list_item(&writer);
        frag_pickle_put_unsigned(&writer, 1);
    }
    long before = ftell(writer.stream);
    /* Head of the pickle and of the list, two bytes an item, and twice the change of batches. */
    assert_int_equal(before, 2 + 2 + 2 * 2500 + 2 * 2);
    frag_pickle_list_end(&writer);
    frag_pickle_destroy(end(&writer));
}

/* Each list counts its own: one within another, and the next at its place, begin anew. */
static void lists_in_lists_have_batches_of_their_own(void **state)
{
    (void)state;
    enum { LISTS = 3, ITEMS = 700 };
    frag_pickle_writer writer = begin();
    frag_pickle_list_begin(&writer);
    for (unsigned i = 0; i < LISTS; i++) {
        frag_pickle_list_item(&writer);
        frag_pickle_list_begin(&writer);
        for (unsigned k = 0; k < ITEMS; k++) {
            frag_pickle_list_item(&writer);
            frag_pickle_put_unsigned(&writer, 1);
        }
        frag_pickle_list_end(&writer);
    }
    /* Of each inner list its head, two bytes an item, and its end: no batch is full. */
    assert_int_equal(ftell(writer.stream), 2 + 2 + LISTS * (2 + 2 * ITEMS + 1));
    frag_pickle_list_end(&writer);
    frag_pickle_destroy(end(&writer));
}

static void what_is_shared_is_written_once(void **state)
{
    (void)state;
    frag_pickle_writer writer = begin();
    frag_pickle_list_begin(&writer);
    frag_pickle_list_item(&writer);
    frag_pickle_list_begin(&writer);
    frag_pickle_list_item(&writer);
    frag_pickle_put_text(&writer, "a text that is much longer than two bytes");
    frag_pickle_list_end(&writer);
    uint32_t memo = frag_pickle_memoize(&writer);
    long before = ftell(writer.stream);
    for (unsigned i = 0; i < 100; i++) {
        frag_pickle_list_item(&writer);
        frag_pickle_put_again(&writer, memo);
    }
    assert_int_equal(ftell(writer.stream) - before, 200);
    frag_pickle_list_end(&writer);
    frag_pickle *pickle = end(&writer);
    frag_pickle_walk walk = frag_pickle_begin(pickle, root);
    frag_pickle_value item = 0;
    uint64_t first = 0;
    assert_true(frag_pickle_next(pickle, &walk, &item));
    assert_true(frag_pickle_object_of(pickle, item, &first));
    while (frag_pickle_next(pickle, &walk, &item)) {
        uint64_t object = 0;
        assert_true(frag_pickle_object_of(pickle, item, &object));
        assert_int_equal(object, first);
    }
    frag_pickle_destroy(pickle);
}

static void text_is_always_utf8(void **state)
{
    (void)state;
    static const char odd[] = "a\xff\xc3\xa9\xed\xa0\x80\0z";
    size_t length = 0;
    uint32_t id = 0;
    frag_pickle_writer writer = begin();
    frag_pickle_put_bytes(&writer, odd, sizeof odd - 1);
    frag_pickle *pickle = end(&writer);
    assert_true(frag_pickle_string(pickle, root, &id));
    const char *text = frag_pickle_text(pickle, id, &length);
    assert_int_equal(length, sizeof odd - 1);
    assert_memory_equal(text, "a?\xc3\xa9???\0z", length);
    frag_pickle_destroy(pickle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_come_back_whatever_their_size),
        cmocka_unit_test(negative_integers_keep_their_sign),
        cmocka_unit_test(dicts_hold_truths_fractions_and_pairs),
        cmocka_unit_test(long_lists_come_back_whole),
        cmocka_unit_test(texts_of_any_length_come_back),
        cmocka_unit_test(long_lists_are_written_in_batches_of_a_thousand),
        cmocka_unit_test(lists_in_lists_have_batches_of_their_own),
        cmocka_unit_test(what_is_shared_is_written_once),
        cmocka_unit_test(text_is_always_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
