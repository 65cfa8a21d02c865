/* Tests of series.c: rows thinned without losing an extreme. */
#include "sim/replay/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define EVENTS 20000u
#define FIGURES 5u
#define TRACKED 3u

/* The same figures on every machine. */
static uint64_t figure_at(uint64_t event, uint32_t figure)
{
    uint64_t r = (event * FIGURES + figure + 1) * 0x9e3779b97f4a7c15u;
    r = (r ^ (r >> 30)) * 0xbf58476d1ce4e5b9u;
    return (r ^ (r >> 31)) % 1000003;
}

static frag_series *filled(uint64_t row_max)
{
    frag_series *series =
        frag_series_create(&(frag_series_shape){FIGURES, TRACKED, EVENTS, row_max});
    for (uint64_t event = 0; event < EVENTS; event++) {
        uint64_t figures[FIGURES];
        for (uint32_t i = 0; i < FIGURES; i++)
            figures[i] = figure_at(event, i);
        frag_series_observe(series, event, figures);
    }
    return series;
}

static void keeps_whole_rows_as_they_were(void **state)
{
    (void)state;
    frag_series *series = filled(frag_series_row_min(TRACKED));
    size_t count = frag_series_finish(series);
    assert_true(count > 2 && count <= frag_series_row_min(TRACKED));
    for (size_t row = 0; row < count; row++)
        for (uint32_t i = 0; i < FIGURES; i++)
            assert_int_equal(frag_series_figures(series, row)[i],
                             figure_at(frag_series_event(series, row), i));
    frag_series_destroy(series);
}

/* Of the range of events, over all of them or the kept rows. */
static void find_ends(const frag_series *series, size_t count, uint32_t figure, uint64_t ends[4])
{
    ends[0] = ends[2] = UINT64_MAX;
    ends[1] = ends[3] = 0;
    for (uint64_t event = 0; event < EVENTS; event++) {
        uint64_t value = figure_at(event, figure);
        ends[0] = value < ends[0] ? value : ends[0];
        ends[1] = value > ends[1] ? value : ends[1];
    }
    for (size_t row = 0; row < count; row++) {
        uint64_t value = frag_series_figures(series, row)[figure];
        ends[2] = value < ends[2] ? value : ends[2];
        ends[3] = value > ends[3] ? value : ends[3];
    }
}

static void loses_no_extreme_of_a_tracked_figure(void **state)
{
    (void)state;
    for (uint64_t row_max = frag_series_row_min(TRACKED); row_max < 2000; row_max = row_max * 3) {
        frag_series *series = filled(row_max);
        size_t count = frag_series_finish(series);
        uint64_t ends[4];
        for (uint32_t i = 0; i < TRACKED; i++) {
            find_ends(series, count, i, ends);
            assert_int_equal(ends[2], ends[0]);
            assert_int_equal(ends[3], ends[1]);
        }
        /* What is carried along is not looked for. */
        find_ends(series, count, FIGURES - 1, ends);
        assert_int_not_equal(ends[3], ends[1]);
        frag_series_destroy(series);
    }
}

static void begins_and_ends_with_the_run(void **state)
{
    (void)state;
    frag_series *series = filled(100);
    size_t count = frag_series_finish(series);
    assert_int_equal(frag_series_event(series, 0), 0);
    assert_int_equal(frag_series_event(series, count - 1), EVENTS - 1);
    for (size_t row = 1; row < count; row++)
        assert_true(frag_series_event(series, row) > frag_series_event(series, row - 1));
    frag_series_destroy(series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_whole_rows_as_they_were),
        cmocka_unit_test(loses_no_extreme_of_a_tracked_figure),
        cmocka_unit_test(begins_and_ends_with_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
