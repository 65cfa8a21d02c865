/* Tests of window.c and write.c: which part of a recording options name, and placements that come
 * with a problem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "tests/support/text_recording.h"
#include "traces/window.h"
#include "traces/write.h"

static void options_name_events_times_or_marks(void **state)
{
    (void)state;
    static const struct {
        frag_window_texts texts;
        const char *told; /* kind, device, first, end, marks; or the error */
    } cases[] = {
        {{NULL, NULL, NULL, NULL, NULL}, "0 - 0 max - -"},
        {{NULL, NULL, NULL, "3", "--device"}, "0 3 0 max - -"},
        {{"5..90", NULL, NULL, NULL, NULL}, "1 - 5 90 - -"},
        {{"..90", NULL, NULL, "0", "--device"}, "1 0 0 90 - -"},
        {{"5..", NULL, NULL, NULL, NULL}, "1 - 5 max - -"},
        {{NULL, "7..8", NULL, NULL, NULL}, "2 - 7 8 - -"},
        {{NULL, NULL, "step", NULL, NULL}, "3 - 0 max step -"},
        {{NULL, NULL, "step..last step", NULL, NULL}, "3 - 0 max step last step"},
        {{"5", NULL, NULL, NULL, NULL}, "--events: '5' is not a range; expected A..B"},
        {{NULL, "5.8", NULL, NULL, NULL}, "--time: '5.8' is not a range; expected A..B"},
        {{"a..8", NULL, NULL, NULL, NULL}, "--events: 'a' is not a whole number"},
        {{"8..b", NULL, NULL, NULL, NULL}, "--events: 'b' is not a whole number"},
        {{NULL, NULL, NULL, "x", "--device-before"}, "--device-before: 'x' is not a whole number"},
        {{"1..2", "1..2", NULL, NULL, NULL}, "expected one of --events, --time and --marks"},
        {{NULL, "1..2", "a", NULL, NULL}, "expected one of --events, --time and --marks"},
        {{"1..2", NULL, "a", NULL, NULL}, "expected one of --events, --time and --marks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_window window;
        frag_error error = {0};
        char told[300], device[16], end[24];
        if (frag_window_parse(&cases[i].texts, &window, &error)) {
            snprintf(device, sizeof device, "%u", window.device);
            snprintf(end, sizeof end, "%llu", (unsigned long long)window.end);
            snprintf(told, sizeof told, "%d %s %llu %s %s %s", (int)window.kind,
                     window.has_device ? device : "-", (unsigned long long)window.first,
                     window.end == UINT64_MAX ? "max" : end,
                     window.first_mark != NULL ? window.first_mark : "-",
                     window.last_mark != NULL ? window.last_mark : "-");
            assert_string_equal(told, cases[i].told);
        } else {
            assert_int_equal(error.code, FRAG_E_USAGE);
            frag_error_text(&error, told, sizeof told);
            if (strncmp(told, cases[i].told, strlen(cases[i].told)) != 0)
                assert_string_equal(told, cases[i].told);
        }
        frag_window_destroy(&window);
    }
}

/* The problem written again; the placement that came with it is that of the file. */
static void a_problem_keeps_the_placement_that_it_came_with(void **state)
{
    (void)state;
    static const char *const problems[][2] = {
        {"id,lower,upper,size,offset\n1,0,4,512,1024\n2,2,6,512,0\n3,5,9,700,512\n", "1024 0 512"},
        {"id,lower,upper,size\n1,0,4,512\n2,2,6,512\n", ""},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        frag_recording recording;
        frag_findings findings;
        frag_error error = {0};
        frag_text told = {0};
        frag_test_load_well(problems[i][0], &recording, &findings);
        uint64_t count = recording.traces[0].stats.op_counts[FRAG_OP_ALLOC];
        uint64_t *offsets = frag_problem_offsets(&recording, &recording.traces[0], count);
        frag_text_add(&told, "%s", "");
        for (uint64_t k = 0; offsets != NULL && k < count; k++)
            frag_text_add(&told, "%s%llu", k > 0 ? " " : "", (unsigned long long)offsets[k]);
        assert_string_equal(told.bytes, problems[i][1]);
        assert_null(frag_problem_offsets(&recording, &recording.traces[0], count + 1));
        char *written = NULL;
        size_t bytes = 0;
        FILE *stream = open_memstream(&written, &bytes);
        assert_true(frag_recording_write(&recording, "minimalloc", stream, &error));
        fclose(stream);
        assert_int_equal(strstr(written, ",offset") != NULL, i == 0);
        free(written);
        frag_free(offsets);
        frag_text_destroy(&told);
        frag_recording_destroy(&recording);
    }
}

static void what_cannot_be_written_is_said(void **state)
{
    (void)state;
    frag_recording recording;
    frag_error error = {0};
    frag_test_recording("alloc 0 512\ndevice 1\nalloc 0 512\n", &recording);
    assert_false(frag_recording_write(&recording, "csv", stdout, &error));
    assert_string_equal(error.sentence,
                        "'csv' cannot be written; expected fgt, text or minimalloc");
    error = (frag_error){0};
    assert_false(frag_recording_write(&recording, "minimalloc", stdout, &error));
    assert_int_equal(strncmp(error.sentence, "the recording holds 2 traces;", 29), 0);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_name_events_times_or_marks),
        cmocka_unit_test(a_problem_keeps_the_placement_that_it_came_with),
        cmocka_unit_test(what_cannot_be_written_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
