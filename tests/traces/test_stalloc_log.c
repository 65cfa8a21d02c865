/* Tests of stalloc_log.c: traces that STAlloc records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"
#include "traces/formats.h"

static void lines_become_requests_and_markers_marks(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("1 140231956185088 1000 0\n"
                        "Iteration Index : 3\n"
                        "1 0x7f8a40000400 24 0x5581a0\r\n"
                        "micro-batch : F\n"
                        "0 140231956185088 1000 0\n"
                        "end\n",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_string_equal(frag_recording_get(&recording, "source"), "stalloc");
    assert_int_equal(findings.count, 0);
    assert_int_equal(trace->event_count, 6);
    assert_int_equal(trace->events[0].bytes, 1000);
    assert_int_equal(trace->addresses[0], UINT64_C(140231956185088));
    assert_int_equal(trace->events[1].op, FRAG_OP_MARK);
    assert_string_equal(frag_strings_get(&recording.strings, trace->events[1].slot),
                        "Iteration Index : 3");
    assert_int_equal(trace->addresses[2], 0x7f8a40000400);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[2].stream), 0x5581a0);
    assert_int_equal(trace->events[4].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[4].slot, trace->events[0].slot);
    assert_int_equal(trace->stats.peak_requested_bytes, 1024);
    frag_recording_destroy(&recording);
}

static void logs_are_known_by_their_first_call(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_one;
    } cases[] = {
        {"1 140231956185088 1000 0\n", true},
        {"Iteration Index : 0\nmicro-batch : F\n0 0x10 5 0\n", true},
        {"1 140231956185088 1000 0", true},
        {"Iteration Index : 0\n", false},
        {"1 2 3\n", false},
        {"1 2 3 4 5\n", false},
        {"10 2 3 4\n", false},
        {"1 2 x 4\n", false},
        {"layer 3\n1 2 3 4\n", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (frag_format_stalloc.is_like((const unsigned char *)cases[i].text,
                                        strlen(cases[i].text)) != cases[i].is_one)
            fail_msg("%s", cases[i].text);
}

static void what_does_not_fit_together_is_counted(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("0 16 8 0\n"
                        "1 16 8 0\n"
                        "1 16 16 0\n"
                        "0 16 17 0\n"
                        "1 (nil) 0 0\n"
                        "layer 4 forward start\n"
                        "1 32 8",
                        &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "free-of-unknown-address"), 1);
    assert_int_equal(frag_test_found(&findings, "address-served-again"), 1);
    assert_int_equal(frag_test_found(&findings, "free-of-other-size"), 1);
    assert_int_equal(frag_test_found(&findings, "request-of-nothing"), 1);
    assert_int_equal(frag_test_found(&findings, "marker-not-known"), 1);
    assert_int_equal(frag_test_found(&findings, "row-cut-off"), 1);
    assert_int_equal(findings.count, 6);
    assert_int_equal(recording.traces[0].event_count, 5);
    frag_recording_destroy(&recording);
}

static void markers_do_not_reach_the_terminal_as_they_are(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("1 16 8 0\nlayer \x1b[31m\x07\n", &recording, &findings);
    assert_int_equal(findings.count, 1);
    assert_string_equal(findings.items[0].first, "layer ?[31m?");
    frag_recording_destroy(&recording);
}

static void requests_of_nothing_are_left_out(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("1 16 0 0\n0 16 0 0\n1 32 8 0\n0 0 8 0\n", &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "request-of-nothing"), 3);
    assert_int_equal(findings.count, 1);
    assert_int_equal(recording.traces[0].event_count, 1);
    frag_recording_destroy(&recording);
}

static void a_marker_begins_with_a_letter(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("1 16 8 0\nA\nZ\na\nz\n", &recording, &findings);
    assert_int_equal(recording.traces[0].event_count, 5);
    assert_string_equal(frag_strings_get(&recording.strings, recording.traces[0].events[2].slot),
                        "Z");
    frag_recording_destroy(&recording);
}

static void bad_lines_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint64_t column;
    } cases[] = {
        {"1 16 8\n", 0},
        {"1 16 8 0 0\n", 0},
        {"2 16 8 0\n", 1},
        {"-1 16 8 0\n", 1},
        {"1 7f8a40000000 8 0\n", 3},
        {"1 0x 8 0\n", 3},
        {"1 0x10000000000000000 8 0\n", 3},
        {"1 18446744073709551616 8 0\n", 3},
        {"1 0 8 0\n", 3},
        {"1 16 72057594037927936 0\n", 6},
        {"1 16 -8 0\n", 6},
        {"0 16 8 main\n", 8},
        {"\x80\x05\x95\n", 1},
        {"@\n", 1},
        {"[\n", 1},
        {"`\n", 1},
        {"{\n", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256] = "1 1024 8 0\n";
        strcat(text, cases[i].line);
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (frag_test_load(text, strlen(text), FRAG_FORMAT_AUTO, &recording, &findings, &error))
            fail_msg("%s was taken", cases[i].line);
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_int_equal(error.line, 2);
        if (error.column != cases[i].column)
            fail_msg("%s: column %llu", cases[i].line, (unsigned long long)error.column);
        assert_null(recording.traces);
    }
}

static void a_line_without_end_is_refused(void **state)
{
    (void)state;
    static char text[1 << 17] = "1 1024 8 0\n";
    memset(text + strlen(text), '1', sizeof text - 1 - strlen(text));
    frag_recording recording;
    frag_findings findings;
    frag_error error = {0};
    assert_false(
        frag_test_load(text, sizeof text - 1, FRAG_FORMAT_STALLOC, &recording, &findings, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_int_equal(error.line, 2);
}

static void files_without_requests_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "Iteration Index : 0\nend\n"};
    static const uint64_t lines[] = {1, 2, 2}; /* the last one */
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        assert_false(frag_test_load(texts[i], strlen(texts[i]), FRAG_FORMAT_STALLOC, &recording,
                                    &findings, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_non_null(strstr(error.sentence, "no request"));
        assert_int_equal(error.line, lines[i]);
    }
}

/* The figures are those that the script that wrote the sample counted. */
static void the_sample_has_what_was_written(void **state)
{
    (void)state;
    frag_load_options options = {.format = FRAG_FORMAT_AUTO};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    assert_true(frag_recording_load("tests/data/exchange/stalloc.txt", &options, &recording,
                                    &findings, &error));
    assert_int_equal(recording.traces[0].event_count, 244);
    assert_int_equal(recording.traces[0].stats.request_count, 120);
    assert_int_equal(recording.traces[0].stats.peak_requested_bytes, 179044352);
    assert_int_equal(findings.count, 0);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_requests_and_markers_marks),
        cmocka_unit_test(logs_are_known_by_their_first_call),
        cmocka_unit_test(what_does_not_fit_together_is_counted),
        cmocka_unit_test(markers_do_not_reach_the_terminal_as_they_are),
        cmocka_unit_test(requests_of_nothing_are_left_out),
        cmocka_unit_test(a_marker_begins_with_a_letter),
        cmocka_unit_test(bad_lines_are_refused_with_their_place),
        cmocka_unit_test(a_line_without_end_is_refused),
        cmocka_unit_test(files_without_requests_are_refused),
        cmocka_unit_test(the_sample_has_what_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
