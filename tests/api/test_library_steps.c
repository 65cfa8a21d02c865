/* What the library says of the steps of a recording: what differs between two moments, what is kept
 * step after step, and how ranks differ. That the answers are those of the commands says
 * test_api.py; here, that calls end as the header says on wrong arguments and without host memory,
 * and that nothing stays of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

/* Thirty steps that keep a block each. */
static int open_steps(fraglab_recording **recording)
{
    char text[30 * 80 + 40];
    size_t length = (size_t)snprintf(text, sizeof text, "# fraglab trace 2\n");
    for (int i = 0; i < 30; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "mark \"step\"\nalloc %d 1048576\nalloc %d 9437184\nfree %d\n",
                                   i, i + 1, i + 1);
    return fraglab_open_memory(NULL, text, length, NULL, recording, NULL);
}

static int diff(const fraglab_recording *recording, const fraglab_diff_options *options,
                char **json, fraglab_error *error)
{
    int code = fraglab_diff(NULL, recording, 0, recording, 0, NULL, options, json, error);
    assert_int_equal(*json != NULL, code == FRAGLAB_OK);
    return code;
}

static int leaks(const fraglab_recording *recording, const char *mark, uint64_t capacity,
                 char **json, fraglab_error *error)
{
    const fraglab_leaks_options options = {.size = sizeof options, .mark = mark};
    const fraglab_run_options run = {.size = sizeof run, .capacity_bytes = capacity};
    int code = fraglab_leaks(NULL, recording, 0, &run, &options, json, error);
    assert_int_equal(*json != NULL, code == FRAGLAB_OK);
    return code;
}

static int ranks(const fraglab_recording *recording, const char *stage, size_t count, char **json,
                 fraglab_error *error)
{
    const fraglab_recording *const recordings[] = {recording, recording};
    const uint32_t numbers[] = {3, 1};
    const fraglab_ranks_options options = {.size = sizeof options,
                                           .numbers = numbers,
                                           .stages = &stage,
                                           .stage_count = stage != NULL ? 1 : 0,
                                           .tries_settings = 1};
    const fraglab_run_options run = {.size = sizeof run, .capacity_bytes = 20 << 20};
    int code = fraglab_ranks(NULL, recordings, count, &run, &options, json, error);
    assert_int_equal(*json != NULL, code == FRAGLAB_OK);
    return code;
}

static void answers_are_objects(void **state)
{
    (void)state;
    fraglab_recording *recording = NULL;
    char *json = NULL;
    const fraglab_diff_options moments = {
        .size = sizeof moments, .by = "size", .at_before = "step[2]", .at_after = "end"};
    assert_int_equal(open_steps(&recording), FRAGLAB_OK);
    assert_int_equal(diff(recording, &moments, &json, NULL), FRAGLAB_OK);
    assert_non_null(strstr(json, "\"requests\":{\"same\":"));
    fraglab_free(json);
    assert_int_equal(leaks(recording, NULL, 64 << 20, &json, NULL), FRAGLAB_OK);
    assert_non_null(strstr(json, "\"kind\":\"kept\""));
    assert_non_null(strstr(json, "\"oom_step\":"));
    fraglab_free(json);
    assert_int_equal(ranks(recording, "1", 2, &json, NULL), FRAGLAB_OK);
    assert_non_null(strstr(json, "\"alike_with\":1"));
    assert_non_null(strstr(json, "\"stages\":[{\"ranks\":[1],"));
    assert_non_null(strstr(json, "\"first_oom_rank\":1"));
    assert_non_null(strstr(json, "\"tried\":[{\"policy\":\"pytorch\",\"failed_ranks\":2,"));
    assert_non_null(strstr(json, "\"best_policy\":"));
    fraglab_free(json);
    fraglab_recording_close(recording);
}

static void refuses_places_and_marks_that_are_not_there(void **state)
{
    (void)state;
    fraglab_recording *recording = NULL;
    char *json = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    static const fraglab_diff_options wrong[] = {
        {.size = sizeof wrong[0], .by = "line"},
        {.size = sizeof wrong[0], .at_before = "step[99]"},
        {.size = sizeof wrong[0], .at_after = "9..3"},
        {.size = 3},
    };
    assert_int_equal(open_steps(&recording), FRAGLAB_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(diff(recording, &wrong[i], &json, &error), FRAGLAB_E_USAGE);
        assert_true(error.sentence[0] != '\0');
    }
    assert_int_equal(leaks(recording, "epoch", 0, &json, &error), FRAGLAB_E_USAGE);
    assert_non_null(strstr(error.sentence, "there are 0 marks 'epoch'"));
    assert_int_equal(ranks(recording, "1,4", 2, &json, &error), FRAGLAB_E_USAGE);
    assert_non_null(strstr(error.sentence, "there is no rank 4"));
    assert_string_equal(error.where, "stages");
    assert_int_equal(ranks(recording, "3-1", 2, &json, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "stages");
    assert_int_equal(ranks(recording, NULL, 1, &json, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "numbers");
    assert_int_equal(ranks(recording, NULL, 0, &json, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "recordings");
    const char *const nothing[] = {NULL};
    const fraglab_ranks_options none = {.size = sizeof none, .stages = nothing, .stage_count = 1};
    const fraglab_recording *const both[] = {recording, recording};
    assert_int_equal(fraglab_ranks(NULL, both, 2, NULL, &none, &json, &error), FRAGLAB_E_USAGE);
    const uint32_t twice[] = {5, 5};
    const fraglab_ranks_options same = {.size = sizeof same, .numbers = twice};
    assert_int_equal(fraglab_ranks(NULL, both, 2, NULL, &same, &json, &error), FRAGLAB_E_USAGE);
    assert_string_equal(error.where, "numbers");
    assert_int_equal(fraglab_leaks(NULL, recording, 1, NULL, NULL, &json, &error), FRAGLAB_E_USAGE);
    assert_null(json);
    fraglab_recording_close(recording);
}

static int call_diff(void *argument)
{
    fraglab_recording *recording = NULL;
    char *json = NULL;
    const fraglab_diff_options options = {.size = sizeof options, .by = argument, .at_before = "1"};
    int code = open_steps(&recording);
    if (code == FRAGLAB_OK)
        code = diff(recording, &options, &json, NULL);
    fraglab_free(json);
    fraglab_recording_close(recording);
    return code;
}

static int call_leaks(void *argument)
{
    fraglab_recording *recording = NULL;
    char *json = NULL;
    int code = open_steps(&recording);
    if (code == FRAGLAB_OK)
        code = leaks(recording, argument, 64 << 20, &json, NULL);
    fraglab_free(json);
    fraglab_recording_close(recording);
    return code;
}

static int call_ranks(void *argument)
{
    fraglab_recording *recording = NULL;
    char *json = NULL;
    int code = open_steps(&recording);
    if (code == FRAGLAB_OK)
        code = ranks(recording, argument, 2, &json, NULL);
    fraglab_free(json);
    fraglab_recording_close(recording);
    return code;
}

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    frag_expect_memory_may_fail("diff by site", call_diff, NULL);
    frag_expect_memory_may_fail("diff by size", call_diff, (char[]){"size"});
    frag_expect_memory_may_fail("leaks", call_leaks, NULL);
    frag_expect_memory_may_fail("ranks", call_ranks, (char[]){"1"});
    frag_expect_memory_may_fail("leaks at marks", call_leaks, (char[]){"step"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_objects),
        cmocka_unit_test(refuses_places_and_marks_that_are_not_there),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
