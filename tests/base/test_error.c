/* Tests of error.c: what an error holds and how it is printed. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_failure_returns_false_and_says_what(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    assert_false(frag_fail(&error, FRAG_E_USAGE, "%d is not %s", 3, "four"));
    assert_int_equal(error.code, FRAG_E_USAGE);
    assert_string_equal(error.sentence, "3 is not four");
    assert_false(frag_fail(NULL, FRAG_E_INPUT, "nobody listens"));
    assert_false(frag_fail_at(NULL, 3, "nobody listens"));
    assert_false(frag_fail_line(NULL, 3, 4, "nobody listens"));
    assert_false(frag_error_in(NULL, "nowhere"));
}

static const char *text_of(const frag_error *error)
{
    static char text[1024];
    frag_error_text(error, text, sizeof text);
    return text;
}

static void the_text_has_what_is_known_of_the_position(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    frag_fail(&error, FRAG_E_INPUT, "is wrong");
    assert_string_equal(text_of(&error), "is wrong");
    frag_error_in(&error, "a.csv");
    assert_string_equal(text_of(&error), "a.csv: is wrong");
    frag_fail_line(&error, 17, 9, "is wrong");
    assert_string_equal(text_of(&error), "a.csv:17:9: is wrong");
    frag_fail_line(&error, 17, 0, "is wrong");
    assert_string_equal(text_of(&error), "a.csv:17: is wrong");
    frag_error binary = {.code = FRAG_E_NONE};
    frag_fail_at(&binary, 12345678901u, "is wrong");
    assert_string_equal(text_of(&binary), "byte 12345678901: is wrong");
    frag_error_in(&binary, "b.fgt");
    assert_string_equal(text_of(&binary), "b.fgt: byte 12345678901: is wrong");
}

static void the_first_place_that_is_named_stays(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    frag_error_in(&error, "inner");
    frag_error_in(&error, "outer");
    assert_string_equal(error.where, "inner");
}

static void input_that_is_quoted_cannot_move_the_cursor_or_break_the_line(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    frag_fail(&error, FRAG_E_INPUT, "'%s' is odd", "a\x1b[2Jb\nc\x7f");
    assert_string_equal(error.sentence, "'a?[2Jb?c?' is odd");
}

static void a_long_sentence_or_place_is_cut_and_stays_terminated(void **state)
{
    (void)state;
    static char longer[4096];
    memset(longer, 'x', sizeof longer - 1);
    frag_error error = {.code = FRAG_E_NONE};
    frag_fail(&error, FRAG_E_INPUT, "%s", longer);
    frag_error_in(&error, longer);
    assert_int_equal(strlen(error.sentence), sizeof error.sentence - 1);
    assert_int_equal(strlen(error.where), sizeof error.where - 1);
    char text[40];
    frag_error_text(&error, text, sizeof text);
    assert_int_equal(strlen(text), sizeof text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_returns_false_and_says_what),
        cmocka_unit_test(the_text_has_what_is_known_of_the_position),
        cmocka_unit_test(the_first_place_that_is_named_stays),
        cmocka_unit_test(input_that_is_quoted_cannot_move_the_cursor_or_break_the_line),
        cmocka_unit_test(a_long_sentence_or_place_is_cut_and_stays_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
