/* Tests of timeline.c: samples of a run that keep every peak. */
#include "sim/replay/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EVENTS 100000u

/* The same levels on every machine; peaks of one event stand anywhere. */
static frag_level level_at(uint64_t event)
{
    uint64_t r = (event + 1) * 0x9e3779b97f4a7c15u;
    r = (r ^ (r >> 30)) * 0xbf58476d1ce4e5b9u;
    r ^= r >> 31;
    frag_level level = {r % 1000003, r % 1000033 + 7, r % 1000037 + 9, r % 1000039 + 11};
    if (event == 77777)
        level.reserved_bytes = 5000000;
    if (event == 12345)
        level.requested_bytes = 4000000;
    return level;
}

static void observe(frag_timeline *timeline, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        frag_level level = level_at(i);
        frag_timeline_add(timeline, i, &level);
    }
}

static void check_samples(const frag_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        frag_level level = level_at(samples[i].event);
        assert_memory_equal(&samples[i].level, &level, sizeof level);
        assert_true(i == 0 || samples[i].event > samples[i - 1].event);
    }
}

static void keeps_every_event_of_a_short_run(void **state)
{
    (void)state;
    frag_timeline *timeline = frag_timeline_create(4000, 4000);
    observe(timeline, 0, 4000);
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    assert_int_equal(count, 4000);
    check_samples(samples, count);
    frag_timeline_destroy(timeline);
}

static void never_keeps_more_than_it_may(void **state)
{
    (void)state;
    for (uint64_t max = FRAG_TIMELINE_SAMPLES_MIN; max < 200; max++)
        for (uint64_t events = 1; events < 500; events += 31) {
            frag_timeline *timeline = frag_timeline_create(events, max);
            observe(timeline, 0, events);
            size_t count = 0;
            const frag_sample *samples = frag_timeline_finish(timeline, &count);
            assert_true(count <= max);
            check_samples(samples, count);
            assert_int_equal(samples[0].event, 0);
            assert_int_equal(samples[count - 1].event, events - 1);
            frag_timeline_destroy(timeline);
        }
}

static uint64_t *field(frag_level *level, size_t index)
{
    uint64_t *fields[] = {&level->requested_bytes, &level->allocated_bytes, &level->active_bytes,
                          &level->reserved_bytes};
    return fields[index];
}

/* The lowest and highest of each level over a range of events, among all of them or the samples
 * only. */
static void keeps_lowest_and_highest_of_each_bucket(void **state)
{
    (void)state;
    const uint64_t max = 810;
    const uint64_t buckets = (max - 2) / 8;
    const uint64_t width = (EVENTS - 1) / buckets + 1;
    frag_timeline *timeline = frag_timeline_create(EVENTS, max);
    observe(timeline, 0, EVENTS);
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    assert_true(count <= max);
    check_samples(samples, count);
    size_t at = 0;
    for (uint64_t start = 0; start < EVENTS; start += width) {
        uint64_t end = start + width < EVENTS ? start + width : EVENTS;
        size_t last = at;
        while (last < count && samples[last].event < end)
            last++;
        for (size_t f = 0; f < 4; f++) {
            uint64_t lowest = UINT64_MAX, highest = 0, lowest_kept = UINT64_MAX, highest_kept = 0;
            for (uint64_t i = start; i < end; i++) {
                frag_level level = level_at(i);
                uint64_t value = *field(&level, f);
                lowest = value < lowest ? value : lowest;
                highest = value > highest ? value : highest;
            }
            for (size_t i = at; i < last; i++) {
                frag_level level = samples[i].level;
                uint64_t value = *field(&level, f);
                lowest_kept = value < lowest_kept ? value : lowest_kept;
                highest_kept = value > highest_kept ? value : highest_kept;
            }
            assert_int_equal(lowest_kept, lowest);
            assert_int_equal(highest_kept, highest);
        }
        at = last;
    }
    frag_timeline_destroy(timeline);
}

static void keeps_a_peak_of_one_event(void **state)
{
    (void)state;
    frag_timeline *timeline = frag_timeline_create(EVENTS, FRAG_TIMELINE_SAMPLES_MIN);
    observe(timeline, 0, EVENTS);
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    bool has_requested = false;
    bool has_reserved = false;
    for (size_t i = 0; i < count; i++) {
        has_requested = has_requested ||
                        (samples[i].event == 12345 && samples[i].level.requested_bytes == 4000000);
        has_reserved = has_reserved ||
                       (samples[i].event == 77777 && samples[i].level.reserved_bytes == 5000000);
    }
    assert_true(has_requested);
    assert_true(has_reserved);
    frag_timeline_destroy(timeline);
}

static void takes_a_run_that_begins_late_and_stops_early(void **state)
{
    (void)state;
    frag_timeline *timeline = frag_timeline_create(EVENTS, 100);
    observe(timeline, 40001, 40003);
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    assert_int_equal(count, 2);
    assert_int_equal(samples[0].event, 40001);
    assert_int_equal(samples[1].event, 40002);
    frag_timeline_destroy(timeline);
}

static void holds_nothing_of_a_run_without_events(void **state)
{
    (void)state;
    frag_timeline *timeline = frag_timeline_create(0, 4000);
    size_t count = 1;
    frag_timeline_finish(timeline, &count);
    assert_int_equal(count, 0);
    frag_timeline_destroy(timeline);
    frag_timeline_destroy(NULL);
}

static void names_the_first_event_that_reached_an_extreme(void **state)
{
    (void)state;
    frag_timeline *timeline = frag_timeline_create(1000, FRAG_TIMELINE_SAMPLES_MIN);
    for (uint64_t i = 0; i < 1000; i++) {
        frag_level level = {.reserved_bytes = i >= 300 && i < 600 ? 9 : 3};
        frag_timeline_add(timeline, i, &level);
    }
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    assert_int_equal(count, 3);
    assert_int_equal(samples[0].event, 0);
    assert_int_equal(samples[1].event, 300);
    assert_int_equal(samples[2].event, 999);
    frag_timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_event_of_a_short_run),
        cmocka_unit_test(never_keeps_more_than_it_may),
        cmocka_unit_test(keeps_lowest_and_highest_of_each_bucket),
        cmocka_unit_test(keeps_a_peak_of_one_event),
        cmocka_unit_test(takes_a_run_that_begins_late_and_stops_early),
        cmocka_unit_test(holds_nothing_of_a_run_without_events),
        cmocka_unit_test(names_the_first_event_that_reached_an_extreme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
