/* Tests of message_escape.c: text of two bytes a letter becomes UTF-8. */
#include "messages/message_escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Letters of one, two and three bytes in UTF-8, at the ends of each length, in either order. */
static void letters_of_utf16_are_those_of_utf8(void **state)
{
    (void)state;
    static const unsigned units[] = {'A', 0x7f, 0x80, 0x7ff, 0x800, 0x663e, 0xffff};
    static const char expected[] = "A\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xe6\x98\xbe\xef\xbf\xbf";
    enum { UNITS = sizeof units / sizeof *units };
    for (int big = 0; big < 2; big++) {
        char bytes[2 * UNITS + 2];
        frag_text text = {0};
        for (size_t i = 0; i <= UNITS; i++) {
            unsigned unit = i == 0 ? 0xfeff : units[i - 1];
            bytes[2 * i + (size_t)big] = (char)(unit & 0xff);
            bytes[2 * i + 1 - (size_t)big] = (char)(unit >> 8);
        }
        assert_true(frag_escape_utf16(bytes, sizeof bytes, &text));
        assert_non_null(strstr(text.bytes, expected));
        frag_text_destroy(&text);
    }
}

/* Half a unit at the end, or a mark and no more, is another kind of text. */
static void whole_units_alone_are_utf16(void **state)
{
    (void)state;
    static const char little[] = "\xff\xfe"
                                 "a\0b\0c";
    static const char big[] = "\xfe\xff\0a\0b\0c";
    static const char bare[] = "a\0b\0c";
    frag_text text = {0};
    for (size_t length = 0; length < 7; length++) {
        bool is_whole = length == 4 || length == 6;
        assert_int_equal(frag_escape_utf16(little, length, &text), is_whole);
        frag_text_destroy(&text);
        assert_int_equal(frag_escape_utf16(big, length, &text), is_whole);
        frag_text_destroy(&text);
        if (length <= sizeof bare) {
            assert_int_equal(frag_escape_utf16(bare, length, &text), is_whole);
            frag_text_destroy(&text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_of_utf16_are_those_of_utf8),
        cmocka_unit_test(whole_units_alone_are_utf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
