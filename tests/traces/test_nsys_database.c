/* Tests of nsys_database.c: databases of NVIDIA's profilers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/database_bytes.h"
#include "tests/support/text_recording.h"
#include "traces/exchange/nsys_database.h"

#define EVENTS                                                                                     \
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, globalPid INT, deviceId INT, "           \
    "contextId INT, address INT, pc INT, bytes INT, memKind INT, memoryOperationType INT, "        \
    "name INT, correlationId INT, streamId INT, localMemoryPoolAddress INT);"                      \
    "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES "
/* globalPid of processes 41 and 42 */
#define P41 "687865856"
#define P42 "704643072"

static bool load_as(const char *statements, frag_trace_format format, frag_recording *recording,
                    frag_findings *findings, frag_error *error)
{
    size_t count = 0;
    unsigned char *bytes = frag_database_bytes(statements, &count);
    bool ok = frag_test_load(bytes, count, format, recording, findings, error);
    free(bytes);
    return ok;
}

static void load_well(const char *statements, frag_recording *recording, frag_findings *findings)
{
    frag_error error;
    if (!load_as(statements, FRAG_FORMAT_AUTO, recording, findings, &error))
        fail_msg("%s", error.sentence);
}

static void events_become_requests_in_the_order_of_their_times(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    load_well("CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INT);"
              "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000);" EVENTS "(30, " P41
              ", 0, 1, 4096, 0, 512, 2, 1, 0, 9, 4294967295, 0),"
              "(10, " P41 ", 0, 1, 4096, 0, 512, 2, 0, 0, 8, 4294967295, 0),"
              "(20, " P41 ", 0, 1, 8192, 0, 700, 2, 0, 0, 8, 13, 77),"
              "(20, " P41 ", 1, 1, 12288, 0, 99, 2, 0, 0, 8, NULL, NULL)",
              &recording, &findings);
    assert_int_equal(findings.count, 0);
    assert_int_equal(recording.trace_count, 2);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(trace->event_count, 3);
    assert_int_equal(trace->events[0].op, FRAG_OP_ALLOC);
    assert_int_equal(trace->events[0].bytes, 512);
    assert_int_equal(trace->addresses[0], 4096);
    assert_int_equal(trace->times_ns[0], 1010);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[0].stream), 0);
    assert_int_equal(trace->events[1].bytes, 700);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[1].stream), 13);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(trace->times_ns[2], 1030);
    assert_int_equal(trace->stats.peak_requested_bytes, 1212);
    assert_int_equal(recording.traces[1].device, 1);
    assert_int_equal(recording.traces[1].events[0].bytes, 99);
    assert_string_equal(frag_recording_get(&recording, "source"), "nsys");
    assert_string_equal(frag_recording_get(&recording, "nsys.trace.1"), "process 41, device 1");
    frag_recording_destroy(&recording);
}

static void older_exports_lack_columns(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    load_well("CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcTime TEXT);"
              "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ('noon');"
              "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INT, deviceId INT, address INT, "
              "bytes INT, memKind INT, memoryOperationType INT);"
              "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (10, 0, 4096, 512, 2, 0)",
              &recording, &findings);
    assert_int_equal(recording.traces[0].event_count, 1);
    assert_int_equal(recording.traces[0].times_ns[0], 10);
    assert_string_equal(frag_recording_get(&recording, "nsys.trace.0"), "process 0, device 0");
    frag_recording_destroy(&recording);
}

static void memory_that_is_no_device_memory_is_left_out_and_counted(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    load_well(EVENTS "(1, " P41 ", 0, 1, 4096, 0, 1, 0, 0, 0, 1, 0, 0),"
                     "(2, " P41 ", 0, 1, 4096, 0, 1, 1, 0, 0, 1, 0, 0),"
                     "(3, " P41 ", 0, 1, 4096, 0, 1, 1, 1, 0, 1, 0, 0),"
                     "(4, " P41 ", 0, 1, 4096, 0, 1, 3, 0, 0, 1, 0, 0),"
                     "(5, " P41 ", 0, 1, 4096, 0, 1, 4, 0, 0, 1, 0, 0),"
                     "(6, " P41 ", 0, 1, 4096, 0, 1, 5, 0, 0, 1, 0, 0),"
                     "(7, " P41 ", 0, 1, 4096, 0, 1, 6, 0, 0, 1, 0, 0),"
                     "(8, " P41 ", 0, 1, 4096, 0, 1, 7, 0, 0, 1, 0, 0),"
                     "(9, " P41 ", 0, 1, 8192, 0, 1, 2, 1, 0, 1, 0, 0),"
                     "(9, " P41 ", 0, 1, 4096, 0, 8, 2, 0, 0, 1, 0, 0),"
                     "(9, " P41 ", 0, 1, 4096, 0, 9, 2, 0, 0, 1, 0, 0)",
              &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "memory-of-the-host"), 1);
    assert_int_equal(frag_test_found(&findings, "memory-of-the-host-pinned"), 2);
    assert_int_equal(frag_test_found(&findings, "memory-of-arrays"), 1);
    assert_int_equal(frag_test_found(&findings, "managed-memory"), 1);
    assert_int_equal(frag_test_found(&findings, "static-memory"), 1);
    assert_int_equal(frag_test_found(&findings, "static-managed-memory"), 1);
    assert_int_equal(frag_test_found(&findings, "memory-of-unknown-kind"), 1);
    assert_int_equal(frag_test_found(&findings, "free-of-unknown-address"), 1);
    assert_int_equal(frag_test_found(&findings, "address-served-again"), 1);
    assert_int_equal(findings.count, 9);
    assert_int_equal(recording.traces[0].event_count, 3);
    frag_recording_destroy(&recording);
}

static void processes_never_share_a_trace(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    load_well(EVENTS "(1, " P42 ", 0, 1, 4096, 0, 100, 2, 0, 0, 1, 0, 0),"
                     "(2, " P41 ", 0, 1, 4096, 0, 200, 2, 0, 0, 1, 0, 0),"
                     "(3, " P42 ", 3, 1, 8192, 0, 300, 2, 0, 0, 1, 0, 0),"
                     "(4, " P42 ", 0, 1, 4096, 0, 100, 2, 1, 0, 1, 0, 0)",
              &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "processes-share-a-device"), 1);
    assert_int_equal(findings.count, 1);
    assert_int_equal(recording.trace_count, 3);
    assert_string_equal(frag_recording_get(&recording, "nsys.trace.0"), "process 41, device 0");
    assert_string_equal(frag_recording_get(&recording, "nsys.trace.1"), "process 42, device 0");
    assert_string_equal(frag_recording_get(&recording, "nsys.trace.2"), "process 42, device 3");
    assert_int_equal(recording.traces[0].stats.end_requested_bytes, 200);
    assert_int_equal(recording.traces[1].stats.end_requested_bytes, 0);
    assert_int_equal(recording.traces[2].stats.end_requested_bytes, 300);
    frag_recording_destroy(&recording);
    /* Each with a device of its own, as programs of many cards run: numbers stay. */
    load_well(EVENTS "(1, " P42 ", 0, 1, 4096, 0, 100, 2, 0, 0, 1, 0, 0),"
                     "(2, " P41 ", 5, 1, 4096, 0, 200, 2, 0, 0, 1, 0, 0),"
                     "(3, " P42 ", 7, 1, 4096, 0, 300, 2, 0, 0, 1, 0, 0)",
              &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "processes-share-a-device"), 0);
    assert_int_equal(recording.trace_count, 3);
    assert_int_equal(recording.traces[1].device, 5);
    assert_int_equal(recording.traces[1].events[0].bytes, 200);
    assert_int_equal(recording.traces[2].device, 7);
    frag_recording_destroy(&recording);
}

static void as_segments_they_are_what_an_allocator_got(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    assert_true(load_as(EVENTS "(10, " P41 ", 0, 1, 4096, 0, 512, 2, 0, 0, 8, 0, 0),"
                               "(20, " P41 ", 0, 1, 4096, 0, 512, 2, 1, 0, 8, 0, 0)",
                        FRAG_FORMAT_DEVICE_SEGMENTS, &recording, &findings, &error));
    assert_int_equal(recording.traces[0].event_count, 2);
    assert_int_equal(recording.traces[0].events[0].op, FRAG_OP_SEGMENT_ALLOC);
    assert_int_equal(recording.traces[0].events[1].op, FRAG_OP_SEGMENT_FREE);
    frag_recording_destroy(&recording);
}

static void bad_rows_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *says;
    } cases[] = {
        {"(-1, 0, 0, 1, 4096, 0, 512, 2, 0, 0, 8, 0, 0)", "has -1 in \"start\""},
        {"(1, 0, 256, 1, 4096, 0, 512, 2, 0, 0, 8, 0, 0)", "has 256 in \"deviceId\""},
        {"(1, 0, -1, 1, 4096, 0, 512, 2, 0, 0, 8, 0, 0)", "has -1 in \"deviceId\""},
        {"(1, 0, 0, 1, 0, 0, 512, 2, 0, 0, 8, 0, 0)", "has 0 in \"address\""},
        {"(1, 0, 0, 1, 4096, 0, 72057594037927936, 2, 0, 0, 8, 0, 0)",
         "has 72057594037927936 in \"bytes\""},
        {"(1, 0, 0, 1, 4096, 0, -5, 2, 0, 0, 8, 0, 0)", "has -5 in \"bytes\""},
        {"(1, 0, 0, 1, 4096, 0, 512, 8, 0, 0, 8, 0, 0)", "has 8 in \"memKind\""},
        {"(1, 0, 0, 1, 4096, 0, 512, 2, 2, 0, 8, 0, 0)", "has 2 in \"memoryOperationType\""},
        {"(1, 0, 0, 1, 4096, 0, 512, 2, 0, 0, 8, -7, 0)", "has -7 in \"streamId\""},
        {"(1, 0, 0, 1, 4096, 0, '1 GiB', 2, 0, 0, 8, 0, 0)", "has text in \"bytes\""},
        {"(NULL, 0, 0, 1, 4096, 0, 5, 2, 0, 0, 8, 0, 0)", "has nothing in \"start\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char statements[1024];
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        snprintf(statements, sizeof statements,
                 EVENTS "(1, 0, 0, 1, 1024, 0, 512, 2, 0, 0, 8, 0, 0), %s", cases[i].row);
        if (load_as(statements, FRAG_FORMAT_AUTO, &recording, &findings, &error))
            fail_msg("taken: %s", cases[i].row);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (strstr(error.sentence, "row 2 of the table CUDA_GPU_MEMORY_USAGE_EVENTS") == NULL ||
            strstr(error.sentence, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].row, error.sentence);
        assert_null(recording.traces);
    }
}

static void reports_without_memory_say_how_to_get_it(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    assert_false(load_as("CREATE TABLE StringIds(id INT, value TEXT)", FRAG_FORMAT_AUTO, &recording,
                         &findings, &error));
    assert_non_null(strstr(error.sentence, "--cuda-memory-usage=true"));
    assert_false(load_as(EVENTS "(1, 0, 0, 1, 4096, 0, 512, 1, 0, 0, 8, 0, 0)", FRAG_FORMAT_AUTO,
                         &recording, &findings, &error));
    assert_non_null(strstr(error.sentence, "no events of device memory"));
}

/* The figures are those that the script that wrote the sample counted. */
static void the_sample_has_what_was_written(void **state)
{
    (void)state;
    frag_load_options options = {.format = FRAG_FORMAT_AUTO};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    assert_true(frag_recording_load("tests/data/exchange/nsys.sqlite", &options, &recording,
                                    &findings, &error));
    assert_int_equal(recording.trace_count, 2);
    assert_int_equal(recording.traces[0].stats.request_count, 15);
    assert_int_equal(recording.traces[0].stats.peak_requested_bytes, 684720128);
    assert_int_equal(recording.traces[1].stats.request_count, 9);
    assert_int_equal(recording.traces[1].stats.peak_requested_bytes, 658505728);
    assert_int_equal(frag_test_found(&findings, "memory-of-the-host-pinned"), 2);
    assert_int_equal(frag_findings_inconsistencies(&findings), 0);
    frag_recording_destroy(&recording);
}

#define MEMORY                                                                                     \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMORY(_id_ INTEGER PRIMARY KEY, memoryKind INT, address "   \
    "INT, bytes INT, start INT, end INT, allocPC INT, freePC INT, processId INT, deviceId INT, "   \
    "contextId INT, name INT); INSERT INTO CUPTI_ACTIVITY_KIND_MEMORY VALUES "
#define MEMORY2                                                                                    \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMORY2(_id_ INTEGER PRIMARY KEY, memoryOperationType INT, " \
    "memoryKind INT, address INT, bytes INT, timestamp INT, PC INT, processId INT, deviceId INT, " \
    "contextId INT, streamId INT, name INT); INSERT INTO CUPTI_ACTIVITY_KIND_MEMORY2 VALUES "

static void records_of_nvprof_are_an_allocation_and_its_release(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    load_well(MEMORY "(1, 3, 4096, 512, 10, 30, 1, 2, 41, 0, 1, 0),"
                     "(2, 3, 8192, 700, 20, 0, 1, 0, 41, 0, 1, 0),"
                     "(3, 2, 12288, 99, 20, 40, 1, 2, 41, 0, 1, 0),"
                     "(4, 0, 16384, 99, 20, 40, 1, 2, 41, 0, 1, 0)",
              &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_string_equal(frag_recording_get(&recording, "source"), "nvprof");
    assert_string_equal(frag_recording_get(&recording, "nsys.trace.0"), "process 41, device 0");
    assert_int_equal(recording.trace_count, 1);
    assert_int_equal(trace->event_count, 3);
    assert_int_equal(trace->events[0].bytes, 512);
    assert_int_equal(trace->times_ns[0], 10);
    assert_int_equal(trace->events[1].bytes, 700);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(frag_test_found(&findings, "memory-of-the-host-pinned"), 1);
    assert_int_equal(frag_test_found(&findings, "memory-of-unknown-kind"), 1);
    assert_int_equal(findings.count, 2);
    frag_recording_destroy(&recording);
}

static void records_of_cupti_tell_streams(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    load_well(MEMORY2 "(1, 1, 3, 4096, 512, 10, 0, 41, 0, 1, 4294967295, 0),"
                      "(2, 1, 3, 8192, 700, 20, 0, 41, 0, 1, 13, 0),"
                      "(3, 2, 3, 4096, 512, 30, 0, 41, 0, 1, 4294967295, 0)",
              &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(findings.count, 0);
    assert_int_equal(trace->event_count, 3);
    assert_int_equal(frag_trace_stream_handle(trace, trace->events[1].stream), 13);
    assert_int_equal(trace->events[2].op, FRAG_OP_FREE);
    frag_recording_destroy(&recording);
}

static void bad_records_of_cupti_are_named_by_table_row_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *statements;
        const char *sentence;
    } cases[] = {
        {MEMORY "(1, 3, 4096, 512, 30, 10, 1, 2, 41, 0, 1, 0)",
         "row 1 of the table CUPTI_ACTIVITY_KIND_MEMORY has 10 in \"end\""},
        {MEMORY "(1, 8, 4096, 512, 10, 30, 1, 2, 41, 0, 1, 0)", "has 8 in \"memoryKind\""},
        {MEMORY "(1, 3, 0, 512, 10, 30, 1, 2, 41, 0, 1, 0)", "has 0 in \"address\""},
        {MEMORY "(1, 2, 4096, 512, 10, 30, 1, 2, 41, 0, 1, 0)",
         "at least one in the table CUPTI_ACTIVITY_KIND_MEMORY"},
        {MEMORY2 "(1, 0, 3, 4096, 512, 10, 0, 41, 0, 1, 7, 0)",
         "has 0 in \"memoryOperationType\"; expected 1 (allocation) or 2 (release)"},
        {"CREATE TABLE x(y INT)", "nvprof --track-memory-allocations on"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (load_as(cases[i].statements, FRAG_FORMAT_AUTO, &recording, &findings, &error))
            fail_msg("%s was taken", cases[i].statements);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s", error.sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_become_requests_in_the_order_of_their_times),
        cmocka_unit_test(older_exports_lack_columns),
        cmocka_unit_test(memory_that_is_no_device_memory_is_left_out_and_counted),
        cmocka_unit_test(processes_never_share_a_trace),
        cmocka_unit_test(as_segments_they_are_what_an_allocator_got),
        cmocka_unit_test(bad_rows_are_refused_with_their_place),
        cmocka_unit_test(reports_without_memory_say_how_to_get_it),
        cmocka_unit_test(the_sample_has_what_was_written),
        cmocka_unit_test(records_of_nvprof_are_an_allocation_and_its_release),
        cmocka_unit_test(records_of_cupti_tell_streams),
        cmocka_unit_test(bad_records_of_cupti_are_named_by_table_row_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
