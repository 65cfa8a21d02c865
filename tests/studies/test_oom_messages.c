/* Real and made-up out-of-memory messages, each with the verdicts that are right for it:
 *
 *   test_oom_messages           the committed ones
 *   test_oom_messages FILE...   those of files of the same form (tests/data/oom-messages/README.md)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/formats/lines.h"
#include "studies/explain/advice.h"

#define FOLDER "tests/data/oom-messages/"

typedef struct judged {
    size_t count;
    size_t wrong;
} judged;

static bool has_text(const json_t *array, const char *text)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(array, i, item) if (strcmp(json_string_value(item), text) == 0) return true;
    return false;
}

/* The setting that an advice names although the message shows it in force, or NULL. */
static const char *forbidden(const json_t *never, const frag_advice *advice)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(never, i, item)
    {
        const char *name = json_string_value(item);
        for (size_t j = 0; j < advice->count; j++)
            if ((advice->steps[j].setting != NULL && strstr(advice->steps[j].setting, name)) ||
                strstr(advice->steps[j].text.bytes, name) != NULL)
                return name;
    }
    return NULL;
}

/* "[bytes, slack]": as printed, so rounded. */
static bool is_near(const json_t *expected, uint64_t bytes)
{
    uint64_t wanted = (uint64_t)json_integer_value(json_array_get(expected, 0));
    uint64_t slack = (uint64_t)json_integer_value(json_array_get(expected, 1)) + 1;
    return (bytes > wanted ? bytes - wanted : wanted - bytes) <= slack;
}

static bool stands_anywhere(const json_t *expected, const frag_message *best,
                            const frag_diagnosis *diagnosis)
{
    for (size_t i = 0; i < FRAG_FIGURE_COUNT; i++)
        if (diagnosis->figures[i].is_known && is_near(expected, diagnosis->figures[i].bytes))
            return true;
    for (uint32_t i = 0; best != NULL && i < best->size_count; i++)
        if (is_near(expected, best->sizes[i].amount.bytes))
            return true;
    for (uint32_t i = 0; best != NULL && i < best->process_count; i++)
        if (is_near(expected, best->processes[i]))
            return true;
    return false;
}

/* The figure that a person reads in the message and the reader did not, or NULL. */
static const char *missing_figure(json_t *figures, const frag_message *best,
                                  const frag_diagnosis *diagnosis)
{
    const char *name = NULL;
    json_t *expected = NULL;
    json_object_foreach(figures, name, expected)
    {
        size_t index = 0;
        json_t *one = NULL;
        if (strcmp(name, "any") == 0) {
            json_array_foreach(expected, index,
                               one) if (!stands_anywhere(one, best, diagnosis)) return name;
            continue;
        }
        for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++)
            if (strcmp(frag_figure_field(i), name) == 0 &&
                !(diagnosis->figures[i].is_known && is_near(expected, diagnosis->figures[i].bytes)))
                return name;
    }
    return NULL;
}

static bool judge(const json_t *row, const char *where)
{
    const char *text = json_string_value(json_object_get(row, "message"));
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_messages_read(&messages, text, strlen(text));
    const frag_message *best = frag_messages_best(&messages);
    frag_diagnose_text(&messages, &diagnosis);
    frag_advise(&messages, best, &diagnosis, &advice);
    const char *verdict = frag_oom_verdict_name(diagnosis.verdict);
    const char *missing = missing_figure(json_object_get(row, "figures"),
                                         best != NULL ? best : &messages.rest, &diagnosis);
    const char *named = forbidden(json_object_get(row, "never"), &advice);
    bool is_right = has_text(json_object_get(row, "verdict_accepted"), verdict);
    bool is_helpful = diagnosis.verdict == FRAG_OOM_VERDICT_NOT_AN_OOM || advice.count > 0;
    if (!is_right)
        fprintf(stderr, "%s: %s: %s\n  %.120s\n", where, verdict, diagnosis.because.bytes, text);
    if (named != NULL)
        fprintf(stderr, "%s: advises %s, which is in force\n", where, named);
    if (missing != NULL)
        fprintf(stderr, "%s: %s is not read\n  %.120s\n", where, missing, text);
    if (!is_helpful)
        fprintf(stderr, "%s: %s without advice\n", where, verdict);
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
    return is_right && named == NULL && missing == NULL && is_helpful;
}

/* ---- an own search for sizes, to compare with */
#define BEYOND 18446744073709551616.0 /* 64 bits do not hold it: a size that went wrong */

typedef struct plain_size {
    double bytes;
    double slack; /* half of the last digit that is printed */
} plain_size;

static double unit_bytes(const char *text)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}, {"GB", 1073741824.0},
                 {"MB", 1048576.0},     {"KB", 1024.0},     {"bytes", 1.0}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].name);
        if (strncmp(text, units[i].name, length) == 0 && strchr(" .,;:)]\n", text[length]) != NULL)
            return units[i].bytes;
    }
    return 0;
}

/* "1.50 GiB" at text, as simple as can be. */
static bool read_plain_size(const char *text, plain_size *size)
{
    char *end = NULL;
    size_t digits = strspn(text, "0123456789.");
    double number = strtod(text, &end);
    if (digits == 0 || digits > 16 || end != text + digits || text[digits - 1] == '.')
        return false;
    double unit = unit_bytes(end + (*end == ' '));
    const char *point = memchr(text, '.', digits);
    double step = 1;
    for (const char *at = point; at != NULL && at + 1 < end; at++)
        step /= 10;
    *size = (plain_size){.bytes = number * unit, .slack = unit * step / 2 + 1};
    return unit > 0;
}

static bool is_same_size(const plain_size *size, uint64_t bytes)
{
    double apart = size->bytes - (double)bytes;
    return apart <= size->slack && -apart <= size->slack;
}

static bool is_read(const plain_size *size, const frag_message *message)
{
    for (uint32_t i = 0; i < message->size_count; i++)
        if (is_same_size(size, message->sizes[i].amount.bytes))
            return true;
    return false;
}

/* The first size in the message's line that was not read, or NULL. */
static const char *unread_size(const char *text, const frag_message *message)
{
    for (uint64_t line = 1; line < message->line && text != NULL; line++) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    for (size_t i = 0; text != NULL && text[i] != '\0' && text[i] != '\n'; i++) {
        plain_size size;
        bool is_start = i == 0 || strchr(" (=[", text[i - 1]) != NULL;
        if (is_start && read_plain_size(text + i, &size) && size.bytes < BEYOND &&
            !is_read(&size, message))
            return text + i;
    }
    return NULL;
}

static bool check_sizes(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    judged *sum = context;
    json_error_t reason;
    json_t *row = json_loadb(line, length, 0, &reason);
    const char *text = json_string_value(json_object_get(row, "message"));
    frag_messages messages;
    frag_messages_read(&messages, text, strlen(text));
    const frag_message *best = frag_messages_best(&messages);
    const char *unread = best != NULL ? unread_size(text, best) : NULL;
    if (unread != NULL)
        fprintf(stderr, "not among the sizes: %.20s\n  %.160s\n", unread, text);
    sum->count += best != NULL && best->size_count > 0;
    sum->wrong += unread != NULL;
    frag_messages_destroy(&messages);
    json_decref(row);
    return true;
}

typedef struct message_judge {
    judged *sum;
    const char *path;
    unsigned number; /* of the row */
} message_judge;

static bool judge_row(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    message_judge *at = context;
    char where[512];
    json_error_t reason;
    json_t *row = json_loadb(line, length, 0, &reason);
    snprintf(where, sizeof where, "%s, row %u", at->path, ++at->number);
    at->sum->count++;
    at->sum->wrong += row == NULL || !judge(row, where);
    json_decref(row);
    return true;
}

static bool judge_file(const char *path, judged *sum)
{
    message_judge at = {.sum = sum, .path = path};
    frag_error error = {0};
    frag_input *input = frag_input_open(path, &error);
    bool ok = input != NULL && frag_each_line(input, judge_row, &at, &error);
    frag_input_close(input);
    return ok;
}

static void messages_of_threads_get_an_accepted_verdict(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "threads.jsonl.zst", &sum));
    assert_true(sum.count >= 120);
    assert_int_equal(sum.wrong, 0);
}

static void messages_of_other_threads_get_an_accepted_verdict(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "more-threads.jsonl.zst", &sum));
    assert_true(sum.count >= 290);
    assert_int_equal(sum.wrong, 0);
}

static void messages_of_any_program_are_read_with_every_figure(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "programs.jsonl.zst", &sum));
    assert_true(sum.count >= 690);
    assert_int_equal(sum.wrong, 0);
}

static void damaged_and_rare_messages_get_an_accepted_verdict(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "made.jsonl.zst", &sum));
    assert_true(sum.count >= 100);
    assert_int_equal(sum.wrong, 0);
}

static void logs_as_people_paste_them_are_read(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "pastes.jsonl.zst", &sum));
    assert_true(sum.count >= 200);
    assert_int_equal(sum.wrong, 0);
}

static void messages_never_seen_before_are_read(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "unseen.jsonl.zst", &sum));
    assert_true(sum.count >= 240);
    assert_int_equal(sum.wrong, 0);
}

static void messages_collected_afresh_are_read(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "fresh.jsonl.zst", &sum));
    assert_true(sum.count >= 260);
    /* two sentences of people taken for messages, and a log cut off before its error */
    assert_true(sum.wrong <= 3);
}

static void messages_of_threads_quoted_nowhere_else_are_read(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "blind.jsonl.zst", &sum));
    assert_true(sum.count >= 287);
    assert_int_equal(sum.wrong, 0);
}

static void messages_in_programs_sources_are_read(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "sources.jsonl.zst", &sum));
    assert_true(sum.count >= 200);
    assert_int_equal(sum.wrong, 0);
}

static void ordinary_lines_about_memory_are_no_out_of_memory(void **state)
{
    (void)state;
    judged sum = {0};
    assert_true(judge_file(FOLDER "ordinary.jsonl.zst", &sum));
    assert_true(sum.count >= 60);
    assert_int_equal(sum.wrong, 0);
}

static void talk_of_memory_that_ran_out_is_never_clearly_something_else(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Traceback: KeyError: 'x'\nI think my GPU ran out of memory because of the batch size.",
        "error: see the guide when your card is out of memory",
        "Error: exit code 1. Maybe the allocation of your buffers failed, please help",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        frag_messages messages;
        frag_diagnosis diagnosis;
        frag_messages_read(&messages, texts[i], strlen(texts[i]));
        frag_diagnose_text(&messages, &diagnosis);
        bool is_clear = diagnosis.confidence == FRAG_CONFIDENCE_HIGH;
        assert_false(diagnosis.verdict == FRAG_OOM_VERDICT_NOT_AN_OOM && is_clear);
        frag_diagnosis_destroy(&diagnosis);
        frag_messages_destroy(&messages);
    }
}

static void every_size_in_the_line_of_a_message_is_read(void **state)
{
    (void)state;
    static const char *const files[] = {
        FOLDER "threads.jsonl.zst", FOLDER "more-threads.jsonl.zst", FOLDER "programs.jsonl.zst",
        FOLDER "pastes.jsonl.zst",  FOLDER "unseen.jsonl.zst",       FOLDER "fresh.jsonl.zst",
        FOLDER "blind.jsonl.zst",   FOLDER "sources.jsonl.zst"};
    judged sum = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        frag_error error = {0};
        frag_input *input = frag_input_open(files[i], &error);
        assert_non_null(input);
        assert_true(frag_each_line(input, check_sizes, &sum, &error));
        frag_input_close(input);
    }
    assert_true(sum.count >= 300);
    assert_int_equal(sum.wrong, 0);
}

static bool is_oom_without_wordings(const char *text)
{
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_messages_guess(&messages, text, strlen(text));
    frag_diagnose_text(&messages, &diagnosis);
    bool is_oom = diagnosis.verdict != FRAG_OOM_VERDICT_NOT_AN_OOM;
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
    return is_oom;
}

static bool check_without_wordings(void *context, const char *line, size_t length,
                                   frag_error *error)
{
    (void)error;
    judged *sum = context;
    json_error_t reason;
    json_t *row = json_loadb(line, length, 0, &reason);
    const char *text = json_string_value(json_object_get(row, "message"));
    if (!has_text(json_object_get(row, "verdict_accepted"), "not-an-oom")) {
        sum->count++;
        sum->wrong += !is_oom_without_wordings(text);
    }
    json_decref(row);
    return true;
}

/* Every message is one of an unknown program where no wording is known. */
static void the_rules_alone_see_an_out_of_memory_of_any_program(void **state)
{
    (void)state;
    static const char *const files[] = {
        FOLDER "threads.jsonl.zst", FOLDER "more-threads.jsonl.zst", FOLDER "programs.jsonl.zst",
        FOLDER "pastes.jsonl.zst",  FOLDER "unseen.jsonl.zst",       FOLDER "made.jsonl.zst",
        FOLDER "fresh.jsonl.zst",   FOLDER "blind.jsonl.zst",        FOLDER "sources.jsonl.zst"};
    judged sum = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        frag_error error = {0};
        frag_input *input = frag_input_open(files[i], &error);
        assert_non_null(input);
        assert_true(frag_each_line(input, check_without_wordings, &sum, &error));
        frag_input_close(input);
    }
    assert_true(sum.count >= 900);
    assert_true(sum.wrong * 50 <= sum.count);
}

int main(int argc, char **argv)
{
    judged sum = {0};
    for (int i = 1; i < argc; i++)
        if (!judge_file(argv[i], &sum)) {
            fprintf(stderr, "test_oom_messages: %s cannot be read\n", argv[i]);
            return 3;
        }
    if (argc > 1) {
        printf("%zu of %zu messages have an accepted verdict\n", sum.count - sum.wrong, sum.count);
        return sum.wrong > 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_threads_get_an_accepted_verdict),
        cmocka_unit_test(messages_of_other_threads_get_an_accepted_verdict),
        cmocka_unit_test(messages_of_any_program_are_read_with_every_figure),
        cmocka_unit_test(damaged_and_rare_messages_get_an_accepted_verdict),
        cmocka_unit_test(logs_as_people_paste_them_are_read),
        cmocka_unit_test(messages_never_seen_before_are_read),
        cmocka_unit_test(messages_collected_afresh_are_read),
        cmocka_unit_test(messages_of_threads_quoted_nowhere_else_are_read),
        cmocka_unit_test(messages_in_programs_sources_are_read),
        cmocka_unit_test(the_rules_alone_see_an_out_of_memory_of_any_program),
        cmocka_unit_test(ordinary_lines_about_memory_are_no_out_of_memory),
        cmocka_unit_test(talk_of_memory_that_ran_out_is_never_clearly_something_else),
        cmocka_unit_test(every_size_in_the_line_of_a_message_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
