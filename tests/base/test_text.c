/* Tests of text.c: growing text, string tables, spelling suggestions, quoting. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void text_grows_and_stays_terminated(void **state)
{
    (void)state;
    frag_text text = {.bytes = NULL};
    for (int i = 0; i < 1000; i++)
        frag_text_add(&text, "%03d,", i);
    assert_int_equal(text.length, 4000);
    assert_int_equal(strlen(text.bytes), 4000);
    assert_memory_equal(text.bytes + 3996, "999,", 4);
    frag_text_clear(&text);
    assert_string_equal(text.bytes, "");
    frag_text_add_bytes(&text, "a\0b", 3);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.bytes, "a\0b", 4);
    frag_text_destroy(&text);
    assert_null(text.bytes);
}

static void equal_bytes_have_equal_ids_in_order_of_first_use(void **state)
{
    (void)state;
    frag_strings strings = {.count = 0};
    char name[16];
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++) {
            int length = snprintf(name, sizeof name, "%x", i);
            assert_int_equal(frag_strings_add(&strings, name, (size_t)length), i);
        }
    assert_int_equal(strings.count, 5000);
    assert_string_equal(frag_strings_get(&strings, 255), "ff");
    uint32_t id = 0;
    assert_true(frag_strings_find(&strings, "1387", 4, &id));
    assert_int_equal(id, 4999);
    assert_false(frag_strings_find(&strings, "1388", 4, &id));
    frag_strings_destroy(&strings);
}

static void any_byte_may_stand_in_a_string(void **state)
{
    (void)state;
    frag_strings strings = {.count = 0};
    uint32_t id = 9;
    assert_false(frag_strings_find(&strings, "", 0, &id));
    assert_int_equal(frag_strings_add(&strings, "", 0), 0);
    assert_int_equal(frag_strings_add(&strings, "\0", 1), 1);
    assert_int_equal(frag_strings_add(&strings, "a\0b", 3), 2);
    assert_int_equal(frag_strings_add(&strings, "a\0c", 3), 3);
    assert_int_equal(frag_strings_add(&strings, "a", 1), 4);
    assert_int_equal(frag_strings_length(&strings, 0), 0);
    assert_int_equal(frag_strings_length(&strings, 1), 1);
    assert_int_equal(frag_strings_length(&strings, 3), 3);
    assert_memory_equal(frag_strings_get(&strings, 3), "a\0c", 4);
    frag_strings_destroy(&strings);
}

static void suggests_the_nearest_name_and_nothing_far(void **state)
{
    (void)state;
    static const char *const names[] = {"best-fit", "first-fit", "pytorch", "tlsf", "run", "ruin"};
    size_t count = sizeof names / sizeof names[0];
    assert_string_equal(frag_nearest_name("bestfit", names, count), "best-fit");
    assert_string_equal(frag_nearest_name("pytroch", names, count), "pytorch");
    assert_string_equal(frag_nearest_name("tlfs", names, 3) == NULL ? "-" : "+", "-");
    assert_string_equal(frag_nearest_name("rn", names, count), "run");
    assert_string_equal(frag_nearest_name("ruin", names, count), "ruin");
    assert_null(frag_nearest_name("", names, 4));
    assert_null(frag_nearest_name("completely-else", names, count));
    char longer[100] = {0};
    memset(longer, 'a', 99);
    assert_null(frag_nearest_name(longer, names, count));
}

static void no_control_character_is_left_in_plain_text(void **state)
{
    (void)state;
    char text[] = "a\nb\x1b[31m\x7f\xc2\x9b"
                  "c \xc3\xa9 \xc2\xa0.";
    frag_text_make_plain(text);
    assert_string_equal(text, "a?b?[31m???c \xc3\xa9 \xc2\xa0.");
    char cut[] = "\xc2";
    frag_text_make_plain(cut);
    assert_string_equal(cut, "\xc2");
}

static void words_of_a_command_line_are_quoted_where_they_must_be(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a/b_c.fgt", "a/b_c.fgt"}, {"pytorch:x=1,y", "pytorch:x=1,y"}, {"", "''"},
        {"my run", "'my run'"},     {"[1:2,>:8]", "'[1:2,>:8]'"},       {"it's", "'it'\\''s'"},
        {"100%", "'100%'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_text text = {.bytes = NULL};
        frag_text_add_word(&text, cases[i][0]);
        assert_string_equal(text.bytes, cases[i][1]);
        frag_text_destroy(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows_and_stays_terminated),
        cmocka_unit_test(equal_bytes_have_equal_ids_in_order_of_first_use),
        cmocka_unit_test(any_byte_may_stand_in_a_string),
        cmocka_unit_test(no_control_character_is_left_in_plain_text),
        cmocka_unit_test(words_of_a_command_line_are_quoted_where_they_must_be),
        cmocka_unit_test(suggests_the_nearest_name_and_nothing_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
