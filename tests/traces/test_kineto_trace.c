/* Tests of kineto_trace.c: memory events of PyTorch's profiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/codec.h"
#include "base/memory.h"
#include "tests/support/text_recording.h"

#define MEMORY(ts, device, address, bytes)                                                         \
    "{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":" ts                                               \
    ",\"args\":{\"Device Type\":1,\"Device Id\":" device ",\"Addr\":" address ",\"Bytes\":" bytes  \
    "}}"

/* As PyTorch 1.8 to 1.10 wrote it. */
#define NO_ADDRESS(ts, bytes)                                                                      \
    "{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":" ts                                               \
    ",\"args\":{\"Device Type\":1,\"Device Id\":0,\"Bytes\":" bytes "}}"

static void releases_without_addresses_are_paired_by_size(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    static const char text[] =
        "[" NO_ADDRESS("1", "512") ",\n" NO_ADDRESS("2", "1024") ",\n" NO_ADDRESS(
            "3", "512") ",\n" NO_ADDRESS("4", "-512") ",\n"           /* of the first */
        NO_ADDRESS("5", "-1024") ",\n" NO_ADDRESS("6", "-2048") ",\n" /* of none */
        NO_ADDRESS("7", "-512") "]";
    frag_test_load_well(text, &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    static const uint32_t slots[] = {0, 1, 2, 0, 1, 2};
    assert_int_equal(trace->event_count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(trace->events[i].slot, slots[i]);
        assert_int_equal(trace->events[i].op, i < 3 ? FRAG_OP_ALLOC : FRAG_OP_FREE);
    }
    assert_null(trace->addresses);
    assert_int_equal(frag_test_found(&findings, "release-paired-by-size"), 1);
    assert_int_equal(frag_test_found(&findings, "free-of-unknown-size"), 1);
    assert_int_equal(frag_findings_inconsistencies(&findings), 0);
    assert_string_equal(frag_recording_get(&recording, FRAG_GUESSED_KEY), FRAG_GUESSED_PAIRS);
    frag_recording_destroy(&recording);
}

static void each_device_is_a_trace_in_order_of_time(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(
        "[" MEMORY("3.5", "1", "4096", "-512") ",\n" MEMORY("2", "0", "64", "1024") "," MEMORY(
            "1.25", "1", "4096", "512") ", {\"name\":\"other\",\"args\":{\"x\":NaN}},"
                                        "{\"name\":\"[OutOfMemory]\",\"ts\":9,\"args\":"
                                        "{\"Device Type\":1,\"Device Id\":0,\"Bytes\":77}}]",
        &recording, &findings);
    assert_int_equal(findings.count, 0);
    assert_int_equal(recording.trace_count, 2);
    assert_string_equal(frag_recording_get(&recording, "source"), "kineto");
    const frag_trace *first = &recording.traces[0];
    const frag_trace *second = &recording.traces[1];
    assert_int_equal(first->device, 0);
    assert_int_equal(first->event_count, 2);
    assert_int_equal(first->events[0].bytes, 1024);
    assert_int_equal(first->events[1].flags, FRAG_EVENT_FAILED);
    assert_int_equal(first->events[1].bytes, 77);
    assert_int_equal(second->device, 1);
    assert_int_equal(second->events[0].op, FRAG_OP_ALLOC);
    assert_int_equal(second->events[1].op, FRAG_OP_FREE);
    assert_int_equal(second->times_ns[0], 1250);
    assert_int_equal(second->addresses[0], 4096);
    frag_recording_destroy(&recording);
}

/* What the trace calls its base is added to every time; what is no time is left out. */
static void times_are_counted_from_the_base(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        uint64_t time_ns;
    } cases[] = {
        {"7", 2507},
        {"1712345678123456789", UINT64_C(1712345678123459289)},
        {"9223372036854775807", 2500}, /* with what follows it would not fit */
        {"12x", 2500},
        {"-5", 2500},
        {"\"100\"", 2500},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_recording recording;
        frag_findings findings;
        char text[1024];
        snprintf(text, sizeof text, "{\"baseTimeNanoseconds\":%s,\"traceEvents\":[%s]}",
                 cases[i].base, MEMORY("2.5", "0", "64", "512"));
        frag_test_load_well(text, &recording, &findings);
        if (recording.traces[0].times_ns[0] != cases[i].time_ns)
            fail_msg("%s: %llu", cases[i].base,
                     (unsigned long long)recording.traces[0].times_ns[0]);
        frag_recording_destroy(&recording);
    }
}

static void memory_of_the_cpu_is_read_where_there_is_no_other(void **state)
{
    (void)state;
    static const char cpu[] =
        "{\"name\":\"[memory]\",\"ts\":5,\"args\":{\"Device Type\":0,"
        "\"Device Id\":-1,\"Addr\":64,\"Bytes\":100,\"Total Allocated\":140}}";
    frag_recording recording;
    frag_findings findings;
    char text[1024];
    snprintf(text, sizeof text, "{\"traceEvents\":[%s],\"baseTimeNanoseconds\":7}", cpu);
    frag_test_load_well(text, &recording, &findings);
    assert_string_equal(frag_recording_get(&recording, "kineto.memory_of"), "cpu");
    assert_int_equal(recording.traces[0].events[0].bytes, 100);
    assert_int_equal(recording.traces[0].times_ns[0], 5007);
    assert_int_equal(frag_test_found(&findings, "live-before-recording"), 1);
    frag_recording_destroy(&recording);

    snprintf(text, sizeof text, "[%s,%s]", cpu, MEMORY("1", "2", "64", "512"));
    frag_test_load_well(text, &recording, &findings);
    assert_int_equal(recording.trace_count, 1);
    assert_int_equal(recording.traces[0].device, 2);
    assert_int_equal(recording.traces[0].event_count, 1);
    assert_int_equal(frag_test_found(&findings, "memory-of-the-cpu"), 1);
    frag_recording_destroy(&recording);
}

static void what_does_not_fit_together_is_counted(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(
        "[" MEMORY("1", "0", "64", "-512") "," MEMORY("2", "0", "64", "512") "," MEMORY(
            "3", "0", "64", "1024") "," MEMORY("4", "0", "64", "-512") "," MEMORY("5", "0", "0",
                                                                                  "0"),
        &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "free-of-unknown-address"), 1);
    assert_int_equal(frag_test_found(&findings, "address-served-again"), 1);
    assert_int_equal(frag_test_found(&findings, "free-of-other-size"), 1);
    assert_int_equal(frag_test_found(&findings, "request-of-nothing"), 1);
    assert_int_equal(frag_test_found(&findings, "array-not-closed"), 1);
    assert_int_equal(recording.traces[0].event_count, 4);
    frag_recording_destroy(&recording);
}

static void the_sample_is_the_same_inside_gzip(void **state)
{
    (void)state;
    frag_load_options options = {.format = FRAG_FORMAT_AUTO, .with_columns = true};
    frag_recording recording;
    frag_recording packed;
    frag_findings findings = {0};
    frag_error error = {0};
    assert_true(frag_recording_load("tests/data/exchange/kineto.json", &options, &recording,
                                    &findings, &error));
    assert_int_equal(recording.trace_count, 2);
    assert_int_equal(recording.traces[0].stats.failed_count, 1);
    assert_int_equal(frag_test_found(&findings, "live-before-recording"), 1);
    assert_int_equal(frag_test_found(&findings, "memory-of-the-cpu"), 7);
    assert_int_equal(findings.count, 2);
    frag_input *input = frag_input_open("tests/data/exchange/kineto.json", &error);
    const unsigned char *bytes = NULL;
    size_t count = 0;
    assert_true(frag_input_peek(input, 1 << 20, &bytes, &count, &error));
    size_t packed_count = 0;
    void *gzip = frag_codec_pack(FRAG_CODEC_GZIP, bytes, count, &packed_count);
    frag_input_close(input);
    assert_true(frag_test_load(gzip, packed_count, FRAG_FORMAT_AUTO, &packed, &findings, &error));
    assert_string_equal(packed.traces[0].digest, recording.traces[0].digest);
    assert_string_equal(packed.traces[1].digest, recording.traces[1].digest);
    free(gzip);
    frag_recording_destroy(&packed);
    frag_recording_destroy(&recording);
}

static void long_events_and_files_go_through_the_window(void **state)
{
    (void)state;
    size_t filler = 200000;
    char *text = frag_alloc(filler + 1024, 1);
    strcpy(text, "[{\"ph\":\"i\",\"name\":\"[memory] not\",\"x\":\"");
    size_t length = strlen(text);
    memset(text + length, 'y', filler);
    strcpy(text + length + filler, "\\\"]\"},\n" MEMORY("1", "0", "64", "512") "]");
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well(text, &recording, &findings);
    assert_int_equal(recording.traces[0].event_count, 1);
    frag_recording_destroy(&recording);
    free(text);
}

static void what_is_missing_is_told_from_what_is_of_another_kind(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *sentence;
    } cases[] = {
        {"[{\"name\":\"[memory]\",\"args\":{}}]",
         "\"ts\" of the event is missing; expected microseconds"},
        {"[{\"name\":\"[memory]\",\"ts\":\"1\",\"args\":{}}]",
         "\"ts\" of the event is \"1\"; expected microseconds"},
        {"[{\"name\":\"[memory]\",\"ts\":1}]",
         "\"args\" of the event is missing; expected an object"},
        {"[{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Device Id\":0,\"Device Type\":\"1\"}}]",
         "\"Device Type\" of the event is \"1\"; expected a whole number from 0 to 255"},
        {"[" MEMORY("1", "0", "[]", "8") "]",
         "\"Addr\" of the event is an array; expected an address"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        assert_false(frag_test_load(cases[i].text, strlen(cases[i].text), FRAG_FORMAT_KINETO,
                                    &recording, &findings, &error));
        assert_string_equal(error.sentence, cases[i].sentence);
    }
}

static void bad_traces_are_refused_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t line;
        const char *part; /* of the sentence */
    } cases[] = {
        {"[\n{\"name\":\"x\"}]", 0, ""}, /* no event of memory */
        {"{\"traceEvents\":[]}", 0, ""},
        {"{\"traceEvents\":[\n{\"name\":1}\n", 3, "the file ends early; expected "},
        {"[{\"name\":[\"x\",\n\"y", 2, "the file ends early; expected the end of a text"},
        {"{\"traceEvents\":{}}", 1, ""},
        {"{\"traceEvents\":[\n3]}", 2, ""},
        {"[{\"name\":\"x\"}\n{\"name\":\"y\"}]", 2, ""},
        {"[{\"name\":\"x\"]]", 1, "found ']'; expected "},
        {"[{\"name\":\"x\"}\x01]", 1, "found byte 0x01; expected "},
        {"[{\"name\":\"x\"}]\n\n7", 3, "found '7'; expected "},
        {"[{\"name\":\"[memory]\"\n", 2, ""},
        {"[{}\n,{\"name\":\"[memory]\",\"ts\":x}]", 2, ""},
        {"[{}\n,{\"name\":\"[memory]\",\"args\":{}}]", 2, ""},
        {"[{}\n,{\"name\":\"[memory]\",\"ts\":-1,\"args\":{}}]", 2, ""},
        {"[{}\n,{\"name\":\"[memory]\",\"ts\":1,\"args\":3}]", 2, ""},
        {"[{}\n," NO_ADDRESS("1", "8") "," MEMORY("1", "0", "64", "8") "]", 2, ""},
        {"[{}\n," MEMORY("1", "0", "\"64\"", "8") "]", 2, ""},
        {"[{}\n," MEMORY("1", "-1", "64", "8") "]", 2, ""},
        {"[{}\n," MEMORY("1", "0", "64", "\"8\"") "]", 2, ""},
        {"[{}\n," MEMORY("1", "0", "64", "72057594037927936") "]", 2, ""},
        {"[{}\n," MEMORY("1", "65536", "64", "8") "]", 2, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (frag_test_load(cases[i].text, strlen(cases[i].text), FRAG_FORMAT_KINETO, &recording,
                           &findings, &error))
            fail_msg("%s was taken", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (error.line != cases[i].line || strstr(error.sentence, cases[i].part) == NULL)
            fail_msg("%s: line %llu: %s", cases[i].text, (unsigned long long)error.line,
                     error.sentence);
        assert_null(recording.traces);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_without_addresses_are_paired_by_size),
        cmocka_unit_test(each_device_is_a_trace_in_order_of_time),
        cmocka_unit_test(times_are_counted_from_the_base),
        cmocka_unit_test(memory_of_the_cpu_is_read_where_there_is_no_other),
        cmocka_unit_test(what_does_not_fit_together_is_counted),
        cmocka_unit_test(the_sample_is_the_same_inside_gzip),
        cmocka_unit_test(long_events_and_files_go_through_the_window),
        cmocka_unit_test(what_is_missing_is_told_from_what_is_of_another_kind),
        cmocka_unit_test(bad_traces_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
