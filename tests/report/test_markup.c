/* Tests of markup.c and columns.c: text and numbers of a report, written so that no input breaks
 * the page. */
#include "report/markup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/codec.h"
#include "base/error.h"
#include "base/json.h"
#include "report/columns.h"

#define REPLACED "\xef\xbf\xbd"

static char *written(void (*write)(FILE *stream, const char *text), const char *text)
{
    char *out = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&out, &length);
    assert_non_null(stream);
    write(stream, text);
    fclose(stream);
    return out;
}

static void expect(void (*write)(FILE *stream, const char *text), const char *text,
                   const char *wanted)
{
    char *out = written(write, text);
    assert_string_equal(out, wanted);
    free(out);
}

static void markup_becomes_text(void **state)
{
    (void)state;
    expect(frag_markup_text, "<b a=\"1\" c='2'>&amp;",
           "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
    expect(frag_markup_text, "größe 大 \n", "größe 大 \n");
}

static void what_is_no_text_is_replaced(void **state)
{
    (void)state;
    expect(frag_markup_text,
           "a\xff"
           "b\xc3",
           "a" REPLACED "b" REPLACED);
    expect(frag_markup_text, "\xed\xa0\x80", REPLACED REPLACED REPLACED);
    expect(frag_markup_text, "\x1b[31m\x7f\xc2\x85", REPLACED "[31m" REPLACED REPLACED);
    expect(frag_markup_text, "\xef\xbf\xbf", REPLACED);
}

static void json_cannot_end_its_element(void **state)
{
    (void)state;
    expect(frag_markup_json, "</script><!--", "\"\\u003c/script\\u003e\\u003c!--\"");
    expect(frag_markup_json, "\"\\&\t", "\"\\\"\\\\\\u0026\\u0009\"");
    expect(frag_markup_json, "a\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa",
           "\"a\\u2028\\u2029\xe2\x80\xaa\"");
    expect(frag_markup_json, NULL, "null");
}

/* Every text comes back from a reader of JSON as it was, but for what is no text. */
static void json_is_read_back(void **state)
{
    (void)state;
    uint32_t chance = 1;
    for (int round = 0; round < 2000; round++) {
        char text[32] = "";
        size_t length = 0;
        while (length < sizeof text - 1) {
            chance = chance * 1664525 + 1013904223;
            text[length++] = (char)(1 + (chance >> 24) % 255);
        }
        char *json = written(frag_markup_json, text);
        char object[512];
        frag_error error = {0};
        const char *value = NULL;
        int count = snprintf(object, sizeof object, "{\"a\":%s}", json);
        frag_json *parsed = frag_json_parse(object, (size_t)count, &error);
        assert_non_null(parsed);
        assert_true(frag_json_find_text(parsed, "a", &value));
        assert_null(strpbrk(json, "<>&"));
        frag_json_destroy(parsed);
        free(json);
    }
}

/* ---- columns */

static int digit_of(char letter)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = letter != '\0' ? strchr(digits, letter) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

static size_t undo_base64(const char *text, unsigned char *out)
{
    size_t count = 0;
    uint32_t bits = 0;
    int held = 0;
    for (; *text != '\0'; text++) {
        if (digit_of(*text) < 0)
            continue;
        bits = bits << 6 | (uint32_t)digit_of(*text);
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        out[count++] = (unsigned char)(bits >> held);
    }
    return count;
}

static size_t unpack(const frag_columns *columns, unsigned char *out, size_t out_size)
{
    static unsigned char packed[1 << 16];
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    frag_packed_columns made_small;
    frag_columns_pack(columns, &made_small);
    frag_packed_columns_print(&made_small, stream);
    fclose(stream);
    assert_int_equal(length, frag_packed_columns_printed(&made_small));
    frag_packed_columns_destroy(&made_small);
    assert_true(length < sizeof packed);
    size_t count = undo_base64(text, packed);
    free(text);
    frag_error error = {0};
    frag_decoder *decoder = frag_decoder_create(FRAG_CODEC_GZIP);
    size_t used = 0;
    size_t made = 0;
    bool is_at_end = false;
    assert_true(
        frag_decoder_step(decoder, packed, count, &used, out, out_size, &made, &is_at_end, &error));
    assert_true(is_at_end);
    frag_decoder_destroy(decoder);
    return made;
}

static uint64_t take_varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

static void columns_come_back_as_they_were(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 127, 128, 300, 5, 5, FRAG_COLUMN_MAX, 0, 16384};
    enum { COUNT = sizeof values / sizeof values[0] };
    for (size_t kept = 0; kept <= COUNT; kept++) {
        unsigned char bytes[512];
        frag_columns columns = {0};
        for (size_t i = 0; i < kept; i++)
            frag_columns_add(&columns, values[i]);
        frag_columns_begin(&columns);
        for (size_t i = 0; i < kept; i++)
            frag_columns_add_step(&columns, values[i]);
        size_t count = unpack(&columns, bytes, sizeof bytes);
        const unsigned char *at = bytes;
        for (size_t i = 0; i < kept; i++)
            assert_int_equal(take_varint(&at), values[i]);
        uint64_t last = 0;
        for (size_t i = 0; i < kept; i++) {
            uint64_t step = take_varint(&at);
            last = step % 2 == 0 ? last + step / 2 : last - (step + 1) / 2;
            assert_int_equal(last, values[i]);
        }
        assert_true(at == bytes + count);
        frag_columns_destroy(&columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_becomes_text),
        cmocka_unit_test(what_is_no_text_is_replaced),
        cmocka_unit_test(json_cannot_end_its_element),
        cmocka_unit_test(json_is_read_back),
        cmocka_unit_test(columns_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
