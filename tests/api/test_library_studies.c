/* The studies of the library as a program sees them: explanations. What they
 * say is that of the commands (library.bats); here, that they end as the header says on wrong
 * arguments, when they are told to and without host memory, and that threads change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fraglab.h"
#include "tests/api/failing_memory.h"

#define SMALL_SAMPLE "tests/data/snapshots/empty-with-gc.pickle"
#define OOM_SAMPLE "traces/samples/gpt-varlen-oom.pickle.zst"
#define WHOLE_SAMPLE "traces/samples/gpt-varlen.pickle.zst"

static fraglab_recording *open_sample(const char *path)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *recording = NULL;
    fraglab_open_options options = {.size = sizeof options, .with_sites = 1};
    if (fraglab_open_path(NULL, path, &options, &recording, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    return recording;
}

static fraglab_recording *open_text(const char *text)
{
    fraglab_recording *recording = NULL;
    assert_int_equal(fraglab_open_memory(NULL, text, strlen(text), NULL, &recording, NULL), 0);
    return recording;
}

static fraglab_policy *parse(const char *text)
{
    fraglab_policy *policy = NULL;
    assert_int_equal(fraglab_policy_parse(text, &policy, NULL), FRAGLAB_OK);
    return policy;
}

static fraglab_context *with_threads(uint32_t threads)
{
    fraglab_context *context = NULL;
    fraglab_context_options options = {.size = sizeof options, .threads = threads};
    assert_int_equal(fraglab_context_create(&options, &context, NULL), FRAGLAB_OK);
    return context;
}

/* Says that the call is to end when it is asked so often; goes on to say so. */
static int count_down(void *user)
{
    int *left = user;
    return *left == 0 || --*left == 0;
}

static fraglab_context *to_be_cancelled(int *left)
{
    fraglab_context *context = NULL;
    fraglab_context_options options = {
        .size = sizeof options, .user = left, .is_cancelled = count_down, .threads = 2};
    assert_int_equal(fraglab_context_create(&options, &context, NULL), FRAGLAB_OK);
    return context;
}

static void expect_error(int code, int expected, const fraglab_error *error, const char *where,
                         const char *part)
{
    assert_int_equal(code, expected);
    assert_string_equal(error->where, where);
    if (strstr(error->sentence, part) == NULL)
        fail_msg("%s: expected %s", error->sentence, part);
}

static void refuses_too_many_threads(void **state)
{
    (void)state;
    fraglab_context *context = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_context_options options = {.size = sizeof options, .threads = 4097};
    expect_error(fraglab_context_create(&options, &context, &error), FRAGLAB_E_USAGE, &error,
                 "threads", "expected at most 4096");
    assert_null(context);
}

/* ---- explanations of recordings */

static char *explain(const fraglab_context *context, const fraglab_recording *recording,
                     const fraglab_explain_options *options)
{
    char *explanation = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    if (fraglab_explain_recording(context, recording, options, &explanation, &error) != FRAGLAB_OK)
        fail_msg("%s: %s", error.where, error.sentence);
    return explanation;
}

static void explains_a_recording(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(OOM_SAMPLE);
    fraglab_policy *policy = parse("buddy");
    const fraglab_policy *const policies[] = {policy};
    fraglab_context *context = with_threads(3);
    fraglab_explain_options options = {
        .size = sizeof options, .policies = policies, .policy_count = 1};
    char *plain = explain(NULL, recording, NULL);
    char *more = explain(NULL, recording, &options);
    char *threaded = explain(context, recording, &options);
    assert_non_null(strstr(plain, "\"verdict\":\"fragmentation\""));
    assert_null(strstr(plain, "\"policy\":\"buddy\""));
    assert_non_null(strstr(more, "\"policy\":\"buddy\""));
    assert_string_equal(more, threaded);
    options = (fraglab_explain_options){.size = sizeof options, .as_text = 1};
    char *text = explain(NULL, recording, &options);
    assert_memory_equal(text, "verdict    fragmentation", 24);
    fraglab_free(text);
    fraglab_free(threaded);
    fraglab_free(more);
    fraglab_free(plain);
    fraglab_context_destroy(context);
    fraglab_policy_destroy(policy);
    fraglab_recording_close(recording);
}

/* The request that failed is recorded rounded; the other recording knows its size. */
static void another_recording_leaves_this_one_as_it_was(void **state)
{
    (void)state;
    static const char cut[] = "# fraglab trace 1\nalloc 0 62914560\nalloc - 10485760 failed\n";
    static const char rest[] = "# fraglab trace 1\nalloc 0 62914560\nalloc 1 9437184\nfree 1\n";
    fraglab_recording *recording = open_text(cut);
    fraglab_recording *whole = open_text(rest);
    fraglab_explain_options options = {
        .size = sizeof options, .capacity_bytes = 64 << 20, .whole = whole};
    void *before = NULL;
    void *after = NULL;
    size_t bytes = 0;
    size_t bytes_after = 0;
    assert_int_equal(fraglab_recording_write_memory(recording, "text", &before, &bytes, NULL), 0);
    char *explanation = explain(NULL, recording, &options);
    assert_non_null(strstr(explanation, "\"rest\":\"given\""));
    fraglab_recording_write_memory(recording, "text", &after, &bytes_after, NULL);
    assert_int_equal(bytes, bytes_after);
    assert_memory_equal(before, after, bytes);
    fraglab_free(explanation);
    fraglab_free(after);
    fraglab_free(before);
    fraglab_recording_close(whole);
    fraglab_recording_close(recording);
}

static void refuses_what_cannot_be_explained(void **state)
{
    (void)state;
    fraglab_recording *recording = open_sample(SMALL_SAMPLE);
    fraglab_recording *failed = open_sample(OOM_SAMPLE);
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_explain_options options = {.size = sizeof options, .memory_fraction = "1.5"};
    char *explanation = NULL;
    expect_error(fraglab_explain_recording(NULL, recording, NULL, &explanation, &error),
                 FRAGLAB_E_USAGE, &error, "empty-with-gc.pickle", "it did not run out of memory");
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_USAGE, &error, "memory_fraction", "1.5");
    options = (fraglab_explain_options){.size = sizeof options, .whole = failed};
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_INPUT, &error, "gpt-varlen-oom.pickle.zst", "ran out of memory itself");
    options.whole = recording;
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_INPUT, &error, "empty-with-gc.pickle", "is not that of the recording");
    options.size = 3;
    expect_error(fraglab_explain_recording(NULL, failed, &options, &explanation, &error),
                 FRAGLAB_E_USAGE, &error, "fraglab_explain_options", "its size is 3");
    assert_null(explanation);
    fraglab_recording_close(failed);
    fraglab_recording_close(recording);
}

/* ---- the end of a call before its time */

typedef struct subject {
    const fraglab_context *context;
    fraglab_recording *recording;
    fraglab_recording *whole;
    fraglab_policy *policy;
} subject;

static int call_explain(void *argument)
{
    const subject *of = argument;
    const fraglab_policy *const policies[] = {of->policy};
    fraglab_explain_options options = {.size = sizeof options,
                                       .capacity_bytes = 24 << 20,
                                       .policies = policies,
                                       .policy_count = 1};
    char *explanation = NULL;
    int code = fraglab_explain_recording(of->context, of->recording, &options, &explanation, NULL);
    assert_int_equal(explanation != NULL, code == FRAGLAB_OK);
    fraglab_free(explanation);
    return code;
}

static int call_explain_failure(void *argument)
{
    const subject *of = argument;
    fraglab_explain_options options = {.size = sizeof options, .whole = of->whole, .as_text = 1};
    char *explanation = NULL;
    fraglab_recording *failed = NULL;
    static const char cut[] = "# fraglab trace 1\nalloc 0 62914560\nalloc - 10485760 failed\n";
    int code = fraglab_open_memory(NULL, cut, sizeof cut - 1, NULL, &failed, NULL);
    if (code == FRAGLAB_OK)
        code = fraglab_explain_recording(of->context, failed, &options, &explanation, NULL);
    fraglab_free(explanation);
    fraglab_recording_close(failed);
    return code;
}

static const struct {
    const char *name;
    frag_call_to_try *call;
} entries[] = {
    {"explain", call_explain},
    {"explain a failure", call_explain_failure},
};

static void failing_memory_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    fraglab_context *context = with_threads(2);
    subject of = {.recording = open_sample(SMALL_SAMPLE), .policy = parse("buddy")};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        of.context = NULL;
        frag_expect_memory_may_fail(entries[i].name, entries[i].call, &of);
        of.context = context;
        frag_expect_memory_may_fail(entries[i].name, entries[i].call, &of);
    }
    fraglab_policy_destroy(of.policy);
    fraglab_recording_close(of.recording);
    fraglab_context_destroy(context);
}

static void ends_when_it_is_told_to(void **state)
{
    (void)state;
    int left = 1;
    fraglab_context *context = to_be_cancelled(&left);
    subject of = {
        .context = context, .recording = open_sample(SMALL_SAMPLE), .policy = parse("buddy")};
    for (int after = 1; after <= 4; after++) {
        left = after;
        assert_int_equal(call_explain(&of), FRAGLAB_E_CANCELLED);
    }
    left = -1; /* never */
    assert_int_equal(call_explain(&of), FRAGLAB_OK);
    fraglab_policy_destroy(of.policy);
    fraglab_recording_close(of.recording);
    fraglab_context_destroy(context);
}

/* ---- threads */

typedef struct shared_calls {
    subject *of;
    int problems;
} shared_calls;

static void *call_on_thread(void *argument)
{
    shared_calls *calls = argument;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        calls->problems += entries[i].call(calls->of) != FRAGLAB_OK;
    return NULL;
}

static void threads_share_recordings_and_policies(void **state)
{
    (void)state;
    fraglab_context *context = with_threads(2);
    subject of = {
        .context = context, .recording = open_sample(SMALL_SAMPLE), .policy = parse("buddy")};
    pthread_t threads[3];
    shared_calls calls[3];
    for (size_t i = 0; i < 3; i++) {
        calls[i] = (shared_calls){.of = &of};
        assert_int_equal(pthread_create(&threads[i], NULL, call_on_thread, &calls[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(calls[i].problems, 0);
    }
    fraglab_policy_destroy(of.policy);
    fraglab_recording_close(of.recording);
    fraglab_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_too_many_threads),
        cmocka_unit_test(explains_a_recording),
        cmocka_unit_test(another_recording_leaves_this_one_as_it_was),
        cmocka_unit_test(refuses_what_cannot_be_explained),
        cmocka_unit_test(failing_memory_is_an_error_and_leaves_nothing),
        cmocka_unit_test(ends_when_it_is_told_to),
        cmocka_unit_test(threads_share_recordings_and_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
