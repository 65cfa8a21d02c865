/* Tests of context.c: what a computation may ask its caller for. */
#include "base/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct caller {
    bool is_cancelled;
    char warning[64];
    frag_progress_report reports[8];
    size_t report_count;
} caller;

static bool is_cancelled(void *user)
{
    return ((caller *)user)->is_cancelled;
}

static void take_report(void *user, const frag_progress_report *report)
{
    caller *state = user;
    state->reports[state->report_count++] = *report;
}

static void take_warning(void *user, const char *sentence)
{
    snprintf(((caller *)user)->warning, sizeof((caller *)user)->warning, "%s", sentence);
}

static uint64_t clock_ns(void *user)
{
    (void)user;
    return 42;
}

static const char *environment(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "SET") == 0 ? "value" : NULL;
}

static frag_context context_of(caller *state)
{
    return (frag_context){.threads = 3,
                          .is_cancelled = is_cancelled,
                          .progress = take_report,
                          .warn = take_warning,
                          .clock_ns = clock_ns,
                          .environment = environment,
                          .user = state};
}

static void a_context_without_functions_is_silent(void **state)
{
    const frag_context empty = {0};
    const frag_context *const contexts[] = {NULL, &empty};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(frag_context_threads(contexts[i]), 1);
        assert_false(frag_is_cancelled(contexts[i]));
        assert_int_equal(frag_context_clock_ns(contexts[i]), 0);
        assert_null(frag_context_environment(contexts[i], "SET"));
        frag_context_warn(contexts[i], "nobody hears %s", "this");
        frag_progress *progress = frag_progress_start(contexts[i], "replaying", "runs", 2);
        frag_progress_add(progress, 1);
        frag_progress_skip(progress, 1);
        frag_progress_pause(progress);
        frag_progress_end(progress);
    }
}

static void every_question_reaches_the_caller(void **state)
{
    caller mine = {0};
    frag_context context = context_of(&mine);
    (void)state;
    assert_int_equal(frag_context_threads(&context), 3);
    assert_false(frag_is_cancelled(&context));
    mine.is_cancelled = true;
    assert_true(frag_is_cancelled(&context));
    assert_int_equal(frag_context_clock_ns(&context), 42);
    assert_string_equal(frag_context_environment(&context, "SET"), "value");
    assert_null(frag_context_environment(&context, "UNSET"));
    frag_context_warn(&context, "%d of %s", 2, "3 files");
    assert_string_equal(mine.warning, "2 of 3 files");
}

static void progress_counts_what_was_skipped_too(void **state)
{
    static const frag_progress_event events[] = {FRAG_PROGRESS_STARTED, FRAG_PROGRESS_STEP,
                                                 FRAG_PROGRESS_STEP, FRAG_PROGRESS_PAUSED,
                                                 FRAG_PROGRESS_ENDED};
    static const uint64_t done[] = {0, 2, 5, 5, 5};
    caller mine = {0};
    frag_context context = context_of(&mine);
    (void)state;
    frag_progress *progress = frag_progress_start(&context, "replaying", "runs", 7);
    frag_progress_add(progress, 2);
    frag_progress_skip(progress, 3);
    frag_progress_pause(progress);
    frag_progress_end(progress);
    assert_int_equal(mine.report_count, 5);
    for (size_t i = 0; i < 5; i++) {
        const frag_progress_report *report = &mine.reports[i];
        assert_int_equal(report->event, events[i]);
        assert_int_equal(report->done, done[i]);
        assert_int_equal(report->skipped, i < 2 ? 0 : 3);
        assert_int_equal(report->total, 7);
        assert_int_equal(report->start_ns, 42);
        assert_string_equal(report->what, "replaying");
        assert_string_equal(report->unit, "runs");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_without_functions_is_silent),
        cmocka_unit_test(every_question_reaches_the_caller),
        cmocka_unit_test(progress_counts_what_was_skipped_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
