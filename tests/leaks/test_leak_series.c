/* Tests of leak_series.c: its rule, written a second time in whole numbers, on every short series
 * of small values and on longer ones that are drawn. */
#include "studies/leaks/leak_series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/xorshift.h"

enum { LONGEST = 32, DRAWN = 60000 };

static int64_t rise_of(const uint64_t *values, size_t from, size_t to)
{
    return (int64_t)values[to] - (int64_t)values[from];
}

/* The warm-up, and what is flat behind it, but for the last four values. */
static size_t start_of(const uint64_t *values, size_t count)
{
    size_t start = count >= 12 ? count / 6 : 1;
    for (; count - start > 4; start++)
        if (values[start] != values[start + 1])
            break;
    return start;
}

static size_t first_of(const uint64_t *values, size_t start, size_t count)
{
    int64_t steps = (int64_t)(count - 1 - start), all = rise_of(values, start, count - 1);
    size_t at = start;
    for (; at > 0; at--) {
        int64_t rise = rise_of(values, at - 1, at);
        if (rise <= 0 || rise * steps > 3 * all)
            break;
    }
    while (at + 1 < count && rise_of(values, at, at + 1) <= 0)
        at++;
    return at + 1 == count ? at : at + 1;
}

static void check(const uint64_t *values, size_t count)
{
    size_t start = start_of(values, count), steps = count - 1 - start;
    int64_t up = 0, down = 0, all = rise_of(values, start, count - 1);
    size_t rises = 0, last = 0;
    for (size_t i = start + 1; i < count; i++) {
        int64_t rise = rise_of(values, i - 1, i);
        up += rise > 0 ? rise : 0;
        down -= rise < 0 ? rise : 0;
        rises += rise > 0;
        last = rise > 0 ? i : last;
    }
    int64_t thirds[3];
    bool is_even = true;
    for (size_t i = 0; i < 3; i++) {
        thirds[i] = rise_of(values, start + steps * i / 3, start + steps * (i + 1) / 3);
        is_even = is_even && 6 * thirds[i] >= all && 10 * thirds[i] <= 6 * all;
    }
    bool is_falling = up == 0 || 10 * down > up || all <= 0;
    bool is_slow = 9 * thirds[2] < all;
    bool is_leak =
        thirds[0] > 0 && thirds[1] > 0 && !is_slow && rises >= (size_t)(steps < 8 ? 2 : 3);
    frag_leak_shape shape = is_falling   ? FRAG_SHAPE_FLAT
                            : rises == 1 ? FRAG_SHAPE_ONCE
                            : is_leak    ? FRAG_SHAPE_LEAK
                            : is_slow    ? FRAG_SHAPE_LEVELS_OFF
                                         : FRAG_SHAPE_FLAT;
    frag_leak_judgement found = frag_leak_judge(values, count);
    assert_int_equal(found.shape, shape);
    assert_int_equal(found.start, start);
    assert_int_equal(found.last_rise, last);
    assert_true(found.rising_ratio == (double)rises / (double)steps);
    assert_int_equal(found.is_even, shape == FRAG_SHAPE_LEAK && is_even);
    if (!is_falling)
        assert_int_equal(found.first, first_of(values, start, count));
}

static void every_short_series_is_judged_by_the_rule(void **state)
{
    (void)state;
    uint64_t values[8];
    for (size_t count = 4; count <= 8; count++)
        for (uint64_t number = 0; number < (uint64_t)1 << 2 * count; number++) {
            for (size_t i = 0; i < count; i++)
                values[i] = number >> 2 * i & 3;
            check(values, count);
        }
}

/* Most rise by small numbers, so that sums meet each other; some steps are flat or fall. */
static void longer_series_are_judged_by_the_rule(void **state)
{
    (void)state;
    uint64_t bits = 20261127;
    uint64_t values[LONGEST];
    for (unsigned i = 0; i < DRAWN; i++) {
        size_t count = 4 + xorshift_next(&bits) % (LONGEST - 3);
        uint64_t most = 1 + xorshift_next(&bits) % 12, level = 20;
        uint64_t quiet = xorshift_next(&bits) % 4;
        for (size_t j = 0; j < count; j++) {
            uint64_t draw = xorshift_next(&bits) % 16;
            level += draw < 4 * quiet ? 0 : draw % (most + 1);
            level -= draw == 15 && level > 0 ? 1 : 0;
            values[j] = level;
        }
        check(values, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_series_is_judged_by_the_rule),
        cmocka_unit_test(longer_series_are_judged_by_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
