/* Tests of text_table.c: aligned tables and Markdown. */
#include "base/text_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void add_line(frag_text_table *table, const char *const *cells)
{
    for (size_t i = 0; i < table->columns; i++)
        frag_text_add(frag_text_table_cell(table), "%s", cells[i]);
}

static char *print(frag_text_table *table, bool is_markdown)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    frag_text_table_print(table, is_markdown, stream);
    fclose(stream);
    return text;
}

static void expect(frag_text_table *table, bool is_markdown, const char *expected)
{
    static const char *const lines[][3] = {
        {"policy", "bytes", "OOM"}, {"a|b", "–", "event 1"}, {"tlsf", "1,234", "–"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        add_line(table, lines[i]);
    char *text = print(table, is_markdown);
    assert_string_equal(text, expected);
    free(text);
}

static void a_dash_is_one_column_wide_and_no_line_ends_in_blanks(void **state)
{
    (void)state;
    frag_text_table table = {.columns = 3, .is_last_text = true};
    expect(&table, false,
           "policy   bytes   OOM\n"
           "a|b          –   event 1\n"
           "tlsf     1,234   –\n");
}

static void a_last_column_of_figures_stands_to_the_right(void **state)
{
    (void)state;
    frag_text_table table = {.columns = 3};
    expect(&table, false,
           "policy   bytes       OOM\n"
           "a|b          –   event 1\n"
           "tlsf     1,234         –\n");
}

static void markdown_says_how_columns_stand_and_hides_bars(void **state)
{
    (void)state;
    frag_text_table table = {.columns = 3, .is_last_text = true};
    expect(&table, true,
           "| policy | bytes | OOM |\n"
           "| --- | ---: | --- |\n"
           "| a\\|b | – | event 1 |\n"
           "| tlsf | 1,234 | – |\n");
}

static void a_table_can_be_filled_again(void **state)
{
    (void)state;
    frag_text_table table = {.columns = 1};
    frag_text_add(frag_text_table_cell(&table), "once");
    free(print(&table, false));
    frag_text_add(frag_text_table_cell(&table), "again");
    frag_text_table_cell(&table);
    char *text = print(&table, false);
    assert_string_equal(text, "again\n\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dash_is_one_column_wide_and_no_line_ends_in_blanks),
        cmocka_unit_test(a_last_column_of_figures_stands_to_the_right),
        cmocka_unit_test(markdown_says_how_columns_stand_and_hides_bars),
        cmocka_unit_test(a_table_can_be_filled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
