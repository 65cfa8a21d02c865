/* Each wording of the table has an example, tests/data/oom-messages/wordings.tsv.zst: the pattern,
 * the figures that the example shows, and the example. It must be found by that very wording, with
 * those figures and no others. */
#include "messages/message.h"
#include "messages/wordings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/lines.h"

#define EXAMPLES "tests/data/oom-messages/wordings.tsv.zst"

typedef struct examples {
    bool has_one[FRAG_WORDINGS_MAX];
    size_t wrong;
} examples;

static size_t index_of(const char *pattern)
{
    for (size_t i = 0; i < frag_wording_count; i++)
        if (strcmp(frag_wordings[i].pattern, pattern) == 0)
            return i;
    return frag_wording_count;
}

static size_t figure_count(const frag_message *message)
{
    size_t count = message->has_device + message->process_count;
    for (size_t i = 0; i < FRAG_FIGURE_COUNT; i++)
        count += message->figures[i].is_known;
    return count;
}

/* "requested_bytes=12", "device=3", "pid=8", "process_bytes_of_one=4096" */
static bool shows(const frag_message *message, const char *name, uint64_t value)
{
    if (strcmp(name, "device") == 0)
        return message->has_device && message->device == value;
    if (strcmp(name, "pid") == 0)
        return message->process_count == 1 && message->process_ids[0] == value;
    if (strcmp(name, "process_bytes_of_one") == 0)
        return message->process_count == 1 && message->processes[0] == value;
    for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++)
        if (strcmp(frag_figure_field(i), name) == 0)
            return message->figures[i].is_known && message->figures[i].bytes == value;
    return false;
}

static bool shows_all(const frag_message *message, char *figures)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *one = strtok_r(figures, " ", &rest); one != NULL; one = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(one, '=');
        *value = '\0';
        if (!shows(message, one, strtoull(value + 1, NULL, 10)))
            return false;
        count += strcmp(one, "pid") != 0;
    }
    return count == figure_count(message);
}

static bool judge(char *pattern, char *figures, const char *text, examples *sum)
{
    frag_messages messages;
    size_t index = index_of(pattern);
    bool is_right = index < frag_wording_count;
    if (!is_right)
        return false;
    sum->has_one[index] = true;
    frag_messages_read(&messages, text, strlen(text));
    is_right = messages.is_matched[index];
    if (*figures != '\0')
        is_right = is_right && messages.count == 1 && shows_all(&messages.items[0], figures);
    frag_messages_destroy(&messages);
    return is_right;
}

static bool judge_line(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    examples *sum = context;
    char *copy = strndup(line, length);
    char *figures = strchr(copy, '\t');
    char *text = figures != NULL ? strchr(figures + 1, '\t') : NULL;
    bool is_right = text != NULL;
    if (is_right) {
        *figures++ = '\0';
        *text++ = '\0';
        is_right = judge(copy, figures, text, sum);
    }
    if (!is_right) {
        fprintf(stderr, "%s: %.*s\n", EXAMPLES, (int)length, line);
        sum->wrong++;
    }
    free(copy);
    return true;
}

static void every_wording_is_found_in_its_example(void **state)
{
    (void)state;
    examples sum = {.wrong = 0};
    frag_error error = {0};
    frag_input *input = frag_input_open(EXAMPLES, &error);
    assert_non_null(input);
    assert_true(frag_each_line(input, judge_line, &sum, &error));
    frag_input_close(input);
    for (size_t i = 0; i < frag_wording_count; i++)
        if (!sum.has_one[i]) {
            fprintf(stderr, "%s: has no example of \"%s\"\n", EXAMPLES, frag_wordings[i].pattern);
            sum.wrong++;
        }
    assert_int_equal(sum.wrong, 0);
}

static void no_wording_stands_in_the_table_twice(void **state)
{
    (void)state;
    assert_true(frag_wording_count <= FRAG_WORDINGS_MAX);
    for (size_t i = 0; i < frag_wording_count; i++)
        assert_int_equal(index_of(frag_wordings[i].pattern), i);
}

/* The general wording comes first in the text, and in older tables did in the list. */
static void a_special_wording_inside_a_general_one_is_read(void **state)
{
    (void)state;
    static const char text[] =
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.";
    frag_messages messages;
    frag_messages_read(&messages, text, sizeof text - 1);
    assert_int_equal(messages.count, 1);
    assert_int_equal(messages.items[0].figures[FRAG_FIGURE_REQUESTED].bytes, 8589934592);
    frag_messages_destroy(&messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wording_is_found_in_its_example),
        cmocka_unit_test(no_wording_stands_in_the_table_twice),
        cmocka_unit_test(a_special_wording_inside_a_general_one_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
