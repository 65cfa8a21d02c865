/* Tests of memory_timeline.c: exports of PyTorch's memory profiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"

static void events_become_requests_with_their_category(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("[[-1, 1, 512, 0], [1760000000000000000, 2, 1024, 4],\n"
                        " [1760000000000000100, 2, 2048, 7], [1760000000000000200, 4, -1024, 4]]",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_string_equal(frag_recording_get(&recording, "source"), "memory-timeline");
    assert_string_equal(frag_recording_get(&recording, FRAG_GUESSED_KEY), FRAG_GUESSED_PAIRS);
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->times_ns[0], 1760000000000000000);
    assert_int_equal(trace->times_ns[3], 1760000000000000200);
    assert_int_equal(trace->events[3].op, FRAG_OP_FREE);
    assert_int_equal(trace->events[3].slot, trace->events[1].slot);
    static const char *const sites[] = {"parameter", "activation", "not known"};
    for (size_t i = 0; i < 3; i++) {
        frag_site site = recording.sites[trace->sites[i]];
        frag_frame frame = recording.frames[recording.site_frames[site.first]];
        assert_string_equal(frag_strings_get(&recording.strings, frame.name), sites[i]);
    }
    assert_int_equal(frag_test_found(&findings, "began-in-use"), 1);
    assert_int_equal(findings.count, 1);
    frag_recording_destroy(&recording);
}

static void the_first_time_may_be_nought(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("[[-1, 1, 512, 0], [0, 2, 1024, 4], [100, 2, 2048, 7]]", &recording,
                        &findings);
    assert_int_equal(recording.traces[0].event_count, 3);
    assert_int_equal(recording.traces[0].times_ns[0], 0);
    frag_recording_destroy(&recording);
}

/* The first gradient becomes a temporary: what is destroyed as a temporary is that one, although
 * it is not the oldest of its size. */
static void a_category_tells_which_of_one_size_ends(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("[[1, 2, 512, 0], [2, 2, 512, 5], [3, 3, -512, 5], [3, 3, 512, 3],"
                        "[4, 4, -512, 3], [5, 4, -512, 6]]",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->events[2].slot, trace->events[1].slot);
    assert_int_equal(trace->events[3].slot, trace->events[0].slot);
    assert_int_equal(frag_test_found(&findings, "release-paired-by-size"), 0);
    frag_recording_destroy(&recording);
    frag_test_load_well("[[1, 2, 512, 0], [2, 2, 512, 0], [3, 4, -512, 0], [4, 4, -64, 0],"
                        "[5, 2, 0, 0]]",
                        &recording, &findings);
    assert_int_equal(frag_test_found(&findings, "release-paired-by-size"), 1);
    assert_int_equal(frag_test_found(&findings, "free-of-unknown-size"), 1);
    assert_int_equal(frag_test_found(&findings, "request-of-nothing"), 1);
    frag_recording_destroy(&recording);
}

/* Written to within its category, the oldest of a size stays the oldest; what nobody has moves
 * nowhere. */
static void what_is_written_to_keeps_its_place(void **state)
{
    (void)state;
    frag_recording recording;
    frag_findings findings;
    frag_test_load_well("[[1, 2, 512, 0], [2, 2, 512, 0], [3, 3, -512, 0], [3, 3, 512, 0],"
                        "[4, 3, -64, 0], [4, 3, 64, 1], [5, 4, -512, 0], [6, 4, -512, 0]]",
                        &recording, &findings);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->events[2].slot, trace->events[0].slot);
    assert_int_equal(trace->events[3].slot, trace->events[1].slot);
    frag_recording_destroy(&recording);
}

static void what_holds_no_events_says_what_to_do(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *sentence;
    } cases[] = {
        {"[[10, 20], [[0, 512, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 512]]]", "the sums"},
        {"[[10, 20, 30, 40], []]", "the sums"},
        {"<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title></head>",
         "a picture of a memory timeline"},
        {"[[1, 2, 512, 0], [2, 5, 512, 0]]", "event 1 is not as expected: an action of 1 to 4"},
        {"[[1, 2, 512, 0], [2, 2, 512]]", "event 1 is not as expected: four whole numbers"},
        {"[[1, 2, 512, 0], [2, 2, 512, 0, 0]]", "event 1 is not as expected: four whole numbers"},
        {"[[1, 2, 512, 0], [2, 2, -512, 0]]", "bytes above zero"},
        {"[[1, 2, 512, 0], [2, 4, 512, 0]]", "bytes below zero"},
        {"[[1, 2, 72057594037927936, 0]]", "bytes of at most"},
        {"[[1, 2, 512, 8]]", "a category of 0 to 7"},
        {"[[-2, 2, 512, 0]]", "a time in nanoseconds"},
        {"[[1, 3, 512, 0]]", "the second half"},
        {"[[1, 3, -512, 0], [1, 3, 256, 0]]", "the second half"},
        {"[[1, 3, -512, 0], [1, 2, 512, 0]]", "the second half"},
        {"[[1, 2, 512, 0], [2,", "the file ends early"},
        {"[[], []]", "the file is JSON, but"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error;
        if (frag_test_load(cases[i].text, strlen(cases[i].text), FRAG_FORMAT_AUTO, &recording,
                           &findings, &error))
            fail_msg("%s was taken", cases[i].text);
        assert_int_equal(error.code, FRAG_E_INPUT);
        if (strstr(error.sentence, cases[i].sentence) == NULL)
            fail_msg("%s: %s", cases[i].text, error.sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_become_requests_with_their_category),
        cmocka_unit_test(the_first_time_may_be_nought),
        cmocka_unit_test(a_category_tells_which_of_one_size_ends),
        cmocka_unit_test(what_is_written_to_keeps_its_place),
        cmocka_unit_test(what_holds_no_events_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
