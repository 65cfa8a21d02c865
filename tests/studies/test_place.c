/* Tests of place.c: places in a trace as people name them, up to the last that there is. */
#include "studies/diff/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/text_recording.h"

/* Ten events; the peak of all is at 4, of those from 6 on at 7. */
static const char recorded[] = "mark \"step\" begin\n" /* 0 */
                               "alloc 0 512\n"         /* 1 */
                               "mark \"step\" end\n"   /* 2 */
                               "mark \"steps\"\n"      /* 3 */
                               "alloc 1 4096\n"        /* 4 */
                               "free 1\n"              /* 5 */
                               "mark \"step\" begin\n" /* 6 */
                               "alloc 1 1024\n"        /* 7 */
                               "free 1\n"              /* 8 */
                               "mark \"step\" end\n";  /* 9 */

typedef struct sample {
    const char *place;
    const char *sentence; /* NULL: it is one */
    uint64_t first;
    uint64_t end;
    uint64_t moment;
} sample;

static void places_are_found_or_refused(void **state)
{
    (void)state;
    static const sample samples[] = {
        {"peak", NULL, 0, 10, 4},
        {"end", NULL, 0, 10, 9},
        {"0", NULL, 0, 10, 0},
        {"9", NULL, 0, 10, 9},
        {"10", "there is no event 10; the trace has 10", 0, 0, 0},
        {"0..10", NULL, 0, 10, 4},
        {"6..10", NULL, 6, 10, 7},
        {"4..5", NULL, 4, 5, 4},
        {"4..4", "4..4 are no events of the trace", 0, 0, 0},
        {"5..4", "5..4 are no events of the trace", 0, 0, 0},
        {"6..11", "6..11 are no events of the trace", 0, 0, 0},
        {"step[1]", NULL, 0, 6, 4},
        {"step[2]", NULL, 6, 10, 7},
        {"step[3]", "there are 2 marks 'step', and no [3]", 0, 0, 0},
        {"steps[1]", NULL, 3, 10, 4},
        {"steps[2]", "there is 1 mark 'steps', and no [2]", 0, 0, 0},
        {"step[0]", "", 0, 0, 0},
        {"[1]", "", 0, 0, 0},
        {"ste[1]", "there are 0 marks 'ste', and no [1]", 0, 0, 0},
        {"other", "", 0, 0, 0},
    };
    frag_recording recording;
    frag_test_recording(recorded, &recording);
    const frag_place_source source = {&recording, &recording.traces[0]};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const sample *at = &samples[i];
        frag_use_range range;
        frag_error error = {0};
        bool is_found = frag_place_find(&source, at->place, &range, &error);
        if (is_found != (at->sentence == NULL))
            fail_msg("%s: %s", at->place, error.sentence);
        if (!is_found && strstr(error.sentence, at->sentence) == NULL)
            fail_msg("%s: %s", at->place, error.sentence);
        if (is_found &&
            (range.first != at->first || range.end != at->end || range.moment != at->moment))
            fail_msg("%s: %llu..%llu, at %llu", at->place, (unsigned long long)range.first,
                     (unsigned long long)range.end, (unsigned long long)range.moment);
    }
    frag_recording_destroy(&recording);
}

static void without_marks_no_mark_is_found(void **state)
{
    (void)state;
    frag_recording recording;
    frag_use_range range;
    frag_error error = {0};
    frag_test_recording("alloc 0 512\n", &recording);
    const frag_place_source source = {&recording, &recording.traces[0]};
    assert_false(frag_place_find(&source, "step", &range, &error));
    assert_non_null(strstr(error.sentence, "which has no marks"));
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_found_or_refused),
        cmocka_unit_test(without_marks_no_mark_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
