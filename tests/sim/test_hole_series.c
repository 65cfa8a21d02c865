/* Tests of hole_series.c: holes by size over a run. */
#include "sim/replay/hole_series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "sim/run.h"
#include "tests/support/text_recording.h"

/* Nothing is free before event 4, then 4 bytes, then 4 and 16, at last 4 again; a byte is a page.
 */
static const char *const events = "alloc 0 4\n"
                                  "alloc 1 1\n"
                                  "alloc 2 16\n"
                                  "alloc 3 1\n"
                                  "free 0\n"
                                  "free 2\n"
                                  "mark \"nothing changes\"\n"
                                  "alloc 0 16\n";
enum { LAST = 7 };

static frag_hole_series *observed(frag_recording *recording, frag_hole_options options)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED, .page_bytes = 1};
    frag_test_recording(events, recording);
    options.trace = &recording->traces[0];
    for (uint32_t i = 0; options.size_count == 0 && i < FRAG_HOLE_SIZES_MAX; i++)
        options.sizes[i] = 8 + i; /* no hole lies between them */
    if (options.size_count == 0)
        options.size_count = FRAG_HOLE_SIZES_MAX;
    options.sample_max = 1000;
    options.log_min = 2;
    options.log_max = 5;
    options.end = LAST;
    frag_hole_series *series = frag_hole_series_create(&options);
    assert_true(frag_policy_spec_parse("best-fit:align=1,grow=1", &spec, &error));
    frag_replay_options replay = {.stop_after = FRAG_UNLIMITED,
                                  .observer = frag_hole_series_observe,
                                  .observer_context = series};
    assert_true(
        frag_run_look(&(frag_run_setup){recording, options.trace, spec.ops, spec.values, &device},
                      &replay, NULL, NULL, &error));
    frag_policy_spec_destroy(&spec);
    return series;
}

static void drop(frag_hole_series *series, frag_recording *recording)
{
    frag_hole_series_destroy(series);
    frag_recording_destroy(recording);
}

static bool is_about(double value, double expected)
{
    return value > expected - 1e-9 && value < expected + 1e-9;
}

static void samples_tell_the_holes_of_each_event(void **state)
{
    (void)state;
    static const struct {
        uint64_t free_bytes;
        uint64_t largest_bytes;
        uint64_t holes;
        uint64_t small_bytes;
    } expected[] = {{0, 0, 0, 0}, {0, 0, 0, 0},   {0, 0, 0, 0},   {0, 0, 0, 0},
                    {4, 4, 1, 4}, {20, 16, 2, 4}, {20, 16, 2, 4}, {4, 4, 1, 4}};
    frag_recording recording;
    frag_hole_series *series =
        observed(&recording, (frag_hole_options){.every = 1, .column_count = 1});
    assert_int_equal(frag_hole_series_finish(series), LAST + 1);
    for (size_t i = 0; i <= LAST; i++) {
        frag_hole_sample sample = frag_hole_series_sample(series, i);
        assert_int_equal(sample.event, i);
        assert_int_equal(sample.free_bytes, expected[i].free_bytes);
        assert_int_equal(sample.largest_hole_bytes, expected[i].largest_bytes);
        assert_int_equal(sample.hole_count, expected[i].holes);
        for (uint32_t size = 0; size < FRAG_HOLE_SIZES_MAX; size++)
            assert_int_equal(sample.small_bytes[size], expected[i].small_bytes);
        assert_int_equal(sample.level.reserved_bytes,
                         sample.level.allocated_bytes + sample.free_bytes);
    }
    drop(series, &recording);
}

static void columns_are_means_over_what_lasted(void **state)
{
    (void)state;
    frag_recording recording;
    frag_hole_series *series =
        observed(&recording, (frag_hole_options){.every = 1, .column_count = LAST});
    assert_true(frag_hole_series_mean(series, 0, 3) < 0);
    assert_true(frag_hole_series_mean(series, 3, 3) < 0);
    assert_true(is_about(frag_hole_series_mean(series, 4, 2), 0));
    assert_true(is_about(frag_hole_series_mean(series, 4, 3), 1));
    assert_true(is_about(frag_hole_series_mean(series, 5, 2), 0));
    assert_true(is_about(frag_hole_series_mean(series, 5, 3), 0.2));
    assert_true(is_about(frag_hole_series_mean(series, 6, 4), 0.2));
    assert_true(is_about(frag_hole_series_mean(series, 6, 5), 1));
    drop(series, &recording);
    /* Of a half, one part in seven has nothing free, two have 1, four have 0.2. */
    series = observed(&recording, (frag_hole_options){.every = 1, .column_count = 2});
    assert_true(frag_hole_series_mean(series, 0, 3) < 0);
    assert_true(is_about(frag_hole_series_mean(series, 1, 3), (1 + 2 * 0.2) / 3));
    drop(series, &recording);
}

/* Positions stretch the last event but two, and the grid begins in the middle. */
static void positions_and_a_start_cut_the_grid(void **state)
{
    (void)state;
    static const uint64_t positions[] = {0, 1, 2, 3, 10, 20, 50, 60};
    frag_recording recording;
    frag_hole_series *series = observed(
        &recording,
        (frag_hole_options){.every = 1, .column_count = 5, .positions = positions, .start = 4});
    assert_int_equal(frag_hole_series_finish(series), LAST - 4 + 1);
    assert_int_equal(frag_hole_series_sample(series, 0).event, 4);
    assert_true(is_about(frag_hole_series_mean(series, 0, 3), 1));
    for (uint32_t column = 1; column < 5; column++)
        assert_true(is_about(frag_hole_series_mean(series, column, 3), 0.2));
    drop(series, &recording);
}

static void every_other_event_is_looked_at_when_told_so(void **state)
{
    (void)state;
    frag_recording recording;
    frag_hole_series *series =
        observed(&recording, (frag_hole_options){.every = 3, .column_count = LAST});
    static const uint64_t looked_at[] = {0, 3, 6, LAST};
    assert_int_equal(frag_hole_series_finish(series), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(frag_hole_series_sample(series, i).event, looked_at[i]);
    assert_int_equal(frag_hole_series_sample(series, 2).free_bytes, 20);
    drop(series, &recording);
}

static void a_hole_as_large_as_a_size_serves_it(void **state)
{
    (void)state;
    static const uint64_t too_small[] = {0, 4, 4, 20}; /* of the holes of 4 and 16 */
    frag_recording recording;
    frag_hole_series *series = observed(
        &recording, (frag_hole_options){
                        .every = 1, .column_count = 1, .sizes = {4, 5, 16, 17}, .size_count = 4});
    assert_int_equal(frag_hole_series_finish(series), LAST + 1);
    for (uint32_t size = 0; size < 4; size++)
        assert_int_equal(frag_hole_series_sample(series, 5).small_bytes[size], too_small[size]);
    drop(series, &recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_tell_the_holes_of_each_event),
        cmocka_unit_test(columns_are_means_over_what_lasted),
        cmocka_unit_test(positions_and_a_start_cut_the_grid),
        cmocka_unit_test(every_other_event_is_looked_at_when_told_so),
        cmocka_unit_test(a_hole_as_large_as_a_size_serves_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
