/* Tests of verify_evidence.c: what sizes, addresses and the order of device events show of
 * settings, on both sides of each limit. */
#include "studies/verify/verify_evidence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/support/text_recording.h"

/* Of one segment, and the request that lies at its beginning. */
static uint64_t size_shown(uint64_t requested, uint64_t segment)
{
    frag_recording recording;
    frag_text text = {0};
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX] = {0};
    frag_text_add(&text, "segment_alloc %llu addr=0x10000000\nalloc 0 %llu addr=0x10000000\n",
                  (unsigned long long)segment, (unsigned long long)requested);
    frag_test_recording(text.bytes, &recording);
    assert_true(frag_evidence_segment_sizes(&recording.traces[0], sizes) <= 1);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
    return sizes[0];
}

/* Small requests have segments of their own size; from 5 MiB on, a segment may be what one request
 * rounded up to a power of two needs. */
static void segments_show_sizes_where_no_rounding_explains_them(void **state)
{
    (void)state;
    assert_int_equal(size_shown(FRAG_MIB, 12 * FRAG_MIB), 0);
    assert_int_equal(size_shown(FRAG_MIB + 1, 12 * FRAG_MIB), 12);
    assert_int_equal(size_shown(5 * FRAG_MIB, 11 * FRAG_MIB), 11);
    assert_int_equal(size_shown(5 * FRAG_MIB + 1, 12 * FRAG_MIB), 0);
    assert_int_equal(size_shown(6 * FRAG_MIB, 14 * FRAG_MIB), 0);
    assert_int_equal(size_shown(6 * FRAG_MIB, 15 * FRAG_MIB), 15);
    assert_int_equal(size_shown(10 * FRAG_MIB - 1, 24 * FRAG_MIB), 24);
    assert_int_equal(size_shown(10 * FRAG_MIB, 24 * FRAG_MIB), 0);
    assert_int_equal(size_shown(2 * FRAG_MIB, 10 * FRAG_MIB), 0);
    assert_int_equal(size_shown(2 * FRAG_MIB, 20 * FRAG_MIB), 0);
    assert_int_equal(size_shown(2 * FRAG_MIB, 12 * FRAG_MIB + 512), 0);
}

static void large_mappings_show_what_they_are_multiples_of(void **state)
{
    (void)state;
    frag_recording recording;
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX] = {0};
    frag_test_recording(
        "segment_map 2097152 addr=0x10000000\nsegment_map 50331648 addr=0x10200000\n"
        "segment_map 75497472 addr=0x20000000\n",
        &recording);
    assert_int_equal(frag_evidence_segment_sizes(&recording.traces[0], sizes), 1);
    assert_int_equal(sizes[0], 24);
    assert_int_equal(frag_evidence_unit(&recording.traces[0]), 2 * FRAG_MIB);
    assert_int_equal(frag_evidence_range_distance(&recording.traces[0]), 0x10000000);
    frag_recording_destroy(&recording);
    frag_test_recording("alloc 0 512\n", &recording);
    assert_int_equal(frag_evidence_unit(&recording.traces[0]), 0);
    assert_int_equal(frag_evidence_range_distance(&recording.traces[0]), 0);
    frag_recording_destroy(&recording);
}

/* Is what was given back before the last of the events what garbage collection gives back? */
static bool collects(const char *before, uint64_t *held)
{
    frag_recording recording;
    frag_text text = {0};
    frag_text_add(&text,
                  "segment_alloc 20971520 addr=0x10000000\nsegment_alloc 2097152 addr=0x20000000\n"
                  "segment_alloc 2097664 addr=0x30000000\nalloc 1 512 addr=0x10000200\n%s"
                  "alloc 0 512 addr=0x10000000\n",
                  before);
    frag_test_recording(text.bytes, &recording);
    const frag_trace *trace = &recording.traces[0];
    bool is_so = frag_evidence_collects(trace, trace->event_count - 1, held);
    assert_false(frag_evidence_collects(trace, trace->event_count, held));
    assert_false(frag_evidence_collects(trace, 0, held));
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
    return is_so;
}

static void collection_gives_back_large_segments_alone_while_little_is_held(void **state)
{
    (void)state;
    uint64_t held = 0;
    static const char large[] = "segment_free 20971520 addr=0x10000000\n";
    assert_false(collects("", &held));
    /* As much as ever is held: that is a retry. */
    assert_false(collects(large, &held));
    char text[512];
    snprintf(text, sizeof text, "segment_free 2097152 addr=0x20000000\nfree 1\n%s", large);
    assert_true(collects(text, &held));
    assert_int_equal(held, 20 * FRAG_MIB + 2097664);
    snprintf(text, sizeof text, "segment_free 2097152 addr=0x20000000\nfree 1\n%s",
             "segment_free 2097664 addr=0x30000000\n");
    assert_true(collects(text, &held));
    snprintf(text, sizeof text, "segment_free 2097664 addr=0x30000000\nfree 1\n%s",
             "segment_free 2097152 addr=0x20000000\n");
    assert_false(collects(text, &held));
}

static void the_first_other_kind_of_memory_is_a_switch(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t event;
        bool is_on;
    } cases[] = {
        {"segment_alloc 2097152 addr=0x10000000\nalloc 0 512\n"
         "segment_map 2097152 addr=0x20000000\nsegment_alloc 2097152 addr=0x30000000\n",
         2, true},
        {"segment_map 2097152 addr=0x20000000\nsegment_alloc 2097152 addr=0x30000000\n", 1, false},
        {"segment_map 2097152 addr=0x20000000\nsegment_map 2097152 addr=0x30000000\n", 0, false},
        {"segment_alloc 2097152 addr=0x20000000\nsegment_alloc 2097152 addr=0x30000000\n", 0,
         false},
        /* Of a private pool, and from before the recording: no sign of a switch. */
        {"segment_alloc 2097152 addr=0x10000000\nsegment_map 2097152 addr=0x20000000 pool=1\n", 0,
         false},
        {"segment_alloc 2097152 addr=0x10000000 initial\nsegment_map 2097152 addr=0x20000000\n", 0,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        frag_recording recording;
        bool is_on = false;
        frag_test_recording(cases[i].text, &recording);
        assert_int_equal(frag_evidence_switch(&recording.traces[0], &is_on), cases[i].event);
        assert_int_equal(is_on, cases[i].is_on);
        frag_recording_destroy(&recording);
    }
}

static void the_nearest_two_ranges_tell_their_distance(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t distance;
    } cases[] = {
        {"alloc 0 512\n", 0},
        {"segment_map 0x200000 addr=0x10000000\n", 0},
        /* One grows: still one range. */
        {"segment_map 0x200000 addr=0x10000000\nsegment_map 0x200000 addr=0x10200000\n", 0},
        {"segment_map 0x200000 addr=0x10000000\nsegment_map 0x200000 addr=0x30000000\n",
         0x20000000},
        /* The nearest two are neither the first nor in order. */
        {"segment_map 0x200000 addr=0x90000000\nsegment_map 0x200000 addr=0x30000000\n"
         "segment_map 0x200000 addr=0x10000000\nsegment_map 0x200000 addr=0x58000000\n",
         0x20000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_recording recording;
        frag_test_recording(cases[i].text, &recording);
        assert_int_equal(frag_evidence_range_distance(&recording.traces[0]), cases[i].distance);
        frag_recording_destroy(&recording);
    }
}

static void expect_sizes(const char *text, const uint64_t *expected, uint32_t count)
{
    frag_recording recording;
    uint64_t sizes[FRAG_EVIDENCE_SIZES_MAX];
    frag_test_recording(text, &recording);
    assert_int_equal(frag_evidence_segment_sizes(&recording.traces[0], sizes), count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sizes[i], expected[i]);
    frag_recording_destroy(&recording);
}

static void sizes_of_segments_are_told_once_each(void **state)
{
    (void)state;
    /* Of 32, 48, 32 and 48 MiB, for requests of 2 MiB. */
    expect_sizes("segment_alloc 33554432 addr=0x10000000\nalloc 0 2097152 addr=0x10000000\n"
                 "segment_alloc 50331648 addr=0x20000000\nalloc 1 2097152 addr=0x20000000\n"
                 "segment_alloc 33554432 addr=0x30000000\nalloc 2 2097152 addr=0x30000000\n"
                 "segment_alloc 50331648 addr=0x40000000\nalloc 3 2097152 addr=0x40000000\n",
                 (const uint64_t[]){32, 48}, 2);
    /* The default, and one that the request itself explains. */
    expect_sizes("segment_alloc 20971520 addr=0x10000000\nalloc 0 2097152 addr=0x10000000\n"
                 "segment_alloc 14680064 addr=0x20000000\nalloc 1 8388608 addr=0x20000000\n",
                 NULL, 0);
    /* Another request lies there, or none. */
    expect_sizes("segment_alloc 33554432 addr=0x10000000\nalloc 0 2097152 addr=0x10200000\n", NULL,
                 0);
    expect_sizes("alloc 0 2097152 addr=0x10000000\nsegment_alloc 33554432 addr=0x20000000\n", NULL,
                 0);
    /* What mappings are multiples of; small ones do not count. */
    expect_sizes("segment_map 67108864 addr=0x10000000\nsegment_map 2097152 addr=0x50000000\n"
                 "segment_map 100663296 addr=0x20000000\n",
                 (const uint64_t[]){32}, 1);
    expect_sizes("segment_map 67108864 addr=0x10000000\nsegment_map 8388608 addr=0x20000000\n",
                 NULL, 0);
}

static void the_first_oom_tells_the_capacity(void **state)
{
    (void)state;
    frag_recording recording;
    frag_test_recording("alloc 0 512\n", &recording);
    assert_int_equal(frag_evidence_capacity(&recording.traces[0]), 0);
    frag_recording_destroy(&recording);
    /* 2 and 20 MiB less 20 again, 4 MiB mapped less 2, 3 MiB that take two pages; 7 bytes free. */
    frag_test_recording("segment_alloc 2097152 addr=0x10000000\n"
                        "segment_alloc 20971520 addr=0x20000000\n"
                        "segment_map 4194304 addr=0x30000000\n"
                        "segment_free 20971520 addr=0x20000000\n"
                        "segment_unmap 2097152 addr=0x30000000\n"
                        "segment_alloc 3145728 addr=0x40000000\noom 1000 free=7\n"
                        "oom 1000 free=700\n",
                        &recording);
    assert_int_equal(frag_evidence_capacity(&recording.traces[0]), 8 * FRAG_MIB + 7);
    frag_recording_destroy(&recording);
}

static void the_first_share_is_the_limit(void **state)
{
    (void)state;
    frag_recording recording;
    frag_test_recording("limit 1000000\nlimit 750000000 ratio\nlimit 500000000 ratio\n",
                        &recording);
    assert_true(frag_evidence_limit_ratio(&recording.traces[0]) == 0.75);
    frag_recording_destroy(&recording);
    frag_test_recording("limit 1000000\n", &recording);
    assert_true(frag_evidence_limit_ratio(&recording.traces[0]) == 0);
    frag_recording_destroy(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_show_sizes_where_no_rounding_explains_them),
        cmocka_unit_test(large_mappings_show_what_they_are_multiples_of),
        cmocka_unit_test(collection_gives_back_large_segments_alone_while_little_is_held),
        cmocka_unit_test(the_nearest_two_ranges_tell_their_distance),
        cmocka_unit_test(sizes_of_segments_are_told_once_each),
        cmocka_unit_test(the_first_oom_tells_the_capacity),
        cmocka_unit_test(the_first_share_is_the_limit),
        cmocka_unit_test(the_first_other_kind_of_memory_is_a_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
