/* Tests of rmm_log.c: CSV and text logs of RMM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"
#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)

static void rows_become_requests_with_their_streams_and_times(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(HEADER "7,00:00:01.000002,allocate,0x7f8a40000000,1000,0x0\n"
                               "8,00:00:02.5,allocate,0x7f8a40000400,24,7f3c\n"
                               "7,00:00:03:000001,free,0x7f8a40000000,1000,0x7f3c\n"
                               "7,00:00:04.0,allocate failure,(nil),4096,0x0\n",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_string_equal(frag_recording_get(&recording, "source"), "rmm-log");
    assert_int_equal(findings.count, 0);
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->events[0].bytes, 1000);
    assert_int_equal(trace->addresses[0], 0x7f8a40000000);
    assert_int_equal(trace->times_ns[0], SECOND_NS + 2000);
    assert_int_equal(trace->times_ns[1], 2 * SECOND_NS + SECOND_NS / 2);
    assert_int_equal(trace->times_ns[2], 3 * SECOND_NS + 1000);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[0].stream), 0);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[1].stream), 0x7f3c);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[2].stream), 0x7f3c);
    assert_int_equal(trace->events[3].flags, FRAG_EVENT_FAILED);
    assert_int_equal(trace->events[3].bytes, 4096);
    assert_int_equal(trace->stats.peak_requested_bytes, 1024);
    frag_recording_destroy(&recording);
}

static void rows_written_late_go_where_their_times_say(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(HEADER "1,10:00:00.3,free,0x10,8,0\n"
                               "2,10:00:00.1,allocate,0x10,8,0\n"
                               "2,10:00:00.2,allocate,0x20,9,0\n",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(frag_test_found(&findings, "row-out-of-order"), 2);
    assert_int_equal(frag_findings_inconsistencies(&findings), 0);
    assert_int_equal(trace->event_count, 3);
    assert_int_equal(trace->events[0].bytes, 8);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    frag_recording_destroy(&recording);
}

static void days_begin_at_midnight(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(HEADER "1,23:59:59.9,allocate,0x10,8,0\n"
                               "1,00:00:00.2,allocate,0x20,9,0\n"
                               "2,23:59:59.95,free,0x10,8,0\n"
                               "1,00:00:01,free,0x20,9,0\n",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(frag_test_found(&findings, "row-out-of-order"), 1);
    assert_int_equal(findings.count, 1);
    assert_int_equal(trace->events[1].op, FRAG_OP_FREE);
    assert_int_equal(trace->times_ns[2], DAY_NS + SECOND_NS / 5);
    assert_int_equal(trace->times_ns[3], DAY_NS + SECOND_NS);
    frag_recording_destroy(&recording);
}

static void a_clock_that_is_set_back_does_not_turn_rows_around(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(HEADER "1,03:00:00,allocate,0x10,8,0\n"
                               "1,02:00:00,free,0x10,8,0\n"
                               "1,02:00:05,allocate,0x20,9,0\n",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(frag_test_found(&findings, "clock-set-back"), 1);
    assert_int_equal(trace->events[1].op, FRAG_OP_FREE);
    assert_int_equal(trace->times_ns[2] - trace->times_ns[0], 5 * SECOND_NS);
    frag_recording_destroy(&recording);
}

/* Up to a minute before the time above it a row was written late; beyond that the clock went back;
 * and half a day before, a day has begun. */
static void how_much_earlier_a_row_is_tells_why(void **state)
{
    (void)state;
    static const struct {
        const char *time;
        uint64_t late;
        uint64_t set_back;
        uint64_t last_ns; /* time of the last event, from midnight */
    } cases[] = {
        {"13:00:00", 0, 0, 13 * 3600 * SECOND_NS},
        {"12:59:59.999999999", 1, 0, 13 * 3600 * SECOND_NS},
        {"12:59:00", 1, 0, 13 * 3600 * SECOND_NS},
        {"12:58:59.999999999", 0, 1, 13 * 3600 * SECOND_NS},
        {"01:00:00", 0, 1, 13 * 3600 * SECOND_NS},
        {"00:59:59.999999999", 0, 0, DAY_NS + 3600 * SECOND_NS - 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        frag_recording recording;
        frag_findings findings;
        snprintf(text, sizeof text, HEADER "1,13:00:00,allocate,0x10,8,0\n1,%s,allocate,0x20,9,0\n",
                 cases[i].time);
        frag_test_load_well(text, &recording, &findings);
        assert_int_equal(frag_test_found(&findings, "row-out-of-order"), cases[i].late);
        assert_int_equal(frag_test_found(&findings, "clock-set-back"), cases[i].set_back);
        assert_int_equal(recording.traces[0].times_ns[1], cases[i].last_ns);
        frag_recording_destroy(&recording);
    }
}

static void what_does_not_fit_together_is_counted(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(HEADER "1,00:00:01,free,0x10,8,0\n"
                               "1,00:00:02,allocate,0x10,8,0\n"
                               "1,00:00:03,allocate,0x10,16,0\n"
                               "1,00:00:04,free,0x10,17,0\n"
                               "1,00:00:05,allocate,(nil),0,0\n"
                               "1,00:00:06,free,(nil),0,0\n"
                               "1,00:00:07,allo",
                        &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "free-of-unknown-address"), 1);
    assert_int_equal(frag_test_found(&findings, "address-served-again"), 1);
    assert_int_equal(frag_test_found(&findings, "free-of-other-size"), 1);
    assert_int_equal(frag_test_found(&findings, "request-of-nothing"), 2);
    assert_int_equal(frag_test_found(&findings, "row-cut-off"), 1);
    assert_int_equal(frag_findings_inconsistencies(&findings), 2);
    assert_int_equal(recording.traces[0].event_count, 4);
    assert_int_equal(recording.traces[0].stats.end_requested_bytes, 0);
    frag_recording_destroy(&recording);
}

static void bad_rows_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        uint64_t column;
    } cases[] = {
        {"1,00:00:01,allocate,0x10,8\n", 0},
        {"1,00:00:01,allocate,0x10,8,0,0\n", 0},
        {"x,00:00:01,allocate,0x10,8,0\n", 1},
        {"1,24:00:01,allocate,0x10,8,0\n", 3},
        {"1,00:60:01,allocate,0x10,8,0\n", 3},
        {"1,00:01,allocate,0x10,8,0\n", 3},
        {"1,00:00:01.1234567890,allocate,0x10,8,0\n", 3},
        {"1,00:00:01.1.1,allocate,0x10,8,0\n", 3},
        {"1,,allocate,0x10,8,0\n", 3},
        {"1,00:00:01,grow,0x10,8,0\n", 12},
        {"1,00:00:01,allocate,0xg,8,0\n", 21},
        {"1,00:00:01,allocate,0x,8,0\n", 21},
        {"1,00:00:01,allocate,0x10000000000000000,8,0\n", 21},
        {"1,00:00:01,allocate,(nil),8,0\n", 21},
        {"1,00:00:01,allocate,0x10,-8,0\n", 26},
        {"1,00:00:01,allocate,0x10,72057594037927936,0\n", 26},
        {"1,00:00:01,allocate,0x10,8,\n", 28},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256] = HEADER "1,00:00:00,allocate,0x8,8,0\n";
        strcat(text, cases[i].row);
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (frag_test_load(text, strlen(text), FRAG_FORMAT_AUTO, &recording, &findings, &error))
            fail_msg("%s was taken", cases[i].row);
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_int_equal(error.line, 3);
        if (error.column != cases[i].column)
            fail_msg("%s: column %llu", cases[i].row, (unsigned long long)error.column);
        assert_null(recording.traces);
    }
}

static void the_sample_runs_to_its_failed_request(void **state)
{
    (void)state;
    frag_load_options options = {.format = FRAG_FORMAT_AUTO};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    assert_true(frag_recording_load("tests/data/exchange/rmm.csv", &options, &recording, &findings,
                                    &error));
    assert_int_equal(frag_test_found(&findings, "row-out-of-order"), 1);
    assert_int_equal(findings.count, 1);
    assert_int_equal(recording.traces[0].stats.failed_count, 1);
    assert_int_equal(recording.traces[0].event_count, 66);
    frag_recording_destroy(&recording);
}

#define LINE(time, text) "[ 24740][16:33:00:" time "]" text "\n"

static void a_text_log_of_level_trace_is_read_too(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(
        LINE("198816", "[info  ] ----- RMM LOG BEGIN [PTDS DISABLED] -----")
            LINE("198861", "[trace ] [A][stream 0x1][1024B]")
                LINE("198862", "[debug ] [A][Stream 0x1][Upstream 2097152B]")
                    LINE("198863", "[trace ] [A][stream 0x1][1024B][0x7f8a40000000]") LINE(
                        "198864",
                        "[trace ] [Summary][Free lists: 1][Blocks: 1][Max Block: 8][Total Free: 8]")
                        LINE("198865", "[debug ] [A][Stream 0x2][64B][Taken from stream 0x1]")
                            LINE("198870", "[trace ] [A][stream 0x2][256B][0x7f8a40100000]")
                                LINE("198871", "[trace ] [D][stream 0x1][1024B][0x7f8a40000000]")
                                    LINE("198880", "[error ] [A][Stream 0x2][Upstream "
                                                   "512B][FAILURE maximum pool size exceeded: x]"),
        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(findings.count, 0);
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->events[0].bytes, 1024);
    assert_int_equal(trace->addresses[0], 0x7f8a40000000);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[1].stream), 2);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(trace->events[3].flags, FRAG_EVENT_FAILED);
    assert_int_equal(trace->events[3].bytes, 512);
    assert_int_equal(trace->times_ns[0], UINT64_C(59580198863000));
    frag_recording_destroy(&recording);
}

static void bad_lines_of_a_text_log_are_refused(void **state)
{
    (void)state;
#define SERVED LINE("198863", "[trace ] [A][stream 0x1][1024B][0x7f8a40000000]")
    static const struct {
        const char *text;
        uint64_t line;
        const char *sentence;
    } cases[] = {
        {SERVED LINE("1988639999", "[trace ] [D][stream 0x1][1024B][0x7f8a40000000]"), 2, "a time"},
        {SERVED LINE("198863", "[trace ] [D][stream 0xg][1024B][0x7f8a40000000]"), 2, "a stream"},
        {SERVED LINE("198863", "[trace ] [D][stream 0x1][1024][0x7f8a40000000]"), 2, "bytes such"},
        {SERVED LINE("198863", "[trace ] [D][stream 0x1][1024B][0xzz]"), 2, "a pointer"},
        {SERVED LINE("198863", "[error ] [A][S][Upstream 8B][FAILURE x]"), 2, "a stream"},
        {SERVED LINE("198863", "[error ] [A][Stream 0x1][8B][FAILURE x]"), 2, "bytes such"},
        {LINE("198816", "[info  ] ----- RMM LOG BEGIN [PTDS DISABLED] -----"), 0,
         "RMM's log of failures"},
        {LINE("198816", "[error ] [A][Stream 0x1][Upstream 8B][FAILURE max pool size exceeded]"), 0,
         "RMM's log of failures"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (frag_test_load(cases[i].text, strlen(cases[i].text), FRAG_FORMAT_AUTO, &recording,
                           &findings, &error))
            fail_msg("%s was taken", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_int_equal(error.line, cases[i].line);
        if (strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s: %s", cases[i].text, error.sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_requests_with_their_streams_and_times),
        cmocka_unit_test(rows_written_late_go_where_their_times_say),
        cmocka_unit_test(days_begin_at_midnight),
        cmocka_unit_test(a_clock_that_is_set_back_does_not_turn_rows_around),
        cmocka_unit_test(how_much_earlier_a_row_is_tells_why),
        cmocka_unit_test(what_does_not_fit_together_is_counted),
        cmocka_unit_test(bad_rows_are_refused_with_their_place),
        cmocka_unit_test(the_sample_runs_to_its_failed_request),
        cmocka_unit_test(a_text_log_of_level_trace_is_read_too),
        cmocka_unit_test(bad_lines_of_a_text_log_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
