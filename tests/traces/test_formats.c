/* The table of formats: every one is named, is described and has its place in the pages. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "traces/formats.h"

#define NAME(id, table, name) name,
static const char *const names[] = {"auto", FRAG_FORMATS(NAME, NAME, NAME)};
#undef NAME

static void names_are_found_and_stand_in_the_lists(void **state)
{
    (void)state;
    frag_text choices = {.bytes = NULL};
    for (uint32_t i = 1; i < FRAG_FORMAT_COUNT; i++) {
        const char *name = names[i];
        frag_trace_format found = FRAG_FORMAT_AUTO;
        assert_true(frag_trace_format_find(name, &found));
        assert_int_equal(found, i);
        assert_non_null(strstr(FRAG_FORMAT_LIST, name));
        frag_text_add(&choices, "%s%s", i > 1 ? "|" : "", name);
    }
    assert_string_equal(choices.bytes, FRAG_FORMAT_CHOICES);
    frag_text_destroy(&choices);
    frag_trace_format none = FRAG_FORMAT_AUTO;
    assert_false(frag_trace_format_find("nothing", &none));
    assert_null(frag_trace_format_table(FRAG_FORMAT_AUTO));
}

/* The link that a page's heading has: lower case, blanks as hyphens, no other marks. */
static void anchor_of(const char *heading, char *anchor, size_t size)
{
    size_t length = 0;
    while (*heading == '#' || *heading == ' ')
        heading++;
    for (; *heading != '\0' && *heading != '\n' && length + 1 < size; heading++)
        if (isalnum((unsigned char)*heading) || *heading == '-' || *heading == '_')
            anchor[length++] = (char)tolower((unsigned char)*heading);
        else if (*heading == ' ')
            anchor[length++] = '-';
    anchor[length] = '\0';
}

static bool has_heading(FILE *page, const char *wanted)
{
    char line[4096];
    char anchor[512];
    while (fgets(line, sizeof line, page) != NULL) {
        anchor_of(line, anchor, sizeof anchor);
        if (line[0] == '#' && strcmp(anchor, wanted) == 0)
            return true;
    }
    return false;
}

static void every_format_is_described_and_has_a_page(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < FRAG_FORMAT_COUNT; i++) {
        const frag_format *table = frag_trace_format_table((frag_trace_format)i);
        char path[256];
        assert_non_null(table->read);
        assert_true(strlen(table->what) > 0);
        snprintf(path, sizeof path, "docs/%s", table->page);
        char *mark = strchr(path, '#');
        if (mark != NULL)
            *mark++ = '\0';
        FILE *page = fopen(path, "r");
        if (page == NULL)
            fail_msg("%s: there is no %s", names[i], path);
        if (mark != NULL && !has_heading(page, mark))
            fail_msg("%s: %s has no heading #%s", names[i], path, mark);
        fclose(page);
    }
}

/* docs/exchange.md has the name as --from takes it: in a row of its table, or our own forms in the
 * text above. */
static void every_name_stands_in_the_page_of_formats(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < FRAG_FORMAT_COUNT; i++) {
        const char *name = names[i];
        char quoted[64];
        char line[4096];
        bool is_there = false;
        snprintf(quoted, sizeof quoted, "`%s`", name);
        FILE *page = fopen("docs/exchange.md", "r");
        assert_non_null(page);
        while (!is_there && fgets(line, sizeof line, page) != NULL)
            is_there = strstr(line, quoted) != NULL;
        fclose(page);
        if (!is_there)
            fail_msg("docs/exchange.md does not speak of %s", quoted);
    }
}

static bool detects(const char *bytes, size_t count, frag_trace_format wanted)
{
    frag_trace_format found = FRAG_FORMAT_AUTO;
    return frag_trace_format_detect((const unsigned char *)bytes, count, &found) && found == wanted;
}

static void what_begins_with_its_mark_is_told_apart_first(void **state)
{
    (void)state;
    /* Whatever follows the mark. */
    static const char fgt[] = "\x89"
                              "FGT\r\n\x1a\nThread,Time,Action,Pointer,Size,Stream\n";
    assert_true(detects(fgt, sizeof fgt - 1, FRAG_FORMAT_FGT));
    static const char rmm[] = "Thread,Time,Action,Pointer,Size,Stream\n";
    assert_true(detects(rmm, sizeof rmm - 1, FRAG_FORMAT_RMM));
    frag_trace_format none = FRAG_FORMAT_AUTO;
    assert_false(frag_trace_format_detect((const unsigned char *)"x", 1, &none));
    assert_false(frag_trace_format_detect((const unsigned char *)"", 0, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_and_stand_in_the_lists),
        cmocka_unit_test(every_format_is_described_and_has_a_page),
        cmocka_unit_test(every_name_stands_in_the_page_of_formats),
        cmocka_unit_test(what_begins_with_its_mark_is_told_apart_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
