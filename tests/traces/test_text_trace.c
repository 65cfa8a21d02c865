/* Tests of the text form of traces: written and read back, and every mistake with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/sample_recording.h"
#include "tests/support/text_recording.h"
#include "traces/fgt/fgt.h"
#include "traces/text/text_trace.h"

static void keeps_everything_a_recording_says(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_text_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

static void agrees_with_fgt_both_ways(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording from_text;
    frag_recording from_fgt;
    frag_error error = {0};
    sample_recording(&recording);
    size_t bytes = 0;
    char *text = sample_written(&recording, frag_text_write, &bytes);
    assert_true(sample_load(text, bytes, true, &from_text, &error));
    size_t fgt_bytes = 0;
    char *fgt = sample_written(&from_text, frag_fgt_write, &fgt_bytes);
    assert_true(sample_load(fgt, fgt_bytes, true, &from_fgt, &error));
    size_t text_bytes = 0;
    char *text_again = sample_written(&from_fgt, frag_text_write, &text_bytes);
    assert_int_equal(bytes, text_bytes);
    assert_memory_equal(text, text_again, bytes);
    free(text);
    free(fgt);
    free(text_again);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&from_text);
    frag_recording_destroy(&from_fgt);
}

static void keeps_an_empty_trace(void **state)
{
    (void)state;
    frag_recording recording = {0};
    frag_recording again;
    frag_error error = {0};
    assert_true(frag_builder_finish(frag_builder_create(&recording), "sample", &error));
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_text_write, &bytes);
    assert_true(sample_load(file, bytes, true, &again, &error));
    assert_true(same_recording(&recording, &again));
    free(file);
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
}

static void load_text(const char *text, frag_recording *recording)
{
    frag_error error = {0};
    if (!sample_load(text, strlen(text), true, recording, &error))
        fail_msg("%llu:%llu: %s", (unsigned long long)error.line, (unsigned long long)error.column,
                 error.sentence);
}

static void reads_what_a_person_types(void **state)
{
    (void)state;
    frag_recording recording;
    load_text(
        "# fraglab trace 1\n\n  # two blocks\nalloc 0 512\r\nalloc 1 0x400 stream=0x10 pool=7:1\n"
        "free 1\n\tfree 0",
        &recording);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(recording.trace_count, 1);
    assert_int_equal(trace->event_count, 4);
    assert_int_equal(trace->stream_count, 2);
    assert_int_equal(trace->stream_handles[1], 0x10);
    assert_int_equal(trace->events[1].stream, 1);
    assert_int_equal(trace->events[1].bytes, 1024);
    assert_int_equal(trace->events[2].stream, 1); /* that of its alloc */
    assert_int_equal(trace->pool_count, 2);
    assert_int_equal(trace->pools[1], 1);
    assert_int_equal(trace->stats.peak_requested_bytes, 1536);
    assert_int_equal(trace->stats.end_requested_bytes, 0);
    frag_recording_destroy(&recording);
}

static void sync_and_pool_begin_mean_all_streams_unless_told(void **state)
{
    (void)state;
    frag_recording recording;
    load_text("# fraglab trace 1\nsync\nsync stream=5\npool_begin 3\n", &recording);
    const frag_trace *trace = &recording.traces[0];
    assert_int_equal(trace->events[0].stream, FRAG_STREAM_ALL);
    assert_int_equal(trace->events[1].stream, 0);
    assert_int_equal(trace->stream_handles[0], 5);
    assert_int_equal(trace->events[2].slot, 1);
    assert_int_equal(trace->pool_ids[1].low, 3);
    frag_recording_destroy(&recording);
}

static void writes_no_more_than_has_to_be_said(void **state)
{
    (void)state;
    static const char text[] = FRAG_TEXT_FIRST_LINE "\nstreams 0 7\npools 0:0 0:3\n"
                                                    "alloc 0 512\nalloc 1 512 stream=1\n"
                                                    "use 0 stream=1\nfree 1\nfree 0 deferred\n"
                                                    "complete 0\nsync\nsync stream=1\n"
                                                    "pool_begin 1\npool_end 1\n";
    frag_recording recording;
    size_t bytes = 0;
    load_text(text, &recording);
    char *file = sample_written(&recording, frag_text_write, &bytes);
    for (const char *line = strstr(text, "alloc"); *line != '\0'; line = strchr(line, '\n') + 1) {
        frag_text wanted = {0};
        frag_text_add_bytes(&wanted, line - 1, (size_t)(strchr(line, '\n') + 2 - line));
        if (strstr(file, wanted.bytes) == NULL)
            fail_msg("%s is not in\n%s", wanted.bytes, file);
        frag_text_destroy(&wanted);
    }
    free(file);
    frag_recording_destroy(&recording);
}

typedef struct bad_text {
    const char *lines; /* after the first */
    uint64_t line;
    uint64_t column;
} bad_text;

static void refuses_mistakes_with_their_place(void **state)
{
    (void)state;
    static const bad_text bad[] = {
        {"alloc 0 512\nalloc 0 512\n", 3, 7},
        {"free 0\n", 2, 6},
        {"alloc 0 512\nfree 0\nfree 0\n", 4, 6},
        {"alloc 0 512\nfree 0 deferred\nuse 0 stream=1\n", 4, 5},
        {"alloc 0 512\ncomplete 0\n", 3, 10},
        {"alloc 0 0\n", 2, 9},
        {"alloc 0 72057594037927936\n", 2, 9},
        {"alloc 0 64K\n", 2, 9},
        {"alloc 0 18446744073709551616\n", 2, 9},
        {"alloc 0\n", 2, 8},
        {"alloc -1 512\n", 2, 7},
        {"alloc - 512\n", 2, 1},
        {"alloc 0 512 failed\n", 2, 1},
        {"alloc 4000000000 512\n", 2, 7},
        {"alloc 0 512 deferred\n", 2, 13},
        {"alloc 0 512 strem=1\n", 2, 13},
        {"alloc 0 512 stream=all\n", 2, 20},
        {"alloc 0 512 note=abc\n", 2, 18},
        {"alloc 0 512 note=\"abc\n", 2, 18},
        {"alloc 0 512 note=\"a\\q\"\n", 2, 20},
        {"alloc 0 512 site=1\n", 2, 18},
        {"alloc 0 512\nalloc 1 512 initial\n", 3, 1},
        {"allok 0 512\n", 2, 1},
        {"device 1\ndevice 1\n", 3, 8},
        {"alloc 0 1\ndevice 0\n", 3, 8},
        {"streams 1 2\nalloc 0 512 stream=2\n", 3, 20},
        {"streams 1\nstreams 1\n", 3, 1},
        {"alloc 0 512\nstreams 0\n", 3, 1},
        {"pools 0:1\n", 2, 7},
        {"pools x\n", 2, 7},
        {"pools -1:0\n", 2, 7},
        {"pools 0:0 0:0\n", 2, 11},
        {"pools 0:0 1:2:3\n", 2, 13},
        {"pools 0:0\nalloc 0 1 pool=1\n", 3, 16},
        {"frame \"a\" \"b\" 1\nframe \"a\" \"b\" 1\n", 3, 1},
        {"site 0\n", 2, 6},
        {"meta \"a\"\n", 2, 9},
        {"sync stream=0 slot=3\n", 2, 15},
        {"mark \"x\" stream=3\n", 2, 10},
        {"limit 1000000001 ratio\n", 2, 7},
        {"limit 0.8\n", 2, 7},
        {"limit\n", 2, 6},
        {"limit 1.1 ratio\n", 2, 7},
        {"limit -0.5 ratio\n", 2, 7},
        {"limit nan time=1 ratio\n", 2, 7},
        {"limit 0x1p-1 ratio\n", 2, 7},
        {"limit 2 note=\" ratio \" ratio\n", 2, 7},
        {"limit 0.5 ratio bytes=1\n", 2, 17},
        {"alloc 0 9 stream=1 stream=2\n", 2, 20},
        {"alloc 0 9 addr=1 time=1 addr=1\n", 2, 25},
        {"alloc 0 9 time=1 time=1\n", 2, 18},
        {"alloc 0 9 pool=1 pool=1\n", 2, 18},
        {"alloc 0 9 site=0 site=0\n", 2, 18},
        {"alloc 0 9 block=9 block=9 initial\n", 2, 19},
        {"alloc 0 9 note=\"\" note=\"\"\n", 2, 19},
        {"alloc 0 9\nfree 0 bytes=1 bytes=1\n", 3, 16},
        {"oom 1 free=2 addr=3\n", 2, 14},
        {"mark \"x\" end end\n", 2, 14},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frag_recording recording;
        frag_error error = {0};
        char text[256];
        snprintf(text, sizeof text, FRAG_TEXT_FIRST_LINE "\n%s", bad[i].lines);
        if (sample_load(text, strlen(text), true, &recording, &error))
            fail_msg("accepted: %s", bad[i].lines);
        if (error.line != bad[i].line || error.column != bad[i].column)
            fail_msg("%s at %llu:%llu: %s", bad[i].lines, (unsigned long long)error.line,
                     (unsigned long long)error.column, error.sentence);
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_string_equal(error.where, "dir/sample");
    }
}

/* Lines that say what cannot be, though each can be read, are read, and told. */
static void expect_found(const char *lines, const char *kind, uint64_t count)
{
    frag_recording recording;
    frag_findings findings;
    char text[512];
    snprintf(text, sizeof text, FRAG_TEXT_FIRST_LINE "\n%s", lines);
    frag_test_load_well(text, &recording, &findings);
    assert_int_equal(findings.count, count > 0 ? 1 : 0);
    assert_int_equal(frag_test_found(&findings, kind), count);
    frag_recording_destroy(&recording);
}

static void tells_of_lines_that_do_not_fit_together(void **state)
{
    (void)state;
    static const char served[] = "address-served-again", given[] = "segment-given-again";
    static const char pool[] = "pool-not-begun", capture[] = "capture-out-of-turn";
    expect_found("alloc 0 5 addr=9\nalloc 1 5 addr=9\n", served, 1);
    expect_found("alloc 0 5 addr=9\nfree 0\nalloc 1 5 addr=9\nfree 1\nalloc 0 5 addr=9\n", served,
                 0);
    /* Of two at one address the second is what is there. */
    expect_found("alloc 0 5 addr=9\nalloc 1 5 addr=9\nfree 0\nalloc 0 5 addr=9\n", served, 2);
    expect_found("alloc 0 5 addr=9\nalloc 1 5 addr=9\nfree 1\nalloc 1 5 addr=9\n", served, 1);
    expect_found("alloc 0 5\nalloc 1 5\nalloc - 5 failed addr=9\nalloc 2 5 addr=9\n", served, 0);
    expect_found("alloc 0 5 addr=9\ndevice 1\nalloc 0 5 addr=9\n", served, 0);
    expect_found("segment_alloc 5 addr=9\nsegment_alloc 5 addr=9\n", given, 1);
    expect_found("segment_alloc 5 addr=9\nsegment_free 5 addr=9\nsegment_alloc 5 addr=9\n", given,
                 0);
    expect_found("segment_alloc 5\nsegment_alloc 5\nalloc 0 5 addr=9\nsegment_alloc 9 addr=9\n",
                 given, 0);
    const char *end = "end-beyond-addresses";
    expect_found("alloc 0 5 addr=0xfffffffffffffffb\n", end, 0);
    expect_found("alloc 0 5 addr=0xfffffffffffffffc\nalloc - 5 failed addr=0xfffffffffffffffc\n",
                 end, 1);
    expect_found("alloc 0 1 block=5 initial addr=0xfffffffffffffffc\n", end, 1);
    expect_found("segment_alloc 4194304 addr=0xfffffffffff00000\nsegment_free 4194304 "
                 "addr=0xfffffffffff00000\n"
                 "segment_map 4194304 addr=0xfffffffffff00000\nsegment_unmap 4194304 "
                 "addr=0xfffffffffff00000\n",
                 end, 4);
    expect_found("oom 4194304 free=0xfffffffffff00000\nsegment_free 0 addr=0xffffffffffffffff\n",
                 end, 0);
    expect_found("pool_end 5\npool_release 5\n", pool, 2);
    expect_found("pool_begin 5\npool_create 6\npool_end 5\npool_release 5\npool_release 6\n", pool,
                 0);
    expect_found("capture_end\n", capture, 1);
    expect_found("capture_begin\ncapture_begin\ncapture_end\ncapture_end\n", capture, 2);
    expect_found("capture_begin\ncapture_end\ncapture_begin\n", capture, 0);
    expect_found("sync time=2\nsync time=1\nsync\nsync time=1\nsync time=2\n", "time-goes-back", 1);
}

/* What was found is named up to 40 characters. */
static void names_the_word_that_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *found;
    } cases[] = {
        {"allok 0 512\n", "found 'allok'; "},
        {"alloc 0 512 x\x1b[m\n", "found 'x?[m'; "},
        {"a23456789b123456789c123456789d123456789e 1\n",
         "found 'a23456789b123456789c123456789d123456789e'; "},
        {"a23456789b123456789c123456789d123456789ef 1\n",
         "found 'a23456789b123456789c123456789d123456789e'; "},
        {"alloc 0\n", "the line ends; "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_recording recording;
        frag_error error = {0};
        char text[256];
        snprintf(text, sizeof text, FRAG_TEXT_FIRST_LINE "\n%s", cases[i].line);
        assert_false(sample_load(text, strlen(text), true, &recording, &error));
        if (strncmp(error.sentence, cases[i].found, strlen(cases[i].found)) != 0)
            fail_msg("%s gave: %s", cases[i].line, error.sentence);
    }
}

/* The share of a limit, as it is typed and as it is written; in version 1 as billionths. */
static void keeps_every_digit_of_a_share(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double ratio;
        const char *written;
    } shares[] = {
        {"# fraglab trace 1\nlimit 800000000 ratio\n", 0.8, "limit 0.8 ratio\n"},
        {"# fraglab trace 1\nlimit 1 ratio\n", 1e-9, "limit 1e-09 ratio\n"},
        {"# fraglab trace 2\nlimit 1 time=5 ratio\n", 1, "limit 1 ratio time=5\n"},
        {"# fraglab trace 2\nlimit 0 ratio\n", 0, "limit 0 ratio\n"},
        {"# fraglab trace 2\nlimit 0.07570907948282714 ratio\n", 0.07570907948282714,
         "limit 0.07570907948282714 ratio\n"},
        {"# fraglab trace 2\nlimit .99999999999999989 note=\"x\" ratio\n", 0.99999999999999989,
         "limit 0.9999999999999999 ratio note=\"x\"\n"},
        {"# fraglab trace 2\nlimit 1e-320 ratio\n", 0, "limit 0 ratio\n"},
        {"# fraglab trace 2\nlimit 3 note=\" ratio \"\n", -1, "limit 3 note=\" ratio \"\n"},
    };
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        frag_recording recording;
        load_text(shares[i].text, &recording);
        const frag_event *event = &recording.traces[0].events[0];
        if (shares[i].ratio >= 0)
            assert_true(frag_ratio_value(event->bytes) == shares[i].ratio);
        else
            assert_int_equal(event->bytes, 3);
        size_t bytes = 0;
        char *written = sample_written(&recording, frag_text_write, &bytes);
        if (strstr(written, shares[i].written) == NULL)
            fail_msg("%s became %s", shares[i].text, written);
        free(written);
        frag_recording_destroy(&recording);
    }
}

static void refuses_other_versions_and_formats(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "alloc 0 512\n",
                               "# fraglab trace 0\n",
                               "# fraglab trace 3\n",
                               "# fraglab trace 1 x\n",
                               "PK\x03\x04"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frag_recording recording;
        frag_error error = {0};
        assert_false(sample_load(bad[i], strlen(bad[i]), true, &recording, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_true(strlen(error.sentence) > 10);
    }
}

static void stands_any_damage(void **state)
{
    (void)state;
    frag_recording recording;
    frag_recording again;
    sample_recording(&recording);
    size_t bytes = 0;
    char *file = sample_written(&recording, frag_text_write, &bytes);
    unsigned char *damaged = frag_alloc(bytes, 1);
    uint64_t seed = 2;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        frag_error error = {0};
        memcpy(damaged, file, bytes);
        size_t count = sample_damage(damaged, bytes, &seed);
        if (count > 0)
            count = sample_damage(damaged, count, &seed);
        if (sample_load(damaged, count, true, &again, &error)) {
            frag_recording_destroy(&again);
        } else {
            refused++;
            assert_int_equal(error.code, FRAG_E_INPUT);
            assert_true(strlen(error.sentence) > 10);
        }
    }
    assert_true(refused > 1000);
    free(damaged);
    free(file);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_everything_a_recording_says),
        cmocka_unit_test(agrees_with_fgt_both_ways),
        cmocka_unit_test(keeps_an_empty_trace),
        cmocka_unit_test(reads_what_a_person_types),
        cmocka_unit_test(sync_and_pool_begin_mean_all_streams_unless_told),
        cmocka_unit_test(keeps_every_digit_of_a_share),
        cmocka_unit_test(writes_no_more_than_has_to_be_said),
        cmocka_unit_test(refuses_mistakes_with_their_place),
        cmocka_unit_test(tells_of_lines_that_do_not_fit_together),
        cmocka_unit_test(names_the_word_that_is_wrong),
        cmocka_unit_test(refuses_other_versions_and_formats),
        cmocka_unit_test(stands_any_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
