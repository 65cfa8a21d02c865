/* Tests of card_table.c: a card is found by each of its names, however they are written. */
#include "sim/device/card_table.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "sim/device/card_json.h"

static void the_names_ascend(void **state)
{
    (void)state;
    frag_error error = {0};
    size_t count = 0;
    char **names = frag_card_names(&count, &error);
    assert_non_null(names);
    assert_true(count > 20);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    frag_folder_names_destroy(names, count);
}

enum { FORMS = 6 };

/* Is it this card by that name, written small, large, with spaces or with its maker? Forms from
 * from to before to: to find another name of a card, all cards are read. */
static void check_name(const char *name, const frag_device_description *card, size_t from,
                       size_t to)
{
    static const char *const before[] = {"", "NVIDIA ", "nvidia-"};
    for (size_t form = from; form < to; form++) {
        frag_text text = {0};
        frag_device_description found;
        frag_error error = {0};
        frag_text_add(&text, "%s%s", before[form % 3], name);
        for (size_t i = 0; i < text.length; i++)
            text.bytes[i] = (char)(form < 3 ? tolower((unsigned char)text.bytes[i])
                                            : toupper((unsigned char)text.bytes[i]));
        if (!frag_card_load(text.bytes, &found, NULL, &error))
            fail_msg("%s: %s", text.bytes, error.sentence);
        if (strcmp(found.digest, card->digest) != 0)
            fail_msg("%s is %s, expected %s", text.bytes, found.name, card->name);
        frag_text_destroy(&text);
    }
}

static void an_ending_alone_is_no_file(void **state)
{
    (void)state;
    frag_device_description card;
    frag_error error = {0};
    assert_false(frag_card_load(".yaml", &card, NULL, &error));
    assert_int_equal(error.code, FRAG_E_USAGE);
}

static void each_card_has_all_its_names(void **state)
{
    (void)state;
    frag_error error = {0};
    size_t count = 0;
    char **names = frag_card_names(&count, &error);
    assert_non_null(names);
    for (size_t i = 0; i < count; i++) {
        frag_device_description card;
        assert_true(frag_card_load(names[i], &card, NULL, &error));
        check_name(names[i], &card, 0, i < FORMS ? FORMS : 1);
        for (uint32_t k = 0; k < card.aliases.count; k++)
            check_name(card.aliases.names[k], &card, (i + k) % FORMS, (i + k) % FORMS + 1);
        for (uint32_t k = 0; k < card.meanings.count; k++)
            check_name(card.meanings.names[k], &card, (i + k) % FORMS, (i + k) % FORMS + 1);
    }
    frag_folder_names_destroy(names, count);
}

static void the_families_of_makers_may_stand_before_a_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"GeForce RTX 4090", "rtx4090"},
        {"NVIDIA GeForce RTX 3060", "rtx3060"},
        {"Tesla T4", "t4"},
        {"Tesla P100-PCIE-16GB", "p100"},
        {"AMD Instinct MI250X", "mi250x"},
        {"Instinct MI210", "mi210"},
        {"Jetson AGX Orin", "orin-agx-64gb"},
        {"amd mi100", "mi100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_error error = {0};
        frag_device_description card;
        frag_device_description expected;
        assert_true(frag_card_load(cases[i][1], &expected, NULL, &error));
        if (!frag_card_load(cases[i][0], &card, NULL, &error))
            fail_msg("%s: %s", cases[i][0], error.sentence);
        assert_string_equal(card.digest, expected.digest);
    }
}

static void a_name_of_several_cards_says_which_was_taken(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_device_description card;
    frag_text note = {0};
    assert_true(frag_card_load("A100", &card, &note, &error));
    assert_string_equal(note.bytes,
                        "'A100' is taken for a100-40gb; other cards of that name: a100-80gb");
    frag_text_destroy(&note);
    note = (frag_text){0};
    assert_true(frag_card_load("a100-80gb", &card, &note, &error));
    assert_int_equal(note.length, 0);
    assert_true(frag_card_load("RTX 4090", &card, &note, &error));
    assert_int_equal(note.length, 0);
    frag_text_destroy(&note);
}

static void what_no_card_is_called_gets_the_nearest_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"rtx4091", "did you mean rtx40"},
        {"a100-81gb", "did you mean a100-8"},
        {"abacus-of-my-own", "'fraglab device list' prints them"},
        {"", "no card is called ''"},
        {"8589934592", "write its unit too: 8589934592B"},
        {"24G", "write GiB (1024s) or GB (1000s)"},
        {"1.5gib", "write KiB, MiB, GiB"},
        {"24 GiB", "is a size; expected a card"},
        {"4090G4", "did you mean"},
        {"24", "no card is called '24'; if it is a size, write its unit too: 24GiB"},
        {"nvidia", "no card is called 'nvidia'"},
        {"./none.yaml", "none.yaml"},
        {"h100 80gb hbm4", "did you mean h100 80gb hbm3?"}, /* the third of its names */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_error error = {0};
        frag_device_description card;
        assert_false(frag_card_load(cases[i][0], &card, NULL, &error));
        frag_text said = {0};
        frag_text_add(&said, "%s %s", error.where, error.sentence);
        if (strstr(said.bytes, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], said.bytes);
        frag_text_destroy(&said);
    }
}

/* The parts of the text in their order. */
static void expect_json(const frag_device_description *card, const char *const *parts)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    frag_card_write_json("x", card, stream);
    fclose(stream);
    const char *at = bytes;
    for (size_t i = 0; parts[i] != NULL; i++) {
        const char *part = strstr(at, parts[i]);
        if (part == NULL)
            fail_msg("%s is not in %s", parts[i], at);
        at = part + strlen(parts[i]);
    }
    free(bytes);
}

static void what_is_not_known_of_a_card_is_null_in_json(void **state)
{
    (void)state;
    static const char *const unknown[] = {"\"source\":null", "\"context_bytes\":null",
                                          "\"aliases\":null", "\"multiprocessors\":null", NULL};
    static const char *const known[] = {"\"source\":\"s\"",      "\"context_bytes\":7",
                                        "\"aliases\":\"a, bc\"", "\"means\":\"d\"",
                                        "\"multiprocessors\":1", NULL};
    frag_device_description card = {.total_bytes = 4096};
    expect_json(&card, unknown);
    snprintf(card.source, sizeof card.source, "s");
    card.context_bytes = 7;
    card.aliases.count = 2;
    snprintf(card.aliases.names[0], sizeof card.aliases.names[0], "a");
    snprintf(card.aliases.names[1], sizeof card.aliases.names[1], "bc");
    card.meanings.count = 1;
    snprintf(card.meanings.names[0], sizeof card.meanings.names[0], "d");
    card.compute.multiprocessor_count = 1;
    expect_json(&card, known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_ascend),
        cmocka_unit_test(an_ending_alone_is_no_file),
        cmocka_unit_test(each_card_has_all_its_names),
        cmocka_unit_test(the_families_of_makers_may_stand_before_a_name),
        cmocka_unit_test(a_name_of_several_cards_says_which_was_taken),
        cmocka_unit_test(what_no_card_is_called_gets_the_nearest_name),
        cmocka_unit_test(what_is_not_known_of_a_card_is_null_in_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
