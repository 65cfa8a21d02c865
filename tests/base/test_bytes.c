/* Tests of bytes.c: reading and printing sizes, counts and ratios. */
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void accepts_sizes_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"64KiB", 65536},
        {"64 KiB", 65536},
        {"1.5GiB", 1610612736},
        {"2MB", 2000000},
        {"3kB", 3000},
        {"3KB", 3000},
        {"24GiB", 24 * FRAG_GIB},
        {"1TiB", (uint64_t)1 << 40},
        {"1.5PiB", (uint64_t)3 << 49},
        {"2PB", 2000000000000000},
        {"0.1KiB", 102}, /* 102.4, rounded down to the byte */
        {"0.999999999999GiB", 1073741822},
        {"18446744073709551615", UINT64_MAX},
        {"16777215.99999TiB", 18446744073698556499u},
        {"unlimited", FRAG_UNLIMITED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 1;
        frag_error error = {.code = FRAG_E_NONE};
        if (!frag_bytes_parse(cases[i].text, &bytes, &error))
            fail_msg("%s: %s", cases[i].text, error.sentence);
        if (bytes != cases[i].bytes)
            fail_msg("%s: got %llu", cases[i].text, (unsigned long long)bytes);
    }
}

static void rejects_what_could_be_misread(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "K",
        "64K",
        "64k",
        "1M",
        "2G",
        "1e6",
        "0x10",
        "-1",
        "+1",
        "1,000",
        "1.",
        ".5GiB",
        "1.5",
        "1.5B",
        "1 000",
        " 1",
        "1 ",
        "1kib",
        "1gb",
        "1GiBs",
        "1.5.5GiB",
        "18446744073709551616",
        "16777216TiB",
        "16384PiB",
        "1P",
        "99999999999999999999",
        "nan",
        "Unlimited",
        "18446744073709551615.9KiB",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 77;
        frag_error error = {.code = FRAG_E_NONE};
        if (frag_bytes_parse(cases[i], &bytes, &error))
            fail_msg("'%s' was read as %llu", cases[i], (unsigned long long)bytes);
        assert_int_equal(error.code, FRAG_E_USAGE);
        assert_true(error.sentence[0] != '\0');
    }
}

static void a_lone_letter_is_answered_with_both_readings(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    frag_error error = {.code = FRAG_E_NONE};
    assert_false(frag_bytes_parse("64K", &bytes, &error));
    assert_string_equal(error.sentence,
                        "'64K' could mean 1000s or 1024s; write KiB (1024s) or kB (1000s)");
}

static void counts_are_whole_and_in_range(void **state)
{
    (void)state;
    uint64_t count = 0;
    frag_error error = {.code = FRAG_E_NONE};
    assert_true(frag_count_parse("0", 0, 9, &count, &error));
    assert_int_equal(count, 0);
    assert_true(frag_count_parse("007", 0, 9, &count, &error));
    assert_int_equal(count, 7);
    assert_true(frag_count_parse("18446744073709551615", 0, UINT64_MAX, &count, &error));
    assert_true(count == UINT64_MAX);
    static const char *const wrong[] = {"",   "10",  "-1",  "+1",  " 1",
                                        "1 ", "1.0", "1e0", "0x1", "18446744073709551617"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (frag_count_parse(wrong[i], 0, 9, &count, &error))
            fail_msg("'%s' was accepted", wrong[i]);
    assert_false(frag_count_parse("18446744073709551616", 0, UINT64_MAX, &count, &error));
    assert_false(frag_count_parse("0", 1, 9, &count, &error));
}

static void ratios_are_plain_decimals_in_range(void **state)
{
    (void)state;
    double ratio = 0;
    frag_error error = {.code = FRAG_E_NONE};
    assert_true(frag_ratio_parse("0.8", 0, 1, &ratio, &error));
    assert_true(ratio > 0.7999 && ratio < 0.8001);
    assert_true(frag_ratio_parse("1e-3", 0, 1, &ratio, &error));
    assert_true(ratio > 0.0009 && ratio < 0.0011);
    assert_true(frag_ratio_parse(".5", 0, 1, &ratio, &error));
    static const char *const wrong[] = {"",      "1.1", "-0.1", "+0.5", "0x1p-1", "nan", "inf",
                                        "1e999", "0,5", "0.5 ", " 0.5", "0.5x",   "1e",  "."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (frag_ratio_parse(wrong[i], 0, 1, &ratio, &error))
            fail_msg("'%s' was accepted", wrong[i]);
}

static void tables_show_two_digits_and_a_unit(void **state)
{
    (void)state;
    char text[FRAG_BYTES_TEXT_MAX];
    assert_string_equal(frag_bytes_text(0, text), "0 B");
    assert_string_equal(frag_bytes_text(1023, text), "1023 B");
    assert_string_equal(frag_bytes_text(1024, text), "1.00 KiB");
    assert_string_equal(frag_bytes_text(3 * FRAG_MIB / 2, text), "1.50 MiB");
    assert_string_equal(frag_bytes_text(FRAG_UNLIMITED, text), "unlimited");
    assert_string_equal(frag_bytes_text(FRAG_UNLIMITED - 1, text), "16.00 EiB");
    assert_string_equal(frag_count_text(0, text), "0");
    assert_string_equal(frag_count_text(999, text), "999");
    assert_string_equal(frag_count_text(1000, text), "1,000");
    assert_string_equal(frag_count_text(61214, text), "61,214");
    assert_string_equal(frag_count_text(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_sizes_as_people_write_them),
        cmocka_unit_test(rejects_what_could_be_misread),
        cmocka_unit_test(a_lone_letter_is_answered_with_both_readings),
        cmocka_unit_test(counts_are_whole_and_in_range),
        cmocka_unit_test(ratios_are_plain_decimals_in_range),
        cmocka_unit_test(tables_show_two_digits_and_a_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
