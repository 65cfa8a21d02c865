/* Tests of lanes.h: comparing several values at once. */
#include "base/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int32_t samples[FRAG_LANE_COUNT] = {5,  0,         -3, 900, 5,  INT32_MAX, 1, 2,
                                                 77, INT32_MIN, 6,  6,   -1, 40000,     8, 12};

/* The samples, beginning with the i-th. */
static frag_lanes turned(uint32_t turn)
{
    frag_lanes lanes;
    for (uint32_t i = 0; i < FRAG_LANE_COUNT; i++)
        lanes.values[i] = samples[(i + turn) % FRAG_LANE_COUNT];
    return lanes;
}

static void tells_which_values_are_above_a_bound(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < FRAG_LANE_COUNT; turn++)
        for (uint32_t k = 0; k < FRAG_LANE_COUNT; k++) {
            frag_lanes lanes = turned(turn);
            uint32_t mask = frag_lanes_above(&lanes, samples[k]);
            for (uint32_t i = 0; i < FRAG_LANE_COUNT; i++)
                assert_int_equal(mask >> i & 1, lanes.values[i] > samples[k]);
            assert_int_equal(mask >> FRAG_LANE_COUNT, 0);
        }
}

static void finds_the_largest_wherever_it_is(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < FRAG_LANE_COUNT; turn++) {
        frag_lanes lanes = turned(turn);
        assert_int_equal(frag_lanes_largest(&lanes), INT32_MAX);
    }
    frag_lanes low = {.values = {0}};
    for (uint32_t i = 0; i < FRAG_LANE_COUNT; i++)
        low.values[i] = -7 - (int32_t)i;
    assert_int_equal(frag_lanes_largest(&low), -7);
}

static void sets_one_value_and_leaves_the_others(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < FRAG_LANE_COUNT; at++) {
        frag_lanes lanes = turned(0);
        frag_lanes before = lanes;
        frag_lanes_set(&lanes, at, 50000);
        for (uint32_t i = 0; i < FRAG_LANE_COUNT; i++)
            assert_int_equal(lanes.values[i], i == at ? 50000 : before.values[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_which_values_are_above_a_bound),
        cmocka_unit_test(finds_the_largest_wherever_it_is),
        cmocka_unit_test(sets_one_value_and_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
