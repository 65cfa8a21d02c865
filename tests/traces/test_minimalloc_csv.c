/* Tests of minimalloc_csv.c: packing problems as CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/policy_engine.h"
#include "traces/exchange/minimalloc_csv.h"
#include "tests/support/text_recording.h"
#include "traces/load.h"

static bool load(const char *text, frag_recording *recording, frag_error *error)
{
    frag_load_options options = {.format = FRAG_FORMAT_AUTO};
    frag_findings findings = {0};
    memset(error, 0, sizeof *error);
    frag_input *input = frag_input_from_memory(text, strlen(text), "problem.csv");
    bool ok = frag_recording_load_input(input, &options, recording, &findings, error);
    frag_input_close(input);
    return ok;
}

static char *write_back(const frag_recording *recording, const uint64_t *offsets)
{
    uint64_t count = 0;
    frag_error error = {0};
    frag_lifetime *lifetimes =
        frag_lifetimes_find(recording, &recording->traces[0], &count, &error);
    assert_non_null(lifetimes);
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    assert_true(frag_minimalloc_write(recording, &recording->traces[0], lifetimes, count, 1,
                                      offsets, stream, &error));
    fclose(stream);
    free(lifetimes);
    return text;
}

static void a_problem_is_a_trace_with_releases_first(void **state)
{
    (void)state;
    frag_recording recording;
    frag_error error;
    assert_true(load("id,lower,upper,size\nlate,5,9,30\nearly,0,5,10\n", &recording, &error));
    const frag_trace *trace = &recording.traces[0];
    assert_true(frag_recording_is_problem(&recording));
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->events[0].bytes, 10);
    assert_int_equal(trace->events[1].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].bytes, 30);
    assert_int_equal(trace->times_ns[2], 5);
    assert_int_equal(trace->stats.peak_requested_bytes, 30);
    assert_int_equal(trace->page_bytes, 2);
    frag_recording_destroy(&recording);
}

static void every_spelling_of_the_columns_is_known(void **state)
{
    (void)state;
    static const char *const same[] = {
        "id,lower,upper,size\na,0,4,7\nb,4,6,9\n",
        "size,upper,lower,id\r\n7,4,0,a\r\n9,6,4,b\r\n",
        "buffer,start,end,size\na,0,3,7\nb,4,5,9",
        "buffer_id,begin,upper,size,alignment,hint,gaps\na,0,4,7,1,-1,\nb,4,6,9,1,12,\n\n",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        frag_recording recording;
        frag_error error;
        if (!load(same[i], &recording, &error))
            fail_msg("%zu: %s", i, error.sentence);
        char *text = write_back(&recording, NULL);
        assert_string_equal(text, same[0]);
        free(text);
        frag_recording_destroy(&recording);
    }
}

static void what_is_written_reads_the_same(void **state)
{
    (void)state;
    static const char problem[] = "id,lower,upper,size,alignment,offset\n"
                                  "a,0,4,7,8,0\n"
                                  "b alignment=x,1,3,9,1,7\n"
                                  "b alignment=4,2,3,1,1,16\n";
    frag_recording recording;
    frag_error error;
    assert_true(load(problem, &recording, &error));
    assert_int_equal(recording.traces[0].addresses[2], FRAG_MINIMALLOC_BASE + 16);
    char *text = write_back(&recording, (uint64_t[]){0, 7, 16});
    assert_string_equal(text, problem);
    free(text);
    frag_recording_destroy(&recording);
}

static void requests_that_failed_are_left_out(void **state)
{
    (void)state;
    static const char trace[] = "# fraglab trace 2\nalloc 0 512\nalloc - 512 failed\n"
                                "alloc 1 1024\nfree 0\n";
    frag_recording recording;
    frag_error error;
    assert_true(load(trace, &recording, &error));
    char *text = write_back(&recording, NULL);
    uint32_t lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 3); /* the header and two */
    free(text);
    frag_recording_destroy(&recording);
}

/* Only in a packing problem are the notes names; elsewhere buffers are numbered. */
static void notes_of_a_recording_are_no_names(void **state)
{
    (void)state;
    static const char trace[] = "# fraglab trace 2\nalloc 0 512 note=\"weights\"\n"
                                "alloc 1 1024 note=\"weights\"\nfree 0\nfree 1\n";
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    assert_true(
        frag_test_load(trace, strlen(trace), FRAG_FORMAT_AUTO, &recording, &findings, &error));
    assert_non_null(recording.traces[0].notes);
    char *text = write_back(&recording, NULL);
    assert_null(strstr(text, "weights"));
    assert_non_null(strstr(text, "\n0,"));
    assert_non_null(strstr(text, "\n1,"));
    free(text);
    frag_recording_destroy(&recording);
}

/* All devices of a recording, not the first alone. */
static void columns_that_nobody_asked_for_are_dropped(void **state)
{
    (void)state;
    static const char trace[] = "# fraglab trace 2\ndevice 0\nalloc 0 512 note=\"a\" time=5\n"
                                "device 1\nalloc 0 512 note=\"b\" time=6\n";
    frag_recording recording;
    frag_error error;
    if (!load(trace, &recording, &error))
        fail_msg("%s", error.sentence);
    assert_int_equal(recording.trace_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_null(recording.traces[i].notes);
        assert_null(recording.traces[i].times_ns);
    }
    frag_recording_destroy(&recording);
}

static void times_against_the_order_of_events_are_not_used(void **state)
{
    (void)state;
    /* b is asked for before a is released, though at the same time. */
    static const char trace[] = "# fraglab trace 1\nmeta \"problem\" \"x\"\n"
                                "alloc 0 8 note=\"a\"\nalloc 1 8 time=5 note=\"b\"\n"
                                "free 0 time=5\nfree 1 time=7\n";
    frag_recording recording;
    frag_error error;
    if (!load(trace, &recording, &error))
        fail_msg("%llu: %s", (unsigned long long)error.line, error.sentence);
    uint64_t count = 0;
    frag_lifetime *lifetimes =
        frag_lifetimes_find(&recording, &recording.traces[0], &count, &error);
    assert_int_equal(count, 2);
    assert_true(lifetimes[1].lower < lifetimes[0].upper);
    free(lifetimes);
    frag_recording_destroy(&recording);
}

static void bad_lines_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t line;
        uint64_t column;
        const char *words;
    } cases[] = {
        {"id,lower,upper,size\na,0,0,4\n", 2, 5, "ends before it has begun"},
        {"id,lower,upper,size\na,3,2,4\n", 2, 5, "expected an end after 3"},
        {"id,lower,upper,size\na,0,1,0\n", 2, 7, "'0' is not valid as size"},
        {"id,lower,upper,size\na,-1,1,4\n", 2, 3, "'-1' is not valid as time"},
        {"id,lower,upper,size\na,0,1,4x\n", 2, 7, "'4x' is not valid as size"},
        {"id,lower,upper,size\na,0,1,99999999999999999999\n", 2, 7, "is not valid as size"},
        {"id,lower,upper,size\na,0,1\n", 2, 0, "fewer fields"},
        {"id,lower,upper,size\na,0,1,4,5\n", 2, 0, "more fields"},
        {"id,lower,upper,size\n,0,1,4\n", 2, 1, "no name"},
        {"id,lower,upper,size\n\na,0,1,4\n", 3, 1, "follows an empty line"},
        {"id,lower,upper,size,gaps\na,0,9,4,2-3\n", 2, 9, "gaps"},
        {"id,lower,upper,size,alignment\na,0,9,4,0\n", 2, 9, "'0' is not valid as alignment"},
        {"id,lower,upper,size,hint\na,0,9,4,x\n", 2, 9, "is not valid as hint"},
        {"id,lower,upper,size,colour\na,0,9,4,x\n", 1, 21, "'colour' is not a column"},
        {"id,lower,upper,size,size\n", 1, 21, "is there twice"},
        {"lower,upper,size\n0,1,2\n", 1, 0, "there is no column 'id'"},
        {"id,lower,upper,size,offset\na,0,9,4,\n", 2, 9, "is not valid as offset"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_error error;
        assert_false(load(cases[i].text, &recording, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (strstr(error.sentence, cases[i].words) == NULL || error.line != cases[i].line ||
            error.column != cases[i].column)
            fail_msg("%zu: %llu:%llu: %s", i, (unsigned long long)error.line,
                     (unsigned long long)error.column, error.sentence);
    }
}

static void a_problem_of_nothing_is_a_problem(void **state)
{
    (void)state;
    frag_recording recording;
    frag_error error;
    assert_true(load("id,lower,upper,size\n", &recording, &error));
    assert_int_equal(recording.traces[0].event_count, 0);
    frag_recording_destroy(&recording);
    assert_false(load("a,b,c\n", &recording, &error));
    assert_non_null(strstr(error.sentence, "the format is not known"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_problem_is_a_trace_with_releases_first),
        cmocka_unit_test(every_spelling_of_the_columns_is_known),
        cmocka_unit_test(what_is_written_reads_the_same),
        cmocka_unit_test(requests_that_failed_are_left_out),
        cmocka_unit_test(notes_of_a_recording_are_no_names),
        cmocka_unit_test(columns_that_nobody_asked_for_are_dropped),
        cmocka_unit_test(times_against_the_order_of_events_are_not_used),
        cmocka_unit_test(bad_lines_are_refused_with_their_place),
        cmocka_unit_test(a_problem_of_nothing_is_a_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
