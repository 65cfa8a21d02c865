/* Tests of golden_log.c: logs of the allocator libraries themselves. */
#include "traces/golden/golden_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "traces/load.h"

#define HEAD                                                                                       \
    "{\"golden\":\"c10\",\"schema\":1,\"torch\":\"2.9.1\",\"conf\":\"a:b\",\"capacity\":67108864," \
    "\"granularity\":2097152,\"devices\":2,\"va\":\"firstfit\","                                   \
    "\"malloc_base\":\"0x700000000000\",\"vmm_base\":\"0x600000000000\",\"events\":true}\n"
#define END "{\"op\":\"end\",\"done\":0}\n"
#define ALLOC(id, rest)                                                                            \
    "{\"op\":\"alloc\",\"id\":" id ",\"size\":1000,\"stream\":4096,"                               \
    "\"addr\":\"0x700000000000\"" rest "}\n"

static bool read_log(const char *text, frag_golden_log *log, frag_error *error)
{
    *error = (frag_error){0};
    frag_input *input = frag_input_from_memory(text, strlen(text), "log");
    bool ok = frag_golden_log_read(input, log, error);
    frag_input_close(input);
    return ok;
}

static void assert_refused(const char *text, uint64_t line, const char *sentence)
{
    frag_golden_log log;
    frag_error error;
    if (read_log(text, &log, &error))
        fail_msg("accepted: %s", text);
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_string_equal(error.where, "log");
    if (error.line != line || strstr(error.sentence, sentence) == NULL)
        fail_msg("%s\ngave %llu: %s", text, (unsigned long long)error.line, error.sentence);
    assert_null(log.lines);
}

static void keeps_what_a_request_got_and_caused(void **state)
{
    (void)state;
    frag_golden_log log;
    frag_error error;
    assert_true(
        read_log(HEAD ALLOC("0", ",\"dev\":1,\"drv\":[[\"meminfo\",5,6],[\"malloc\",0,4194304,2],"
                                 "[\"malloc\",\"0x710000000000\",2097152,0]],"
                                 "\"ev\":[[\"SA\",\"0x710000000000\",2097152,4096],[\"OOM\",7,8,0]"
                                 "]") "{"
                                      "\"op\":\"alloc\",\"id\":1,\"size\":5,\"stream\":0,\"oom\":{"
                                      "\"message\":\"none left\"}}\n"
                                      "{\"op\":\"record_stream\",\"id\":0,\"stream\":8192}\n{"
                                      "\"op\":\"free\",\"id\":0}\n"
                                      "{\"op\":\"fraction\",\"value\":0.69999999999999996}\n" END,
                 &log, &error));
    assert_string_equal(log.torch, "2.9.1");
    assert_int_equal(log.capacity_bytes, 67108864);
    assert_int_equal(log.line_count, 6);
    const frag_golden_line *alloc = &log.lines[0];
    assert_int_equal(alloc->device, 1);
    assert_int_equal(alloc->address, 0x700000000000);
    assert_int_equal(alloc->stream, 4096);
    assert_int_equal(alloc->calls.count, 2); /* looks are not kept */
    assert_true(log.calls[0].is_refused);
    assert_int_equal(log.calls[1].address, 0x710000000000);
    assert_true(alloc->has_notes);
    assert_int_equal(alloc->notes.count, 2);
    assert_int_equal(log.notes[1].kind, FRAG_GOLDEN_NOTE_OOM);
    assert_int_equal(log.notes[1].address, 7);
    assert_true(log.lines[1].is_oom);
    assert_string_equal(frag_strings_get(&log.strings, log.lines[1].text), "none left");
    assert_int_equal(log.lines[2].owner, 0);
    assert_int_equal(log.lines[3].device, 1); /* of the block */
    assert_int_equal(log.lines[4].bytes, 700000000);
    frag_golden_log_destroy(&log);
}

static void pages_that_adjoin_are_one_call(void **state)
{
    (void)state;
    frag_golden_log log;
    frag_error error;
    assert_true(read_log(HEAD ALLOC("0", ",\"drv\":[[\"create\",2097152,2,0],[\"meminfo\",1,2],"
                                         "[\"create\",2097152,1,0],[\"create\",2097152,1,2],"
                                         "[\"map\",\"0x600000000000\",2097152,1],[\"ssync\",0],"
                                         "[\"map\",\"0x600000200000\",2097152,2],"
                                         "[\"map\",\"0x600000800000\",2097152,1]]") END,
                         &log, &error));
    assert_int_equal(log.call_count, 4);
    assert_int_equal(log.calls[0].count, 3);
    assert_true(log.calls[1].is_refused);
    assert_int_equal(log.calls[2].count, 3);
    assert_int_equal(log.calls[3].count, 1);
    frag_golden_log_destroy(&log);
}

static void statistics_are_named_as_the_framework_names_them(void **state)
{
    (void)state;
    frag_golden_log log;
    frag_error error;
    assert_true(read_log(
        HEAD "{\"op\":\"stats\",\"at\":1,\"dev\":1,\"segment\":[[1,2,3,4],[5,6,7,8],[9,1,2,3]],"
             "\"oversize_segments\":[4,5,6,7],\"max_split_size\":-1}\n" END,
        &log, &error));
    assert_int_equal(log.lines[0].items.count, 17);
    static const struct {
        size_t at;
        const char *name;
        int64_t value;
    } expected[] = {{0, "segment.all.current", 1},          {1, "segment.all.peak", 2},
                    {6, "segment.small_pool.allocated", 7}, {11, "segment.large_pool.freed", 3},
                    {13, "oversize_segments.peak", 5},      {16, "max_split_size", -1}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_string_equal(frag_strings_get(&log.strings, log.figures[expected[i].at].name),
                            expected[i].name);
        assert_int_equal(log.figures[expected[i].at].value, expected[i].value);
    }
    frag_golden_log_destroy(&log);
}

static void what_follows_a_failure_of_the_library_does_not_count(void **state)
{
    (void)state;
    frag_golden_log log;
    frag_error error;
    assert_true(read_log(HEAD ALLOC("0", "") "{\"op\":\"error\",\"message\":\"assertion\"}\nrest",
                         &log, &error));
    assert_int_equal(log.line_count, 2);
    assert_int_equal(log.lines[1].op, FRAG_GOLDEN_ERROR);
    frag_golden_log_destroy(&log);
}

static void refuses_with_line_and_remedy(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t line;
        const char *sentence;
    } cases[] = {
        {"", 1, "the file is empty"},
        {"[1]\n", 1, "not a golden log"},
        {"{\"a\":1}\n", 1, "\"golden\" in its first line"},
        {"{\"golden\":\"jemalloc\",\"version\":\"5.3\"}\n", 1,
         "a log of 'jemalloc', for which there is no policy"},
        {HEAD, 2, "stops without its \"end\" line"},
        {HEAD "{\"op\":\"free\"", 2, "expected a JSON object"},
        {HEAD "\n" END, 2, "expected a JSON object"},
        {HEAD "{\"op\":\"frei\"}\n", 2, "op 'frei' is not known"},
        {HEAD "{\"id\":0}\n", 2, "\"op\" is missing; expected a text"},
        {HEAD "{\"op\":\"free\"}\n", 2, "\"id\" is missing; expected a whole number"},
        {HEAD "{\"op\":\"free\",\"id\":-1}\n", 2, "\"id\" is -1; expected a whole number"},
        {HEAD "{\"op\":\"free\",\"id\":0}\n", 2, "id 0 is not in use"},
        {HEAD ALLOC("0", "") ALLOC("0", ""), 3, "id 0 is in use already"},
        {HEAD ALLOC("4000000000", ""), 2, "expected ids that count up from 0"},
        {HEAD ALLOC("0", ",\"dev\":2"), 2, "\"dev\" is 2;"},
        {HEAD ALLOC("0", ",\"size\":2"), 2, "expected a JSON object (duplicate"},
        {HEAD "{\"op\":\"alloc\",\"id\":0,\"size\":72057594037927936,\"stream\":0,"
              "\"addr\":\"0x0\"}\n",
         2, "expected 0 or 1 to 2^56 - 1, which is more than any GPU can address"},
        {HEAD "{\"op\":\"alloc\",\"id\":0,\"size\":1,\"stream\":0,\"addr\":\"7\"}\n", 2,
         "\"addr\" is \"7\"; expected an address"},
        {HEAD "{\"op\":\"alloc\",\"id\":0,\"size\":1,\"stream\":0,"
              "\"addr\":\"0x4000000000000000\"}\n",
         2, "of 62 bits"},
        {HEAD "{\"op\":\"alloc\",\"id\":0,\"size\":1,\"stream\":0,\"oom\":7}\n", 2,
         "\"oom\" is 7; expected an object with the \"message\""},
        {HEAD "{\"op\":\"alloc\",\"id\":0,\"size\":1,\"stream\":0,\"oom\":{\"message\":[]}}\n", 2,
         "\"oom.message\" is an array; expected a text"},
        {HEAD "{\"op\":\"segment\",\"addr\":\"0x0\",\"size\":512,\"stream\":0,"
              "\"pool\":\"small\",\"expandable\":false,\"private\":[0,0],\"allocated\":0,"
              "\"active\":0,\"requested\":0,\"blocks\":[[\"0x0\",512,512,\"AP\"]]}\n",
         2, "entry 1 of \"blocks\" is not a block"},
        {HEAD ALLOC("0", ",\"drv\":7"), 2, "an array of device calls"},
        {HEAD ALLOC("0", ",\"drv\":[[\"ssync\",0],[\"molloc\",0,1,2]]"), 2, "entry 2 of \"drv\""},
        {HEAD ALLOC("0", ",\"drv\":[[\"map\",\"0x0\",2097152,9000000000000]]"), 2,
         "entry 1 of \"drv\""},
        {HEAD ALLOC("0", ",\"drv\":[[\"map\",\"0x0\",2097152,3000000000000]]"), 2,
         "entry 1 of \"drv\""},
        {HEAD ALLOC("0", ",\"ev\":[[\"XX\",\"0x0\",1,0]]"), 2, "entry 1 of \"ev\""},
        {HEAD "{\"op\":\"fraction\",\"value\":1.5}\n", 2, "a number from 0 to 1"},
        {HEAD "{\"op\":\"pool_begin\",\"pool\":[1],\"stream\":0}\n", 2, "two whole numbers"},
        {HEAD "{\"op\":\"pool_use_on_oom\",\"pool\":[1,0],\"on\":1}\n", 2, "true or false"},
        {HEAD "{\"op\":\"stats\",\"dev\":0,\"segment\":[1,2]}\n", 2,
         "\"segment\" is not a statistic"},
        {HEAD END END, 3, "a line follows the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].text, cases[i].line, cases[i].sentence);
}

/* A peer's log with one call of the device, in which two numbers stand. */
static bool accepts_call(const char *form, uint64_t first, uint64_t second)
{
    char call[128], text[1024];
    frag_golden_log log;
    frag_error error;
    snprintf(call, sizeof call, form, (unsigned long long)first, (unsigned long long)second);
    snprintf(text, sizeof text,
             "{\"golden\":\"cupy\",\"version\":\"14.2.0\",\"params\":{},\"capacity\":17179869184,"
             "\"va\":\"up\",\"va_base\":123145302310912,\"gran\":2097152,\"gap\":2097152,"
             "\"profile\":\"x\",\"seed\":1}\n"
             "{\"op\":\"alloc\",\"id\":0,\"size\":512,\"stream\":0,\"addr\":123145302310912,"
             "\"drv\":[%s]}\n{\"summary\":{}}\n",
             call);
    bool ok = read_log(text, &log, &error);
    if (ok)
        frag_golden_log_destroy(&log);
    else
        assert_int_equal(error.line, 2);
    return ok;
}

static void the_last_number_that_is_allowed_is_accepted(void **state)
{
    (void)state;
    const uint64_t address = (uint64_t)1 << 47, bytes = (uint64_t)1 << 56;
    static const char *const forms[] = {"[\"malloc\",%llu,%llu,0]", "[\"free\",%llu,%llu,0]",
                                        "[\"reserve\",%llu,%llu]", "[\"vfree\",%llu,%llu]",
                                        "[\"map\",%llu,%llu,1]"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        assert_true(accepts_call(forms[i], 0, 1));
        assert_true(accepts_call(forms[i], address, bytes));
        assert_false(accepts_call(forms[i], address + 1, bytes));
        assert_false(accepts_call(forms[i], address, bytes + 1));
    }
    assert_true(accepts_call("[\"map\",0,%llu,%llu]", bytes / 4, 4));
    assert_false(accepts_call("[\"map\",0,%llu,%llu]", bytes / 4, 5));
    assert_false(accepts_call("[\"map\",0,%llu,%llu]", 0, 4));
    assert_false(accepts_call("[\"map\",0,%llu,%llu]", 512, 0));
    /* One field too few, or too many. */
    assert_true(accepts_call("[\"sync\",%llu,%llu]", 1, 0));
    assert_false(accepts_call("[\"sync\",%llu]", 1, 0));
    assert_false(accepts_call("[\"malloc\",%llu,%llu]", 1, 1));
    assert_false(accepts_call("[\"reserve\",%llu,%llu,0]", 1, 1));
    for (unsigned number = 0; number <= 1; number++) {
        char text[1024];
        frag_golden_log log;
        frag_error error;
        snprintf(text, sizeof text, HEAD "{\"op\":\"fraction\",\"value\":%u}\n" END, number);
        assert_true(read_log(text, &log, &error));
        frag_golden_log_destroy(&log);
    }
    frag_golden_log log;
    frag_error error;
    assert_true(read_log(HEAD "{\"op\":\"alloc\",\"id\":0,\"size\":72057594037927935,\"stream\":0,"
                              "\"oom\":{\"message\":\"\"}}\n" END,
                         &log, &error));
    frag_golden_log_destroy(&log);
}

static void refuses_heads_under_other_rules(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        const char *to;
        const char *sentence;
    } cases[] = {
        {"\"schema\":1", "\"schema\":2", "\"schema\" is 2; expected 1"},
        {"2.9.1", "nightly", "a version such as"},
        {"\"devices\":2", "\"devices\":0", "1 or more"},
        {"\"devices\":2", "\"devices\":17", "from 0 to 16"},
        {"firstfit", "random", "\"firstfit\" or \"bump\""},
        {"0x700000000000", "0x800000000000", "\"malloc_base\" is \"0x800000000000\""},
        {"2097152", "4096", "\"granularity\" is 4096"},
        {"67108864", "1e9", "\"capacity\" is 1000000000.0;"},
        {",\"events\":true", "", "\"events\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char head[] = HEAD;
        char text[1024];
        const char *at = strstr(head, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s" END, (int)(at - head), head, cases[i].to,
                 at + strlen(cases[i].from));
        assert_refused(text, 1, cases[i].sentence);
    }
}

static void each_device_has_a_trace_and_common_requests_reach_all(void **state)
{
    (void)state;
    frag_golden_log log;
    frag_recording recording;
    frag_error error;
    uint64_t *ends = NULL;
    assert_true(read_log(
        HEAD ALLOC("0",
                   ",\"dev\":0") "{\"op\":\"alloc\",\"dev\":1,\"id\":1,\"size\":7,"
                                 "\"stream\":0,\"addr\":\"0x710000000000\"}\n"
                                 "{\"op\":\"alloc\",\"id\":2,\"size\":0,\"stream\":0,"
                                 "\"addr\":\"0x0\"}\n"
                                 "{\"op\":\"empty_cache\",\"ev\":["
                                 "[\"SF\",\"0x710000200000\",2097152,0]]}\n"
                                 "{\"op\":\"complete\",\"stream\":0}\n"
                                 "{\"op\":\"free\",\"id\":1}\n{\"op\":\"free\",\"id\":2}\n" END,
        &log, &error));
    assert_true(frag_golden_log_record(&log, "two", &recording, &ends, &error));
    assert_int_equal(recording.trace_count, 2);
    assert_string_equal(frag_recording_get(&recording, "torch.version_hint"), "2.9");
    assert_string_equal(frag_recording_get(&recording, "torch.conf"), "a:b");
    assert_string_equal(frag_recording_get(&recording, "golden.capacity"), "67108864");
    static const frag_op first[] = {FRAG_OP_ALLOC, FRAG_OP_EMPTY_CACHE, FRAG_OP_SYNC};
    static const frag_op second[] = {FRAG_OP_ALLOC, FRAG_OP_EMPTY_CACHE, FRAG_OP_SEGMENT_FREE,
                                     FRAG_OP_SYNC, FRAG_OP_FREE};
    assert_int_equal(recording.traces[0].event_count, 3);
    assert_int_equal(recording.traces[1].event_count, 5);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(recording.traces[0].events[i].op, first[i]);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(recording.traces[1].events[i].op, second[i]);
    static const uint64_t second_ends[] = {0, 1, 1, 3, 4, 5, 5, 5};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(ends[8 + i], second_ends[i]);
    assert_int_equal(ends[7], 3);
    free(ends);
    frag_recording_destroy(&recording);
    frag_golden_log_destroy(&log);
}

static void is_told_by_its_content(void **state)
{
    (void)state;
    static const char text[] = HEAD ALLOC("0", "") END;
    frag_input *input = frag_input_from_memory(text, sizeof text - 1, "anything");
    frag_load_options options = {.with_columns = true};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    assert_true(frag_recording_load_input(input, &options, &recording, &findings, &error));
    assert_string_equal(frag_recording_get(&recording, "source"), "golden");
    assert_int_equal(recording.traces[0].addresses[0], 0x700000000000);
    frag_recording_destroy(&recording);
    frag_input_close(input);
    input = frag_input_from_memory(text, sizeof text - 1, "anything");
    options.with_columns = false;
    assert_true(frag_recording_load_input(input, &options, &recording, &findings, &error));
    assert_int_equal(recording.traces[0].event_count, 1);
    assert_null(recording.traces[0].addresses);
    frag_recording_destroy(&recording);
    frag_input_close(input);
}

static void without_columns_only_observed_addresses_are_kept(void **state)
{
    (void)state;
    static const char text[] = "# fraglab trace 2\nalloc 0 512 addr=0x700000000000\n"
                               "segment_alloc 2097152 addr=0x700000200000\n"
                               "alloc 1 512 addr=0x700000200000\n";
    frag_input *input = frag_input_from_memory(text, sizeof text - 1, "anything");
    frag_load_options options = {.with_columns = false};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    assert_true(frag_recording_load_input(input, &options, &recording, &findings, &error));
    static const uint64_t wanted[] = {0, 0x700000200000, 0};
    assert_non_null(recording.traces[0].addresses);
    assert_memory_equal(recording.traces[0].addresses, wanted, sizeof wanted);
    frag_recording_destroy(&recording);
    frag_input_close(input);
}

/* Libraries that write no trace events show what they took and gave back by their device calls. */
static void device_calls_are_segments_where_no_events_are(void **state)
{
    (void)state;
    static const char head[] =
        "{\"golden\":\"c10\",\"schema\":1,\"torch\":\"2.0.1\",\"conf\":\"\",\"capacity\":67108864,"
        "\"granularity\":2097152,\"devices\":1,\"va\":\"firstfit\","
        "\"malloc_base\":\"0x700000000000\",\"vmm_base\":\"0x600000000000\",\"events\":false}\n";
    frag_golden_log log;
    frag_recording recording;
    frag_error error;
    char text[2048];
    snprintf(text, sizeof text, "%s%s", head,
             "{\"op\":\"alloc\",\"id\":0,\"size\":1000,\"stream\":0,\"addr\":\"0x700000000000\","
             "\"drv\":[[\"malloc\",\"0x700000000000\",2097152,0]]}\n"
             "{\"op\":\"alloc\",\"id\":1,\"size\":5000000,\"stream\":0,\"addr\":\"0x700000200000\","
             "\"drv\":[[\"malloc\",\"0x700000200000\",20971520,0]]}\n"
             "{\"op\":\"free\",\"id\":1}\n"
             "{\"op\":\"empty_cache\",\"drv\":[[\"free\",\"0x700000200000\",0]]}\n" END);
    if (!read_log(text, &log, &error) ||
        !frag_golden_log_record(&log, "log", &recording, NULL, &error))
        fail_msg("%s", error.sentence);
    const frag_trace *trace = &recording.traces[0];
    uint64_t taken = 0;
    uint64_t given_back = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        taken += trace->events[i].op == FRAG_OP_SEGMENT_ALLOC ? trace->events[i].bytes : 0;
        given_back += trace->events[i].op == FRAG_OP_SEGMENT_FREE ? trace->events[i].bytes : 0;
    }
    assert_int_equal(taken, 2097152 + 20971520);
    assert_int_equal(given_back, 20971520);
    frag_recording_destroy(&recording);
    frag_golden_log_destroy(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_calls_are_segments_where_no_events_are),
        cmocka_unit_test(keeps_what_a_request_got_and_caused),
        cmocka_unit_test(pages_that_adjoin_are_one_call),
        cmocka_unit_test(statistics_are_named_as_the_framework_names_them),
        cmocka_unit_test(what_follows_a_failure_of_the_library_does_not_count),
        cmocka_unit_test(refuses_with_line_and_remedy),
        cmocka_unit_test(the_last_number_that_is_allowed_is_accepted),
        cmocka_unit_test(refuses_heads_under_other_rules),
        cmocka_unit_test(each_device_has_a_trace_and_common_requests_reach_all),
        cmocka_unit_test(is_told_by_its_content),
        cmocka_unit_test(without_columns_only_observed_addresses_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
